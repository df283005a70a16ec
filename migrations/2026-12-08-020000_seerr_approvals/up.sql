-- Requests at a Seerr that wait for an admin: the name of the title, and when the decision was passed on to the Seerr.
-- All stored rows fulfill the new condition, so the schema is edited in place, as section 7 of
-- https://www.sqlite.org/lang_altertable.html describes, and no table is rebuilt.
ALTER TABLE approvals ADD COLUMN title TEXT;
ALTER TABLE approvals ADD COLUMN passed_on_at INTEGER;
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES ('CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'')');
-- Fails if the condition does not exist in the schema.
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'approvals' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition),
  'CHECK (kind = ''join'' OR kind = ''delete'' OR kind = ''account'' OR kind = ''seerr'')')
WHERE name = 'approvals';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
-- A request is offered to the admins once.
CREATE UNIQUE INDEX ux_approval_seerr ON approvals(item_id) WHERE kind = 'seerr' AND state <> 'replaced';
CREATE INDEX ix_approval_to_pass_on ON approvals(id)
WHERE kind = 'seerr' AND passed_on_at IS NULL AND (state = 'approved' OR state = 'denied');
