-- Number of the channel's report of the reaction or of its removal. A report that is repeated later changes nothing.
ALTER TABLE reactions ADD COLUMN update_id INTEGER;

-- Accepts reactions of people that are no messages. All stored rows fulfill the condition, so the schema is edited in
-- place, as section 7 of https://www.sqlite.org/lang_altertable.html describes, and no table is rebuilt.
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES ('CHECK ((author = ''user'') = (said_in IS NOT NULL))');
-- Fails if the condition does not exist in the schema.
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'reactions' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition), 'CHECK (author = ''user'' OR said_in IS NULL)')
WHERE name = 'reactions';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;
