-- Users of a Seerr, where people ask for titles, are linked to people as users of media servers are. All stored rows
-- fulfill the new condition, so the schema is edited in place, as section 7 of
-- https://www.sqlite.org/lang_altertable.html describes, and no table is rebuilt.
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES ('CHECK (server = ''jellyfin'' OR server = ''plex'')');
-- Fails if the condition does not exist in the schema.
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'viewer_accounts' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition),
  'CHECK (server = ''jellyfin'' OR server = ''plex'' OR server = ''seerr'')')
WHERE name = 'viewer_accounts';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
-- A request for a title is made in the name of one user.
CREATE UNIQUE INDEX ux_viewer_account_seerr ON viewer_accounts(user_id) WHERE server = 'seerr';
