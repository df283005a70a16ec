-- Thirty days of a made-up household, so that the pages of the demo have content: Sam, the admin, and the members Alex
-- (@8) and Robin (@9). Runs once on the new database of the demo, after the admin was created. Times are milliseconds.
CREATE TEMP TABLE exchanges(days INTEGER, minute INTEGER, person INTEGER, body TEXT, answer TEXT);
INSERT INTO exchanges VALUES
    (29, 1130, 1, 'what is downloading', 'Chernobyl 40%, 12 min left.'),
    (29, 1134, 1, 'add chef', 'Added Chef (2014).'),
    (28, 545, 2, 'do we have paddington', 'In the library: Paddington (2014), 6.2 GB; Paddington 2 (2017), 6.8 GB.'),
    (27, 1201, 3, 'add knives out', 'Added Knives Out (2019).'),
    (26, 1190, 1, 'status', 'Nothing is downloading.'),
    (25, 1222, 2, 'free space', 'Radarr: 1.2 TB free, no problems. Sonarr: 1.2 TB free, no problems.'),
    (24, 981, 1, 'remove tron', 'Delete Tron (1982) and its file, 7.9 GB? Reply YES or NO.'),
    (24, 983, 1, 'yes', 'Deleted Tron (1982). Freed 7.9 GB.'),
    (23, 1185, 3, 'add the wild robot', 'Added The Wild Robot (2024).'),
    (22, 1230, 2, 'what is new', 'New: Knives Out (2019) and Slow Horses S05E03.'),
    (21, 1144, 1, 'add past lives', 'Added Past Lives (2023).'),
    (20, 620, 3, 'do we have totoro', 'In the library: My Neighbor Totoro (1988), 6.9 GB.'),
    (19, 1260, 2, 'add heat', 'You already have Heat (1995).'),
    (17, 1218, 3, 'add fleabag season 2', 'You already have season 2 of Fleabag (2016).'),
    (15, 1242, 2, 'do we have coco', 'In the library: Coco (2017), 8.1 GB.'),
    (14, 1150, 1, 'add oppenheimer', 'Added Oppenheimer (2023).'),
    (12, 1210, 2, 'add arrival', 'You already have Arrival (2016).'),
    (11, 1140, 1, 'free space', 'Radarr: 1.2 TB free, no problems. Sonarr: 1.2 TB free, no problems.'),
    (10, 1233, 3, 'add everything everywhere all at once', 'Added Everything Everywhere All at Once (2022).'),
    (9, 610, 2, 'do we have bluey', 'In the library: Bluey (2018), 154 of 154 episodes, 33 GB.'),
    (8, 1195, 1, 'status', 'Everything Everywhere All at Once (2022) 12%, 55 min left.'),
    (7, 1244, 2, 'add the last of us', 'Added The Last of Us (2023).'),
    (6, 1255, 1, 'what is new', 'New: Severance S02E09 and Heat (1995).'),
    (4, 1182, 1, 'status', 'The Last of Us season 1 18%, 2 h left.'),
    (2, 1130, 2, 'tell me when the last of us is there', 'I''ll text you when The Last of Us (2023) is ready.'),
    (1, 1170, 1, 'status', 'Oppenheimer (2023) 44%, 51 min left; Past Lives (2023) stuck: No video file was found in the download.'),
    (1, 1215, 3, 'do we have coco', 'In the library: Coco (2017), 8.1 GB.');
-- Most days, somebody asks again what is there.
INSERT INTO exchanges
    WITH RECURSIVE days(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM days WHERE n < 29)
    SELECT n, 1080 + (n * 37) % 200, 1 + n % 3, 'status', 'Nothing is downloading.' FROM days WHERE n % 4 <> 0;

UPDATE users SET display_name = 'Sam' WHERE id = 1;
INSERT INTO users(id, display_name, status, role, created_at, updated_at)
    SELECT id, name, 'active', 'member', at, at
    FROM (SELECT 2 AS id, 'Alex' AS name UNION ALL SELECT 3, 'Robin'),
        (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) - 30 * 86400000 AS at);
INSERT INTO user_addresses(user_id, address, created_at)
    SELECT id, '+1555010010' || (id + 6), created_at FROM users WHERE id > 1;

CREATE TEMP TABLE past AS
    SELECT row_number() OVER (ORDER BY days DESC, minute) AS id, person, body, answer, days,
        CAST(unixepoch('now', 'start of day') AS INTEGER) * 1000 - days * 86400000 + minute * 60000 AS at
    FROM exchanges;
INSERT INTO conversations(id, user_id, name, started_at, last_activity_at, ended_at, end_reason)
    SELECT min(id), person, body, min(at), max(at), max(at) + 2700000, 'idle' FROM past GROUP BY person, days;
INSERT INTO turns(id, user_id, conversation_id, kind, state, step, prompt, response_text, deadline_at, created_at,
        updated_at, finished_at)
    SELECT id, person, min(id) OVER (PARTITION BY person, days), CASE body WHEN 'yes' THEN 'confirm' ELSE 'chat' END,
        'COMPLETED', 1, '{"brain":"keyword","notes":[],"preface":null}', answer, at, at, at + 900, at + 900
    FROM past;
INSERT INTO llm_steps(turn_id, step, attempt, state, epoch, brain, model, finish_reason, started_at, finished_at)
    SELECT id, 0, 1, 'complete', 0, 'keyword', 'grammar', 'stop', at, at + 200 FROM past;
INSERT INTO blocks(turn_id, idx, step, attempt, type, content) SELECT id, 0, 0, 1, 'text', answer FROM past;
INSERT INTO inbound_events(id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, outcome,
        turn_id, conversation_id, updated_at)
    SELECT id, 'twilio', printf('SMdemo%026d', id), person, '+15550100000', body, at - 400, at, 'webhook', 'completed',
        'replied', id, min(id) OVER (PARTITION BY person, days), at + 900
    FROM past;
INSERT INTO outbox(id, dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, state, attempts, attempt_at,
        deadline_at, provider_sid, delivery, created_at, updated_at, accepted_at)
    SELECT id, 'turn:' || id || ':reply', person, id, CASE WHEN answer LIKE '%Reply YES%' THEN 'confirm_prompt' ELSE 'reply' END,
        (SELECT address FROM user_addresses WHERE user_id = person), '+15550100000', answer, 1, 'accepted', 1, at + 900,
        at + 3600000, printf('SMsent%026d', id), CASE WHEN id % 29 THEN 'delivered' ELSE 'undelivered' END, at + 900,
        at + 2500, at + 1100
    FROM past;
INSERT INTO usage(day, user_id, segments)
    SELECT date(at / 1000, 'unixepoch', 'localtime'), person, count(*) FROM past GROUP BY 1, 2;
INSERT INTO requests(user_id, instance, kind, catalog_id, title, year, state, created_at, settled_at)
    SELECT person, instance, kind, catalog_id, title, year, 'added', at, at
    FROM (
        SELECT 'chef' AS word, 'radarr' AS instance, 'movie' AS kind, 212778 AS catalog_id, 'Chef' AS title, 2014 AS year
        UNION ALL SELECT 'knives', 'radarr', 'movie', 546554, 'Knives Out', 2019
        UNION ALL SELECT 'wild robot', 'radarr', 'movie', 1184918, 'The Wild Robot', 2024
        UNION ALL SELECT 'past lives', 'radarr', 'movie', 666277, 'Past Lives', 2023
        UNION ALL SELECT 'oppenheimer', 'radarr', 'movie', 872585, 'Oppenheimer', 2023
        UNION ALL SELECT 'everything', 'radarr', 'movie', 545611, 'Everything Everywhere All at Once', 2022
        UNION ALL SELECT 'last of us', 'sonarr', 'series', 392256, 'The Last of Us', 2023
    )
    JOIN past ON body LIKE 'add%' || word || '%'
    ORDER BY at;
INSERT INTO audit_log(at, epoch, user_id, kind, subject, detail)
    SELECT at, 0, person, CASE WHEN body = 'yes' THEN 'deleted' ELSE 'write_done' END, 'turn:' || id,
        json_object('result', answer)
    FROM past WHERE answer LIKE 'Added %' OR answer LIKE 'Deleted %' ORDER BY at;
INSERT INTO user_facts(user_id, kind, key, value, number, state, source, created_at)
    SELECT 2, 'dislike', 'horror', 'no horror movies', 1, 'active', 'operator', at FROM past WHERE id = 1
    UNION ALL SELECT 3, 'like', 'Studio Ghibli', 'all of its movies', 1, 'active', 'operator', at FROM past WHERE id = 1;
DROP TABLE past;
DROP TABLE exchanges;
