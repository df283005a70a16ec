-- A message writes fewer pages. The content of the tables does not change, so the schema is edited in place, as section 7
-- of https://www.sqlite.org/lang_altertable.html describes, and no table is rebuilt.
--
-- * The rows of five tables are never deleted, so the next id is always larger than all earlier ones, and SQLite needs no
--   record of the largest id (AUTOINCREMENT).
-- * A message that was not sent yet has no entry in the index of the carrier's ids.
-- * The answer of a turn is stored in the transaction that finishes the turn, which happens once, so only other answers
--   need an index of their sources.
CREATE TABLE replaced_text (pass INTEGER NOT NULL, table_name TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL) STRICT;
INSERT INTO replaced_text VALUES
  (1, 'inbound_events', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT', 'id INTEGER NOT NULL PRIMARY KEY'),
  (1, 'turns', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT', 'id INTEGER NOT NULL PRIMARY KEY'),
  (1, 'tool_calls', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT', 'id INTEGER NOT NULL PRIMARY KEY'),
  (1, 'outbox', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT', 'id INTEGER NOT NULL PRIMARY KEY'),
  (1, 'agent_responses', 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT', 'id INTEGER NOT NULL PRIMARY KEY'),
  (2, 'outbox', 'provider_sid TEXT UNIQUE,', 'provider_sid TEXT,'),
  (2, 'agent_responses', 'turn_id INTEGER UNIQUE REFERENCES', 'turn_id INTEGER REFERENCES'),
  (3, 'agent_responses', 'source TEXT NOT NULL UNIQUE,', 'source TEXT NOT NULL,');
-- Fails if a text does not exist in the schema.
CREATE TEMP TABLE missing_text (old TEXT CONSTRAINT text_is_missing CHECK (old IS NULL));
INSERT INTO missing_text SELECT old FROM replaced_text
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = table_name AND instr(sql, old) > 0);
DROP TABLE missing_text;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, old, new) FROM replaced_text WHERE type = 'table' AND name = table_name AND pass = 1;
UPDATE sqlite_schema SET sql = replace(sql, old, new) FROM replaced_text WHERE type = 'table' AND name = table_name AND pass = 2;
UPDATE sqlite_schema SET sql = replace(sql, old, new) FROM replaced_text WHERE type = 'table' AND name = table_name AND pass = 3;
-- The indexes of the removed constraints become indexes that can be dropped.
UPDATE sqlite_schema SET name = 'ux_outbox_sid', sql = 'CREATE UNIQUE INDEX ux_outbox_sid ON outbox(provider_sid)'
WHERE name = 'sqlite_autoindex_outbox_2';
UPDATE sqlite_schema SET name = 'ux_response_turn', sql = 'CREATE UNIQUE INDEX ux_response_turn ON agent_responses(turn_id)'
WHERE name = 'sqlite_autoindex_agent_responses_1';
UPDATE sqlite_schema SET name = 'ux_response_source', sql = 'CREATE UNIQUE INDEX ux_response_source ON agent_responses(source)'
WHERE name = 'sqlite_autoindex_agent_responses_2';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE replaced_text;
PRAGMA writable_schema = RESET;
DELETE FROM sqlite_sequence WHERE name IN ('inbound_events', 'turns', 'tool_calls', 'outbox', 'agent_responses');
DROP INDEX ux_outbox_sid;
CREATE UNIQUE INDEX ux_outbox_sid ON outbox(provider_sid) WHERE provider_sid IS NOT NULL;
DROP INDEX ux_response_turn;
DROP INDEX ux_response_source;
CREATE UNIQUE INDEX ux_response_source ON agent_responses(source) WHERE turn_id IS NULL;

-- Answers are counted here once they are indexed. Those that wait have an index of their own.
DROP INDEX ix_response_counts;
CREATE INDEX ix_response_counts ON agent_responses(state, scope, response_type, embed_model) WHERE state <> 'pending';
-- The owner of an answer that is not shared names its user.
DROP INDEX ix_response_user;
CREATE INDEX ix_response_shared ON agent_responses(user_id, id) WHERE scope <> 'user';
-- The few open conversations, without their last activity, which changes with each message.
DROP INDEX ix_conversation_idle;
CREATE INDEX ix_conversation_unended ON conversations(user_id) WHERE ended_at IS NULL;
