-- A block of the daily budget covers the model calls of one start whose reservations are not synced yet. A clean stop
-- removes it; otherwise it counts as spent.
CREATE TABLE budget_blocks (
  day TEXT NOT NULL CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
  epoch INTEGER NOT NULL,            -- number of the start
  tokens INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  PRIMARY KEY (day, epoch)
) STRICT, WITHOUT ROWID;
