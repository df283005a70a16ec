-- What answers are found by is written once and taken out once. A row's text and what was noted of it later stand in two
-- rows of the index, so that noting takes nothing out: that costs far more than writing, since the words are overwritten.

DROP TRIGGER index_response;
DROP TRIGGER unindex_response;
DROP TABLE response_terms;
DROP TABLE response_words;

CREATE VIEW response_texts(id, owner, said, told) AS
  SELECT 2 * id, owner, trigger_text, response_text FROM agent_responses WHERE state IN ('pending','done')
  UNION ALL
  -- What code notes has no words but those of the text.
  SELECT 2 * id + 1, owner, summary, keywords FROM agent_responses WHERE state = 'done' AND extracted_by = 'model';

-- Who may find them stands beside the words, so that no other rows are ever looked at.
CREATE VIRTUAL TABLE response_words USING fts5(owner, said, told,
  content='response_texts', content_rowid='id', tokenize="porter unicode61 remove_diacritics 2");
INSERT INTO response_words(response_words, rank) VALUES ('secure-delete', 1);
INSERT INTO response_words(rowid, owner, said, told) SELECT id, owner, said, told FROM response_texts;

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
CREATE TRIGGER index_notes AFTER UPDATE OF state, extracted_by ON agent_responses
WHEN NEW.state = 'done' AND NEW.extracted_by IS 'model' AND NOT (OLD.state = 'done' AND OLD.extracted_by IS 'model') BEGIN
  INSERT INTO response_words(rowid, owner, said, told) VALUES (2 * NEW.id + 1, NEW.owner, NEW.summary, NEW.keywords);
END;
CREATE TRIGGER reindex_notes AFTER UPDATE OF owner, summary, keywords, state, extracted_by ON agent_responses
WHEN OLD.state = 'done' AND OLD.extracted_by IS 'model' AND (NEW.state <> 'done' OR NEW.extracted_by IS NOT 'model'
  OR (OLD.owner, OLD.summary, OLD.keywords) IS NOT (NEW.owner, NEW.summary, NEW.keywords)) BEGIN
  INSERT INTO response_words(response_words, rowid, owner, said, told)
  VALUES ('delete', 2 * OLD.id + 1, OLD.owner, OLD.summary, OLD.keywords);
  INSERT INTO response_words(rowid, owner, said, told)
  SELECT 2 * NEW.id + 1, NEW.owner, NEW.summary, NEW.keywords
  WHERE NEW.state = 'done' AND NEW.extracted_by IS 'model';
END;

-- Suggestions that nobody kept go with their time.
CREATE INDEX ix_fact_suggested_at ON user_facts(created_at) WHERE state = 'suggested';
