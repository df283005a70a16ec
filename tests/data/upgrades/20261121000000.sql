-- An evening as the program of commit f19ec0e left it, the last one with this version of the tables. What has its
-- default is left out. Read by tests/it/upgrade.rs.
INSERT INTO instance (id, epoch, started_at) VALUES
  (1, 1, 1795208640000);
INSERT INTO users (id, phone, display_name, status, role, can_delete, created_at, updated_at, name_asks, waiting_since, answered_at) VALUES
  (1, '+15550100002', NULL, 'active', 'member', 1, 1795208640002, 1795208640002, 0, NULL, NULL),
  (2, '+15550100003', NULL, 'active', 'member', 0, 1795208641005, 1795208641005, 0, NULL, NULL),
  (3, '+15550100001', NULL, 'active', 'admin', 0, 1795208641007, 1795208641007, 0, NULL, NULL),
  (4, '+15550100009', 'Sam', 'pending', 'member', 0, 1795208671019, 1795208681028, 1, 1795208681028, 1795208671022);
INSERT INTO conversations (id, user_id, name, started_at, last_activity_at, ended_at, end_reason) VALUES
  (1, 1, 'hello', 1795208641017, 1795208651016, 1795208651016, 'cleared'),
  (2, 1, 'Nov 20, 2026 21:04', 1795208661022, 1795208691028, NULL, NULL),
  (3, 2, 'Nov 20, 2026 21:05', 1795208701028, 1795208701028, NULL, NULL);
INSERT INTO turns (id, user_id, conversation_id, kind, state, last_seq, prompt, response_text, deadline_at, created_at, updated_at, finished_at, triage) VALUES
  (1, 1, 1, 'chat', 'COMPLETED', 1, '{"brain":"model","notes":[],"preface":null}', 'Hello Ann.', 1795208701017, 1795208641017, 1795208641033, 1795208641033, 'respond'),
  (2, 1, 1, 'command', 'COMPLETED', 0, '{"brain":"keyword","notes":[],"preface":null}', 'OK, we start over.', 1795208711016, 1795208651016, 1795208651016, 1795208651016, 'respond'),
  (3, 1, 2, 'chat', 'COMPLETED', 2, '{"brain":"model","notes":[],"preface":null}', 'Dune is there.', 1795208721022, 1795208661022, 1795208661057, 1795208661057, 'respond'),
  (4, 1, 2, 'chat', 'COMPLETED', 2, '{"brain":"model","notes":[],"preface":null}', 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 1795208751028, 1795208691028, 1795208691071, 1795208691071, 'respond'),
  (5, 2, 3, 'chat', 'COMPLETED', 1, '{"brain":"model","notes":[],"preface":null}', 'Nothing is downloading.', 1795208761028, 1795208701028, 1795208701044, 1795208701044, 'respond');
INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, outcome, outcome_reason, not_before, turn_id, updated_at) VALUES
  (1, 'twilio', 'SM00000000000000000000000000000001', 1, '+15550100000', 'hello', 1795208641010, 1795208641010, 'webhook', 'completed', 'replied', NULL, 1795208641010, 1, 1795208641033),
  (2, 'twilio', 'SM00000000000000000000000000000002', 1, '+15550100000', '/clear', 1795208651014, 1795208651014, 'webhook', 'completed', 'replied', NULL, 1795208651014, 2, 1795208651016),
  (3, 'twilio', 'SM00000000000000000000000000000003', 1, '+15550100000', 'have dune?', 1795208661016, 1795208661016, 'webhook', 'completed', 'replied', NULL, 1795208661016, 3, 1795208661057),
  (4, 'twilio', 'SM00000000000000000000000000000004', 4, '+15550100000', 'hello', 1795208671019, 1795208671019, 'webhook', 'completed', 'replied', NULL, 1795208671019, NULL, 1795208671022),
  (5, 'twilio', 'SM00000000000000000000000000000005', 4, '+15550100000', 'I''m Sam', 1795208681021, 1795208681021, 'webhook', 'completed', 'skipped', 'introduced', 1795208681021, NULL, 1795208681028),
  (6, 'twilio', 'SM00000000000000000000000000000006', 1, '+15550100000', 'delete dune', 1795208691025, 1795208691025, 'webhook', 'completed', 'replied', NULL, 1795208691025, 4, 1795208691071),
  (7, 'twilio', 'SM00000000000000000000000000000007', 2, '+15550100000', 'what is downloading?', 1795208701026, 1795208701026, 'webhook', 'completed', 'replied', NULL, 1795208701026, 5, 1795208701044),
  (8, 'twilio', 'SM00000000000000000000000000000008', 2, '+15550100000', 'and my shows?', 1795208703028, 1795208703028, 'webhook', 'pending', NULL, NULL, 1795208703028, NULL, 1795208703028);
INSERT INTO llm_steps (turn_id, step, attempt, state, epoch, brain, model, finish_reason, started_at, finished_at) VALUES
  (1, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208641022, 1795208641030),
  (3, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208661030, 1795208661036),
  (3, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208661048, 1795208661053),
  (4, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208691033, 1795208691042),
  (4, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208691057, 1795208691061),
  (5, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208701036, 1795208701039);
INSERT INTO blocks (turn_id, idx, step, attempt, type, content) VALUES
  (1, 0, 0, 1, 'text', 'Hello Ann.'),
  (3, 0, 0, 1, 'tool_call', 'search_media'),
  (3, 1, 1, 1, 'text', 'Dune is there.'),
  (4, 0, 0, 1, 'tool_call', 'find_in_library'),
  (4, 1, 1, 1, 'tool_call', 'remove_media'),
  (5, 0, 0, 1, 'text', 'Nothing is downloading.');
INSERT INTO tool_calls (id, turn_id, step, ord, call_id, tool_name, effect, state, attempts, request, response, epoch, created_at, started_at, updated_at, finished_at) VALUES
  (1, 3, 0, 0, '000030000', 'search_media', 'read', 'complete', 1, '{"arguments":{"query":"dune","type":"movie"}}', '{"for_model":{"results":[{"in_library":true,"title":"Dune","tmdb":9000001,"type":"movie","year":2021}],"total":1},"for_user":"I found Dune (2021) (you have it).","shown":[{"tmdb":9000001},{"item":["radarr","movie",1]}]}', 1, 1795208661036, 1795208661041, 1795208661043, 1795208661043),
  (2, 4, 0, 0, '000040000', 'find_in_library', 'read', 'complete', 1, '{"arguments":{"query":"dune"}}', '{"for_model":{"results":[{"id":1,"instance":"radarr","on_disk":true,"size_gb":21.4,"title":"Dune","type":"movie","year":2021}],"total":1},"for_user":"In the library: Dune (2021), 21.4 GB.","shown":[{"tmdb":9000001},{"item":["radarr","movie",1]}]}', 1, 1795208691042, 1795208691047, 1795208691051, 1795208691051),
  (3, 4, 1, 0, '000040100', 'remove_media', 'destructive', 'held', 0, '{"arguments":{"delete_files":true,"items":[{"id":1,"type":"movie"}]}}', NULL, NULL, 1795208691061, NULL, 1795208691071, NULL);
INSERT INTO tool_call_items (tool_call_id, ord, instance, kind, item_id, delete_files, fingerprint, state) VALUES
  (3, 0, 'radarr', 'movie', 1, 1, '{"title":"Dune","year":2021,"path":"/movies/Dune (2021)","size_bytes":21400000000,"seasons":null}', 'held');
INSERT INTO outbox (id, dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, state, attempts, attempt_at, deadline_at, not_before, provider_sid, provider_created_at, error, epoch, created_at, updated_at, accepted_at) VALUES
  (1, 'turn:1:reply', 1, 1, 'reply', '+15550100002', '+15550100000', 'Hello Ann.', 1, 'accepted', 1, 1795208641038, 1795230241033, 0, 'SM00000000000000000000000000000009', 1795208641000, NULL, 1, 1795208641033, 1795208641042, 1795208641042),
  (2, 'turn:2:reply', 1, 2, 'reply', '+15550100002', '+15550100000', 'OK, we start over.', 1, 'accepted', 1, 1795208651021, 1795230251016, 0, 'SM00000000000000000000000000000010', 1795208651000, NULL, 1, 1795208651016, 1795208651026, 1795208651026),
  (3, 'turn:3:reply', 1, 3, 'reply', '+15550100002', '+15550100000', 'Dune is there.', 1, 'accepted', 1, 1795208661063, 1795230261057, 0, 'SM00000000000000000000000000000011', 1795208661000, NULL, 1, 1795208661057, 1795208661067, 1795208661067),
  (4, 'event:4:reply', 4, NULL, 'reply', '+15550100009', '+15550100000', 'This is Dialarr, a private assistant for movies and shows. What is your name? I will ask the admins to let you in. Text STOP to opt out.', 1, 'accepted', 1, 1795208671028, 1795230271022, 0, 'SM00000000000000000000000000000012', 1795208671000, NULL, 1, 1795208671022, 1795208671030, 1795208671030),
  (5, 'approval:1:user:3', 3, NULL, 'notice', '+15550100001', '+15550100000', 'New number +1 555 010 0009, "Sam": reply APPROVE 6244 or BLOCK 6244', 1, 'accepted', 1, 1795208681029, 1795230281028, 0, 'SM00000000000000000000000000000013', 1795208681000, NULL, 1, 1795208681028, 1795208681032, 1795208681032),
  (6, 'turn:4:question', 1, 4, 'confirm_prompt', '+15550100002', '+15550100000', 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 1, 'accepted', 1, 1795208691075, 1795230291071, 0, 'SM00000000000000000000000000000014', 1795208691000, NULL, 1, 1795208691071, 1795208691079, 1795208691079),
  (7, 'turn:5:reply', 2, 5, 'reply', '+15550100003', '+15550100000', 'Nothing is downloading.', 1, 'queued', 1, 1795208701051, 1795230301044, 1795208703053, NULL, NULL, '{"meaning":"send now: too many requests at once"}', 1, 1795208701044, 1795208701053, NULL);
INSERT INTO pending_actions (id, user_id, tool_call_id, conversation_id, summary, prompt_outbox_id, created_at, armed_at, expires_at) VALUES
  (1, 1, 3, 2, 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 6, 1795208691071, 1795208691079, 1795208991079);
INSERT INTO offsets (source, cursor_at, updated_at) VALUES
  ('twilio:+15550100000', 1795208640002, 1795208640005);
INSERT INTO approvals (id, kind, user_id, code, state, created_at, expires_at) VALUES
  (1, 'join', 4, '6244', 'open', 1795208681028, 1795295081028);
INSERT INTO usage (day, user_id, model_calls, tokens_in, tokens_out, segments) VALUES
  ('2026-11-20', 1, 5, 5671, 43, 4),
  ('2026-11-20', 2, 1, 1028, 6, 0),
  ('2026-11-20', 3, 0, 0, 0, 1),
  ('2026-11-20', 4, 0, 0, 0, 1);
