-- A block of the daily budget covers the model calls of one start whose reservations are not synced yet. It counts as
-- spent if the machine went down before a clean stop, because reservations may be lost.
CREATE TABLE budget_blocks (
  day TEXT NOT NULL CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
  epoch INTEGER NOT NULL,            -- number of the start
  tokens INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  boot_id TEXT,                      -- boot of the machine; NULL if unknown
  PRIMARY KEY (day, epoch)
) STRICT, WITHOUT ROWID;
