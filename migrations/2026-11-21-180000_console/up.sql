-- What can be watched and searched, and who may look: the ordered log, an index of words, sessions, keys.

-- The log of a conversation as it happens, in the order of commits. Deltas carry their words; every other event says what
-- changed and to which state. The triggers below write it, in the commit of the change: no code path can leave one out.
DROP TABLE stream_events;
ALTER TABLE turns DROP COLUMN last_seq;
ALTER TABLE turns ADD COLUMN runs INTEGER NOT NULL DEFAULT 1;     -- and one more each time the operator resumes it
CREATE TABLE stream_events (
  seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,        -- never reused, also where events are gone
  conversation_id INTEGER NOT NULL,
  turn_id INTEGER,
  kind TEXT NOT NULL CHECK (kind IN ('conversation','turn','block_start','block_delta','block_end','step_abandoned',
    'tool_call','text_in','text_out','question','reaction')),
  subject_id INTEGER,                -- row of the tool call, text, question or reaction
  state TEXT,                        -- which it has now
  step INTEGER,
  attempt INTEGER,
  block_type TEXT CHECK (block_type IN ('text','thinking','tool_call')),
  ord INTEGER,                       -- which call of the step; 0 for text and thinking
  delta TEXT,
  created_at INTEGER NOT NULL,
  CHECK ((kind = 'block_delta') = (delta IS NOT NULL)),
  CHECK ((kind IN ('block_start','block_delta','block_end')) = (block_type IS NOT NULL)),
  CHECK ((block_type IS NULL) = (ord IS NULL)),
  CHECK (kind NOT IN ('block_start','block_delta','block_end','step_abandoned') OR (turn_id IS NOT NULL AND step IS NOT NULL AND attempt IS NOT NULL))
) STRICT;
CREATE INDEX ix_stream_conversation ON stream_events(conversation_id, seq);
CREATE INDEX ix_stream_turn ON stream_events(turn_id, seq) WHERE turn_id IS NOT NULL;
-- Events up to this one are gone: a reader that stands before it needs a snapshot.
ALTER TABLE conversations ADD COLUMN stream_floor INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER log_conversation_begun AFTER INSERT ON conversations BEGIN
  INSERT INTO stream_events (conversation_id, kind, state, created_at) VALUES (NEW.id, 'conversation', 'begun', NEW.started_at);
END;
CREATE TRIGGER log_conversation_ended AFTER UPDATE OF ended_at ON conversations WHEN (NEW.ended_at IS NULL) <> (OLD.ended_at IS NULL) BEGIN
  INSERT INTO stream_events (conversation_id, kind, state, created_at)
  VALUES (NEW.id, 'conversation', iif(NEW.ended_at IS NULL, 'reopened', 'ended'), coalesce(NEW.ended_at, NEW.last_activity_at));
END;
CREATE TRIGGER log_turn_begun AFTER INSERT ON turns BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, state, created_at)
  VALUES (NEW.conversation_id, NEW.id, 'turn', NEW.state, NEW.created_at);
END;
CREATE TRIGGER log_turn_state AFTER UPDATE OF state ON turns WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, state, created_at)
  VALUES (NEW.conversation_id, NEW.id, 'turn', NEW.state, NEW.updated_at);
END;
CREATE TRIGGER log_call_created AFTER INSERT ON tool_calls BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, step, created_at)
  SELECT conversation_id, id, 'tool_call', NEW.id, NEW.state, NEW.step, NEW.created_at FROM turns WHERE id = NEW.turn_id;
END;
CREATE TRIGGER log_call_state AFTER UPDATE OF state ON tool_calls WHEN NEW.state <> OLD.state BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, step, created_at)
  SELECT conversation_id, id, 'tool_call', NEW.id, NEW.state, NEW.step, NEW.updated_at FROM turns WHERE id = NEW.turn_id;
END;
CREATE TRIGGER log_text_in AFTER UPDATE OF turn_id ON inbound_events WHEN NEW.turn_id IS NOT NULL AND NEW.turn_id IS NOT OLD.turn_id BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT conversation_id, id, 'text_in', NEW.id, 'received', NEW.updated_at FROM turns WHERE id = NEW.turn_id;
END;
-- A text that gets no turn.
CREATE TRIGGER log_text_skipped AFTER UPDATE OF state ON inbound_events
WHEN OLD.state = 'pending' AND NEW.turn_id IS NULL AND NEW.outcome IS NOT NULL BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT id, NULL, 'text_in', NEW.id, 'skipped', NEW.updated_at FROM conversations WHERE user_id = NEW.user_id AND ended_at IS NULL;
END;
-- A text that no turn stands behind belongs to the conversation that is open when it is written, if there is one.
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
CREATE TRIGGER log_question_asked AFTER INSERT ON pending_actions BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT NEW.conversation_id, turn_id, 'question', NEW.id, 'asked', NEW.created_at FROM tool_calls WHERE id = NEW.tool_call_id;
END;
CREATE TRIGGER log_question_armed AFTER UPDATE OF armed_at ON pending_actions WHEN NEW.armed_at IS NOT OLD.armed_at BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT NEW.conversation_id, turn_id, 'question', NEW.id, 'open', coalesce(NEW.armed_at, NEW.created_at) FROM tool_calls WHERE id = NEW.tool_call_id;
END;
CREATE TRIGGER log_question_closed AFTER DELETE ON pending_actions BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, subject_id, state, created_at)
  SELECT OLD.conversation_id, turn_id, 'question', OLD.id, 'closed', updated_at FROM tool_calls WHERE id = OLD.tool_call_id;
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

CREATE TRIGGER log_step_abandoned AFTER UPDATE OF state ON llm_steps WHEN NEW.state = 'abandoned' AND OLD.state <> 'abandoned' BEGIN
  INSERT INTO stream_events (conversation_id, turn_id, kind, step, attempt, created_at)
  SELECT conversation_id, id, 'step_abandoned', NEW.step, NEW.attempt, coalesce(NEW.finished_at, NEW.started_at)
  FROM turns WHERE id = NEW.turn_id;
END;

-- Words of texts in and out, for searching. The texts stand once, in their tables; what is erased there leaves the index.
CREATE VIRTUAL TABLE words_in USING fts5(body, content='inbound_events', content_rowid='id', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE words_out USING fts5(body, content='outbox', content_rowid='id', tokenize="unicode61 remove_diacritics 2");
INSERT INTO words_in(words_in, rank) VALUES ('secure-delete', 1);
INSERT INTO words_out(words_out, rank) VALUES ('secure-delete', 1);
INSERT INTO words_in(rowid, body) SELECT id, body FROM inbound_events WHERE turn_id IS NOT NULL;
INSERT INTO words_out(rowid, body) SELECT id, body FROM outbox;
-- Not when a text comes in: nothing may slow its acknowledgement. It belongs to no conversation before it has a turn.
CREATE TRIGGER index_text_in AFTER UPDATE OF turn_id ON inbound_events WHEN NEW.turn_id IS NOT NULL AND OLD.turn_id IS NULL BEGIN
  INSERT INTO words_in(rowid, body) VALUES (NEW.id, NEW.body);
END;
CREATE TRIGGER unindex_text_in AFTER UPDATE OF body ON inbound_events WHEN OLD.turn_id IS NOT NULL AND NEW.body <> OLD.body BEGIN
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

ALTER TABLE users ADD COLUMN test INTEGER NOT NULL DEFAULT 0 CHECK (test IN (0,1));   -- made in the console; no text of theirs is sent by phone
ALTER TABLE inbound_events ADD COLUMN wants_answer INTEGER NOT NULL DEFAULT 1 CHECK (wants_answer IN (0,1));

CREATE TABLE console_password (      -- what sessions were opened with; another one ends them
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  hash TEXT NOT NULL,                -- argon2id, in PHC form
  changed_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (              -- of the console; the browser holds the token, here is only its SHA-256
  token_hash BLOB NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_session_expiry ON sessions(expires_at);

CREATE TABLE sign_in_links (
  token_hash BLOB NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_sign_in_link_expiry ON sign_in_links(expires_at);

CREATE TABLE api_keys (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
  key_hash BLOB NOT NULL UNIQUE CHECK (length(key_hash) = 32),
  ending TEXT NOT NULL,              -- its last characters, by which its owner knows it
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT;

-- What the pages list: what went wrong among much that did not.
CREATE INDEX ix_outbox_failed ON outbox(id) WHERE state = 'failed' OR delivery IN ('undelivered','failed');
CREATE INDEX ix_turn_failed ON turns(id) WHERE state IN ('FAILED','ERROR');
CREATE INDEX ix_tool_unknown ON tool_calls(id) WHERE state = 'unknown';
CREATE INDEX ix_audit_kind ON audit_log(kind, id DESC);

-- The operator, who is no user, ends a pause too: then nobody stands in ended_by.
CREATE TABLE pauses_anyone_ends (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  begun_at INTEGER NOT NULL,
  begun_by INTEGER NOT NULL REFERENCES users(id),
  ended_at INTEGER,
  ended_by INTEGER REFERENCES users(id),
  CHECK (ended_by IS NULL OR ended_at IS NOT NULL)
) STRICT;
INSERT INTO pauses_anyone_ends SELECT id, begun_at, begun_by, ended_at, ended_by FROM pauses;
DROP TABLE pauses;
ALTER TABLE pauses_anyone_ends RENAME TO pauses;
CREATE UNIQUE INDEX ux_pause_open ON pauses(ended_at IS NULL) WHERE ended_at IS NULL;
