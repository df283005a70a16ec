DROP TABLE vote_messages;
DROP TABLE ballots;
DROP TABLE vote_polls;
DROP TABLE votes;
