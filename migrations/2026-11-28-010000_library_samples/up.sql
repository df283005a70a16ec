-- Titles of each server of Sonarr and Radarr, by which the operator's statement is checked that a moved server is the
-- same one.
CREATE TABLE library_samples (
  slot TEXT NOT NULL,          -- radarr, radarr-4k, sonarr or sonarr-4k
  identity TEXT NOT NULL,      -- scheme, host, port and URL base
  library_id INTEGER NOT NULL,
  catalog_id INTEGER NOT NULL, -- TMDB id of a movie, TheTVDB id of a series
  PRIMARY KEY (slot, identity, library_id)
) STRICT, WITHOUT ROWID;

-- Server before the last move; NULL if there was none, or if it is the same server.
ALTER TABLE service_identities ADD COLUMN earlier_identity TEXT;
-- moved_after_turn before the last move.
ALTER TABLE service_identities ADD COLUMN earlier_moved_after_turn INTEGER NOT NULL DEFAULT 0;
