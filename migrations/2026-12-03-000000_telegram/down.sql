-- The earlier program would take a press for a typed text and send a reaction as a text, so those that wait end.
UPDATE inbound_events SET state = 'completed', outcome = 'skipped', outcome_reason = 'remembered'
  WHERE state = 'pending' AND pressed_message IS NOT NULL;
UPDATE outbox SET state = 'suppressed'
  WHERE reacts_to IS NOT NULL AND (state = 'queued' OR state = 'attempting' OR state = 'unknown');
-- It does not know the channel either. Received messages count as messages by phone, under an id that no carrier uses.
UPDATE inbound_events SET external_id = channel || ':' || external_id, channel = 'twilio' WHERE channel = 'telegram';
ALTER TABLE inbound_events DROP COLUMN pressed_message;
ALTER TABLE outbox DROP COLUMN reacts_to;

UPDATE outbox SET body = substr(body, 1, 1600) WHERE length(body) > 1600;
CREATE TABLE restored_condition (condition TEXT NOT NULL) STRICT;
INSERT INTO restored_condition VALUES ('CHECK (length(body) <= 1600)');
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, 'CHECK (length(body) <= 4096)', (SELECT condition FROM restored_condition))
WHERE name = 'outbox';
DROP TABLE restored_condition;
PRAGMA writable_schema = RESET;

DROP TABLE invitations;
