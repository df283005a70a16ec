-- Events of conversations are kept in memory. Their numbers are reserved in blocks, so that none is used twice.
ALTER TABLE instance ADD COLUMN reserved_events INTEGER NOT NULL DEFAULT 0;  -- last reserved event number
ALTER TABLE instance ADD COLUMN command_changes INTEGER NOT NULL DEFAULT 0;  -- changes of conversations by shell commands
UPDATE instance SET reserved_events = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'stream_events'), 0);

DROP TRIGGER log_call_created;
DROP TRIGGER log_call_state;
DROP TRIGGER log_conversation_begun;
DROP TRIGGER log_conversation_ended;
DROP TRIGGER log_question_armed;
DROP TRIGGER log_question_asked;
DROP TRIGGER log_question_closed;
DROP TRIGGER log_reaction;
DROP TRIGGER log_reaction_removed;
DROP TRIGGER log_step_abandoned;
DROP TRIGGER log_text_in;
DROP TRIGGER log_text_out;
DROP TRIGGER log_text_skipped;
DROP TRIGGER log_text_state;
DROP TRIGGER log_text_waiting;
DROP TRIGGER log_text_words;
DROP TRIGGER log_turn_begun;
DROP TRIGGER log_turn_state;
DROP TABLE stream_events;
ALTER TABLE conversations DROP COLUMN stream_floor;
