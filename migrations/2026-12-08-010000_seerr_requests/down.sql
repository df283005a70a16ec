DROP INDEX ix_request_seerr;
ALTER TABLE requests DROP COLUMN seerr_state;
ALTER TABLE requests DROP COLUMN seerr_request;
