-- The program before does not withdraw what waits when its reader turns notifications off.
UPDATE outbox SET state = 'suppressed'
WHERE state = 'queued' AND dedupe_key >= 'digest:' AND dedupe_key < 'digest;';
DROP TABLE digest_lines;
DROP TABLE digest_settings;
