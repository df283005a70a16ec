-- Stores the last delivery report of each message in a table of its own again. Earlier reports are not restored.
CREATE TABLE delivery_events (       -- status callbacks as they came; they may precede our own answer
  provider_sid TEXT NOT NULL,
  status TEXT NOT NULL,
  outbox_id INTEGER,
  attempt INTEGER,
  error_code INTEGER,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (provider_sid, status)
) STRICT, WITHOUT ROWID;
CREATE INDEX ix_delivery_outbox ON delivery_events(outbox_id, attempt) WHERE outbox_id IS NOT NULL;
INSERT INTO delivery_events (provider_sid, status, outbox_id, attempt, error_code, received_at)
SELECT provider_sid, delivery, id, attempts, error ->> '$.code', updated_at FROM outbox
WHERE state = 'accepted' AND delivery IS NOT NULL;
