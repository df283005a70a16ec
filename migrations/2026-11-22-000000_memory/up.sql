-- What is known of people, and what was said to them before.

CREATE TABLE user_facts (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  kind TEXT NOT NULL CHECK (kind IN ('quality','alias','dislike','like','folder','schedule','other')),
  key TEXT NOT NULL,                 -- what it is about, in plain words: '' where a kind has but one
  value TEXT NOT NULL,
  number INTEGER,                    -- by which its person names it: `forget 3`
  state TEXT NOT NULL CHECK (state IN ('active','superseded','forgotten','suggested','dismissed')),
  source TEXT NOT NULL CHECK (source IN ('said','operator','noticed')),
  event_id INTEGER REFERENCES inbound_events(id),        -- the text in which they said it
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((state = 'active') = (number IS NOT NULL)),
  CHECK ((state IN ('active','suggested')) = (ended_at IS NULL)),
  CHECK (state <> 'forgotten' OR (key = '' AND value = ''))
) STRICT;
CREATE UNIQUE INDEX ux_fact ON user_facts(user_id, kind, key) WHERE state = 'active';
CREATE UNIQUE INDEX ux_fact_number ON user_facts(user_id, number) WHERE state = 'active';
CREATE UNIQUE INDEX ux_fact_suggested ON user_facts(user_id, kind, key) WHERE state = 'suggested';
CREATE INDEX ix_fact_user ON user_facts(user_id, id);
CREATE INDEX ix_fact_ended ON user_facts(ended_at) WHERE ended_at IS NOT NULL AND value <> '';

-- Who heard the same words: of these a text of group scope is part of what may be told again.
CREATE TABLE memory_groups (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  members TEXT NOT NULL UNIQUE       -- their ids in order, `1,4,9`
) STRICT;
CREATE TABLE memory_group_members (
  user_id INTEGER NOT NULL REFERENCES users(id),
  group_id INTEGER NOT NULL REFERENCES memory_groups(id),
  PRIMARY KEY (user_id, group_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_responses (       -- each answer, to be found again by meaning and by words
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  turn_id INTEGER UNIQUE REFERENCES turns(id),           -- none for notices and what the operator added
  source TEXT NOT NULL UNIQUE,       -- `turn:7`, `notice:3`, `api:…`: nothing is remembered twice
  scope TEXT NOT NULL CHECK (scope IN ('user','group','global')),
  owner TEXT NOT NULL,               -- who may find it: `u7`, `g2`, `all`
  user_id INTEGER REFERENCES users(id),                  -- who asked; nobody for notices
  group_id INTEGER REFERENCES memory_groups(id),
  agent TEXT NOT NULL,               -- who answered: a model, `keyword`, `code`, `operator`
  trigger_text TEXT NOT NULL,
  response_text TEXT NOT NULL,
  summary TEXT NOT NULL DEFAULT '',
  topics TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(topics)),
  keywords TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(keywords)),
  response_type TEXT CHECK (response_type IN ('greeting','explanation','recommendation','opinion','action')),
  importance REAL NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1),
  extracted_by TEXT CHECK (extracted_by IN ('model','code','operator')),
  for_everyone TEXT NOT NULL DEFAULT 'no' CHECK (for_everyone IN ('no','suggested','approved','refused')),
  times INTEGER NOT NULL DEFAULT 1,  -- how often the same was said, word for word
  likeness INTEGER NOT NULL,         -- hash of the words, by which the same are found
  state TEXT NOT NULL CHECK (state IN ('pending','done','skipped','repeated','erased')),
  attempts INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0,
  embed_model TEXT,                  -- whose vectors they are; NULL: none yet
  embed_attempts INTEGER NOT NULL DEFAULT 0,             -- that failed, by the model in the next column
  embed_failed_by TEXT,
  revision INTEGER NOT NULL,         -- larger with each change of what can be found
  created_at INTEGER NOT NULL,
  processed_at INTEGER,
  -- Last, because whatever stands behind them is slow to read. f32, little-endian, of length 1.
  trigger_vec BLOB,                  -- NULL where the question has no meaning of its own, such as "2" or "yes"
  response_vec BLOB,
  CHECK (owner = CASE scope WHEN 'user' THEN 'u' || user_id WHEN 'group' THEN 'g' || group_id ELSE 'all' END),
  CHECK (scope <> 'user' OR user_id IS NOT NULL),
  CHECK ((scope = 'group') = (group_id IS NOT NULL)),
  CHECK (scope <> 'global' OR for_everyone = 'approved'),
  CHECK ((embed_model IS NULL) = (response_vec IS NULL)),
  CHECK (trigger_vec IS NULL OR length(trigger_vec) = length(response_vec)),
  CHECK ((state = 'pending') = (processed_at IS NULL)),
  CHECK (state NOT IN ('erased','skipped','repeated') OR response_vec IS NULL),
  CHECK (state <> 'erased' OR (trigger_text = '' AND response_text = '' AND summary = '' AND topics = '[]' AND keywords = '[]'))
) STRICT;
CREATE INDEX ix_response_pending ON agent_responses(state, not_before, id) WHERE state = 'pending';
CREATE INDEX ix_response_embed ON agent_responses(state, embed_model, id) WHERE state = 'done';
CREATE INDEX ix_response_owner ON agent_responses(owner, revision);
CREATE INDEX ix_response_revision ON agent_responses(revision);
CREATE INDEX ix_response_user ON agent_responses(user_id, id);
CREATE INDEX ix_response_likeness ON agent_responses(likeness, owner) WHERE state = 'done';
-- All that is counted of them, without a look at their words and vectors.
CREATE INDEX ix_response_counts ON agent_responses(state, scope, response_type, embed_model);
CREATE INDEX ix_response_suggested ON agent_responses(for_everyone, id) WHERE for_everyone = 'suggested' AND state = 'done';

-- Words of what can be found. Who may find them stands beside them, so that no other rows are ever looked at.
CREATE VIRTUAL TABLE response_words USING fts5(owner, trigger_text, response_text, summary, keywords,
  content='agent_responses', content_rowid='id', tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE response_terms USING fts5vocab(response_words, 'row');
INSERT INTO response_words(response_words, rank) VALUES ('secure-delete', 1);
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
