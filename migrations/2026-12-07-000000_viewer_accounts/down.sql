-- The program before does not know these outcomes of a deletion, which need a media server.
UPDATE tool_call_items SET result = '"failed"' WHERE result = '"being_watched"' OR result = '"viewing_unknown"';

-- It does not know requests for the link of an account either. The messages about them are not sent any more.
UPDATE outbox SET state = 'suppressed' WHERE state = 'queued' AND EXISTS (
  SELECT 1 FROM approvals WHERE kind = 'account' AND dedupe_key GLOB 'approval:' || approvals.id || ':*');
DELETE FROM approvals WHERE kind = 'account';
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES ('CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'')');
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'approvals' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition), 'CHECK (kind = ''join'' OR kind = ''delete'')')
WHERE name = 'approvals';
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
ALTER TABLE approvals DROP COLUMN account_name;
ALTER TABLE approvals DROP COLUMN account_id;

-- It would show answers about what somebody has watched, and keep them.
UPDATE outbox SET body = '' WHERE state NOT IN ('queued','attempting','unknown')
  AND turn_id IN (SELECT id FROM turns WHERE about_viewing = 1);
UPDATE blocks SET content = '' WHERE turn_id IN (SELECT id FROM turns WHERE about_viewing = 1);
UPDATE tool_calls SET response = '{"for_model":{"forgotten":true},"for_user":"","shown":[]}'
  WHERE response IS NOT NULL AND turn_id IN (SELECT id FROM turns WHERE about_viewing = 1);
UPDATE turns SET response_text = NULL WHERE about_viewing = 1 AND finished_at IS NOT NULL;

DROP INDEX ix_turn_about_viewing;
ALTER TABLE turns DROP COLUMN about_viewing;
DROP TABLE viewer_accounts;
