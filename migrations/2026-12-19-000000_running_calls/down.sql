CREATE TABLE reservations (          -- model calls under way, of which a turn makes one at a time: what they may come to
  turn_id INTEGER NOT NULL PRIMARY KEY REFERENCES turns(id),
  day TEXT NOT NULL,
  user_id INTEGER NOT NULL REFERENCES users(id),
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  cost_in_micros INTEGER NOT NULL,
  cost_out_micros INTEGER NOT NULL
) STRICT;
