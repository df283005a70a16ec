-- Rooms: group chats. A room is a row in `users` without rights, which owns the conversations of the room, and its
-- address is that of the group. Messages in it have the author as their user and the room's address.
CREATE TABLE rooms (
  id INTEGER NOT NULL PRIMARY KEY REFERENCES users(id) ON DELETE CASCADE,
  mode TEXT NOT NULL CHECK (mode = 'off' OR mode = 'mentioned' OR mode = 'ai'),
  remembers INTEGER NOT NULL DEFAULT 1 CHECK (remembers = 0 OR remembers = 1),
  -- Group of the stored answers.
  group_id INTEGER NOT NULL REFERENCES memory_groups(id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL
) STRICT;

-- Room in which a message was written (NULL in a private chat), and whether it is addressed to Dialarr.
ALTER TABLE inbound_events ADD COLUMN room_id INTEGER REFERENCES rooms(id);
ALTER TABLE inbound_events ADD COLUMN addressed INTEGER NOT NULL DEFAULT 1;
CREATE INDEX ix_event_room ON inbound_events(user_id, turn_id) WHERE room_id IS NOT NULL;

-- Room to which a message is sent, and the channel's id of the received message that it quotes.
ALTER TABLE outbox ADD COLUMN room_id INTEGER REFERENCES rooms(id);
ALTER TABLE outbox ADD COLUMN quotes TEXT;
CREATE INDEX ix_outbox_room ON outbox(room_id, id) WHERE room_id IS NOT NULL;
