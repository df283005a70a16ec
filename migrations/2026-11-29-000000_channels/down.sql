-- Accepts only the three earlier channels again.

-- The earlier program would hand messages of other channels to its carrier, and what was asked there was read on no
-- phone of that carrier. Unsent messages, open prompts and unfinished turns of other channels end.
CREATE TABLE other_addresses (address TEXT NOT NULL PRIMARY KEY) STRICT;
INSERT INTO other_addresses
  SELECT address FROM (SELECT from_addr AS address FROM outbox UNION SELECT to_addr FROM inbound_events)
  WHERE instr(address, ':') > 0 AND address NOT GLOB 'whatsapp:*' AND address NOT GLOB 'rcs:*';
UPDATE outbox SET state = 'suppressed'
  WHERE from_addr IN other_addresses AND (state = 'queued' OR state = 'attempting' OR state = 'unknown');
CREATE TABLE other_prompts (call_id INTEGER NOT NULL PRIMARY KEY) STRICT;
INSERT INTO other_prompts
  SELECT tool_call_id FROM pending_actions JOIN outbox ON outbox.id = prompt_outbox_id
  WHERE from_addr IN other_addresses;
UPDATE tool_call_items SET state = 'canceled' WHERE state = 'held' AND tool_call_id IN other_prompts;
UPDATE tool_calls SET state = 'canceled', error = '"dropped"', finished_at = updated_at
  WHERE state = 'held' AND id IN other_prompts;
DELETE FROM pending_actions WHERE tool_call_id IN other_prompts;
DROP TABLE other_prompts;
UPDATE inbound_events SET state = 'completed', outcome = 'skipped', outcome_reason = 'remembered'
  WHERE state = 'pending' AND to_addr IN other_addresses;

CREATE TABLE ended (turn_id INTEGER NOT NULL PRIMARY KEY) STRICT;
INSERT INTO ended SELECT id FROM turns WHERE finished_at IS NULL
  AND EXISTS (SELECT 1 FROM inbound_events WHERE turn_id = turns.id AND to_addr IN other_addresses);
UPDATE llm_steps SET state = 'abandoned', error = '{"kind":"interrupted"}', finished_at = started_at
  WHERE state = 'started' AND turn_id IN ended;
DELETE FROM reservations WHERE turn_id IN ended;
UPDATE tool_call_items SET state = 'canceled' WHERE state = 'held'
  AND tool_call_id IN (SELECT id FROM tool_calls WHERE run_turn_id IN ended);
UPDATE tool_call_items SET state = 'error', result = '"unknown"' WHERE (state = 'running' OR state = 'unknown')
  AND tool_call_id IN (SELECT id FROM tool_calls WHERE run_turn_id IN ended);
UPDATE tool_calls SET state = 'error', finished_at = updated_at, error = '{"code":"outcome_unknown","for_model":{"error":"outcome_unknown"},"for_user":null}'
  WHERE (state = 'running' OR state = 'unknown') AND effect <> 'read' AND (turn_id IN ended OR run_turn_id IN ended);
UPDATE tool_calls SET state = 'canceled', finished_at = updated_at, error = '"not_run"'
  WHERE (state = 'created' OR state = 'running') AND (turn_id IN ended OR run_turn_id IN ended);
UPDATE inbound_events SET state = 'completed', outcome = 'skipped', outcome_reason = 'taken_back'
  WHERE state = 'processing' AND turn_id IN ended;
UPDATE turns SET state = 'CANCELED', finished_at = updated_at WHERE id IN ended;
DROP TABLE ended;
DROP TABLE other_addresses;

-- The history is kept: received messages count as messages by phone, under an id that the carrier does not use.
UPDATE inbound_events SET external_id = channel || ':' || external_id, channel = 'twilio'
  WHERE channel <> 'twilio' AND channel <> 'console' AND channel <> 'local';

UPDATE inbound_events SET via = 'webhook' WHERE via = 'poll';

ALTER TABLE offsets DROP COLUMN mark;

CREATE TABLE restored_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO restored_condition VALUES
  (' CHECK (channel = ''twilio'' OR channel = ''console'' OR channel = ''local'')');
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, 'channel TEXT NOT NULL', 'channel TEXT NOT NULL' || (SELECT condition FROM restored_condition))
WHERE name = 'inbound_events';
UPDATE sqlite_schema SET sql = replace(sql, ' OR via = ''poll'')', ')') WHERE name = 'inbound_events';
DROP TABLE restored_condition;
PRAGMA writable_schema = RESET;
