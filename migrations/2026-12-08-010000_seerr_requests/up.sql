-- Requests at a Seerr, which decides on them. While the state is pending or approved, it is read there.
ALTER TABLE requests ADD COLUMN seerr_request INTEGER;   -- id of the request there
ALTER TABLE requests ADD COLUMN seerr_state TEXT CHECK (seerr_state IS NULL OR seerr_state = 'pending'
  OR seerr_state = 'approved' OR seerr_state = 'declined' OR seerr_state = 'failed' OR seerr_state = 'completed'
  OR seerr_state = 'gone');
CREATE INDEX ix_request_seerr ON requests(seerr_request) WHERE seerr_state = 'pending' OR seerr_state = 'approved';
