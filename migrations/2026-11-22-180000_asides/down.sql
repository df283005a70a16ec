-- The program before told of no text that waits.
DELETE FROM stream_events WHERE kind = 'text_in' AND state = 'waiting';
DROP TRIGGER log_text_waiting;
DROP TRIGGER log_text_words;
DROP TRIGGER log_reaction_removed;
DROP TRIGGER log_reaction;
DROP TRIGGER log_text_state;
DROP TRIGGER log_text_out;
DROP TRIGGER log_text_skipped;
DROP TRIGGER log_conversation_ended;
DROP TRIGGER log_conversation_begun;
DROP INDEX ix_event_aside;
DROP INDEX ix_outbox_aside;
ALTER TABLE inbound_events DROP COLUMN conversation_id;
ALTER TABLE outbox DROP COLUMN conversation_id;

CREATE TRIGGER log_conversation_begun AFTER INSERT ON conversations BEGIN
  INSERT INTO stream_events (conversation_id, kind, state, created_at) VALUES (NEW.id, 'conversation', 'begun', NEW.started_at);
END;
CREATE TRIGGER log_conversation_ended AFTER UPDATE OF ended_at ON conversations WHEN (NEW.ended_at IS NULL) <> (OLD.ended_at IS NULL) BEGIN
  INSERT INTO stream_events (conversation_id, kind, state, created_at)
  VALUES (NEW.id, 'conversation', iif(NEW.ended_at IS NULL, 'reopened', 'ended'), coalesce(NEW.ended_at, NEW.last_activity_at));
END;
CREATE TRIGGER log_text_skipped AFTER UPDATE OF state ON inbound_events
WHEN OLD.state = 'pending' AND NEW.turn_id IS NULL AND NEW.outcome IS NOT NULL BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT id, NULL, 'text_in', NEW.id, 'skipped', NEW.updated_at FROM conversations WHERE user_id = NEW.user_id AND ended_at IS NULL;
END;
CREATE TRIGGER log_text_out AFTER INSERT ON outbox BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT conversation_id, id, 'text_out', NEW.id, NEW.state, NEW.created_at FROM turns WHERE id = NEW.turn_id
  UNION ALL
  SELECT id, NULL, 'text_out', NEW.id, NEW.state, NEW.created_at FROM conversations
  WHERE NEW.turn_id IS NULL AND user_id = NEW.user_id AND ended_at IS NULL;
END;
CREATE TRIGGER log_text_state AFTER UPDATE OF state, delivery ON outbox
WHEN NEW.state <> OLD.state OR NEW.delivery IS NOT OLD.delivery BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT conversation_id, id, 'text_out', NEW.id, iif(NEW.state = 'accepted', coalesce(NEW.delivery, NEW.state), NEW.state), NEW.updated_at
  FROM turns WHERE id = NEW.turn_id
  UNION ALL
  SELECT id, NULL, 'text_out', NEW.id, iif(NEW.state = 'accepted', coalesce(NEW.delivery, NEW.state), NEW.state), NEW.updated_at
  FROM conversations WHERE NEW.turn_id IS NULL AND user_id = NEW.user_id AND ended_at IS NULL;
END;
CREATE TRIGGER log_reaction AFTER INSERT ON reactions BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT conversation_id, turns.id, 'reaction', NEW.id, 'given', NEW.created_at FROM turns WHERE id = coalesce(
    (SELECT turn_id FROM inbound_events WHERE id = NEW.event_id), (SELECT turn_id FROM outbox WHERE id = NEW.outbox_id));
END;
CREATE TRIGGER log_reaction_removed AFTER UPDATE OF removed_at ON reactions WHEN NEW.removed_at IS NOT NULL AND OLD.removed_at IS NULL BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT conversation_id, turns.id, 'reaction', NEW.id, 'removed', NEW.removed_at FROM turns WHERE id = coalesce(
    (SELECT turn_id FROM inbound_events WHERE id = NEW.event_id), (SELECT turn_id FROM outbox WHERE id = NEW.outbox_id));
END;
