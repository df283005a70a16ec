-- Settings that were changed with the program instead of the environment. A secret is in the secrets file, under the
-- version in its row. A removed setting keeps its row, so that its version never falls.
CREATE TABLE settings (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT,                        -- NULL for a secret and for a removed setting
  secret_version INTEGER,            -- NULL for other settings and for a removed secret
  version INTEGER NOT NULL,          -- number of the change, the same for all settings changed together
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL,          -- shell, console, or key: and the id of an API key
  CHECK (value IS NULL OR secret_version IS NULL)
) STRICT, WITHOUT ROWID;
