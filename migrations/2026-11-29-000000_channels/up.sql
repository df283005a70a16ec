-- Accepts the words of all channels, whose list is in the program, and stores a mark of the channel beside the time up to
-- which a list of received messages was read. The stored rows do not depend on the text of a condition, so the schema is
-- edited in place, as section 7 of https://www.sqlite.org/lang_altertable.html describes, and no table is rebuilt.
ALTER TABLE offsets ADD COLUMN mark TEXT NOT NULL DEFAULT '';

CREATE TABLE removed_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO removed_condition VALUES
  (' CHECK (channel = ''twilio'' OR channel = ''console'' OR channel = ''local'')');

-- Fails if the condition does not exist in the schema.
CREATE TEMP TABLE missing_condition (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_condition SELECT condition FROM removed_condition
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'inbound_events' AND instr(sql, condition) > 0);
DROP TABLE missing_condition;

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, (SELECT condition FROM removed_condition), '')
WHERE name = 'inbound_events';
-- Messages can also be found by a poll.
UPDATE sqlite_schema SET sql = replace(sql, 'via = ''local'')', 'via = ''local'' OR via = ''poll'')')
WHERE name = 'inbound_events';
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE removed_condition;
PRAGMA writable_schema = RESET;
