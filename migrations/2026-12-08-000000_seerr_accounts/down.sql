-- The program before does not know users of a Seerr. The messages about them are not sent any more.
UPDATE outbox SET state = 'suppressed' WHERE state = 'queued' AND EXISTS (
  SELECT 1 FROM approvals WHERE kind = 'account' AND instance = 'seerr'
    AND dedupe_key GLOB 'approval:' || approvals.id || ':*');
DELETE FROM approvals WHERE kind = 'account' AND instance = 'seerr';
DROP INDEX ux_viewer_account_seerr;
DELETE FROM viewer_accounts WHERE server = 'seerr';
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition
VALUES ('CHECK (server = ''jellyfin'' OR server = ''plex'' OR server = ''seerr'')');
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'viewer_accounts' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition),
  'CHECK (server = ''jellyfin'' OR server = ''plex'')')
WHERE name = 'viewer_accounts';
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
