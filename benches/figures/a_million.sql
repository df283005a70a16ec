-- A million texts: 500,000 that everyone there is texted, one an hour each in a conversation of twelve, and as many
-- answers.
PRAGMA foreign_keys = ON;
BEGIN;
CREATE TEMP TABLE people AS
    SELECT row_number() OVER (ORDER BY user_id) - 1 AS place, user_id AS id, address AS phone, count(*) OVER () AS many
    FROM user_addresses;
CREATE TEMP TABLE said AS
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 500000)
    SELECT n, id AS user_id, phone, (n / many) / 12 * many + place + 1 AS conversation,
        CAST(unixepoch('subsec') * 1000 AS INTEGER) - (500000 - n) / many * 3600000 - 86400000 AS at
    FROM n JOIN people ON place = n % many;
CREATE INDEX temp.of_conversation ON said(conversation);
INSERT INTO conversations(id, user_id, name, started_at, last_activity_at, ended_at, end_reason)
    SELECT conversation, user_id, 'A talk', min(at), max(at), max(at) + 1, 'idle' FROM said GROUP BY conversation;
INSERT INTO turns(id, user_id, conversation_id, kind, state, step, prompt, response_text, deadline_at,
        created_at, updated_at, finished_at)
    SELECT n, user_id, conversation, 'chat', 'COMPLETED', 2, '{"brain":"model","notes":[],"preface":null}',
        'Number ' || n || ' is downloading, it takes ' || n % 977 || ' minutes.', at, at, at, at FROM said;
INSERT INTO inbound_events(channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state,
        outcome, turn_id, updated_at)
    SELECT 'twilio', 'OLD' || n, user_id, '+15550100000', 'what is with download ' || n % 7919, at, at, 'webhook',
        'completed', 'replied', n, at FROM said;
INSERT INTO outbox(dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, state, attempts,
        attempt_at, deadline_at, provider_sid, created_at, updated_at, accepted_at)
    SELECT 'turn:' || n || ':reply', user_id, n, 'reply', phone, '+15550100000',
        'Number ' || n || ' is downloading, it takes ' || n % 977 || ' minutes.', 1, 'accepted', 1, at, at,
        'SMold' || n, at, at, at FROM said;
COMMIT;
