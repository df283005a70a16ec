DROP INDEX ix_conversation_unended;
CREATE INDEX ix_conversation_idle ON conversations(last_activity_at) WHERE ended_at IS NULL;
DROP INDEX ix_response_shared;
CREATE INDEX ix_response_user ON agent_responses(user_id, id);
DROP INDEX ix_response_counts;
CREATE INDEX ix_response_counts ON agent_responses(state, scope, response_type, embed_model);

DROP INDEX ux_outbox_sid;
CREATE UNIQUE INDEX ux_outbox_sid ON outbox(provider_sid);
DROP INDEX ux_response_source;
CREATE UNIQUE INDEX ux_response_source ON agent_responses(source);
CREATE UNIQUE INDEX ux_response_turn ON agent_responses(turn_id);
CREATE TABLE replaced_text (pass INTEGER NOT NULL, table_name TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL) STRICT;
INSERT INTO replaced_text VALUES
  (1, 'inbound_events', 'id INTEGER NOT NULL PRIMARY KEY', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT'),
  (1, 'turns', 'id INTEGER NOT NULL PRIMARY KEY', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT'),
  (1, 'tool_calls', 'id INTEGER NOT NULL PRIMARY KEY', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT'),
  (1, 'outbox', 'id INTEGER NOT NULL PRIMARY KEY', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT'),
  (1, 'agent_responses', 'id INTEGER NOT NULL PRIMARY KEY', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT'),
  (2, 'outbox', 'provider_sid TEXT,', 'provider_sid TEXT UNIQUE,'),
  (2, 'agent_responses', 'turn_id INTEGER REFERENCES', 'turn_id INTEGER UNIQUE REFERENCES'),
  (3, 'agent_responses', 'source TEXT NOT NULL,', 'source TEXT NOT NULL UNIQUE,');
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, old, new) FROM replaced_text WHERE type = 'table' AND name = table_name AND pass = 1;
UPDATE sqlite_schema SET sql = replace(sql, old, new) FROM replaced_text WHERE type = 'table' AND name = table_name AND pass = 2;
UPDATE sqlite_schema SET sql = replace(sql, old, new) FROM replaced_text WHERE type = 'table' AND name = table_name AND pass = 3;
UPDATE sqlite_schema SET name = 'sqlite_autoindex_outbox_2', sql = NULL WHERE name = 'ux_outbox_sid';
UPDATE sqlite_schema SET name = 'sqlite_autoindex_agent_responses_1', sql = NULL WHERE name = 'ux_response_turn';
UPDATE sqlite_schema SET name = 'sqlite_autoindex_agent_responses_2', sql = NULL WHERE name = 'ux_response_source';
DROP TABLE replaced_text;
PRAGMA writable_schema = RESET;
INSERT INTO sqlite_sequence (name, seq)
SELECT 'inbound_events', coalesce(max(id), 0) FROM inbound_events
UNION ALL SELECT 'turns', coalesce(max(id), 0) FROM turns
UNION ALL SELECT 'tool_calls', coalesce(max(id), 0) FROM tool_calls
UNION ALL SELECT 'outbox', coalesce(max(id), 0) FROM outbox
UNION ALL SELECT 'agent_responses', coalesce(max(id), 0) FROM agent_responses;
