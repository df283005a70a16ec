-- The table and the triggers of the event log, as the program before expects them. The events themselves are lost: each
-- conversation starts after all numbers that were reserved, so that every reader gets a snapshot.
CREATE TABLE stream_events (
  seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,        -- never reused, also where events are gone
  conversation_id INTEGER NOT NULL,
  turn_id INTEGER,
  kind TEXT NOT NULL CHECK (kind IN ('conversation','turn','block_start','block_delta','block_end','step_abandoned',
    'tool_call','text_in','text_out','question','reaction')),
  subject_id INTEGER,                -- row of the tool call, text, question or reaction
  state TEXT,                        -- which it has now
  step INTEGER,
  attempt INTEGER,
  block_type TEXT CHECK (block_type IN ('text','thinking','tool_call')),
  ord INTEGER,                       -- which call of the step; 0 for text and thinking
  delta TEXT,
  created_at INTEGER NOT NULL,
  CHECK ((kind = 'block_delta') = (delta IS NOT NULL)),
  CHECK ((kind IN ('block_start','block_delta','block_end')) = (block_type IS NOT NULL)),
  CHECK ((block_type IS NULL) = (ord IS NULL)),
  CHECK (kind NOT IN ('block_start','block_delta','block_end','step_abandoned') OR (turn_id IS NOT NULL AND step IS NOT NULL AND attempt IS NOT NULL))
) STRICT;
CREATE INDEX ix_stream_conversation ON stream_events(conversation_id, seq);
CREATE INDEX ix_stream_turn ON stream_events(turn_id, seq) WHERE turn_id IS NOT NULL;
INSERT INTO sqlite_sequence (name, seq) SELECT 'stream_events', reserved_events + 1 FROM instance;
ALTER TABLE conversations ADD COLUMN stream_floor INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET stream_floor = coalesce((SELECT reserved_events + 1 FROM instance), 0);
ALTER TABLE instance DROP COLUMN command_changes;
ALTER TABLE instance DROP COLUMN reserved_events;

CREATE TRIGGER log_conversation_begun AFTER INSERT ON conversations BEGIN
  INSERT INTO stream_events (conversation_id, kind, state, created_at) VALUES (NEW.id, 'conversation', 'begun', NEW.started_at);
  INSERT INTO stream_events (conversation_id, kind, subject_id, state, created_at)
  SELECT NEW.id, 'text_in', id, 'waiting', received_at FROM inbound_events
  WHERE user_id = NEW.user_id AND state = 'pending' ORDER BY provider_at, id;
END;
CREATE TRIGGER log_conversation_ended AFTER UPDATE OF ended_at ON conversations WHEN (NEW.ended_at IS NULL) <> (OLD.ended_at IS NULL) BEGIN
  INSERT INTO stream_events (conversation_id, kind, state, created_at)
  VALUES (NEW.id, 'conversation', iif(NEW.ended_at IS NULL, 'reopened', 'ended'), coalesce(NEW.ended_at, NEW.last_activity_at));
  INSERT INTO stream_events (conversation_id, kind, subject_id, state, created_at)
  SELECT NEW.id, 'text_in', id, 'waiting', received_at FROM inbound_events
  WHERE NEW.ended_at IS NULL AND user_id = NEW.user_id AND state = 'pending' ORDER BY provider_at, id;
END;
CREATE TRIGGER log_turn_begun AFTER INSERT ON turns BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, state, created_at)
  VALUES (NEW.conversation_id, NEW.id, 'turn', NEW.state, NEW.created_at);
END;
CREATE TRIGGER log_turn_state AFTER UPDATE OF state ON turns WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, state, created_at)
  VALUES (NEW.conversation_id, NEW.id, 'turn', NEW.state, NEW.updated_at);
END;
CREATE TRIGGER log_call_created AFTER INSERT ON tool_calls BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, step, created_at)
  SELECT conversation_id, id, 'tool_call', NEW.id, NEW.state, NEW.step, NEW.created_at FROM turns WHERE id = NEW.turn_id;
END;
CREATE TRIGGER log_call_state AFTER UPDATE OF state ON tool_calls WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, step, created_at)
  SELECT conversation_id, id, 'tool_call', NEW.id, NEW.state, NEW.step, NEW.updated_at FROM turns WHERE id = NEW.turn_id;
END;
CREATE TRIGGER log_text_in AFTER UPDATE OF turn_id ON inbound_events WHEN NEW.turn_id IS NOT NULL AND NEW.turn_id IS NOT OLD.turn_id BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT conversation_id, id, 'text_in', NEW.id, 'received', NEW.updated_at FROM turns WHERE id = NEW.turn_id;
END;
CREATE TRIGGER log_text_skipped AFTER UPDATE OF state ON inbound_events
WHEN OLD.state = 'pending' AND NEW.turn_id IS NULL AND NEW.outcome IS NOT NULL BEGIN
  UPDATE inbound_events SET conversation_id = (SELECT id FROM conversations WHERE user_id = NEW.user_id AND ended_at IS NULL)
  WHERE id = NEW.id;
  INSERT INTO stream_events (conversation_id, kind, subject_id, state, created_at)
  SELECT conversation_id, 'text_in', id, 'skipped', updated_at FROM inbound_events WHERE id = NEW.id AND conversation_id IS NOT NULL;
END;
CREATE TRIGGER log_text_out AFTER INSERT ON outbox BEGIN
  UPDATE outbox SET conversation_id = (SELECT id FROM conversations WHERE user_id = NEW.user_id AND ended_at IS NULL)
  WHERE id = NEW.id AND turn_id IS NULL;
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT conversation_id, id, 'text_out', NEW.id, NEW.state, NEW.created_at FROM turns WHERE id = NEW.turn_id
  UNION ALL
  SELECT conversation_id, NULL, 'text_out', id, state, created_at FROM outbox WHERE id = NEW.id AND conversation_id IS NOT NULL;
END;
CREATE TRIGGER log_text_state AFTER UPDATE OF state, delivery ON outbox
WHEN NEW.state <> OLD.state OR NEW.delivery IS NOT OLD.delivery BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT coalesce(NEW.conversation_id, turns.conversation_id), NEW.turn_id, 'text_out', NEW.id,
    iif(NEW.state = 'accepted', coalesce(NEW.delivery, NEW.state), NEW.state), NEW.updated_at
  FROM (SELECT NEW.turn_id AS turn_id) AS text LEFT JOIN turns ON turns.id = text.turn_id
  WHERE coalesce(NEW.conversation_id, turns.conversation_id) IS NOT NULL;
END;
CREATE TRIGGER log_question_asked AFTER INSERT ON pending_actions BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT NEW.conversation_id, turn_id, 'question', NEW.id, 'asked', NEW.created_at FROM tool_calls WHERE id = NEW.tool_call_id;
END;
CREATE TRIGGER log_question_armed AFTER UPDATE OF armed_at ON pending_actions WHEN NEW.armed_at IS NOT OLD.armed_at BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT NEW.conversation_id, turn_id, 'question', NEW.id, 'open', coalesce(NEW.armed_at, NEW.created_at) FROM tool_calls WHERE id = NEW.tool_call_id;
END;
CREATE TRIGGER log_question_closed AFTER DELETE ON pending_actions BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT OLD.conversation_id, turn_id, 'question', OLD.id, 'closed', updated_at FROM tool_calls WHERE id = OLD.tool_call_id;
END;
CREATE TRIGGER log_reaction AFTER INSERT ON reactions BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT coalesce(text.conversation_id, turns.conversation_id), text.turn_id, 'reaction', NEW.id,
    iif(NEW.removed_at IS NULL, 'given', 'removed'), NEW.created_at
  FROM (SELECT turn_id, conversation_id FROM inbound_events WHERE id = NEW.event_id
        UNION ALL SELECT turn_id, conversation_id FROM outbox WHERE id = NEW.outbox_id) AS text
  LEFT JOIN turns ON turns.id = text.turn_id WHERE coalesce(text.conversation_id, turns.conversation_id) IS NOT NULL;
END;
CREATE TRIGGER log_reaction_removed AFTER UPDATE OF removed_at ON reactions WHEN NEW.removed_at IS NOT NULL AND OLD.removed_at IS NULL BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT coalesce(text.conversation_id, turns.conversation_id), text.turn_id, 'reaction', NEW.id, 'removed', NEW.removed_at
  FROM (SELECT turn_id, conversation_id FROM inbound_events WHERE id = NEW.event_id
        UNION ALL SELECT turn_id, conversation_id FROM outbox WHERE id = NEW.outbox_id) AS text
  LEFT JOIN turns ON turns.id = text.turn_id WHERE coalesce(text.conversation_id, turns.conversation_id) IS NOT NULL;
END;
CREATE TRIGGER log_step_abandoned AFTER UPDATE OF state ON llm_steps WHEN NEW.state = 'abandoned' AND OLD.state <> 'abandoned' BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, step, attempt, created_at)
  SELECT conversation_id, id, 'step_abandoned', NEW.step, NEW.attempt, coalesce(NEW.finished_at, NEW.started_at)
  FROM turns WHERE id = NEW.turn_id;
END;
CREATE TRIGGER log_text_waiting AFTER INSERT ON inbound_events WHEN NEW.state = 'pending' BEGIN
  INSERT INTO stream_events (conversation_id, kind, subject_id, state, created_at)
  SELECT id, 'text_in', NEW.id, 'waiting', NEW.received_at FROM conversations WHERE user_id = NEW.user_id AND ended_at IS NULL;
END;
CREATE TRIGGER log_text_words AFTER UPDATE OF body ON outbox WHEN NEW.body <> OLD.body AND NEW.state = 'queued' BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT coalesce(NEW.conversation_id, turns.conversation_id), NEW.turn_id, 'text_out', NEW.id, NEW.state, NEW.updated_at
  FROM (SELECT NEW.turn_id AS turn_id) AS text LEFT JOIN turns ON turns.id = text.turn_id
  WHERE coalesce(NEW.conversation_id, turns.conversation_id) IS NOT NULL;
END;
