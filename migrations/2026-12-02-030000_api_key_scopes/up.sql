-- Stores the scope of each API key, which decides the routes that it opens. Keys from before scopes keep their routes.
ALTER TABLE api_keys ADD COLUMN scope TEXT NOT NULL DEFAULT 'unscoped'
  CHECK (scope = 'unscoped' OR scope = 'read' OR scope = 'write' OR scope = 'admin');
