-- Stores which message had the button that a person pressed (0 for a button of an earlier copy), and which received
-- message an outbound reaction belongs to.
ALTER TABLE inbound_events ADD COLUMN pressed_message INTEGER;
ALTER TABLE outbox ADD COLUMN reacts_to TEXT;

-- Accepts messages of up to 4,096 characters. All stored rows fulfill the condition, so the schema is edited in place, as
-- section 7 of https://www.sqlite.org/lang_altertable.html describes, and no table is rebuilt.
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES ('CHECK (length(body) <= 1600)');
-- Fails if the condition does not exist in the schema.
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'outbox' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition), 'CHECK (length(body) <= 4096)')
WHERE name = 'outbox';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;

-- Invitations of new people, each with the hash of its code.
CREATE TABLE invitations (
  id INTEGER NOT NULL PRIMARY KEY,
  code_hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  invited_by INTEGER REFERENCES users(id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
