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
DROP TRIGGER unindex_text_out;
DROP TRIGGER index_text_out;
DROP TRIGGER unindex_text_in;
DROP TRIGGER index_text_in;
DROP TABLE words_out;
DROP TABLE words_in;
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
