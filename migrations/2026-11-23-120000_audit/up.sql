-- Marks the file as a database of Dialarr ("Dial"), so that the file of another program is recognized.
PRAGMA application_id = 1147756908;
-- Counts the wrong codes of a user on the local day that is named, as 2026-11-23.
ALTER TABLE users ADD COLUMN code_misses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN code_misses_day TEXT;

-- A change outside has one row in the audit log, which is found by its call and completed with the outcome.
CREATE INDEX ix_audit_begun ON audit_log(subject) WHERE kind IN ('write', 'write_queued', 'delete');
-- Who asked for a title is not for the log: the names of other people outlived their retention there.
UPDATE audit_log SET detail = json_remove(detail, '$.asked_by') WHERE detail ->> '$.asked_by' IS NOT NULL;

-- The title that a newcomer asked for in their first text, until the admins have decided, for a week at most.
ALTER TABLE users ADD COLUMN first_request TEXT;
ALTER TABLE users ADD COLUMN first_request_at INTEGER;
CREATE INDEX ix_user_first_request ON users(first_request_at) WHERE first_request_at IS NOT NULL;

-- Whether the fields of a text are certain: the carrier signs them without their borders.
ALTER TABLE inbound_events ADD COLUMN authority TEXT NOT NULL DEFAULT 'certain'
    CHECK (authority IN ('certain', 'ambiguous', 'verified', 'unverified'));

-- The random word in the address of a message's status callbacks. A message attempted before has none.
ALTER TABLE outbox ADD COLUMN callback_word TEXT;
-- The last time at which a run of the program was known to be alive: no later start is before it.
ALTER TABLE instance ADD COLUMN seen_at INTEGER;

-- Counts what failed in the work on a turn itself, apart from restarts.
ALTER TABLE turns ADD COLUMN work_failures INTEGER NOT NULL DEFAULT 0;

-- The last start that counted against the turns it took up: quick restarts count once.
ALTER TABLE instance ADD COLUMN counted_start_at INTEGER;

-- Readings of the carrier's list that a text still gets before it may be sent: it may have been sent by a run which
-- this database, restored from a copy, does not know of.
ALTER TABLE outbox ADD COLUMN lookups_left INTEGER NOT NULL DEFAULT 0;
