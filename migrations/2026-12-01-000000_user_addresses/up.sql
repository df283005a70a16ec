-- Stores the addresses of users in a table of their own, so that a user can have several, or one that is no phone number.
-- An opt-out belongs to an address.
CREATE TABLE user_addresses (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users(id),
  address TEXT NOT NULL UNIQUE,      -- a phone number with its plus sign, or a channel's word and an account, word:account
  opted_out_at INTEGER,
  opt_word_at INTEGER,               -- when the last opt-out or opt-in was sent; an older one changes nothing
  preferred_from TEXT,               -- our address, if the user prefers notifications from it to this address
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ix_address_user ON user_addresses(user_id);
CREATE UNIQUE INDEX ux_address_preferred ON user_addresses(user_id) WHERE preferred_from IS NOT NULL;
INSERT INTO user_addresses (user_id, address, opted_out_at, opt_word_at, created_at)
  SELECT id, phone, opted_out_at, opt_word_at, created_at FROM users WHERE forgotten_at IS NULL ORDER BY id;

-- Address of the sender, and of the recipient. NULL on channels that only show messages, and in earlier rows, where the
-- user had one address.
ALTER TABLE inbound_events ADD COLUMN address_id INTEGER REFERENCES user_addresses(id);
ALTER TABLE outbox ADD COLUMN address_id INTEGER REFERENCES user_addresses(id);

CREATE TABLE link_codes (            -- codes by which an address becomes a user's; without a user, the first admin's
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER REFERENCES users(id),
  code TEXT NOT NULL CHECK (code GLOB '[0-9][0-9][0-9][0-9][0-9][0-9]'),
  new_address_id INTEGER REFERENCES user_addresses(id),   -- phone number that the code was sent to, if it is a second code
  misses INTEGER NOT NULL DEFAULT 0,                      -- wrong codes while it was open
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ux_link_user ON link_codes(coalesce(user_id, 0));

-- SQLite cannot drop the column of a UNIQUE condition, so the table is created again. Its other rows refer to it by id.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE copied_users AS SELECT * FROM users;
DROP TABLE users;
CREATE TABLE users (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  display_name TEXT,
  status TEXT NOT NULL CHECK (status = 'pending' OR status = 'active' OR status = 'blocked'),
  role TEXT NOT NULL DEFAULT 'member' CHECK (role = 'admin' OR role = 'member'),
  can_add INTEGER NOT NULL DEFAULT 1 CHECK (can_add = 0 OR can_add = 1),
  can_delete INTEGER NOT NULL DEFAULT 0 CHECK (can_delete = 0 OR can_delete = 1),
  can_4k INTEGER NOT NULL DEFAULT 0 CHECK (can_4k = 0 OR can_4k = 1),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  name_asks INTEGER NOT NULL DEFAULT 0 CHECK (name_asks BETWEEN 0 AND 2),
  waiting_since INTEGER,             -- start of the wait for a decision of an admin
  answered_at INTEGER,               -- last reply to the user as a newcomer
  movie_limit INTEGER CHECK (movie_limit >= 0),
  season_limit INTEGER CHECK (season_limit >= 0),
  forgotten_at INTEGER,
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
  SELECT id, display_name, status, role, can_add, can_delete, can_4k, created_at, updated_at, name_asks, waiting_since,
         answered_at, movie_limit, season_limit, forgotten_at, notify, quiet_from, quiet_to, test, code_misses,
         code_misses_day, first_request, first_request_at
  FROM copied_users;
DROP TABLE copied_users;
CREATE INDEX ix_user_waiting ON users(waiting_since) WHERE waiting_since IS NOT NULL;
CREATE INDEX ix_user_answered ON users(answered_at) WHERE answered_at IS NOT NULL;
CREATE INDEX ix_user_first_request ON users(first_request_at) WHERE first_request_at IS NOT NULL;
