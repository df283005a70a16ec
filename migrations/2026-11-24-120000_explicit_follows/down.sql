ALTER TABLE follows DROP COLUMN explicit;
