-- Smaller rows and indexes for each message.
--
-- * Each entry of an index ends with the row id, so an index does not contain the id a second time, nor a column that its
--   condition fixes.
-- * The source of the answer of a turn is empty, because `turn_id` names the turn. Earlier rows keep theirs.
DROP INDEX ix_turn_conversation;
CREATE INDEX ix_turn_conversation ON turns(conversation_id);
DROP INDEX ix_turn_window;
CREATE INDEX ix_turn_window ON turns(conversation_id) WHERE finished_at IS NOT NULL AND state <> 'CANCELED';
DROP INDEX ix_outbox_user;
CREATE INDEX ix_outbox_user ON outbox(user_id);
DROP INDEX ix_event_user;
CREATE INDEX ix_event_user ON inbound_events(user_id);
DROP INDEX ix_response_pending;
CREATE INDEX ix_response_pending ON agent_responses(not_before) WHERE state = 'pending';
