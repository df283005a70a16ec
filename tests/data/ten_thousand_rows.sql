-- A household with 10,000 rows in every table that a page lists: users, conversations, texts of one conversation,
-- messages, requests, answers, usage and audit rows. The first user exists, without texts. Names, titles and texts are hostile: markup, words without a space,
-- and characters that reverse the direction of text.
CREATE TEMP TABLE numbers AS
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
    SELECT n, CAST(unixepoch('subsec') * 1000 AS INTEGER) - 86400000 - (10000 - n) * 60000 AS at,
        CASE n % 4
            WHEN 0 THEN '<script>alert(' || n || ')</script>'
            WHEN 1 THEN 'Wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww' || n
            WHEN 2 THEN char(8238) || 'evil ' || n || char(1513, 1500, 1493, 1501)
            ELSE '" onmouseover="alert(' || n || ')" x="'
        END AS name
    FROM n;
INSERT OR IGNORE INTO users(id, display_name, status, role, can_delete, created_at, updated_at)
    SELECT n, name, CASE WHEN n <= 200 THEN 'active' WHEN n % 2 THEN 'pending' ELSE 'blocked' END,
        'member', 0, at, at FROM numbers;
INSERT INTO user_addresses(user_id, address, created_at)
    SELECT n, '+1555' || (1100000 + n), at FROM numbers WHERE n > 1;
INSERT INTO conversations(id, user_id, name, started_at, last_activity_at, ended_at, end_reason)
    SELECT n, 1, name, at, at, CASE WHEN n < 10000 THEN at END, CASE WHEN n < 10000 THEN 'idle' END FROM numbers;
INSERT INTO turns(id, user_id, conversation_id, kind, state, step, prompt, response_text, deadline_at,
        created_at, updated_at, finished_at)
    SELECT n, 1, 10000, 'chat', CASE WHEN n % 100 THEN 'COMPLETED' ELSE 'FAILED' END, 1,
        '{"brain":"model","notes":[],"preface":null}', name, at, at, at, at FROM numbers;
INSERT INTO inbound_events(channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state,
        outcome, turn_id, conversation_id, updated_at)
    SELECT 'twilio', 'OLD' || n, 1, '+15550100000', name, at, at, 'webhook', 'completed', 'replied', n, 10000, at
    FROM numbers;
INSERT INTO llm_steps(turn_id, step, attempt, state, epoch, brain, model, finish_reason, started_at, finished_at)
    SELECT n, 0, 1, 'complete', 1, 'model', 'fake', 'stop', at, at FROM numbers;
INSERT INTO blocks(turn_id, idx, step, attempt, type, content) SELECT n, 0, 0, 1, 'text', name FROM numbers;
INSERT INTO outbox(dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, state, attempts,
        attempt_at, deadline_at, provider_sid, error, created_at, updated_at, accepted_at)
    SELECT 'turn:' || n || ':reply', 1, n, 'reply', '+15551100001', '+15550100000', name, 1,
        CASE WHEN n % 3 THEN 'accepted' ELSE 'failed' END, 1, at, at, CASE WHEN n % 3 THEN 'SMold' || n END,
        CASE WHEN n % 3 = 0 THEN '{"code":null,"meaning":"get a response within 15 s"}' END, at, at,
        CASE WHEN n % 3 THEN at END
    FROM numbers;
INSERT INTO requests(user_id, instance, kind, catalog_id, title, year, state, created_at, settled_at)
    SELECT 1 + n % 200, 'radarr', 'movie', 900000 + n, name, 1990 + n % 30,
        CASE WHEN n % 5 THEN 'added' ELSE 'given_up' END, at, at
    FROM numbers;
INSERT INTO agent_responses(source, scope, owner, user_id, agent, trigger_text, response_text, extracted_by,
        for_everyone, likeness, state, revision, created_at, processed_at)
    SELECT 'test:' || n, CASE WHEN n % 2 THEN 'global' ELSE 'user' END, CASE WHEN n % 2 THEN 'all' ELSE 'u1' END, 1,
        'fake', name, name, 'code', CASE WHEN n % 2 THEN 'approved' ELSE 'suggested' END, n, 'done', n, at, at
    FROM numbers;
INSERT INTO user_facts(user_id, kind, key, value, number, state, source, created_at)
    SELECT 1, 'other', 'matter ' || n, name, n, 'active', 'operator', at FROM numbers WHERE n <= 30;
INSERT INTO usage(day, user_id, model_calls, tokens_in, tokens_out, segments)
    SELECT date(at / 1000, 'unixepoch'), n, 2, 4000 + n, 100, 1 FROM numbers;
INSERT INTO audit_log(at, epoch, user_id, kind, subject, detail)
    SELECT at, 1, 1, CASE n % 3 WHEN 0 THEN 'write_done' WHEN 1 THEN 'deleted' ELSE 'text_as' END, name,
        json_object('title', name, 'year', 2000, 'reason', name)
    FROM numbers;
DROP TABLE numbers;
