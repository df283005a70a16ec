-- Identity of each configured service. Rows of turns up to moved_after_turn concern an earlier server of the slot: the
-- ids that they show are void, and their unknown outcomes are not looked up.
CREATE TABLE service_identities (
  slot TEXT NOT NULL PRIMARY KEY,    -- radarr, radarr-4k, sonarr, sonarr-4k or carrier
  identity TEXT NOT NULL,            -- scheme, host, port and URL base; of the carrier, also the account
  moved_after_turn INTEGER NOT NULL, -- newest turn when another identity was found; 0 if none was
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
