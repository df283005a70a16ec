-- Votes of a room, or of the household in its private chats. One of each is open at most.
CREATE TABLE votes (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  room_id INTEGER REFERENCES rooms(id) ON DELETE CASCADE,   -- NULL: the household votes
  user_id INTEGER NOT NULL REFERENCES users(id),            -- who started the vote
  question TEXT NOT NULL,
  options TEXT NOT NULL,                                    -- JSON array of texts
  created_at INTEGER NOT NULL,
  closes_at INTEGER NOT NULL,
  closed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX ux_vote_open ON votes(coalesce(room_id, 0)) WHERE closed_at IS NULL;
CREATE INDEX ix_vote_open ON votes(closes_at) WHERE closed_at IS NULL;
CREATE INDEX ix_vote_user ON votes(user_id, created_at);
CREATE INDEX ix_vote_room ON votes(room_id) WHERE room_id IS NOT NULL;
CREATE INDEX ix_vote_closed ON votes(closed_at) WHERE closed_at IS NOT NULL;

-- Polls of the channel that ask a vote. A vote has several if the answer to sending one was lost.
CREATE TABLE vote_polls (
  poll TEXT NOT NULL PRIMARY KEY,                           -- id at the channel
  vote_id INTEGER NOT NULL REFERENCES votes(id) ON DELETE CASCADE
) STRICT;
CREATE INDEX ix_poll_vote ON vote_polls(vote_id);

-- Choice of each person. A person in a group who is no user is known by a hash.
CREATE TABLE ballots (
  id INTEGER NOT NULL PRIMARY KEY,
  vote_id INTEGER NOT NULL REFERENCES votes(id) ON DELETE CASCADE,
  user_id INTEGER REFERENCES users(id),
  guest TEXT,
  choice INTEGER CHECK (choice >= 1),                       -- number of the option, from 1; NULL: withdrawn
  update_id INTEGER,                                        -- number of the channel's report of the choice
  updated_at INTEGER NOT NULL,
  CHECK ((user_id IS NULL) <> (guest IS NULL))
) STRICT;
CREATE UNIQUE INDEX ux_ballot_user ON ballots(vote_id, user_id);
CREATE UNIQUE INDEX ux_ballot_guest ON ballots(vote_id, guest);
CREATE INDEX ix_ballot_user ON ballots(user_id);

-- Messages that ask a vote, or announce its result.
CREATE TABLE vote_messages (
  outbox_id INTEGER NOT NULL PRIMARY KEY REFERENCES outbox(id),
  vote_id INTEGER NOT NULL REFERENCES votes(id) ON DELETE CASCADE,
  part TEXT NOT NULL CHECK (part = 'ballot' OR part = 'result')
) STRICT;
CREATE INDEX ix_message_vote ON vote_messages(vote_id);
