-- What people asked for, who is told when it is ready, and what Sonarr and Radarr say of themselves.

ALTER TABLE users ADD COLUMN notify INTEGER NOT NULL DEFAULT 1 CHECK (notify IN (0,1));   -- whether they want notices
ALTER TABLE users ADD COLUMN quiet_from INTEGER CHECK (quiet_from BETWEEN 0 AND 23);      -- hours of the household's zone
ALTER TABLE users ADD COLUMN quiet_to INTEGER CHECK (quiet_to BETWEEN 0 AND 23);

ALTER TABLE tool_call_items ADD COLUMN extent TEXT CHECK (extent IS NULL OR json_valid(extent));   -- what of the title goes; none: all of it

ALTER TABLE outbox ADD COLUMN media_url TEXT;   -- a picture that goes along with the body

CREATE TABLE requests (              -- who asked for what; a queued one is tried again until it is added or given up
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  tool_call_id INTEGER UNIQUE REFERENCES tool_calls(id),
  instance TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('movie','series')),
  catalog_id INTEGER NOT NULL,       -- of TMDB for a movie, of TheTVDB for a show
  title TEXT NOT NULL,
  year INTEGER NOT NULL,             -- 0 where the catalogue knows none
  seasons TEXT CHECK (seasons IS NULL OR json_valid(seasons)),   -- those that were asked for; none: all of it
  state TEXT NOT NULL CHECK (state IN ('queued','adding','added','given_up')),
  arguments TEXT CHECK (arguments IS NULL OR json_valid(arguments)),   -- of the call, while it is queued
  tries INTEGER NOT NULL DEFAULT 0,
  next_try_at INTEGER,
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  CHECK ((state IN ('queued','adding')) = (next_try_at IS NOT NULL))
) STRICT;
CREATE INDEX ix_request_due ON requests(next_try_at) WHERE next_try_at IS NOT NULL;
CREATE INDEX ix_request_title ON requests(kind, catalog_id, id DESC);
CREATE INDEX ix_request_user ON requests(user_id, id DESC);

CREATE TABLE follows (               -- who is told when it is ready
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  instance TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('movie','series')),
  catalog_id INTEGER NOT NULL,
  season INTEGER,                    -- none: the movie, or every season
  created_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE UNIQUE INDEX ux_follow_open ON follows(kind, catalog_id, instance, user_id, ifnull(season, -1)) WHERE ended_at IS NULL;
CREATE INDEX ix_follow_user ON follows(user_id, id DESC);
CREATE INDEX ix_follow_ended ON follows(ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE arr_events (            -- what Sonarr and Radarr told us, or their history did when they could not
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  instance TEXT NOT NULL,
  matter TEXT NOT NULL,              -- one event, however often and by whichever way it comes
  event TEXT NOT NULL CHECK (json_valid(event)),
  received_at INTEGER NOT NULL,
  handled_at INTEGER
) STRICT;
CREATE UNIQUE INDEX ux_arr_event ON arr_events(instance, matter);
CREATE INDEX ix_arr_event_open ON arr_events(id) WHERE handled_at IS NULL;
CREATE INDEX ix_arr_event_time ON arr_events(received_at);

CREATE TABLE notices (               -- what a person was told of a matter, or is about to be: once
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  matter TEXT NOT NULL,
  outbox_id INTEGER REFERENCES outbox(id),   -- the text that tells it
  words TEXT,                        -- what that text says of it beside others; none where another row of it says so
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ux_notice ON notices(user_id, matter);
CREATE INDEX ix_notice_time ON notices(user_id, created_at);

CREATE TABLE arr_cursors (           -- up to when the history of an instance was read
  instance TEXT NOT NULL PRIMARY KEY,
  read_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
