-- An evening as the program of commit db4f573 left it, the last one with this version of the tables. What has its
-- default is left out. Read by tests/it/upgrade.rs.
INSERT INTO instance (id, epoch, started_at) VALUES
  (1, 1, 1795208640000);
INSERT INTO users (id, phone, status, can_delete, created_at, updated_at) VALUES
  (1, '+15550100002', 'active', 1, 1795208640002, 1795208640002),
  (2, '+15550100003', 'active', 0, 1795208641005, 1795208641005);
INSERT INTO conversations (id, user_id, name, started_at, last_activity_at, ended_at, end_reason) VALUES
  (1, 1, 'Nov 20, 2026 21:04', 1795208641013, 1795208651015, 1795208651015, 'cleared'),
  (2, 1, 'Nov 20, 2026 21:04', 1795208661019, 1795208671019, NULL, NULL),
  (3, 2, 'Nov 20, 2026 21:04', 1795208681024, 1795208681024, NULL, NULL);
INSERT INTO turns (id, user_id, conversation_id, kind, state, last_seq, prompt, response_text, deadline_at, created_at, updated_at, finished_at) VALUES
  (1, 1, 1, 'chat', 'COMPLETED', 1, '{"brain":"model","notes":[],"preface":null}', 'Hello Ann.', 1795208701013, 1795208641013, 1795208641031, 1795208641031),
  (2, 1, 1, 'command', 'COMPLETED', 0, '{"brain":"keyword","notes":[],"preface":null}', 'OK, we start over.', 1795208711015, 1795208651015, 1795208651015, 1795208651015),
  (3, 1, 2, 'chat', 'COMPLETED', 2, '{"brain":"model","notes":[],"preface":null}', 'Dune is there.', 1795208721019, 1795208661019, 1795208661053, 1795208661053),
  (4, 1, 2, 'chat', 'COMPLETED', 2, '{"brain":"model","notes":[],"preface":null}', 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 1795208731019, 1795208671019, 1795208671058, 1795208671058),
  (5, 2, 3, 'chat', 'COMPLETED', 1, '{"brain":"model","notes":[],"preface":null}', 'Nothing is downloading.', 1795208741024, 1795208681024, 1795208681040, 1795208681040);
INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, outcome, not_before, turn_id, updated_at) VALUES
  (1, 'twilio', 'SM00000000000000000000000000000001', 1, '+15550100000', 'hello', 1795208641007, 1795208641007, 'webhook', 'completed', 'replied', 1795208641007, 1, 1795208641031),
  (2, 'twilio', 'SM00000000000000000000000000000002', 1, '+15550100000', '/clear', 1795208651010, 1795208651010, 'webhook', 'completed', 'replied', 1795208651010, 2, 1795208651015),
  (3, 'twilio', 'SM00000000000000000000000000000003', 1, '+15550100000', 'have dune?', 1795208661015, 1795208661015, 'webhook', 'completed', 'replied', 1795208661015, 3, 1795208661053),
  (4, 'twilio', 'SM00000000000000000000000000000004', 1, '+15550100000', 'delete dune', 1795208671017, 1795208671017, 'webhook', 'completed', 'replied', 1795208671017, 4, 1795208671058),
  (5, 'twilio', 'SM00000000000000000000000000000005', 2, '+15550100000', 'what is downloading?', 1795208681019, 1795208681019, 'webhook', 'completed', 'replied', 1795208681019, 5, 1795208681040),
  (6, 'twilio', 'SM00000000000000000000000000000006', 2, '+15550100000', 'and my shows?', 1795208684021, 1795208684021, 'webhook', 'pending', NULL, 1795208684021, NULL, 1795208684021);
INSERT INTO llm_steps (turn_id, step, attempt, state, epoch, brain, model, finish_reason, started_at, finished_at) VALUES
  (1, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208641020, 1795208641026),
  (3, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208661026, 1795208661030),
  (3, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208661043, 1795208661050),
  (4, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208671028, 1795208671032),
  (4, 1, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208671045, 1795208671052),
  (5, 0, 1, 'complete', 1, 'model', 'scripted', 'stop', 1795208681031, 1795208681035);
INSERT INTO blocks (turn_id, idx, step, attempt, type, content) VALUES
  (1, 0, 0, 1, 'text', 'Hello Ann.'),
  (3, 0, 0, 1, 'tool_call', 'search_media'),
  (3, 1, 1, 1, 'text', 'Dune is there.'),
  (4, 0, 0, 1, 'tool_call', 'find_in_library'),
  (4, 1, 1, 1, 'tool_call', 'remove_media'),
  (5, 0, 0, 1, 'text', 'Nothing is downloading.');
INSERT INTO tool_calls (id, turn_id, step, ord, call_id, tool_name, effect, state, attempts, request, response, epoch, created_at, started_at, updated_at, finished_at) VALUES
  (1, 3, 0, 0, '000030000', 'search_media', 'read', 'complete', 1, '{"arguments":{"query":"dune","type":"movie"}}', '{"for_model":{"results":[{"in_library":true,"title":"Dune","tmdb":9000001,"type":"movie","year":2021}],"total":1},"for_user":"I found Dune (2021) (you have it).","shown":[{"tmdb":9000001},{"item":["radarr","movie",1]}]}', 1, 1795208661030, 1795208661038, 1795208661039, 1795208661039),
  (2, 4, 0, 0, '000040000', 'find_in_library', 'read', 'complete', 1, '{"arguments":{"query":"dune"}}', '{"for_model":{"results":[{"id":1,"instance":"radarr","on_disk":true,"size_gb":21.4,"title":"Dune","type":"movie","year":2021}],"total":1},"for_user":"In the library: Dune (2021), 21.4 GB.","shown":[{"tmdb":9000001},{"item":["radarr","movie",1]}]}', 1, 1795208671032, 1795208671039, 1795208671043, 1795208671043),
  (3, 4, 1, 0, '000040100', 'remove_media', 'destructive', 'held', 0, '{"arguments":{"delete_files":true,"items":[{"id":1,"type":"movie"}]}}', NULL, NULL, 1795208671052, NULL, 1795208671058, NULL);
INSERT INTO tool_call_items (tool_call_id, ord, instance, kind, item_id, delete_files, fingerprint, state) VALUES
  (3, 0, 'radarr', 'movie', 1, 1, '{"title":"Dune","year":2021,"path":"/movies/Dune (2021)","size_bytes":21400000000,"seasons":null}', 'held');
INSERT INTO outbox (id, dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, state, attempts, attempt_at, deadline_at, not_before, provider_sid, provider_created_at, error, epoch, created_at, updated_at, accepted_at) VALUES
  (1, 'turn:1:reply', 1, 1, 'reply', '+15550100002', '+15550100000', 'Hello Ann.', 1, 'accepted', 1, 1795208641035, 1795230241031, 0, 'SM00000000000000000000000000000007', 1795208641000, NULL, 1, 1795208641031, 1795208641038, 1795208641038),
  (2, 'turn:2:reply', 1, 2, 'reply', '+15550100002', '+15550100000', 'OK, we start over.', 1, 'accepted', 1, 1795208651018, 1795230251015, 0, 'SM00000000000000000000000000000008', 1795208651000, NULL, 1, 1795208651015, 1795208651022, 1795208651022),
  (3, 'turn:3:reply', 1, 3, 'reply', '+15550100002', '+15550100000', 'Dune is there.', 1, 'accepted', 1, 1795208661058, 1795230261053, 0, 'SM00000000000000000000000000000009', 1795208661000, NULL, 1, 1795208661053, 1795208661062, 1795208661062),
  (4, 'turn:4:question', 1, 4, 'confirm_prompt', '+15550100002', '+15550100000', 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 1, 'accepted', 1, 1795208671061, 1795230271058, 0, 'SM00000000000000000000000000000010', 1795208671000, NULL, 1, 1795208671058, 1795208671065, 1795208671065),
  (5, 'turn:5:reply', 2, 5, 'reply', '+15550100003', '+15550100000', 'Nothing is downloading.', 1, 'queued', 1, 1795208681045, 1795230281040, 1795208683049, NULL, NULL, '{"meaning":"send now: too many requests at once"}', 1, 1795208681040, 1795208681048, NULL);
INSERT INTO pending_actions (id, user_id, tool_call_id, conversation_id, summary, prompt_outbox_id, created_at, armed_at, expires_at) VALUES
  (1, 1, 3, 2, 'Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.', 4, 1795208671058, 1795208671065, 1795208971065);
INSERT INTO offsets (source, cursor_at, updated_at) VALUES
  ('twilio:+15550100000', 1795208640002, 1795208640005);
