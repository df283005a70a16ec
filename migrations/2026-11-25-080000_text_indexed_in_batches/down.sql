-- Adds text to the full-text indexes in the commit of each message again. Text that is not in them yet is added first.
INSERT INTO words_in(rowid, body) SELECT id, body FROM inbound_events
WHERE (turn_id IS NOT NULL OR outcome IS NOT NULL)
  AND id > (SELECT indexed_up_to FROM text_indexes WHERE name = 'words_in');
INSERT INTO words_in(words_in, rowid, body) SELECT 'delete', id, body FROM inbound_events
WHERE turn_id IS NULL AND outcome IS NULL
  AND id <= (SELECT indexed_up_to FROM text_indexes WHERE name = 'words_in');
INSERT INTO words_out(rowid, body) SELECT id, body FROM outbox
WHERE id > (SELECT indexed_up_to FROM text_indexes WHERE name = 'words_out');
INSERT INTO response_words(rowid, owner, said, told)
SELECT 2 * id, owner, trigger_text, response_text FROM agent_responses
WHERE state IN ('pending','done') AND id > (SELECT indexed_up_to FROM text_indexes WHERE name = 'response_words');
INSERT INTO sweeps (name, last_id, updated_at)
SELECT name, rebuild_at, rebuild_at FROM text_indexes WHERE rebuild_at IS NOT NULL;

DROP TRIGGER reindex_text_in;
DROP TRIGGER reindex_text_out;
DROP TRIGGER reindex_response;
DROP TABLE text_indexes;

CREATE TRIGGER index_text_in AFTER UPDATE OF turn_id, outcome ON inbound_events
WHEN OLD.turn_id IS NULL AND OLD.outcome IS NULL AND (NEW.turn_id IS NOT NULL OR NEW.outcome IS NOT NULL) BEGIN
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER unindex_text_in AFTER UPDATE OF body ON inbound_events
WHEN (OLD.turn_id IS NOT NULL OR OLD.outcome IS NOT NULL) AND NEW.body <> OLD.body BEGIN
  INSERT INTO words_in(words_in, rowid, body) VALUES ('delete', OLD.id, OLD.body);
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER index_text_out AFTER INSERT ON outbox BEGIN
  INSERT INTO words_out(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER unindex_text_out AFTER UPDATE OF body ON outbox WHEN NEW.body <> OLD.body BEGIN
  INSERT INTO words_out(words_out, rowid, body) VALUES ('delete', OLD.id, OLD.body);
  INSERT INTO words_out(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER index_response AFTER INSERT ON agent_responses WHEN NEW.state IN ('pending','done') BEGIN
  INSERT INTO response_words(rowid, owner, said, told)
  VALUES (2 * NEW.id, NEW.owner, NEW.trigger_text, NEW.response_text);
END;
CREATE TRIGGER reindex_response AFTER UPDATE OF owner, trigger_text, response_text, state ON agent_responses
WHEN OLD.state IN ('pending','done') AND (NEW.state NOT IN ('pending','done')
  OR (OLD.owner, OLD.trigger_text, OLD.response_text) IS NOT (NEW.owner, NEW.trigger_text, NEW.response_text)) BEGIN
  INSERT INTO response_words(response_words, rowid, owner, said, told)
  VALUES ('delete', 2 * OLD.id, OLD.owner, OLD.trigger_text, OLD.response_text);
  INSERT INTO response_words(rowid, owner, said, told)
  SELECT 2 * NEW.id, NEW.owner, NEW.trigger_text, NEW.response_text WHERE NEW.state IN ('pending','done');
END;
