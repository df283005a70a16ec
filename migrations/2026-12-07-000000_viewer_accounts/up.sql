-- Users of media servers that are linked to people. What they watch is not stored.
CREATE TABLE viewer_accounts (
  server TEXT NOT NULL CHECK (server = 'jellyfin' OR server = 'plex'),
  account_id TEXT NOT NULL,            -- id of the user on the server
  account_name TEXT NOT NULL,          -- its name there when it was linked
  user_id INTEGER NOT NULL REFERENCES users(id),
  linked_at INTEGER NOT NULL,
  PRIMARY KEY (server, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_viewer_account_user ON viewer_accounts(user_id);

-- Turns whose answers mention what somebody has watched. Their text is erased after a day.
ALTER TABLE turns ADD COLUMN about_viewing INTEGER NOT NULL DEFAULT 0 CHECK (about_viewing = 0 OR about_viewing = 1);
CREATE INDEX ix_turn_about_viewing ON turns(finished_at) WHERE about_viewing = 1;

-- Requests for the link of an account. All stored rows fulfill the new condition, so the schema is edited in place, as
-- section 7 of https://www.sqlite.org/lang_altertable.html describes, and no table is rebuilt.
ALTER TABLE approvals ADD COLUMN account_id TEXT;
ALTER TABLE approvals ADD COLUMN account_name TEXT;
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES ('CHECK (kind = ''join'' OR kind = ''delete'')');
-- Fails if the condition does not exist in the schema.
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'approvals' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition),
  'CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'')')
WHERE name = 'approvals';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
