-- Adds the defaults and sources that rows omit.
UPDATE agent_responses SET source = 'turn:' || turn_id WHERE turn_id IS NOT NULL AND source = '';
UPDATE turns SET prompt = json_insert(prompt, '$.brain', 'model') WHERE json_type(prompt, '$.brain') IS NULL;
UPDATE tool_calls SET request = '{"arguments":{}}' WHERE request = '{}';
UPDATE tool_calls SET response = json_insert(response, '$.shown', json('[]')) WHERE response IS NOT NULL AND json_type(response, '$.shown') IS NULL;

DROP INDEX ix_response_pending;
CREATE INDEX ix_response_pending ON agent_responses(state, not_before, id) WHERE state = 'pending';
DROP INDEX ix_event_user;
CREATE INDEX ix_event_user ON inbound_events(user_id, id DESC);
DROP INDEX ix_outbox_user;
CREATE INDEX ix_outbox_user ON outbox(user_id, id DESC);
DROP INDEX ix_turn_window;
CREATE INDEX ix_turn_window ON turns(conversation_id, id) WHERE finished_at IS NOT NULL AND state <> 'CANCELED';
DROP INDEX ix_turn_conversation;
CREATE INDEX ix_turn_conversation ON turns(conversation_id, id);
