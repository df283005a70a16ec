-- States of each connection in the last 24 hours, in one row that is replaced.
CREATE TABLE connection_history (
  name TEXT NOT NULL PRIMARY KEY,    -- radarr, model, phone and so on
  last_quarter INTEGER NOT NULL,     -- number of the newest quarter hour, since 1970
  states TEXT NOT NULL,              -- worst state in each quarter hour, oldest first: -, o, w or f
  loss_reported INTEGER NOT NULL CHECK (loss_reported = 0 OR loss_reported = 1)  -- an alert about its loss was stored
) STRICT, WITHOUT ROWID;
