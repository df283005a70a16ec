-- The evening of 20261123120000.sql. A message to the admin did not arrive, and Bob followed Alien until it was ready.
-- Columns with their default are left out.
-- Read by tests/it/upgrade.rs.
PRAGMA application_id = 1147756908;
INSERT INTO instance (id, epoch, started_at, seen_at) VALUES
  (1, 1, 1795208640000, 1795208760000);
INSERT INTO users (id, phone, display_name, status, role, can_delete, created_at, updated_at, name_asks, waiting_since, answered_at) VALUES
  (1, '+15550100002', NULL, 'active', 'member', 1, 1795208640004, 1795208640004, 0, NULL, NULL),
  (2, '+15550100003', NULL, 'active', 'member', 0, 1795208641007, 1795208641007, 0, NULL, NULL),
  (3, '+15550100001', NULL, 'active', 'admin', 0, 1795208641011, 1795208641011, 0, NULL, NULL),
  (4, '+15550100009', 'Sam', 'pending', 'member', 0, 1795208671021, 1795208681029, 1, 1795208681029, 1795208671026);
INSERT INTO conversations (id, user_id, name, started_at, last_activity_at, ended_at, end_reason) VALUES
  (1, 1, 'hello', 1795208641016, 1795208651017, 1795208651017, 'cleared'),
  (2, 1, 'Nov 20, 2026 21:04', 1795208661022, 1795208711040, NULL, NULL),
  (3, 2, 'Nov 20, 2026 21:04', 1795208691030, 1795208721041, NULL, NULL);
INSERT INTO turns (id, user_id, conversation_id, kind, state, prompt, response_text, deadline_at, created_at, updated_at, finished_at, triage) VALUES
  (1, 1, 1, 'chat', 'COMPLETED', '{"brain":"model","notes":[],"preface":null}', 'Hello Ann.', 1795208701016, 1795208641016, 1795208641038, 1795208641038, 'respond'),
  (2, 1, 1, 'command', 'COMPLETED', '{"brain":"keyword","notes":[],"preface":null}', 'OK, we start over.', 1795208711017, 1795208651017, 1795208651017, 1795208651017, 'respond'),
  (3, 1, 2, 'chat', 'COMPLETED', '{"brain":"model","notes":[],"preface":null}', 'Dune is there.', 1795208721022, 1795208661022, 1795208661067, 1795208661067, 'respond'),
  (4, 2, 3, 'chat', 'COMPLETED', '{"brain":"model","notes":[],"preface":null}', 'Heat (1995)?', 1795208751030, 1795208691030, 1795208691075, 1795208691075, 'respond'),
  (5, 2, 3, 'chat', 'COMPLETED', '{"brain":"model","notes":[],"preface":null}', 'Radarr is down, I''ll keep trying.', 1795208761033, 1795208701033, 1795208701074, 1795208701074, 'respond'),
  (6, 1, 2, 'chat', 'COMPLETED', '{"brain":"model","notes":[],"preface":null}', 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 1795208771040, 1795208711040, 1795208711088, 1795208711088, 'respond'),
  (7, 2, 3, 'chat', 'COMPLETED', '{"brain":"model","notes":[],"preface":null}', 'Nothing is downloading.', 1795208781041, 1795208721041, 1795208721064, 1795208721064, 'respond');
INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, outcome, outcome_reason, not_before, turn_id, updated_at) VALUES
  (1, 'twilio', 'SM00000000000000000000000000000001', 1, '+15550100000', 'hello', 1795208641013, 1795208641013, 'webhook', 'completed', 'replied', NULL, 1795208641013, 1, 1795208641038),
  (2, 'twilio', 'SM00000000000000000000000000000002', 1, '+15550100000', '/clear', 1795208651015, 1795208651015, 'webhook', 'completed', 'replied', NULL, 1795208651015, 2, 1795208651017),
  (3, 'twilio', 'SM00000000000000000000000000000003', 1, '+15550100000', 'have dune?', 1795208661017, 1795208661017, 'webhook', 'completed', 'replied', NULL, 1795208661017, 3, 1795208661067),
  (4, 'twilio', 'SM00000000000000000000000000000004', 4, '+15550100000', 'hello', 1795208671021, 1795208671021, 'webhook', 'completed', 'replied', NULL, 1795208671021, NULL, 1795208671026),
  (5, 'twilio', 'SM00000000000000000000000000000005', 4, '+15550100000', 'I''m Sam', 1795208681025, 1795208681025, 'webhook', 'completed', 'skipped', 'introduced', 1795208681025, NULL, 1795208681029),
  (6, 'twilio', 'SM00000000000000000000000000000006', 2, '+15550100000', 'search heat', 1795208691027, 1795208691027, 'webhook', 'completed', 'replied', NULL, 1795208691027, 4, 1795208691075),
  (7, 'twilio', 'SM00000000000000000000000000000007', 2, '+15550100000', 'yes, add it', 1795208701029, 1795208701029, 'webhook', 'completed', 'replied', NULL, 1795208701029, 5, 1795208701074),
  (8, 'twilio', 'SM00000000000000000000000000000008', 1, '+15550100000', 'delete dune', 1795208711033, 1795208711033, 'webhook', 'completed', 'replied', NULL, 1795208711033, 6, 1795208711088),
  (9, 'twilio', 'SM00000000000000000000000000000009', 2, '+15550100000', 'what is downloading?', 1795208721037, 1795208721037, 'webhook', 'completed', 'replied', NULL, 1795208721037, 7, 1795208721064),
  (10, 'twilio', 'SM00000000000000000000000000000010', 2, '+15550100000', 'and my shows?', 1795208723040, 1795208723040, 'webhook', 'pending', NULL, NULL, 1795208723040, NULL, 1795208723040),
  (11, 'twilio', 'SM00000000000000000000000000000021', 2, '+15550100000', 'thanks!', 1795208716000, 1795208716000, 'webhook', 'completed', 'skipped', 'small_talk', 1795208716000, NULL, 1795208716010);
INSERT INTO llm_steps (turn_id, step, attempt, state, epoch, brain, model, finish_reason, started_at, finished_at) VALUES
  (1, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208641025, 1795208641031),
  (3, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208661034, 1795208661040),
  (3, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208661055, 1795208661060),
  (4, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208691041, 1795208691049),
  (4, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208691064, 1795208691068),
  (5, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208701045, 1795208701049),
  (5, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208701065, 1795208701069),
  (6, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208711052, 1795208711058),
  (6, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208711075, 1795208711081),
  (7, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208721053, 1795208721062);
INSERT INTO blocks (turn_id, idx, step, attempt, type, content) VALUES
  (1, 0, 0, 1, 'text', 'Hello Ann.'),
  (3, 0, 0, 1, 'tool_call', 'search_media'),
  (3, 1, 1, 1, 'text', 'Dune is there.'),
  (4, 0, 0, 1, 'tool_call', 'search_media'),
  (4, 1, 1, 1, 'text', 'Heat (1995)?'),
  (5, 0, 0, 1, 'tool_call', 'add_movie'),
  (5, 1, 1, 1, 'text', 'Radarr is down, I''ll keep trying.'),
  (6, 0, 0, 1, 'tool_call', 'find_in_library'),
  (6, 1, 1, 1, 'tool_call', 'remove_media'),
  (7, 0, 0, 1, 'text', 'Nothing is downloading.');
INSERT INTO tool_calls (id, turn_id, step, ord, call_id, tool_name, effect, state, attempts, request, response, epoch, created_at, started_at, updated_at, finished_at) VALUES
  (1, 3, 0, 0, '000030000', 'search_media', 'read', 'complete', 1, '{"arguments":{"query":"dune","type":"movie"}}', '{"for_model":{"results":[{"in_library":true,"title":"Dune","tmdb":9000001,"type":"movie","year":2021}],"total":1},"for_user":"I found Dune (2021) (you have it).","shown":[{"tmdb":9000001},{"item":["radarr","movie",1]}]}', 1, 1795208661040, 1795208661045, 1795208661050, 1795208661050),
  (2, 4, 0, 0, '000040000', 'search_media', 'read', 'complete', 1, '{"arguments":{"query":"heat"}}', '{"for_model":{"results":[{"in_library":false,"title":"Heat","tmdb":949,"type":"movie","year":1995}],"total":1},"for_user":"I found Heat (1995).","shown":[{"tmdb":949}]}', 1, 1795208691049, 1795208691053, 1795208691057, 1795208691057),
  (3, 5, 0, 0, '000050000', 'add_movie', 'write', 'complete', 1, '{"arguments":{"tmdb":949}}', '{"for_model":{"error":"radarr_unreachable","hint":"not added yet; it is tried for a day, and the user gets a text either way: say so","status":"queued","tmdb":949,"type":"movie"},"for_user":"Radarr can''t be reached right now. I''ll keep trying for a day and text you.","shown":[]}', 1, 1795208701049, 1795208701057, 1795208701061, 1795208701061),
  (4, 6, 0, 0, '000060000', 'find_in_library', 'read', 'complete', 1, '{"arguments":{"query":"dune"}}', '{"for_model":{"results":[{"id":1,"instance":"radarr","on_disk":true,"size_gb":21.4,"title":"Dune","type":"movie","year":2021}],"total":1},"for_user":"In the library: Dune (2021), 21.4 GB.","shown":[{"tmdb":9000001},{"item":["radarr","movie",1]}]}', 1, 1795208711058, 1795208711064, 1795208711071, 1795208711071),
  (5, 6, 1, 0, '000060100', 'remove_media', 'destructive', 'held', 0, '{"arguments":{"delete_files":true,"items":[{"id":1,"type":"movie"}]}}', NULL, NULL, 1795208711081, NULL, 1795208711088, NULL);
INSERT INTO tool_call_items (tool_call_id, ord, instance, kind, item_id, delete_files, fingerprint, state) VALUES
  (5, 0, 'radarr', 'movie', 1, 1, '{"title":"Dune","year":2021,"path":"/movies/Dune (2021)","size_bytes":21400000000,"seasons":null}', 'held');
INSERT INTO outbox (id, dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, state, attempts, attempt_at, deadline_at, not_before, provider_sid, provider_created_at, error, epoch, created_at, updated_at, accepted_at, callback_word) VALUES
  (1, 'turn:1:reply', 1, 1, 'reply', '+15550100002', '+15550100000', 'Hello Ann.', 1, 'accepted', 1, 1795208641040, 1795230241038, 0, 'SM00000000000000000000000000000011', 1795208641000, NULL, 1, 1795208641038, 1795208641046, 1795208641046, '00000000000000000000000000000001'),
  (2, 'turn:2:reply', 1, 2, 'reply', '+15550100002', '+15550100000', 'OK, we start over.', 1, 'accepted', 1, 1795208651021, 1795230251017, 0, 'SM00000000000000000000000000000012', 1795208651000, NULL, 1, 1795208651017, 1795208651024, 1795208651024, '00000000000000000000000000000002'),
  (3, 'turn:3:reply', 1, 3, 'reply', '+15550100002', '+15550100000', 'Dune is there.', 1, 'accepted', 1, 1795208661069, 1795230261067, 0, 'SM00000000000000000000000000000013', 1795208661000, NULL, 1, 1795208661067, 1795208661074, 1795208661074, '00000000000000000000000000000003'),
  (4, 'event:4:reply', 4, NULL, 'reply', '+15550100009', '+15550100000', 'This is Dialarr, a private assistant for movies and shows. What is your name? I will ask the admins to let you in. Text STOP to opt out.', 1, 'accepted', 1, 1795208671032, 1795230271026, 0, 'SM00000000000000000000000000000014', 1795208671000, NULL, 1, 1795208671026, 1795208671034, 1795208671034, '00000000000000000000000000000004'),
  (5, 'approval:1:user:3', 3, NULL, 'notice', '+15550100001', '+15550100000', 'New number +1 555 010 0009, "Sam": reply APPROVE 5480 or BLOCK 5480', 1, 'accepted', 1, 1795208681034, 1795230281029, 0, 'SM00000000000000000000000000000015', 1795208681000, NULL, 1, 1795208681029, 1795208681038, 1795208681038, '00000000000000000000000000000005'),
  (6, 'turn:4:reply', 2, 4, 'reply', '+15550100003', '+15550100000', 'Heat (1995)?', 1, 'accepted', 1, 1795208691079, 1795230291075, 0, 'SM00000000000000000000000000000016', 1795208691000, NULL, 1, 1795208691075, 1795208691083, 1795208691083, '00000000000000000000000000000006'),
  (7, 'turn:5:reply', 2, 5, 'reply', '+15550100003', '+15550100000', 'Radarr is down, I''ll keep trying.', 1, 'accepted', 1, 1795208701081, 1795230301074, 0, 'SM00000000000000000000000000000017', 1795208701000, NULL, 1, 1795208701074, 1795208701083, 1795208701083, '00000000000000000000000000000007'),
  (8, 'turn:6:question', 1, 6, 'confirm_prompt', '+15550100002', '+15550100000', 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 1, 'accepted', 1, 1795208711092, 1795230311088, 0, 'SM00000000000000000000000000000018', 1795208711000, NULL, 1, 1795208711088, 1795208711095, 1795208711095, '00000000000000000000000000000008'),
  (9, 'turn:7:reply', 2, 7, 'reply', '+15550100003', '+15550100000', 'Nothing is downloading.', 1, 'queued', 1, 1795208721068, 1795230321064, 1795208723071, NULL, NULL, '{"meaning":"send now: too many requests at once"}', 1, 1795208721064, 1795208721071, NULL, '00000000000000000000000000000009'),
  (10, 'ready:1', 2, NULL, 'notice', '+15550100003', '+15550100000', 'Alien (1979) is ready to watch.', 1, 'accepted', 1, 1795208715000, 1795230315000, 0, 'SM00000000000000000000000000000020', 1795208715000, NULL, 1, 1795208715000, 1795208715010, 1795208715010, '0000000000000000000000000000000a');
INSERT INTO pending_actions (id, user_id, tool_call_id, conversation_id, summary, prompt_outbox_id, created_at, armed_at, expires_at) VALUES
  (1, 1, 5, 2, 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 8, 1795208711088, 1795208711095, 1795209011095);
INSERT INTO offsets (source, cursor_at, updated_at) VALUES
  ('twilio:+15550100000', 1795208640004, 1795208640005);
INSERT INTO audit_log (id, at, epoch, user_id, kind, subject, detail) VALUES
  (1, 1795208701057, 1, 2, 'write', 'tool_call:3', '{"arguments":{"tmdb":949},"tool":"add_movie"}'),
  (2, 1795208701061, 1, 2, 'write_done', 'tool_call:3', '{"error":"radarr_unreachable","hint":"not added yet; it is tried for a day, and the user gets a text either way: say so","status":"queued","tmdb":949,"type":"movie"}');
INSERT INTO approvals (id, kind, user_id, code, state, created_at, expires_at) VALUES
  (1, 'join', 4, '5480', 'open', 1795208681029, 1795295081029);
INSERT INTO usage (day, user_id, model_calls, tokens_in, tokens_out, segments) VALUES
  ('2026-11-20', 1, 5, 9001, 43, 4),
  ('2026-11-20', 2, 5, 8036, 31, 2),
  ('2026-11-20', 3, 0, 0, 0, 1),
  ('2026-11-20', 4, 0, 0, 0, 1);
INSERT INTO requests (id, user_id, tool_call_id, instance, kind, catalog_id, title, year, state, arguments, next_try_at, created_at) VALUES
  (1, 2, 3, 'radarr', 'movie', 949, 'Heat', 1995, 'queued', '{"arguments":{"tmdb":949}}', 1795208761061, 1795208701061);
INSERT INTO agent_responses (id, turn_id, source, scope, owner, user_id, agent, trigger_text, response_text, summary, topics, keywords, response_type, extracted_by, likeness, state, attempts, not_before, revision, created_at, processed_at) VALUES
  (1, 1, 'turn:1', 'user', 'u1', 1, 'scripted', 'hello', 'Hello Ann.', '', '[]', '[]', NULL, NULL, -8543507775596944042, 'skipped', 1, 1795208971043, 1, 1795208641038, 1795208671047),
  (2, 3, 'turn:3', 'user', 'u1', 1, 'scripted', 'have dune?', 'Dune is there.', 'Dune is there.', '[]', '["dune"]', 'explanation', 'code', 5401592988989570970, 'done', 1, 1795208971049, 3, 1795208661067, 1795208671051),
  (3, 4, 'turn:4', 'user', 'u2', 2, 'scripted', 'search heat', 'Heat (1995)?', 'Heat (1995)', '["Heat"]', '["search","heat","1995"]', 'explanation', 'code', -2620282414535807411, 'done', 1, 1795209001063, 5, 1795208691075, 1795208701066),
  (4, 5, 'turn:5', 'user', 'u2', 2, 'scripted', 'yes, add it', 'Radarr is down, I''ll keep trying.', '', '[]', '[]', NULL, NULL, -3535962290671986733, 'pending', 0, 0, 6, 1795208701074, NULL),
  (5, 7, 'turn:7', 'user', 'u2', 2, 'scripted', 'what is downloading?', 'Nothing is downloading.', '', '[]', '[]', NULL, NULL, 3502909230651752246, 'pending', 0, 0, 7, 1795208721064, NULL);
INSERT INTO words_in (rowid, body) SELECT id, body FROM inbound_events WHERE turn_id IS NOT NULL OR outcome IS NOT NULL;
UPDATE inbound_events SET conversation_id = 3 WHERE id = 11;
UPDATE outbox SET delivery = 'undelivered' WHERE id = 5;
INSERT INTO delivery_events (provider_sid, status, outbox_id, attempt, error_code, received_at) VALUES
  ('SM00000000000000000000000000000015', 'sent', 5, 1, NULL, 1795208682000),
  ('SM00000000000000000000000000000015', 'undelivered', 5, 1, 30003, 1795208683000);
INSERT INTO follows (user_id, instance, kind, catalog_id, created_at, ended_at, explicit) VALUES
  (2, 'radarr', 'movie', 348, 1795208700000, 1795208715000, 1);
