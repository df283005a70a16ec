-- Weekly digest of a person or a room, for those who asked for one.
CREATE TABLE digest_settings (
  user_id INTEGER NOT NULL PRIMARY KEY REFERENCES users(id) ON DELETE CASCADE,
  weekday INTEGER NOT NULL CHECK (weekday >= 1 AND weekday <= 7),   -- Monday: 1
  hour INTEGER NOT NULL CHECK (hour >= 0 AND hour <= 23),           -- in the time zone of the household
  set_at INTEGER NOT NULL,
  last_due_at INTEGER,                                              -- due time of the last one that was sent or left out
  preview_event INTEGER REFERENCES inbound_events(id)               -- text that asks what the digest would say now
) STRICT;

-- Matter of each numbered line of a digest, on which the number of the line acts.
CREATE TABLE digest_lines (
  outbox_id INTEGER NOT NULL REFERENCES outbox(id),
  number INTEGER NOT NULL CHECK (number >= 1),
  kind TEXT NOT NULL CHECK (kind = 'movie' OR kind = 'series' OR kind = 'leaving' OR kind = 'approval'
    OR kind = 'own_request' OR kind = 'addition' OR kind = 'vote'),
  reference INTEGER NOT NULL,                                       -- id of the matter; 0 for a title
  title TEXT NOT NULL,                                              -- empty without a title
  PRIMARY KEY (outbox_id, number)
) STRICT, WITHOUT ROWID;
