-- Marks the file as a database of Dialarr ("Dial"), so that the file of another program is recognized.
PRAGMA application_id = 1147756908;
-- Counts the wrong codes of a user on the local day that is named, as 2026-11-23.
ALTER TABLE users ADD COLUMN code_misses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN code_misses_day TEXT;
