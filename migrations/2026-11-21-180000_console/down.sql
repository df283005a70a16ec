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
DROP TRIGGER log_text_in;
DROP TRIGGER log_call_state;
DROP TRIGGER log_call_created;
DROP TRIGGER log_turn_state;
DROP TRIGGER log_turn_begun;
DROP TRIGGER log_conversation_ended;
DROP TRIGGER log_conversation_begun;
ALTER TABLE conversations DROP COLUMN stream_floor;
DROP TABLE stream_events;
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
