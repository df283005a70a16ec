-- The program before would take a key for an agent for a key for the API.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, created_at) WHERE user_id IS NOT NULL;
-- It knows one open conversation for each user, and cannot continue the turn of an agent.
UPDATE tool_calls SET state = 'error', error = '{"code":"outcome_unknown","for_model":{},"for_user":null}',
    finished_at = updated_at
  WHERE finished_at IS NULL AND state <> 'held' AND run_turn_id IS NULL AND turn_id IN (
    SELECT turns.id FROM turns JOIN conversations ON conversations.id = turns.conversation_id
    WHERE turns.finished_at IS NULL AND conversations.agent_key_id IS NOT NULL);
UPDATE turns SET state = 'CANCELED', finished_at = updated_at
  WHERE finished_at IS NULL
    AND conversation_id IN (SELECT id FROM conversations WHERE agent_key_id IS NOT NULL);
UPDATE conversations SET ended_at = last_activity_at, end_reason = 'idle'
  WHERE ended_at IS NULL AND agent_key_id IS NOT NULL;

DROP TABLE agent_calls;
DROP INDEX ux_agent_conversation_open;
DROP INDEX ux_conversation_open;
CREATE UNIQUE INDEX ux_conversation_open ON conversations(user_id) WHERE ended_at IS NULL;
ALTER TABLE conversations DROP COLUMN agent_key_id;
DROP INDEX ix_api_key_user;
ALTER TABLE api_keys DROP COLUMN user_id;
