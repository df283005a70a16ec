-- Proposals to make room. One is open at most.
CREATE TABLE space_proposals (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER REFERENCES users(id),                     -- admin who started it; NULL: the program
  silence TEXT NOT NULL CHECK (silence = 'stays' OR silence = 'may_go'),
  phase TEXT NOT NULL CHECK (phase = 'asking' OR phase = 'review' OR phase = 'closed'),
  opened_at INTEGER NOT NULL,
  answers_end_at INTEGER NOT NULL,
  review_ends_at INTEGER,
  closed_at INTEGER,
  CHECK ((phase = 'closed') = (closed_at IS NOT NULL)),
  CHECK (phase <> 'review' OR review_ends_at IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX ux_space_proposal_open ON space_proposals(coalesce(closed_at, 0)) WHERE closed_at IS NULL;
CREATE INDEX ix_space_proposal_closed ON space_proposals(closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX ix_space_proposal_user ON space_proposals(user_id) WHERE user_id IS NOT NULL;

CREATE TABLE space_proposal_titles (
  proposal_id INTEGER NOT NULL REFERENCES space_proposals(id) ON DELETE CASCADE,
  number INTEGER NOT NULL CHECK (number >= 1),
  instance TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'movie' OR kind = 'series'),
  item_id INTEGER NOT NULL,
  catalog_id INTEGER NOT NULL,                              -- TMDB id of a movie, TheTVDB id of a series
  title TEXT NOT NULL,
  year INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
  reason TEXT NOT NULL CHECK (reason = 'finished' OR reason = 'never_watched' OR reason = 'old'),
  last_played_at INTEGER,
  state TEXT NOT NULL CHECK (state = 'asked' OR state = 'stays' OR state = 'may_go' OR state = 'deleted'),
  PRIMARY KEY (proposal_id, number)
) STRICT, WITHOUT ROWID;

-- Each person who was asked about a title, with the answer.
CREATE TABLE space_proposal_answers (
  proposal_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  user_id INTEGER NOT NULL REFERENCES users(id),
  position INTEGER CHECK (position >= 1),                   -- number in the person's text; NULL: no longer shown
  answer TEXT CHECK (answer = 'keep' OR answer = 'free'),
  answered_at INTEGER,
  PRIMARY KEY (proposal_id, number, user_id),
  FOREIGN KEY (proposal_id, number) REFERENCES space_proposal_titles(proposal_id, number) ON DELETE CASCADE,
  CHECK ((answer IS NULL) = (answered_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_space_answer_user ON space_proposal_answers(user_id, proposal_id);

-- Titles that a person protects from proposals.
CREATE TABLE kept_titles (
  kind TEXT NOT NULL CHECK (kind = 'movie' OR kind = 'series'),
  catalog_id INTEGER NOT NULL,
  user_id INTEGER NOT NULL REFERENCES users(id),
  title TEXT NOT NULL,
  year INTEGER NOT NULL,
  kept_at INTEGER NOT NULL,
  kept_until_at INTEGER NOT NULL,
  PRIMARY KEY (kind, catalog_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_kept_user ON kept_titles(user_id);
CREATE INDEX ix_kept_until ON kept_titles(kept_until_at);

-- Questions of proposals mention what their user has watched. Their text is erased after a day, as that of offers.
DROP INDEX ix_outbox_season_offer;
CREATE INDEX ix_outbox_about_viewing ON outbox(created_at)
  WHERE ((dedupe_key >= 'next_season:' AND dedupe_key < 'next_season;')
    OR (dedupe_key >= 'room_question:' AND dedupe_key < 'room_question;')) AND body <> '';
