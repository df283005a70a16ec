-- Limit of a user's own, in gigabytes, for the space that the user's titles hold.
ALTER TABLE users ADD COLUMN space_limit INTEGER CHECK (space_limit >= 0);
