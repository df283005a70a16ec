ALTER TABLE service_identities DROP COLUMN earlier_moved_after_turn;
ALTER TABLE service_identities DROP COLUMN earlier_identity;
DROP TABLE library_samples;
