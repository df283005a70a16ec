-- Times are Unix milliseconds UTC, given by the program's clock. Ids are never reused.
-- Closed sets and "at most one" rules are constraints, so that no code path can break them.
-- Most queries bind states as parameters, for which SQLite takes no partial index.

CREATE TABLE instance (              -- one row: which start of the program is writing
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL,            -- +1 at each start
  started_at INTEGER NOT NULL,
  clean_shutdown_at INTEGER
) STRICT;

CREATE TABLE users (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  phone TEXT NOT NULL UNIQUE CHECK (phone GLOB '+[1-9]*' AND length(phone) BETWEEN 8 AND 16),
  display_name TEXT,
  status TEXT NOT NULL CHECK (status IN ('pending','active','blocked')),
  role TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('admin','member')),
  can_add INTEGER NOT NULL DEFAULT 1 CHECK (can_add IN (0,1)),
  can_delete INTEGER NOT NULL DEFAULT 0 CHECK (can_delete IN (0,1)),
  can_4k INTEGER NOT NULL DEFAULT 0 CHECK (can_4k IN (0,1)),
  opted_out_at INTEGER,              -- an opt-out word, or the carrier's word that they opted out
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE conversations (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  name TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  last_activity_at INTEGER NOT NULL,
  ended_at INTEGER,
  end_reason TEXT CHECK (end_reason IN ('idle','cleared','blocked','admin')),
  CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) STRICT;
CREATE UNIQUE INDEX ux_conversation_open ON conversations(user_id) WHERE ended_at IS NULL;
CREATE INDEX ix_conversation_user ON conversations(user_id, id DESC);

CREATE TABLE turns (                 -- one run of work that ends in at most one answer
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  conversation_id INTEGER NOT NULL REFERENCES conversations(id),
  kind TEXT NOT NULL CHECK (kind IN ('chat','confirm','deny','command')),
  state TEXT NOT NULL CHECK (state IN
    ('CREATED','IN_PROGRESS','WAITING_FOR_TOOLS','FAILED','ERROR','COMPLETED','CANCELED')),
  error TEXT CHECK (error IS NULL OR json_valid(error)),
  attempts INTEGER NOT NULL DEFAULT 0,          -- resumes after a crash or a panic
  step INTEGER NOT NULL DEFAULT 0,              -- finished model steps
  last_seq INTEGER NOT NULL DEFAULT 0,          -- last committed stream_events.seq
  prompt TEXT NOT NULL CHECK (json_valid(prompt)), -- how the turn is answered: brain and note
  response_text TEXT,                           -- the whole answer, of which the first page was sent
  cancel_requested_at INTEGER,
  deadline_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  finished_at INTEGER,                          -- set <=> nothing of it will ever run again
  CHECK (state NOT IN ('COMPLETED','CANCELED') OR finished_at IS NOT NULL),
  CHECK (finished_at IS NULL OR state IN ('COMPLETED','CANCELED','FAILED','ERROR'))
) STRICT;
CREATE UNIQUE INDEX ux_turn_live ON turns(user_id) WHERE finished_at IS NULL;
CREATE INDEX ix_turn_conversation ON turns(conversation_id, id);

CREATE TABLE inbound_events (        -- the ledger of received texts
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  channel TEXT NOT NULL CHECK (channel IN ('twilio','console','local')),
  external_id TEXT NOT NULL,
  user_id INTEGER NOT NULL REFERENCES users(id),
  to_addr TEXT NOT NULL,
  body TEXT NOT NULL,
  media TEXT CHECK (media IS NULL OR json_valid(media)),
  provider_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  via TEXT NOT NULL CHECK (via IN ('webhook','fallback','recovery','local')),
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending','processing','completed','failed')),
  outcome TEXT CHECK (outcome IN ('replied','failed_notified','skipped')),
  outcome_reason TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,          -- beginnings that failed
  not_before INTEGER NOT NULL DEFAULT 0,
  turn_id INTEGER REFERENCES turns(id),
  updated_at INTEGER NOT NULL,
  UNIQUE (channel, external_id),
  CHECK ((state IN ('completed','failed')) = (outcome IS NOT NULL)),
  CHECK (state <> 'processing' OR turn_id IS NOT NULL)
) STRICT;
-- One column more than the index of a user's whole history, so that SQLite prefers it.
CREATE INDEX ix_event_pending ON inbound_events(user_id, state, provider_at, id) WHERE state = 'pending';
CREATE INDEX ix_event_turn ON inbound_events(turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ix_event_user ON inbound_events(user_id, id DESC);

CREATE TABLE llm_steps (             -- one attempt at one model response
  turn_id INTEGER NOT NULL REFERENCES turns(id),
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('started','complete','abandoned')),
  epoch INTEGER NOT NULL,
  brain TEXT NOT NULL CHECK (brain IN ('model','keyword')),
  model TEXT NOT NULL,
  provider_response_id TEXT,
  finish_reason TEXT,
  tokens_in INTEGER, tokens_out INTEGER,
  error TEXT CHECK (error IS NULL OR json_valid(error)),
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  PRIMARY KEY (turn_id, step, attempt)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ux_llm_done ON llm_steps(turn_id, step) WHERE state = 'complete';
CREATE UNIQUE INDEX ux_llm_open ON llm_steps(turn_id) WHERE state = 'started';

CREATE TABLE stream_events (         -- deltas as they came; kept while the turn is fresh
  turn_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,              -- 1.. per turn, across steps and attempts
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  block_type TEXT NOT NULL CHECK (block_type IN ('text','thinking','tool_call')),
  ord INTEGER NOT NULL,              -- which call of the step; 0 for text and thinking
  delta TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (turn_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE blocks (                -- the content of a completed step, a row per block
  turn_id INTEGER NOT NULL REFERENCES turns(id),
  idx INTEGER NOT NULL,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('text','thinking','tool_call')),
  content TEXT NOT NULL,
  PRIMARY KEY (turn_id, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE tool_calls (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  turn_id INTEGER NOT NULL REFERENCES turns(id),        -- the turn whose step asked for it
  step INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  effect TEXT NOT NULL CHECK (effect IN ('read','write','destructive')),
  state TEXT NOT NULL CHECK (state IN ('created','held','running','unknown','complete','error','canceled')),
  attempts INTEGER NOT NULL DEFAULT 0,
  request TEXT NOT NULL CHECK (json_valid(request)),
  response TEXT CHECK (response IS NULL OR json_valid(response)),
  error TEXT CHECK (error IS NULL OR json_valid(error)),
  reconciled INTEGER NOT NULL DEFAULT 0 CHECK (reconciled IN (0,1)),
  run_turn_id INTEGER REFERENCES turns(id),             -- the confirm turn that runs a held call
  confirmed_by INTEGER REFERENCES inbound_events(id),   -- the yes
  epoch INTEGER,
  created_at INTEGER NOT NULL,
  started_at INTEGER,                                   -- the intent, written before the effect
  unknown_at INTEGER,
  updated_at INTEGER NOT NULL,
  finished_at INTEGER,
  UNIQUE (turn_id, step, call_id),
  CHECK (effect <> 'destructive' OR state IN ('created','held','canceled','error') OR confirmed_by IS NOT NULL),
  CHECK (effect <> 'read' OR state NOT IN ('held','unknown')),
  CHECK (state NOT IN ('running','unknown') OR started_at IS NOT NULL),
  CHECK (state <> 'unknown' OR unknown_at IS NOT NULL),
  CHECK (state <> 'complete' OR response IS NOT NULL),
  CHECK (state <> 'error' OR error IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX ux_tool_confirmed_by ON tool_calls(confirmed_by) WHERE confirmed_by IS NOT NULL;
CREATE INDEX ix_tool_destructive ON tool_calls(finished_at) WHERE effect = 'destructive';
CREATE INDEX ix_tool_run_turn ON tool_calls(run_turn_id) WHERE run_turn_id IS NOT NULL;

CREATE TABLE tool_call_items (       -- a held deletion, item by item: each has its own intent and result
  tool_call_id INTEGER NOT NULL REFERENCES tool_calls(id),
  ord INTEGER NOT NULL,
  instance TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('movie','series')),
  item_id INTEGER NOT NULL,          -- the library's own id, which it never reuses
  delete_files INTEGER NOT NULL CHECK (delete_files IN (0,1)),
  fingerprint TEXT NOT NULL CHECK (json_valid(fingerprint)),
  state TEXT NOT NULL CHECK (state IN ('held','running','unknown','complete','error','canceled')),
  result TEXT CHECK (result IS NULL OR json_valid(result)),
  attempts INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER,
  PRIMARY KEY (tool_call_id, ord),
  CHECK (state NOT IN ('running','unknown') OR started_at IS NOT NULL),
  CHECK (state NOT IN ('complete','error') OR result IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  dedupe_key TEXT NOT NULL UNIQUE,
  user_id INTEGER NOT NULL REFERENCES users(id),
  turn_id INTEGER REFERENCES turns(id),
  kind TEXT NOT NULL CHECK (kind IN ('reply','confirm_prompt','notice')),
  to_addr TEXT NOT NULL,
  from_addr TEXT NOT NULL,
  body TEXT NOT NULL CHECK (length(body) <= 1600),
  segments INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'queued'
    CHECK (state IN ('queued','attempting','unknown','accepted','failed','suppressed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  looks INTEGER NOT NULL DEFAULT 0,
  attempt_at INTEGER,                -- the intent, written before the POST
  unknown_at INTEGER,
  deadline_at INTEGER NOT NULL,      -- no sending after this
  not_before INTEGER NOT NULL DEFAULT 0,
  provider_sid TEXT UNIQUE,
  provider_created_at INTEGER,
  delivery TEXT CHECK (delivery IN ('accepted','scheduled','queued','sending','sent','delivered','undelivered','failed','canceled','read')),
  error TEXT CHECK (error IS NULL OR json_valid(error)),
  epoch INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  accepted_at INTEGER,
  CHECK ((state = 'accepted') = (provider_sid IS NOT NULL)),
  CHECK (state <> 'attempting' OR attempt_at IS NOT NULL),
  CHECK (state <> 'unknown' OR unknown_at IS NOT NULL)
) STRICT;
-- One column more than the index of a user's whole history, so that SQLite prefers it.
CREATE INDEX ix_outbox_open ON outbox(user_id, state, id) WHERE state IN ('queued','attempting','unknown');
CREATE INDEX ix_outbox_user ON outbox(user_id, id DESC);
CREATE INDEX ix_outbox_turn ON outbox(turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE pending_actions (       -- a row means: a question is open
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL UNIQUE REFERENCES users(id),
  tool_call_id INTEGER NOT NULL UNIQUE REFERENCES tool_calls(id),
  conversation_id INTEGER NOT NULL REFERENCES conversations(id),
  summary TEXT NOT NULL,             -- exactly what the user was asked
  code TEXT,
  repeats INTEGER NOT NULL DEFAULT 0,
  prompt_outbox_id INTEGER NOT NULL REFERENCES outbox(id),
  created_at INTEGER NOT NULL,
  armed_at INTEGER,                  -- the question was accepted for sending: from here a yes means something
  expires_at INTEGER,
  CHECK ((armed_at IS NULL) = (expires_at IS NULL))
) STRICT;

CREATE TABLE delivery_events (       -- status callbacks as they came; they may precede our own answer
  provider_sid TEXT NOT NULL,
  status TEXT NOT NULL,
  outbox_id INTEGER,
  attempt INTEGER,
  error_code INTEGER,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (provider_sid, status)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_delivery_outbox ON delivery_events(outbox_id, attempt) WHERE outbox_id IS NOT NULL;

CREATE TABLE offsets (               -- how far a carrier's list of texts has been read
  source TEXT NOT NULL PRIMARY KEY,  -- 'twilio:+15550100000'
  cursor_at INTEGER NOT NULL,        -- texts before this are all admitted
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_log (             -- append-only: writes, deletions, refusals
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  user_id INTEGER REFERENCES users(id),
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL CHECK (json_valid(detail))
) STRICT;
