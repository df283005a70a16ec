-- Where a text stands that no turn is behind: it is told of there for good, whichever conversation is open later. A text
-- that waits for a turn is told of too, and so is a reaction on a text without one.

ALTER TABLE outbox ADD COLUMN conversation_id INTEGER REFERENCES conversations(id);          -- the one that was open when it was written; NULL behind a turn
ALTER TABLE inbound_events ADD COLUMN conversation_id INTEGER REFERENCES conversations(id);  -- the one that was open when it was put aside; NULL in a turn
-- The last one that had begun by then, found in one step, if it was not over.
CREATE INDEX ix_conversation_start ON conversations(user_id, started_at);
UPDATE outbox SET conversation_id = (SELECT iif(ended_at IS NULL OR ended_at >= outbox.created_at, id, NULL) FROM conversations
  WHERE user_id = outbox.user_id AND started_at <= outbox.created_at ORDER BY started_at DESC, id DESC LIMIT 1)
WHERE turn_id IS NULL;
UPDATE inbound_events SET conversation_id = (SELECT iif(ended_at IS NULL OR ended_at >= inbound_events.updated_at, id, NULL)
  FROM conversations WHERE user_id = inbound_events.user_id AND started_at <= inbound_events.updated_at
  ORDER BY started_at DESC, id DESC LIMIT 1)
WHERE turn_id IS NULL AND outcome IS NOT NULL;
DROP INDEX ix_conversation_start;
CREATE INDEX ix_outbox_aside ON outbox(conversation_id, id) WHERE conversation_id IS NOT NULL;
CREATE INDEX ix_event_aside ON inbound_events(conversation_id, id) WHERE conversation_id IS NOT NULL;

DROP TRIGGER log_conversation_begun;
DROP TRIGGER log_conversation_ended;
DROP TRIGGER log_text_skipped;
DROP TRIGGER log_text_out;
DROP TRIGGER log_text_state;
DROP TRIGGER log_reaction;
DROP TRIGGER log_reaction_removed;

-- What waits for a turn waits in the conversation that is open: it comes along when one begins, and goes when it ends.
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
CREATE TRIGGER log_text_waiting AFTER INSERT ON inbound_events WHEN NEW.state = 'pending' BEGIN
  INSERT INTO stream_events (conversation_id, kind, subject_id, state, created_at)
  SELECT id, 'text_in', NEW.id, 'waiting', NEW.received_at FROM conversations WHERE user_id = NEW.user_id AND ended_at IS NULL;
END;
-- A text that gets no turn.
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
-- A notice that waits takes in what is to be told meanwhile.
CREATE TRIGGER log_text_words AFTER UPDATE OF body ON outbox WHEN NEW.body <> OLD.body AND NEW.state = 'queued' BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT coalesce(NEW.conversation_id, turns.conversation_id), NEW.turn_id, 'text_out', NEW.id, NEW.state, NEW.updated_at
  FROM (SELECT NEW.turn_id AS turn_id) AS text LEFT JOIN turns ON turns.id = text.turn_id
  WHERE coalesce(NEW.conversation_id, turns.conversation_id) IS NOT NULL;
END;
-- One that takes another back comes as taken back itself.
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
