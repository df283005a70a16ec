-- The earlier program lets every key change things, so keys that may only read are revoked.
UPDATE api_keys SET revoked_at = coalesce(last_used_at, created_at) WHERE scope = 'read' AND revoked_at IS NULL;
ALTER TABLE api_keys DROP COLUMN scope;
