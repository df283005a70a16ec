-- Votes whose options are titles of the library that were checked against the caps of everybody who is asked.
ALTER TABLE votes ADD COLUMN reasons TEXT;                                -- JSON array of texts, one for each option
ALTER TABLE votes ADD COLUMN checked_kind TEXT CHECK (checked_kind = 'movie' OR checked_kind = 'series');
-- Lowest cap of the people who are asked, in years; NULL if none of them has one.
ALTER TABLE votes ADD COLUMN checked_cap INTEGER CHECK (checked_cap >= 0 AND checked_cap <= 18);
-- Number of the option that won, from 1; NULL while the vote is open, after a tie, and if nobody voted.
ALTER TABLE votes ADD COLUMN winner INTEGER CHECK (winner >= 1);
