-- Adds new text to the full-text indexes in batches instead of in the commit of each message. An index contains the rows
-- of its table up to an id. Triggers change the index only for these rows.

CREATE TABLE text_indexes (
  name TEXT NOT NULL PRIMARY KEY,    -- of the full-text index
  indexed_up_to INTEGER NOT NULL,    -- last id in the index
  rebuild_at INTEGER                 -- time from which the index is to be rebuilt; NULL if it need not be
) STRICT, WITHOUT ROWID;
INSERT INTO text_indexes (name, indexed_up_to, rebuild_at) VALUES
  ('words_in', (SELECT coalesce(max(id), 0) FROM inbound_events), (SELECT last_id FROM sweeps WHERE name = 'words_in')),
  ('words_out', (SELECT coalesce(max(id), 0) FROM outbox), (SELECT last_id FROM sweeps WHERE name = 'words_out')),
  ('response_words', (SELECT coalesce(max(id), 0) FROM agent_responses),
   (SELECT last_id FROM sweeps WHERE name = 'response_words'));
DELETE FROM sweeps WHERE name = 'words_in' OR name = 'words_out' OR name = 'response_words';

DROP TRIGGER index_text_in;
DROP TRIGGER unindex_text_in;
DROP TRIGGER index_text_out;
DROP TRIGGER unindex_text_out;
DROP TRIGGER index_response;
DROP TRIGGER reindex_response;

-- Messages that wait for their turn are in the index too; the search leaves them out.
INSERT INTO words_in(rowid, body) SELECT id, body FROM inbound_events WHERE turn_id IS NULL AND outcome IS NULL;

CREATE TRIGGER reindex_text_in AFTER UPDATE OF body ON inbound_events
WHEN NEW.body <> OLD.body AND OLD.id <= (SELECT indexed_up_to FROM text_indexes WHERE name = 'words_in') BEGIN
  INSERT INTO words_in(words_in, rowid, body) VALUES ('delete', OLD.id, OLD.body);
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER reindex_text_out AFTER UPDATE OF body ON outbox
WHEN NEW.body <> OLD.body AND OLD.id <= (SELECT indexed_up_to FROM text_indexes WHERE name = 'words_out') BEGIN
  INSERT INTO words_out(words_out, rowid, body) VALUES ('delete', OLD.id, OLD.body);
  INSERT INTO words_out(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER reindex_response AFTER UPDATE OF owner, trigger_text, response_text, state ON agent_responses
WHEN OLD.state IN ('pending','done') AND (NEW.state NOT IN ('pending','done')
  OR (OLD.owner, OLD.trigger_text, OLD.response_text) IS NOT (NEW.owner, NEW.trigger_text, NEW.response_text))
AND OLD.id <= (SELECT indexed_up_to FROM text_indexes WHERE name = 'response_words') BEGIN
  INSERT INTO response_words(response_words, rowid, owner, said, told)
  VALUES ('delete', 2 * OLD.id, OLD.owner, OLD.trigger_text, OLD.response_text);
  INSERT INTO response_words(rowid, owner, said, told)
  SELECT 2 * NEW.id, NEW.owner, NEW.trigger_text, NEW.response_text WHERE NEW.state IN ('pending','done');
END;
