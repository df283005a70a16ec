-- The program before does not know of words that are only marked, and takes texts without a turn out of no index.
INSERT INTO words_in(words_in) VALUES ('delete-all');
INSERT INTO words_in(rowid, body) SELECT id, body FROM inbound_events WHERE turn_id IS NOT NULL;
DELETE FROM sweeps WHERE name = 'words_in';
DROP TRIGGER index_text_in;
DROP TRIGGER unindex_text_in;
CREATE TRIGGER index_text_in AFTER UPDATE OF turn_id ON inbound_events WHEN NEW.turn_id IS NOT NULL AND OLD.turn_id IS NULL BEGIN
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER unindex_text_in AFTER UPDATE OF body ON inbound_events WHEN OLD.turn_id IS NOT NULL AND NEW.body <> OLD.body BEGIN
  INSERT INTO words_in(words_in, rowid, body) VALUES ('delete', OLD.id, OLD.body);
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
