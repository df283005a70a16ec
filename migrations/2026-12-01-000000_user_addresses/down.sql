-- Gives each user one phone number again: the first one, or a placeholder for a user who has none. Other addresses are
-- lost, and a text from one makes its sender a newcomer.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE copied_users AS SELECT * FROM users;
CREATE TABLE kept_addresses AS
  SELECT min(id) AS id, user_id FROM user_addresses WHERE address GLOB '+[1-9]*' GROUP BY user_id;

-- The earlier program would answer at the only number it knows, so what waits for another address ends.
UPDATE outbox SET state = 'suppressed'
  WHERE address_id IS NOT NULL AND address_id NOT IN (SELECT id FROM kept_addresses)
    AND (state = 'queued' OR state = 'attempting' OR state = 'unknown');
CREATE TABLE other_prompts (call_id INTEGER NOT NULL PRIMARY KEY) STRICT;
INSERT INTO other_prompts
  SELECT tool_call_id FROM pending_actions JOIN outbox ON outbox.id = prompt_outbox_id
  WHERE address_id IS NOT NULL AND address_id NOT IN (SELECT id FROM kept_addresses);
UPDATE tool_call_items SET state = 'canceled' WHERE state = 'held' AND tool_call_id IN other_prompts;
UPDATE tool_calls SET state = 'canceled', error = '"dropped"', finished_at = updated_at
  WHERE state = 'held' AND id IN other_prompts;
DELETE FROM pending_actions WHERE tool_call_id IN other_prompts;
DROP TABLE other_prompts;

DROP TABLE users;
CREATE TABLE users (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  phone TEXT NOT NULL UNIQUE CHECK (phone GLOB '+[1-9]*' AND length(phone) BETWEEN 8 AND 16),
  display_name TEXT,
  status TEXT NOT NULL CHECK (status = 'pending' OR status = 'active' OR status = 'blocked'),
  role TEXT NOT NULL DEFAULT 'member' CHECK (role = 'admin' OR role = 'member'),
  can_add INTEGER NOT NULL DEFAULT 1 CHECK (can_add = 0 OR can_add = 1),
  can_delete INTEGER NOT NULL DEFAULT 0 CHECK (can_delete = 0 OR can_delete = 1),
  can_4k INTEGER NOT NULL DEFAULT 0 CHECK (can_4k = 0 OR can_4k = 1),
  opted_out_at INTEGER,              -- an opt-out word, or the carrier's word that they opted out
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  name_asks INTEGER NOT NULL DEFAULT 0 CHECK (name_asks BETWEEN 0 AND 2),
  waiting_since INTEGER,
  answered_at INTEGER,
  movie_limit INTEGER CHECK (movie_limit >= 0),
  season_limit INTEGER CHECK (season_limit >= 0),
  forgotten_at INTEGER,
  opt_word_at INTEGER,
  notify INTEGER NOT NULL DEFAULT 1 CHECK (notify = 0 OR notify = 1),
  quiet_from INTEGER CHECK (quiet_from BETWEEN 0 AND 23),
  quiet_to INTEGER CHECK (quiet_to BETWEEN 0 AND 23),
  test INTEGER NOT NULL DEFAULT 0 CHECK (test = 0 OR test = 1),
  code_misses INTEGER NOT NULL DEFAULT 0,
  code_misses_day TEXT,
  first_request TEXT,
  first_request_at INTEGER
) STRICT;
INSERT INTO users
  SELECT u.id, coalesce(a.address, printf('+999%04d', u.id)), display_name, status, role, can_add, can_delete, can_4k,
         a.opted_out_at, u.created_at, updated_at, name_asks, waiting_since, answered_at, movie_limit, season_limit,
         forgotten_at, a.opt_word_at, notify, quiet_from, quiet_to, test, code_misses, code_misses_day, first_request,
         first_request_at
  FROM copied_users u
  LEFT JOIN kept_addresses k ON k.user_id = u.id
  LEFT JOIN user_addresses a ON a.id = k.id;
DROP TABLE copied_users;
DROP TABLE kept_addresses;
CREATE INDEX ix_user_waiting ON users(waiting_since) WHERE waiting_since IS NOT NULL;
CREATE INDEX ix_user_answered ON users(answered_at) WHERE answered_at IS NOT NULL;
CREATE INDEX ix_user_first_request ON users(first_request_at) WHERE first_request_at IS NOT NULL;

ALTER TABLE outbox DROP COLUMN address_id;
ALTER TABLE inbound_events DROP COLUMN address_id;
DROP TABLE link_codes;
DROP TABLE user_addresses;
