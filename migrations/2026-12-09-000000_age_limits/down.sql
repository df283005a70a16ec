-- The program before does not know requests for titles over the caps. Their messages are suppressed.
UPDATE outbox SET state = 'suppressed' WHERE state = 'queued' AND EXISTS (
  SELECT 1 FROM approvals WHERE kind = 'title' AND dedupe_key GLOB 'approval:' || approvals.id || ':*');
DELETE FROM approvals WHERE kind = 'title';
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES
('CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'' OR kind = ''seerr'' OR kind = ''title'')');
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'approvals' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition),
  'CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'' OR kind = ''seerr'')')
WHERE name = 'approvals';
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
ALTER TABLE approvals DROP COLUMN wanted;
DROP TABLE approved_titles;
ALTER TABLE users DROP COLUMN parent;
ALTER TABLE users DROP COLUMN caps_turn;
ALTER TABLE users DROP COLUMN show_cap;
ALTER TABLE users DROP COLUMN movie_cap;
