-- Lists each change that readers of a conversation must be told, independently of the code that records the events. The
-- triggers and the list exist only on the connection that runs this file.
CREATE TEMP TABLE expected_events (id INTEGER PRIMARY KEY, conversation_id INTEGER, line TEXT NOT NULL);
CREATE TEMP VIEW message_owners AS
  SELECT 'in' AS direction, messages.id, coalesce(messages.conversation_id, turns.conversation_id) AS conversation_id, turn_id
  FROM main.inbound_events AS messages LEFT JOIN main.turns ON turns.id = messages.turn_id
  UNION ALL
  SELECT 'out', messages.id, coalesce(messages.conversation_id, turns.conversation_id), turn_id
  FROM main.outbox AS messages LEFT JOIN main.turns ON turns.id = messages.turn_id;

CREATE TEMP TRIGGER expect_conversation AFTER INSERT ON main.conversations BEGIN
  INSERT INTO expected_events (conversation_id, line) VALUES (NEW.id, 'conversation begun');
  INSERT INTO expected_events (conversation_id, line)
  SELECT NEW.id, 'inbound ' || id || ' waiting' FROM inbound_events
  WHERE NEW.agent_key_id IS NULL AND coalesce(room_id, user_id) = NEW.user_id AND state = 'pending'
  ORDER BY provider_at, id;
END;
CREATE TEMP TRIGGER expect_conversation_end AFTER UPDATE OF ended_at ON main.conversations
WHEN (NEW.ended_at IS NULL) <> (OLD.ended_at IS NULL) BEGIN
  INSERT INTO expected_events (conversation_id, line)
  VALUES (NEW.id, iif(NEW.ended_at IS NULL, 'conversation reopened', 'conversation ended'));
  INSERT INTO expected_events (conversation_id, line)
  SELECT NEW.id, 'inbound ' || id || ' waiting' FROM inbound_events
  WHERE NEW.ended_at IS NULL AND NEW.agent_key_id IS NULL AND coalesce(room_id, user_id) = NEW.user_id AND state = 'pending' ORDER BY provider_at, id;
END;
CREATE TEMP TRIGGER expect_turn AFTER INSERT ON main.turns BEGIN
  INSERT INTO expected_events (conversation_id, line) VALUES (NEW.conversation_id, 'turn ' || NEW.id || ' ' || NEW.state);
END;
CREATE TEMP TRIGGER expect_turn_state AFTER UPDATE OF state ON main.turns WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO expected_events (conversation_id, line) VALUES (NEW.conversation_id, 'turn ' || NEW.id || ' ' || NEW.state);
END;
CREATE TEMP TRIGGER expect_abandoned_attempt AFTER UPDATE OF state ON main.llm_steps
WHEN NEW.state = 'abandoned' AND OLD.state <> 'abandoned' BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'abandoned ' || NEW.turn_id || '.' || NEW.step || '.' || NEW.attempt FROM turns WHERE id = NEW.turn_id;
END;
CREATE TEMP TRIGGER expect_call AFTER INSERT ON main.tool_calls BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'call ' || NEW.id || ' ' || NEW.state FROM turns WHERE id = NEW.turn_id;
  -- The turn waits for its tools after the last call of a response.
  DELETE FROM expected_events WHERE NEW.ord > 0
  AND id = (SELECT max(id) FROM expected_events WHERE line = 'turn ' || NEW.turn_id || ' WAITING_FOR_TOOLS');
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'turn ' || id || ' WAITING_FOR_TOOLS' FROM turns WHERE id = NEW.turn_id
  AND EXISTS (SELECT 1 FROM llm_steps WHERE turn_id = NEW.turn_id AND step = NEW.step AND state = 'complete');
END;
CREATE TEMP TRIGGER expect_later_step AFTER INSERT ON main.llm_steps WHEN NEW.step > 0 AND NEW.attempt = 1 BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'turn ' || id || ' IN_PROGRESS' FROM turns WHERE id = NEW.turn_id AND state = 'IN_PROGRESS';
END;
CREATE TEMP TRIGGER expect_call_state AFTER UPDATE OF state ON main.tool_calls WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'call ' || NEW.id || ' ' || NEW.state FROM turns WHERE id = NEW.turn_id;
END;
CREATE TEMP TRIGGER expect_inbound AFTER INSERT ON main.inbound_events WHEN NEW.state = 'pending' BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT id, 'inbound ' || NEW.id || ' waiting' FROM conversations
  WHERE user_id = coalesce(NEW.room_id, NEW.user_id) AND ended_at IS NULL AND agent_key_id IS NULL;
END;
CREATE TEMP TRIGGER expect_moved_inbound AFTER UPDATE OF room_id ON main.inbound_events
WHEN NEW.room_id IS NOT OLD.room_id BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT id, 'inbound ' || NEW.id || ' no_turn' FROM conversations WHERE user_id = OLD.room_id AND ended_at IS NULL AND agent_key_id IS NULL;
  INSERT INTO expected_events (conversation_id, line)
  SELECT id, 'inbound ' || NEW.id || ' waiting' FROM conversations WHERE user_id = NEW.user_id AND ended_at IS NULL AND agent_key_id IS NULL;
END;
CREATE TEMP TRIGGER expect_claimed_inbound AFTER UPDATE OF turn_id ON main.inbound_events
WHEN NEW.turn_id IS NOT NULL AND NEW.turn_id IS NOT OLD.turn_id BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'inbound ' || NEW.id || ' claimed' FROM turns WHERE id = NEW.turn_id;
END;
CREATE TEMP TRIGGER expect_skipped_inbound AFTER UPDATE OF state ON main.inbound_events
WHEN OLD.state = 'pending' AND NEW.turn_id IS NULL AND NEW.outcome IS NOT NULL BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT id, 'inbound ' || NEW.id || ' no_turn' FROM conversations
  WHERE user_id = coalesce(NEW.room_id, NEW.user_id) AND ended_at IS NULL AND agent_key_id IS NULL;
END;
CREATE TEMP TRIGGER expect_outbound AFTER INSERT ON main.outbox BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'outbound ' || NEW.id || ' queued' FROM turns WHERE id = NEW.turn_id
  UNION ALL
  SELECT id, 'outbound ' || NEW.id || ' queued' FROM conversations
  WHERE NEW.turn_id IS NULL AND user_id = NEW.user_id AND ended_at IS NULL AND agent_key_id IS NULL;
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'outbound ' || NEW.id || ' attempting' FROM message_owners
  WHERE NEW.state = 'attempting' AND direction = 'out' AND id = NEW.id;
END;
CREATE TEMP TRIGGER expect_outbound_change AFTER UPDATE OF state, delivery, body ON main.outbox
WHEN NEW.state <> OLD.state OR NEW.delivery IS NOT OLD.delivery OR (NEW.body <> OLD.body AND NEW.state = 'queued') BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'outbound ' || NEW.id || ' ' || CASE
    WHEN NEW.state <> 'accepted' OR NEW.delivery IS NULL THEN NEW.state
    WHEN NEW.delivery = 'queued' THEN 'queued_by_carrier' ELSE NEW.delivery END
  FROM message_owners WHERE direction = 'out' AND id = NEW.id;
END;
CREATE TEMP TRIGGER expect_prompt AFTER INSERT ON main.pending_actions BEGIN
  INSERT INTO expected_events (conversation_id, line) VALUES (NEW.conversation_id, 'prompt ' || NEW.id || ' sending');
END;
CREATE TEMP TRIGGER expect_open_prompt AFTER UPDATE OF armed_at ON main.pending_actions WHEN NEW.armed_at IS NOT OLD.armed_at BEGIN
  INSERT INTO expected_events (conversation_id, line) VALUES (NEW.conversation_id, 'prompt ' || NEW.id || ' open');
END;
CREATE TEMP TRIGGER expect_closed_prompt AFTER DELETE ON main.pending_actions BEGIN
  INSERT INTO expected_events (conversation_id, line) VALUES (OLD.conversation_id, 'prompt ' || OLD.id || ' closed');
END;
CREATE TEMP TRIGGER expect_reaction AFTER INSERT ON main.reactions BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'reaction ' || NEW.id || iif(NEW.removed_at IS NULL, ' given', ' removed') FROM message_owners
  WHERE (direction = 'in' AND id = NEW.event_id) OR (direction = 'out' AND id = NEW.outbox_id);
END;
CREATE TEMP TRIGGER expect_removed_reaction AFTER UPDATE OF removed_at ON main.reactions
WHEN NEW.removed_at IS NOT NULL AND OLD.removed_at IS NULL BEGIN
  INSERT INTO expected_events (conversation_id, line)
  SELECT conversation_id, 'reaction ' || NEW.id || ' removed' FROM message_owners
  WHERE (direction = 'in' AND id = NEW.event_id) OR (direction = 'out' AND id = NEW.outbox_id);
END;
