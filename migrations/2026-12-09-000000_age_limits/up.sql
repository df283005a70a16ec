-- Caps on the age ratings of the titles that a person may have, in years, and who decides about titles over them.
ALTER TABLE users ADD COLUMN movie_cap INTEGER CHECK (movie_cap >= 0 AND movie_cap <= 18);
ALTER TABLE users ADD COLUMN show_cap INTEGER CHECK (show_cap >= 0 AND show_cap <= 18);
-- Last turn before the caps changed. What the person read up to then is not repeated.
ALTER TABLE users ADD COLUMN caps_turn INTEGER;
ALTER TABLE users ADD COLUMN parent INTEGER NOT NULL DEFAULT 0 CHECK (parent = 0 OR parent = 1);

-- Titles over the caps that a parent approved for a person.
CREATE TABLE approved_titles (
  user_id INTEGER NOT NULL REFERENCES users(id),
  kind TEXT NOT NULL CHECK (kind = 'movie' OR kind = 'series'),
  catalog_id INTEGER NOT NULL,         -- id at TMDB or TheTVDB
  approved_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, kind, catalog_id)
) STRICT, WITHOUT ROWID;

-- Requests for titles over the caps: the title with its rating, and the addition to make. All stored rows fulfill the
-- new condition, so the schema is edited in place, as section 7 of https://www.sqlite.org/lang_altertable.html
-- describes, and no table is rebuilt.
ALTER TABLE approvals ADD COLUMN wanted TEXT;
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition
VALUES ('CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'' OR kind = ''seerr'')');
-- Fails if the condition does not exist in the schema.
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'approvals' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition),
  'CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'' OR kind = ''seerr'' OR kind = ''title'')')
WHERE name = 'approvals';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
