-- A key for an agent acts for one person, and opens only the address for agents.
ALTER TABLE api_keys ADD COLUMN user_id INTEGER REFERENCES users(id);   -- NULL: key for the API
CREATE INDEX ix_api_key_user ON api_keys(user_id) WHERE user_id IS NOT NULL;

-- The calls of an agent are turns of a conversation of their own, beside the conversation of the person.
ALTER TABLE conversations ADD COLUMN agent_key_id INTEGER REFERENCES api_keys(id);
DROP INDEX ux_conversation_open;
CREATE UNIQUE INDEX ux_conversation_open ON conversations(user_id) WHERE ended_at IS NULL AND agent_key_id IS NULL;
CREATE UNIQUE INDEX ux_agent_conversation_open ON conversations(agent_key_id)
  WHERE ended_at IS NULL AND agent_key_id IS NOT NULL;

-- Calls of agents. A call waits until a turn starts it, or until it is dropped. The ticket of a call that asks the person
-- is how the agent learns the outcome.
CREATE TABLE agent_calls (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  ticket TEXT NOT NULL UNIQUE,
  key_id INTEGER NOT NULL REFERENCES api_keys(id),
  user_id INTEGER NOT NULL REFERENCES users(id),
  client TEXT NOT NULL,                                   -- name of the agent as it states it; empty: unknown
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL,                                -- JSON; empty once the call of a turn has them
  effect TEXT NOT NULL CHECK (effect = 'read' OR effect = 'write' OR effect = 'destructive'),
  created_at INTEGER NOT NULL,
  turn_id INTEGER REFERENCES turns(id),
  tool_call_id INTEGER REFERENCES tool_calls(id),         -- the newest, if the question is asked again
  asked_at INTEGER,
  dropped TEXT CHECK (dropped = 'expired' OR dropped = 'revoked' OR dropped = 'not_allowed' OR dropped = 'paused'),
  CHECK (turn_id IS NULL OR dropped IS NULL),
  CHECK ((turn_id IS NULL) = (tool_call_id IS NULL)),
  CHECK (asked_at IS NULL OR tool_call_id IS NOT NULL)
) STRICT;
CREATE INDEX ix_agent_call_waiting ON agent_calls(user_id, id) WHERE turn_id IS NULL AND dropped IS NULL;
CREATE INDEX ix_agent_call_key ON agent_calls(key_id, id);
CREATE INDEX ix_agent_call_turn ON agent_calls(turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ix_agent_call_call ON agent_calls(tool_call_id) WHERE tool_call_id IS NOT NULL;
CREATE INDEX ix_agent_call_asked ON agent_calls(user_id, asked_at) WHERE asked_at IS NOT NULL;
