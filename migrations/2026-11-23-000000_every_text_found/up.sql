-- A text that got no turn is found by its words too: a reaction, STOP, what was only to be remembered, what nobody answered.

DROP TRIGGER index_text_in;
DROP TRIGGER unindex_text_in;

-- A text is in the index once it has a turn or is over without one. Not when it comes in: nothing may slow its
-- acknowledgement.
INSERT INTO words_in(rowid, body) SELECT id, body FROM inbound_events WHERE turn_id IS NULL AND outcome IS NOT NULL;
CREATE TRIGGER index_text_in AFTER UPDATE OF turn_id, outcome ON inbound_events
WHEN OLD.turn_id IS NULL AND OLD.outcome IS NULL AND (NEW.turn_id IS NOT NULL OR NEW.outcome IS NOT NULL) BEGIN
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER unindex_text_in AFTER UPDATE OF body ON inbound_events
WHEN (OLD.turn_id IS NOT NULL OR OLD.outcome IS NOT NULL) AND NEW.body <> OLD.body BEGIN
  INSERT INTO words_in(words_in, rowid, body) VALUES ('delete', OLD.id, OLD.body);
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
