ALTER TABLE users DROP COLUMN space_limit;
