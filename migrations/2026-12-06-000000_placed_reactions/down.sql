DELETE FROM reactions WHERE author = 'user' AND said_in IS NULL;
CREATE TABLE replaced_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO replaced_condition VALUES ('CHECK (author = ''user'' OR said_in IS NULL)');
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM replaced_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'reactions' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, (SELECT condition FROM replaced_condition), 'CHECK ((author = ''user'') = (said_in IS NOT NULL))')
WHERE name = 'reactions';
DROP TABLE replaced_condition;
PRAGMA writable_schema = RESET;

ALTER TABLE reactions DROP COLUMN update_id;
