-- Titles that count toward the space of the users who requested them. The rows have no text, so they remain when a
-- request is erased after its retention period.
CREATE TABLE title_attributions (
  user_id INTEGER NOT NULL REFERENCES users(id),
  instance TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'movie' OR kind = 'series'),
  catalog_id INTEGER NOT NULL,         -- TMDB id of a movie, TheTVDB id of a series
  first_requested_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, instance, kind, catalog_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_title_attribution_title ON title_attributions(catalog_id, kind, instance);

INSERT INTO title_attributions (user_id, instance, kind, catalog_id, first_requested_at)
SELECT user_id, instance, kind, catalog_id, min(created_at) FROM requests WHERE state = 'added'
GROUP BY user_id, instance, kind, catalog_id;
