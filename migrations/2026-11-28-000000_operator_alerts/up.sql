-- Alerts: messages to the operator outside SMS, one row for each target. A row is stored before its first request.
CREATE TABLE alerts (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind = 'newcomer' OR kind = 'removal_request' OR kind = 'unknown_outcome'
    OR kind = 'connection_lost' OR kind = 'connection_back' OR kind = 'budget_spent'
    OR kind = 'backup_failed'),
  target TEXT NOT NULL CHECK (target = 'ntfy' OR target = 'pushover' OR target = 'webhook'),
  body TEXT NOT NULL,                -- contains no phone numbers and no names
  state TEXT NOT NULL CHECK (state = 'queued' OR state = 'sent' OR state = 'failed'),
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,           -- time of the next attempt
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ix_alert_queued ON alerts(id) WHERE state = 'queued';
CREATE INDEX ix_alert_kind ON alerts(kind, id);
