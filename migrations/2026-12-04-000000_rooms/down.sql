-- The earlier program would take a room for a person. Its waiting messages end, and the room is blocked.
UPDATE inbound_events SET state = 'completed', outcome = 'skipped', outcome_reason = 'remembered'
  WHERE state = 'pending' AND room_id IS NOT NULL;
UPDATE outbox SET state = 'suppressed'
  WHERE (state = 'queued' OR state = 'attempting' OR state = 'unknown') AND room_id IS NOT NULL;
UPDATE users SET status = 'blocked' WHERE id IN (SELECT id FROM rooms);
DROP INDEX ix_outbox_room;
DROP INDEX ix_event_room;
ALTER TABLE outbox DROP COLUMN quotes;
ALTER TABLE outbox DROP COLUMN room_id;
ALTER TABLE inbound_events DROP COLUMN addressed;
ALTER TABLE inbound_events DROP COLUMN room_id;
DROP TABLE rooms;
