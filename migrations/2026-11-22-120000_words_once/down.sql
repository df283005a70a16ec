-- The program before does not know of words that are only marked.
INSERT INTO words_in(words_in) VALUES ('delete-all');
INSERT INTO words_in(rowid, body) SELECT id, body FROM inbound_events WHERE turn_id IS NOT NULL;
INSERT INTO words_out(words_out) VALUES ('rebuild');
DELETE FROM sweeps WHERE name IN ('words_in','words_out','response_words');
DROP INDEX ix_fact_suggested_at;
DROP TRIGGER index_response;
DROP TRIGGER reindex_response;
DROP TRIGGER index_notes;
DROP TRIGGER reindex_notes;
DROP TABLE response_words;
DROP VIEW response_texts;

-- Words of what can be found. Who may find them stands beside them, so that no other rows are ever looked at.
CREATE VIRTUAL TABLE response_words USING fts5(owner, trigger_text, response_text, summary, keywords,
  content='agent_responses', content_rowid='id', tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE response_terms USING fts5vocab(response_words, 'row');
INSERT INTO response_words(response_words, rank) VALUES ('secure-delete', 1);
INSERT INTO response_words(rowid, owner, trigger_text, response_text, summary, keywords)
SELECT id, owner, trigger_text, response_text, summary, keywords FROM agent_responses WHERE state IN ('pending','done');
CREATE TRIGGER index_response AFTER INSERT ON agent_responses WHEN NEW.state IN ('pending','done') BEGIN
  INSERT INTO response_words(rowid, owner, trigger_text, response_text, summary, keywords)
  VALUES (NEW.id, NEW.owner, NEW.trigger_text, NEW.response_text, NEW.summary, NEW.keywords);
END;
CREATE TRIGGER unindex_response AFTER UPDATE OF owner, trigger_text, response_text, summary, keywords, state ON agent_responses
WHEN OLD.state IN ('pending','done') BEGIN
  INSERT INTO response_words(response_words, rowid, owner, trigger_text, response_text, summary, keywords)
  VALUES ('delete', OLD.id, OLD.owner, OLD.trigger_text, OLD.response_text, OLD.summary, OLD.keywords);
  INSERT INTO response_words(rowid, owner, trigger_text, response_text, summary, keywords)
  SELECT NEW.id, NEW.owner, NEW.trigger_text, NEW.response_text, NEW.summary, NEW.keywords WHERE NEW.state IN ('pending','done');
END;
