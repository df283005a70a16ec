ALTER TABLE users DROP COLUMN code_misses_day;
ALTER TABLE users DROP COLUMN code_misses;
ALTER TABLE outbox DROP COLUMN callback_word;
ALTER TABLE inbound_events DROP COLUMN authority;
ALTER TABLE instance DROP COLUMN seen_at;
-- The program before does not know this outcome of a deletion.
UPDATE tool_call_items SET result = '"failed"' WHERE result = '"still_there"';
ALTER TABLE outbox DROP COLUMN lookups_left;
ALTER TABLE turns DROP COLUMN work_failures;
ALTER TABLE instance DROP COLUMN counted_start_at;
PRAGMA application_id = 0;

DROP INDEX ix_audit_begun;

DROP INDEX ix_user_first_request;
ALTER TABLE users DROP COLUMN first_request_at;
ALTER TABLE users DROP COLUMN first_request;

-- The program before reads codes of two digits only. Questions with longer ones are over, and are not sent any more.
UPDATE outbox SET state = 'suppressed'
WHERE state = 'queued' AND id IN (SELECT prompt_outbox_id FROM pending_actions WHERE length(code) > 2);
UPDATE pending_actions SET expires_at = 0 WHERE length(code) > 2;
