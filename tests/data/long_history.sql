-- 50,000 texts of +15550100002 with their turns, answered one a minute in one conversation that never paused.
PRAGMA foreign_keys = ON;
BEGIN;
CREATE TEMP TABLE days AS
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 50000)
    SELECT n, CAST(unixepoch('subsec') * 1000 AS INTEGER) - (50000 - n) * 60000 AS at FROM n;
INSERT INTO conversations(id, user_id, name, started_at, last_activity_at)
    SELECT 1, (SELECT user_id FROM user_addresses WHERE address = '+15550100002'), 'long', min(at), max(at) FROM days;
INSERT INTO turns(id, user_id, conversation_id, kind, state, step, prompt, response_text, deadline_at,
        created_at, updated_at, finished_at)
    SELECT n, (SELECT user_id FROM conversations), 1, 'chat', 'COMPLETED', 2,
        '{"brain":"model","notes":[],"preface":null}', 'Nothing is downloading.', at, at, at, at FROM days;
INSERT INTO inbound_events(channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state,
        outcome, turn_id, updated_at)
    SELECT 'twilio', 'OLD' || n, (SELECT user_id FROM conversations), '+15550100000', 'what is downloading',
        at, at, 'webhook', 'completed', 'replied', n, at FROM days;
INSERT INTO llm_steps(turn_id, step, attempt, state, epoch, brain, model, finish_reason, started_at, finished_at)
    SELECT n, step, 1, 'complete', 1, 'model', 'fake', 'stop', at, at
    FROM days, (SELECT 0 AS step UNION SELECT 1);
INSERT INTO blocks(turn_id, idx, step, attempt, type, content)
    SELECT n, 0, 1, 1, 'text', 'Nothing is downloading.' FROM days;
INSERT INTO tool_calls(turn_id, step, ord, call_id, tool_name, effect, state, attempts, request, response,
        created_at, started_at, updated_at, finished_at)
    SELECT n, 0, 0, 'call_' || n || '_0_0', 'check_status', 'read', 'complete', 1, '{"arguments":{}}',
        '{"for_model":{"downloads":[]},"for_user":"Nothing is downloading.","shown":[]}', at, at, at, at
    FROM days;
INSERT INTO outbox(dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, state, attempts,
        attempt_at, deadline_at, provider_sid, created_at, updated_at, accepted_at)
    SELECT 'turn:' || n || ':reply', (SELECT user_id FROM conversations), n, 'reply', '+15550100002',
        '+15550100000', 'Nothing is downloading.', 1, 'accepted', 1, at, at, 'SMold' || n, at, at, at FROM days;
INSERT INTO usage(day, user_id, model_calls, tokens_in, tokens_out, segments)
    SELECT date(at / 1000, 'unixepoch'), (SELECT user_id FROM conversations), 2 * count(*), 8000 * count(*),
        100 * count(*), count(*)
    FROM days GROUP BY 1;
COMMIT;
