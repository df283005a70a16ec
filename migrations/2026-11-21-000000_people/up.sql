-- The household around the conversations: joining, what waits for an admin, limits, what was spent, reactions, pauses.

ALTER TABLE users ADD COLUMN name_asks INTEGER NOT NULL DEFAULT 0 CHECK (name_asks BETWEEN 0 AND 2);
ALTER TABLE users ADD COLUMN waiting_since INTEGER;   -- a stranger who has one of the few places
ALTER TABLE users ADD COLUMN answered_at INTEGER;     -- last answer to them as a stranger
ALTER TABLE users ADD COLUMN movie_limit INTEGER CHECK (movie_limit >= 0);   -- in place of the household's
ALTER TABLE users ADD COLUMN season_limit INTEGER CHECK (season_limit >= 0);
ALTER TABLE users ADD COLUMN forgotten_at INTEGER;
ALTER TABLE users ADD COLUMN opt_word_at INTEGER;     -- when the last opt-out or opt-in was said; an older one changes nothing
CREATE INDEX ix_user_waiting ON users(waiting_since) WHERE waiting_since IS NOT NULL;
CREATE INDEX ix_user_answered ON users(answered_at) WHERE answered_at IS NOT NULL;

ALTER TABLE inbound_events ADD COLUMN carrier_word TEXT CHECK (carrier_word IN ('stop','start','help'));
ALTER TABLE inbound_events ADD COLUMN over_limit INTEGER NOT NULL DEFAULT 0 CHECK (over_limit IN (0,1));

CREATE INDEX ix_conversation_idle ON conversations(last_activity_at) WHERE ended_at IS NULL;

ALTER TABLE turns ADD COLUMN triage TEXT CHECK (triage IN ('open','respond','skip'));

ALTER TABLE llm_steps ADD COLUMN tokens_cached INTEGER;

CREATE TABLE approvals (             -- what waits for an admin: a newcomer, or a member's wish to delete
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind IN ('join','delete')),
  user_id INTEGER NOT NULL REFERENCES users(id),        -- whom it is about
  code TEXT NOT NULL CHECK (code GLOB '[0-9][0-9][0-9][0-9]'),
  misses INTEGER NOT NULL DEFAULT 0,                    -- wrong codes while it was open
  tool_call_id INTEGER UNIQUE REFERENCES tool_calls(id),     -- the member's call
  instance TEXT,                                        -- the item, frozen as the admins were told
  item_kind TEXT CHECK (item_kind IN ('movie','series')),
  item_id INTEGER,
  fingerprint TEXT CHECK (fingerprint IS NULL OR json_valid(fingerprint)),
  state TEXT NOT NULL CHECK (state IN ('open','approved','denied','blocked','expired','withdrawn','replaced')),
  run_call_id INTEGER UNIQUE REFERENCES tool_calls(id), -- the deletion that an approval began
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  settled_at INTEGER,
  settled_by INTEGER REFERENCES users(id),
  CHECK ((state = 'open') = (settled_at IS NULL)),
  CHECK ((kind = 'delete') = (fingerprint IS NOT NULL)),
  CHECK (kind <> 'delete' OR (instance IS NOT NULL AND item_kind IS NOT NULL AND item_id IS NOT NULL)),
  CHECK (run_call_id IS NULL OR (kind = 'delete' AND state = 'approved'))
) STRICT;
CREATE UNIQUE INDEX ux_approval_code ON approvals(code) WHERE state = 'open';
CREATE UNIQUE INDEX ux_approval_join ON approvals(user_id) WHERE state = 'open' AND kind = 'join';
CREATE INDEX ix_approval_code ON approvals(code, id DESC);
CREATE INDEX ix_approval_user ON approvals(user_id, id DESC);

CREATE TABLE additions (             -- what counts towards a quota
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  kind TEXT NOT NULL CHECK (kind IN ('movie','season')),
  amount INTEGER NOT NULL CHECK (amount > 0),
  tool_call_id INTEGER UNIQUE REFERENCES tool_calls(id),
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX ix_addition_user ON additions(user_id, kind, at);

CREATE TABLE usage (                 -- a row per user and day of the household's zone
  day TEXT NOT NULL CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
  user_id INTEGER NOT NULL REFERENCES users(id),
  model_calls INTEGER NOT NULL DEFAULT 0,
  tokens_in INTEGER NOT NULL DEFAULT 0,      -- the cached ones among them
  tokens_cached INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER NOT NULL DEFAULT 0,    -- millionths of the currency that prices are in
  segments INTEGER NOT NULL DEFAULT 0,       -- of texts that were taken for sending
  PRIMARY KEY (day, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_usage_user ON usage(user_id, day);

CREATE TABLE reservations (          -- model calls under way, of which a turn makes one at a time: what they may come to
  turn_id INTEGER NOT NULL PRIMARY KEY REFERENCES turns(id),
  day TEXT NOT NULL,
  user_id INTEGER NOT NULL REFERENCES users(id),
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  cost_in_micros INTEGER NOT NULL,
  cost_out_micros INTEGER NOT NULL
) STRICT;

CREATE TABLE pauses (                -- while one is open, only admins are answered
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  begun_at INTEGER NOT NULL,
  begun_by INTEGER NOT NULL REFERENCES users(id),
  ended_at INTEGER,
  ended_by INTEGER REFERENCES users(id),
  CHECK ((ended_at IS NULL) = (ended_by IS NULL))
) STRICT;
CREATE UNIQUE INDEX ux_pause_open ON pauses(ended_at IS NULL) WHERE ended_at IS NULL;

CREATE TABLE reactions (             -- on a text of theirs (event_id) or of ours (outbox_id); neither: on media
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  author TEXT NOT NULL CHECK (author IN ('user','assistant')),
  event_id INTEGER REFERENCES inbound_events(id),
  outbox_id INTEGER REFERENCES outbox(id),
  said_in INTEGER REFERENCES inbound_events(id),        -- the text that the reaction came as
  emoji TEXT,                                           -- none: a sticker
  created_at INTEGER NOT NULL,
  removed_at INTEGER,
  CHECK (event_id IS NULL OR outbox_id IS NULL),
  CHECK ((author = 'user') = (said_in IS NOT NULL)),
  CHECK (author = 'user' OR event_id IS NOT NULL)
) STRICT;
CREATE INDEX ix_reaction_user ON reactions(user_id, id DESC);
CREATE UNIQUE INDEX ux_reaction_said ON reactions(said_in) WHERE said_in IS NOT NULL;
CREATE INDEX ix_reaction_event ON reactions(event_id) WHERE event_id IS NOT NULL;
CREATE INDEX ix_reaction_outbox ON reactions(outbox_id) WHERE outbox_id IS NOT NULL;

CREATE TABLE sweeps (                -- how far upkeep has come in a table, by id
  name TEXT NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
