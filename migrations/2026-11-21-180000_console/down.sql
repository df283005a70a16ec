-- What the earlier program cannot read, or would take for something else, goes first. It writes no log.
DROP TRIGGER unindex_text_out;
DROP TRIGGER index_text_out;
DROP TRIGGER unindex_text_in;
DROP TRIGGER index_text_in;
DROP TRIGGER log_step_abandoned;
DROP TRIGGER log_reaction_removed;
DROP TRIGGER log_reaction;
DROP TRIGGER log_question_closed;
DROP TRIGGER log_question_armed;
DROP TRIGGER log_question_asked;
DROP TRIGGER log_text_state;
DROP TRIGGER log_text_out;
DROP TRIGGER log_text_skipped;
DROP TRIGGER log_text_in;
DROP TRIGGER log_call_state;
DROP TRIGGER log_call_created;
DROP TRIGGER log_turn_state;
DROP TRIGGER log_turn_begun;
DROP TRIGGER log_conversation_ended;
DROP TRIGGER log_conversation_begun;
DROP TABLE words_out;
DROP TABLE words_in;

-- It knows no people who do not exist: their texts would go to phones.
CREATE TABLE of_nobody (user_id INTEGER NOT NULL PRIMARY KEY) STRICT;
INSERT INTO of_nobody SELECT id FROM users WHERE test = 1;
UPDATE outbox SET state = 'suppressed' WHERE state = 'queued' AND EXISTS
  (SELECT 1 FROM approvals WHERE user_id IN of_nobody AND outbox.dedupe_key GLOB 'approval:' || approvals.id || ':*');
UPDATE approvals SET settled_by = NULL WHERE settled_by IN of_nobody;
UPDATE audit_log SET user_id = NULL WHERE user_id IN of_nobody;
DELETE FROM approvals WHERE user_id IN of_nobody;
DELETE FROM reactions WHERE user_id IN of_nobody;
DELETE FROM notices WHERE user_id IN of_nobody;
DELETE FROM follows WHERE user_id IN of_nobody;
DELETE FROM requests WHERE user_id IN of_nobody;
DELETE FROM additions WHERE user_id IN of_nobody;
DELETE FROM usage WHERE user_id IN of_nobody;
DELETE FROM reservations WHERE user_id IN of_nobody;
DELETE FROM pending_actions WHERE user_id IN of_nobody;
DELETE FROM tool_call_items WHERE tool_call_id IN
  (SELECT tool_calls.id FROM tool_calls JOIN turns ON turns.id = turn_id WHERE user_id IN of_nobody);
DELETE FROM tool_calls WHERE turn_id IN (SELECT id FROM turns WHERE user_id IN of_nobody);
DELETE FROM outbox WHERE user_id IN of_nobody;
DELETE FROM inbound_events WHERE user_id IN of_nobody;
DELETE FROM blocks WHERE turn_id IN (SELECT id FROM turns WHERE user_id IN of_nobody);
DELETE FROM llm_steps WHERE turn_id IN (SELECT id FROM turns WHERE user_id IN of_nobody);
DELETE FROM turns WHERE user_id IN of_nobody;
DELETE FROM conversations WHERE user_id IN of_nobody;
DELETE FROM users WHERE test = 1;
DROP TABLE of_nobody;

-- It knows no console as a way of texts, and would hand such a text to the carrier. What was asked there was read on no
-- phone, so no yes from one may count for it.
UPDATE outbox SET state = 'suppressed' WHERE from_addr = 'console' AND state IN ('queued','attempting','unknown');
UPDATE tool_call_items SET state = 'canceled' WHERE state = 'held' AND tool_call_id IN (SELECT tool_call_id
  FROM pending_actions JOIN outbox ON outbox.id = prompt_outbox_id WHERE from_addr = 'console');
UPDATE tool_calls SET state = 'canceled', error = '"dropped"', finished_at = updated_at WHERE state = 'held' AND id IN
  (SELECT tool_call_id FROM pending_actions JOIN outbox ON outbox.id = prompt_outbox_id WHERE from_addr = 'console');
DELETE FROM pending_actions WHERE prompt_outbox_id IN (SELECT id FROM outbox WHERE from_addr = 'console');

-- It would answer what was only to be remembered, and by phone what was asked in the console.
UPDATE inbound_events SET state = 'completed', outcome = 'skipped', outcome_reason = 'remembered'
  WHERE state = 'pending' AND (wants_answer = 0 OR to_addr = 'console');

-- A turn that was asked for there ends. So does one that was resumed: the key of its answer is taken.
CREATE TABLE ended (turn_id INTEGER NOT NULL PRIMARY KEY) STRICT;
INSERT INTO ended SELECT id FROM turns WHERE finished_at IS NULL
  AND (runs > 1 OR EXISTS (SELECT 1 FROM inbound_events WHERE turn_id = turns.id AND to_addr = 'console'));
UPDATE llm_steps SET state = 'abandoned', error = '{"kind":"interrupted"}', finished_at = started_at
  WHERE state = 'started' AND turn_id IN ended;
DELETE FROM reservations WHERE turn_id IN ended;
UPDATE tool_call_items SET state = 'canceled' WHERE state = 'held'
  AND tool_call_id IN (SELECT id FROM tool_calls WHERE run_turn_id IN ended);
UPDATE tool_call_items SET state = 'error', result = '"unknown"' WHERE state IN ('running','unknown')
  AND tool_call_id IN (SELECT id FROM tool_calls WHERE run_turn_id IN ended);
UPDATE tool_calls SET state = 'error', finished_at = updated_at, error = '{"code":"outcome_unknown","for_model":{"error":"outcome_unknown"},"for_user":null}'
  WHERE state IN ('running','unknown') AND effect <> 'read' AND (turn_id IN ended OR run_turn_id IN ended);
UPDATE tool_calls SET state = 'canceled', finished_at = updated_at, error = '"not_run"'
  WHERE state IN ('created','running') AND (turn_id IN ended OR run_turn_id IN ended);
UPDATE inbound_events SET state = 'completed', outcome = 'skipped', outcome_reason = 'taken_back'
  WHERE state = 'processing' AND turn_id IN ended;
UPDATE turns SET state = 'CANCELED', finished_at = updated_at WHERE id IN ended;
DROP TABLE ended;

-- Words that it has none of.
UPDATE tool_call_items SET result = '"failed"' WHERE result = '"stopped"';
UPDATE llm_steps SET error = '{"kind":"interrupted"}' WHERE error ->> '$.kind' = 'forgiven';

CREATE TABLE pauses_users_end (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  begun_at INTEGER NOT NULL,
  begun_by INTEGER NOT NULL REFERENCES users(id),
  ended_at INTEGER,
  ended_by INTEGER REFERENCES users(id),
  CHECK ((ended_at IS NULL) = (ended_by IS NULL))
) STRICT;
INSERT INTO pauses_users_end
  SELECT id, begun_at, begun_by, ended_at, iif(ended_at IS NULL, NULL, coalesce(ended_by, begun_by)) FROM pauses;
DROP TABLE pauses;
ALTER TABLE pauses_users_end RENAME TO pauses;
CREATE UNIQUE INDEX ux_pause_open ON pauses(ended_at IS NULL) WHERE ended_at IS NULL;
DROP INDEX ix_audit_kind;
DROP INDEX ix_tool_unknown;
DROP INDEX ix_turn_failed;
DROP INDEX ix_outbox_failed;
DROP TABLE api_keys;
DROP TABLE sign_in_links;
DROP TABLE sessions;
DROP TABLE console_password;
ALTER TABLE inbound_events DROP COLUMN wants_answer;
ALTER TABLE users DROP COLUMN test;
ALTER TABLE conversations DROP COLUMN stream_floor;
DROP TABLE stream_events;
ALTER TABLE turns DROP COLUMN runs;
ALTER TABLE turns ADD COLUMN last_seq INTEGER NOT NULL DEFAULT 0;
CREATE TABLE stream_events (         -- deltas as they came; kept while the turn is fresh
  turn_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,              -- 1.. per turn, across steps and attempts
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  block_type TEXT NOT NULL CHECK (block_type IN ('text','thinking','tool_call')),
  ord INTEGER NOT NULL,              -- which call of the step; 0 for text and thinking
  delta TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (turn_id, seq)
) STRICT, WITHOUT ROWID;
