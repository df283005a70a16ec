//! Tests of reverted migrations, which must leave data that the earlier version of the program can read.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_migrations::MigrationHarness;

use super::migration::MIGRATIONS;
use crate::store::Conn;

const CONSOLE_MIGRATION: &str = "20261121180000";
const ASIDES_MIGRATION: &str = "20261122180000";
const AUDIT_MIGRATION: &str = "20261123120000";
const EVENTS_MIGRATION: &str = "20261125000000";
const DELIVERY_MIGRATION: &str = "20261125070000";
const INDEXING_MIGRATION: &str = "20261125080000";
const CHANNELS_MIGRATION: &str = "20261129000000";
const ADDRESSES_MIGRATION: &str = "20261201000000";
const KEY_SCOPES_MIGRATION: &str = "20261202030000";
const TELEGRAM_MIGRATION: &str = "20261203000000";
const ROOMS_MIGRATION: &str = "20261204000000";
const VOTES_MIGRATION: &str = "20261205000000";
const CHECKED_VOTES_MIGRATION: &str = "20261212000000";
const PLACED_REACTIONS_MIGRATION: &str = "20261206000000";
const VIEWER_ACCOUNTS_MIGRATION: &str = "20261207000000";
const SEERR_REQUESTS_MIGRATION: &str = "20261208010000";
const SEERR_ACCOUNTS_MIGRATION: &str = "20261208000000";
const SEASON_OFFERS_MIGRATION: &str = "20261210000000";
const TITLE_ATTRIBUTIONS_MIGRATION: &str = "20261211000000";
const DIGESTS_MIGRATION: &str = "20261213000000";
const AGENTS_MIGRATION: &str = "20261215000000";
const FEWER_PAGES_MIGRATION: &str = "20261218000000";
const RUNNING_CALLS_MIGRATION: &str = "20261219000000";
const SMALLER_ROWS_MIGRATION: &str = "20261220000000";

/// Rows before the reversal: user 1 has a running turn that was resumed, user 2 a running turn that a program
/// requested, and user 3 is a test user with rows in every table.
const FIXTURE_SQL: &str = r#"
INSERT INTO users (id, status, role, test, created_at, updated_at) VALUES
  (1, 'active', 'admin', 0, 1, 1), (2, 'active', 'member', 0, 1, 1), (3, 'active', 'member', 1, 1, 1);
INSERT INTO user_addresses (id, user_id, address, created_at) VALUES
  (1, 1, '+15550100001', 1), (2, 2, '+15550100002', 1), (3, 3, '+15550100110', 1);
INSERT INTO conversations (id, user_id, name, started_at, last_activity_at) VALUES
  (1, 1, 'a', 1, 1), (2, 2, 'b', 1, 1), (3, 3, 'c', 1, 1);
INSERT INTO turns (id, user_id, conversation_id, kind, state, prompt, deadline_at, created_at, updated_at, finished_at, runs) VALUES
  (1, 1, 1, 'confirm', 'COMPLETED', '{}', 9, 1, 2, 2, 1), (2, 1, 1, 'chat', 'IN_PROGRESS', '{}', 9, 3, 4, NULL, 2),
  (3, 2, 2, 'chat', 'COMPLETED', '{}', 9, 1, 2, 2, 1), (4, 2, 2, 'chat', 'WAITING_FOR_TOOLS', '{}', 9, 3, 4, NULL, 1),
  (5, 3, 3, 'chat', 'COMPLETED', '{}', 9, 1, 2, 2, 1), (6, 3, 3, 'confirm', 'IN_PROGRESS', '{}', 9, 3, 4, NULL, 1);
INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, outcome, turn_id, wants_answer, updated_at) VALUES
  (1, 'twilio', 'a', 1, '+15550100000', 'yes', 1, 1, 'webhook', 'completed', 'replied', 1, 1, 1),
  (2, 'twilio', 'b', 1, '+15550100000', 'add heat', 3, 3, 'webhook', 'processing', NULL, 2, 1, 3),
  (3, 'twilio', 'c', 1, '+15550100000', 'and dune', 5, 5, 'webhook', 'pending', NULL, NULL, 1, 5),
  (4, 'console', 'd', 1, '+15550100000', 'approve 1234', 5, 5, 'local', 'pending', NULL, NULL, 1, 5),
  (5, 'console', 'e', 2, 'console', 'add alien', 3, 3, 'local', 'processing', NULL, 4, 1, 3),
  (6, 'console', 'f', 2, 'console', 'note this', 5, 5, 'local', 'pending', NULL, NULL, 0, 5),
  (7, 'console', 'g', 2, 'console', 'status', 5, 5, 'local', 'pending', NULL, NULL, 1, 5),
  (8, 'console', 'h', 3, 'console', 'yes', 3, 3, 'local', 'processing', NULL, 6, 1, 3),
  (9, 'console', 'i', 3, 'console', 'hi', 5, 5, 'local', 'pending', NULL, NULL, 1, 5);
INSERT INTO llm_steps (turn_id, step, attempt, state, epoch, brain, model, error, started_at, finished_at) VALUES
  (2, 0, 1, 'abandoned', 1, 'model', 'm', '{"kind":"forgiven","message":"no"}', 1, 2),
  (2, 0, 2, 'started', 1, 'model', 'm', NULL, 3, NULL), (5, 0, 1, 'complete', 1, 'model', 'm', NULL, 1, 2);
INSERT INTO blocks (turn_id, idx, step, attempt, type, content) VALUES (5, 0, 0, 1, 'text', 'hi');
INSERT INTO tool_calls (id, turn_id, step, ord, call_id, tool_name, effect, state, request, error, run_turn_id, confirmed_by, created_at, started_at, unknown_at, updated_at) VALUES
  (1, 1, 0, 0, 'a', 'remove_media', 'destructive', 'error', '{}', '{}', 1, 1, 1, 1, NULL, 2),
  (2, 3, 0, 0, 'b', 'remove_media', 'destructive', 'held', '{}', NULL, NULL, NULL, 1, NULL, NULL, 2),
  (3, 4, 0, 0, 'c', 'add_movie', 'write', 'unknown', '{}', NULL, NULL, NULL, 3, 3, 4, 4),
  (4, 4, 0, 1, 'd', 'search_media', 'read', 'created', '{}', NULL, NULL, NULL, 3, NULL, NULL, 4),
  (5, 5, 0, 0, 'e', 'remove_media', 'destructive', 'running', '{}', NULL, 6, 8, 1, 3, NULL, 4);
INSERT INTO tool_call_items (tool_call_id, ord, instance, kind, item_id, delete_files, fingerprint, state, result) VALUES
  (1, 0, 'radarr', 'movie', 1, 1, '{}', 'complete', '"deleted"'), (1, 1, 'radarr', 'movie', 2, 1, '{}', 'error', '"stopped"'),
  (2, 0, 'radarr', 'movie', 3, 1, '{}', 'held', NULL), (5, 0, 'radarr', 'movie', 4, 1, '{}', 'held', NULL);
INSERT INTO outbox (id, dedupe_key, user_id, turn_id, conversation_id, kind, to_addr, from_addr, body, segments, state, deadline_at, provider_sid, created_at, updated_at) VALUES
  (1, 'turn:2:reply', 1, 2, NULL, 'reply', '+15550100001', '+15550100000', 'sorry', 1, 'accepted', 9, 'SM1', 2, 2),
  (2, 'turn:3:question', 2, 3, NULL, 'confirm_prompt', '+15550100002', 'console', 'Delete?', 1, 'accepted', 9, 'CO1', 2, 2),
  (3, 'note', 2, NULL, 2, 'notice', '+15550100002', 'console', 'ready', 1, 'queued', 9, NULL, 2, 2),
  (4, 'ready', 2, NULL, 2, 'notice', '+15550100002', '+15550100000', 'ready', 1, 'queued', 9, NULL, 2, 2),
  (5, 'turn:5:reply', 3, 5, NULL, 'reply', '+15550100110', 'console', 'hi', 1, 'queued', 9, NULL, 2, 2),
  (6, 'approval:7:user:1', 1, NULL, 1, 'notice', '+15550100001', '+15550100000', 'approve 4821', 1, 'queued', 9, NULL, 2, 2),
  (7, 'approval:77:user:1', 1, NULL, 1, 'notice', '+15550100001', '+15550100000', 'approve 1234', 1, 'queued', 9, NULL, 2, 2);
INSERT INTO pending_actions (id, user_id, tool_call_id, conversation_id, summary, prompt_outbox_id, created_at, armed_at, expires_at) VALUES
  (1, 2, 2, 2, 'Delete?', 2, 2, 2, 9), (2, 3, 5, 3, 'Delete?', 5, 2, 2, 9);
INSERT INTO approvals (id, kind, user_id, code, state, created_at, expires_at, tool_call_id, instance, item_kind, item_id, fingerprint) VALUES
  (7, 'delete', 3, '4821', 'open', 1, 9, 5, 'radarr', 'movie', 4, '{}');
INSERT INTO usage (day, user_id) VALUES ('2026-11-20', 1), ('2026-11-20', 3);
INSERT INTO additions (user_id, kind, amount, at) VALUES (3, 'movie', 1, 1);
INSERT INTO requests (user_id, tool_call_id, instance, kind, catalog_id, title, year, state, created_at) VALUES
  (3, 5, 'radarr', 'movie', 9, 'Heat', 1995, 'added', 1);
INSERT INTO follows (user_id, instance, kind, catalog_id, created_at) VALUES (3, 'radarr', 'movie', 9, 1);
INSERT INTO notices (user_id, matter, outbox_id, created_at) VALUES (3, 'm', 5, 1);
INSERT INTO reactions (user_id, author, event_id, created_at) VALUES (3, 'assistant', 8, 1);
INSERT INTO audit_log (at, epoch, user_id, kind, subject, detail) VALUES (1, 1, 3, 'write', 'tool_call:5', '{}');
INSERT INTO pauses (begun_at, begun_by, ended_at) VALUES (1, 1, 2);
INSERT INTO api_keys (name, key_hash, ending, created_at) VALUES ('Stats', zeroblob(32), 'abcd', 1);
"#;

/// Query for the columns of each row that the earlier program depends on.
const REMAINING_ROWS_QUERY: &str = "
SELECT 'user ' || id AS line FROM users
UNION ALL SELECT 'conversation ' || id FROM conversations
UNION ALL SELECT 'turn ' || id || ' ' || state || iif(finished_at IS NULL, ' running', '') FROM turns
UNION ALL SELECT 'text in ' || id || ' ' || state || coalesce(' ' || outcome_reason, '') FROM inbound_events
UNION ALL SELECT 'step ' || turn_id || '.' || attempt || ' ' || state || coalesce(' ' || error, '') FROM llm_steps
UNION ALL SELECT 'call ' || id || ' ' || state || coalesce(' ' || iif(json_type(error) = 'text', error, error ->> '$.code'), '') FROM tool_calls
UNION ALL SELECT 'item ' || tool_call_id || '.' || ord || ' ' || state || coalesce(' ' || result, '') FROM tool_call_items
UNION ALL SELECT 'text out ' || id || ' ' || state FROM outbox
UNION ALL SELECT 'pending action ' || id FROM pending_actions
UNION ALL SELECT 'approval ' || id FROM approvals
UNION ALL SELECT 'usage of user ' || user_id FROM usage
UNION ALL SELECT 'audit entry of ' || coalesce('user ' || user_id, 'no user') || ' ' || subject FROM audit_log
UNION ALL SELECT 'pause ended by user ' || ended_by FROM pauses";

#[derive(QueryableByName)]
struct LineRow {
    #[diesel(sql_type = Text)]
    line: String,
}

fn load_lines(conn: &mut Conn, query: &str) -> String {
    let rows: Vec<LineRow> = diesel::sql_query(query).load(conn).unwrap();
    rows.into_iter().map(|row| row.line).collect::<Vec<_>>().join("\n")
}

/// Reverts the migrations down to `version`, which is reverted too.
fn revert_down_to(conn: &mut Conn, version: &str) {
    while conn.revert_last_migration(MIGRATIONS).unwrap().to_string() != version {}
}

#[test]
fn down_migration_of_scopes_revokes_keys_that_may_only_read() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(
        "INSERT INTO api_keys (name, key_hash, ending, created_at, last_used_at, scope) VALUES
           ('Old', randomblob(32), 'aaaa', 1, NULL, 'unscoped'), ('Read', randomblob(32), 'bbbb', 1, 3, 'read'),
           ('Write', randomblob(32), 'cccc', 1, NULL, 'write'), ('Admin', randomblob(32), 'dddd', 1, NULL, 'admin');",
    )
    .unwrap();

    revert_down_to(&mut conn, KEY_SCOPES_MIGRATION);

    let keys = "SELECT name || coalesce(' revoked ' || revoked_at, '') AS line FROM api_keys";
    assert_eq!(load_lines(&mut conn, keys), "Old\nRead revoked 3\nWrite\nAdmin");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    let scopes = "SELECT DISTINCT scope AS line FROM api_keys";
    assert_eq!(load_lines(&mut conn, scopes), "unscoped");
}

#[test]
fn down_migration_of_agents_ends_their_turns_and_revokes_their_keys() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    conn.batch_execute(
        "INSERT INTO users (id, status, created_at, updated_at) VALUES (4, 'active', 1, 1);
         INSERT INTO api_keys (id, name, key_hash, ending, created_at, user_id) VALUES (2, 'desk', randomblob(32), 'eeee', 5, 4);
         INSERT INTO conversations (id, user_id, name, started_at, last_activity_at, agent_key_id) VALUES (4, 4, 'd', 1, 6, 2);
         INSERT INTO turns (id, user_id, conversation_id, kind, state, prompt, deadline_at, created_at, updated_at) VALUES
           (7, 4, 4, 'chat', 'WAITING_FOR_TOOLS', '{}', 9, 3, 4);
         INSERT INTO tool_calls (id, turn_id, step, ord, call_id, tool_name, effect, state, request, created_at, started_at, updated_at)
         VALUES (6, 7, 0, 0, 'f', 'add_movie', 'write', 'running', '{}', 3, 3, 4);",
    )
    .unwrap();

    revert_down_to(&mut conn, AGENTS_MIGRATION);

    let remaining = "SELECT 'turn ' || state AS line FROM turns WHERE id = 7
                     UNION ALL SELECT 'call ' || state || ' ' || (error ->> '$.code') FROM tool_calls WHERE id = 6
                     UNION ALL SELECT 'conversation ended ' || ended_at FROM conversations WHERE id = 4
                     UNION ALL SELECT name || coalesce(' revoked ' || revoked_at, '') FROM api_keys";
    assert_eq!(
        load_lines(&mut conn, remaining),
        "turn CANCELED\ncall error outcome_unknown\nconversation ended 6\nStats\ndesk revoked 5"
    );
    conn.run_pending_migrations(MIGRATIONS).unwrap();
}

#[test]
fn down_migration_of_addresses_keeps_one_number_of_each_user() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    conn.batch_execute(
        "INSERT INTO user_addresses (id, user_id, address, opted_out_at, created_at) VALUES
           (4, 1, '+15550100009', NULL, 1), (5, 2, 'pigeon:501', 1, 1);
         INSERT INTO users (id, status, created_at, updated_at, forgotten_at) VALUES (4, 'blocked', 1, 1, 1);
         INSERT INTO users (id, status, created_at, updated_at) VALUES (5, 'active', 1, 1);
         INSERT INTO user_addresses (user_id, address, created_at) VALUES (5, 'pigeon:502', 1);
         UPDATE user_addresses SET opted_out_at = 7, opt_word_at = 6 WHERE id = 1;
         UPDATE outbox SET address_id = 4 WHERE id = 6;
         UPDATE outbox SET address_id = 1 WHERE id = 7;
         UPDATE inbound_events SET address_id = 1 WHERE id = 3;
         INSERT INTO link_codes (user_id, code, created_at, expires_at) VALUES (1, '123456', 1, 2);",
    )
    .unwrap();

    revert_down_to(&mut conn, ADDRESSES_MIGRATION);

    let users = "SELECT phone || coalesce(' opted out ' || opted_out_at || ' by ' || opt_word_at, '') AS line FROM users";
    insta::assert_snapshot!(load_lines(&mut conn, users), @r"
    +15550100001 opted out 7 by 6
    +15550100002
    +15550100110
    +9990004
    +9990005
    ");
    let sent = "SELECT id || ' ' || state AS line FROM outbox WHERE id IN (6, 7)";
    assert_eq!(load_lines(&mut conn, sent), "6 suppressed\n7 queued");
    assert_eq!(load_lines(&mut conn, "SELECT \"table\" AS line FROM pragma_foreign_key_check"), "");

    conn.run_pending_migrations(MIGRATIONS).unwrap();
    let addresses = "SELECT user_id || ' ' || address AS line FROM user_addresses";
    assert_eq!(
        load_lines(&mut conn, addresses),
        "1 +15550100001\n2 +15550100002\n3 +15550100110\n5 +9990005"
    );
}

#[test]
fn down_migration_of_console_leaves_only_older_values() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();

    revert_down_to(&mut conn, CONSOLE_MIGRATION);

    insta::assert_snapshot!(load_lines(&mut conn, REMAINING_ROWS_QUERY), @r#"
    user 1
    user 2
    conversation 1
    conversation 2
    turn 1 COMPLETED
    turn 2 CANCELED
    turn 3 COMPLETED
    turn 4 CANCELED
    text in 1 completed
    text in 2 completed taken_back
    text in 3 pending
    text in 4 pending
    text in 5 completed taken_back
    text in 6 completed remembered
    text in 7 completed remembered
    step 2.1 abandoned {"kind":"interrupted"}
    step 2.2 abandoned {"kind":"interrupted"}
    call 1 error
    call 2 canceled "dropped"
    call 3 error outcome_unknown
    call 4 canceled "not_run"
    item 1.0 complete "deleted"
    item 1.1 error "failed"
    item 2.0 canceled
    text out 1 accepted
    text out 2 accepted
    text out 3 suppressed
    text out 4 queued
    text out 6 suppressed
    text out 7 queued
    usage of user 1
    audit entry of no user tool_call:5
    pause ended by user 1
    "#);
    let faults = "SELECT \"table\" || ' ' || parent AS line FROM pragma_foreign_key_check
                  UNION ALL SELECT integrity_check FROM pragma_integrity_check";
    assert_eq!(load_lines(&mut conn, faults), "ok");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    assert_eq!(load_lines(&mut conn, "SELECT 'turn ' || id AS line FROM turns WHERE runs <> 1"), "");
    assert_eq!(load_lines(&mut conn, "SELECT 'user ' || id AS line FROM users WHERE test = 1"), "");
}

#[test]
fn down_migration_of_asides_keeps_the_conversations_of_notifications() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();

    revert_down_to(&mut conn, ASIDES_MIGRATION);

    conn.run_pending_migrations(MIGRATIONS).unwrap();
    let notifications = "SELECT 'text out ' || id || ' in ' || conversation_id AS line FROM outbox WHERE conversation_id IS NOT NULL ORDER BY id";
    assert_eq!(
        load_lines(&mut conn, notifications),
        "text out 3 in 2\ntext out 4 in 2\ntext out 6 in 1\ntext out 7 in 1"
    );
}

#[test]
fn down_migration_of_events_logs_after_all_reserved_numbers() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let start = "INSERT INTO instance (id, epoch, started_at, reserved_events) VALUES (1, 1, 1, 4000)";
    conn.batch_execute(start).unwrap();

    revert_down_to(&mut conn, EVENTS_MIGRATION);

    conn.batch_execute("UPDATE turns SET state = 'CREATED', updated_at = 9 WHERE id = 2").unwrap();
    let events = "SELECT seq || ' turn ' || turn_id || ' ' || state AS line FROM stream_events
                  UNION ALL SELECT 'floor ' || stream_floor FROM conversations WHERE id = 1";
    assert_eq!(load_lines(&mut conn, events), "4002 turn 2 CREATED\nfloor 4001");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    assert_eq!(load_lines(&mut conn, "SELECT '' || reserved_events AS line FROM instance"), "4002");
}

#[test]
fn down_migration_of_audit_removes_four_digit_codes() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let set_values = "UPDATE pending_actions SET code = iif(id = 2, '4821', '48');
                       UPDATE tool_call_items SET result = '\"still_there\"' WHERE result = '\"deleted\"'";
    conn.batch_execute(set_values).unwrap();

    revert_down_to(&mut conn, AUDIT_MIGRATION);

    let actions = "SELECT code || ' ' || (SELECT state FROM outbox WHERE id = prompt_outbox_id) || ' ' || expires_at AS line
                     FROM pending_actions ORDER BY id";
    assert_eq!(load_lines(&mut conn, actions), "48 accepted 9\n4821 suppressed 0");
    let results = "SELECT result AS line FROM tool_call_items WHERE result IS NOT NULL";
    assert_eq!(load_lines(&mut conn, results), "\"failed\"\n\"stopped\"");
}

#[test]
fn down_migration_of_delivery_reports_keeps_the_last_report() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let undelivered = r#"UPDATE outbox SET delivery = 'undelivered', error = '{"code":30003,"meaning":null}', attempts = 2 WHERE id = 1"#;
    conn.batch_execute(undelivered).unwrap();

    revert_down_to(&mut conn, DELIVERY_MIGRATION);

    let reports = "SELECT provider_sid || ' ' || status || ' ' || outbox_id || ' ' || attempt || ' ' || error_code || ' ' || received_at AS line
                     FROM delivery_events";
    assert_eq!(load_lines(&mut conn, reports), "SM1 undelivered 1 2 30003 2");
    conn.batch_execute(
        "INSERT INTO delivery_events (provider_sid, status, received_at) VALUES ('SM1', 'sent', 1);
         UPDATE outbox SET error = NULL",
    )
    .unwrap();
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    let codes = "SELECT id || ' ' || error AS line FROM outbox WHERE error IS NOT NULL";
    assert_eq!(load_lines(&mut conn, codes), r#"1 {"code":30003,"meaning":null}"#);
}

/// Checks settled and waiting messages that were indexed or not when the migration was reverted.
#[test]
fn down_migration_of_text_indexing_indexes_all_settled_messages() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    crate::store::text_index::index_new_text(&mut conn).unwrap();
    conn.batch_execute(
        "INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, outcome, updated_at) VALUES
           (10, 'twilio', 'j', 1, '+15550100000', 'and heat', 6, 6, 'webhook', 'completed', 'skipped', 6),
           (11, 'twilio', 'k', 1, '+15550100000', 'and alien', 6, 6, 'webhook', 'pending', NULL, 6);
         INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
         VALUES (8, 'later', 2, 'notice', '+1', '+1', 'heat and more', 1, 9, 6, 6)",
    )
    .unwrap();
    let found = "SELECT 'in ' || rowid AS line FROM words_in WHERE words_in MATCH 'and OR add'
                 UNION ALL SELECT 'out ' || rowid FROM words_out WHERE words_out MATCH 'ready OR heat' ORDER BY line";
    assert_eq!(load_lines(&mut conn, found), "in 2\nin 3\nin 5\nout 3\nout 4");

    revert_down_to(&mut conn, INDEXING_MIGRATION);
    assert_eq!(load_lines(&mut conn, found), "in 10\nin 2\nin 5\nout 3\nout 4\nout 8");
    conn.batch_execute("UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 11")
        .unwrap();
    assert_eq!(load_lines(&mut conn, found), "in 10\nin 11\nin 2\nin 5\nout 3\nout 4\nout 8");

    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute("UPDATE inbound_events SET body = ''; UPDATE outbox SET body = ''").unwrap();
    assert_eq!(load_lines(&mut conn, found), "");
    conn.batch_execute(
        "INSERT INTO words_in(words_in, rank) VALUES ('integrity-check', 1);
         INSERT INTO words_out(words_out, rank) VALUES ('integrity-check', 1)",
    )
    .unwrap();
}

#[test]
fn down_migration_of_channels_ends_the_work_of_other_channels() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let phone = "INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, updated_at) VALUES
                   (10, 'smsgate', 'ab', 1, 'smsgate:+15550100077', 'status', 6, 6, 'poll', 'pending', 6);
                 INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
                 VALUES (8, 'later', 1, 'notice', 'smsgate:+15550100001', 'smsgate:+15550100077', 'ready', 1, 9, 6, 6);
                 UPDATE outbox SET from_addr = 'smsgate:+15550100077' WHERE id = 2;
                 INSERT INTO offsets VALUES ('smsgate:+15550100077', 6, 6, 'mark'), ('twilio:+15550100000', 6, 6, '')";
    conn.batch_execute(phone).unwrap();

    revert_down_to(&mut conn, CHANNELS_MIGRATION);

    let rows = "SELECT 'in ' || channel || ' ' || external_id || ' ' || via || ' ' || state || ' ' || outcome_reason AS line FROM inbound_events WHERE id = 10
                UNION ALL SELECT 'in ' || id || ' ' || state FROM inbound_events WHERE id = 3
                UNION ALL SELECT 'out ' || id || ' ' || state FROM outbox WHERE id IN (7, 8)
                UNION ALL SELECT 'prompt ' || id FROM pending_actions
                UNION ALL SELECT 'call ' || id || ' ' || state FROM tool_calls WHERE id = 2
                UNION ALL SELECT 'cursor ' || source || ' ' || cursor_at FROM offsets";
    insta::assert_snapshot!(load_lines(&mut conn, rows), @r"
    in twilio smsgate:ab webhook completed remembered
    in 3 pending
    out 7 queued
    out 8 suppressed
    prompt 2
    call 2 canceled
    cursor smsgate:+15550100077 6
    cursor twilio:+15550100000 6
    ");
    let other = "UPDATE inbound_events SET channel = 'smsgate' WHERE id = 10";
    assert!(conn.batch_execute(other).is_err());
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute(other).unwrap();
}

#[test]
fn down_migration_of_telegram_ends_presses_and_reactions() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let bot = format!(
        "INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, pressed_message, updated_at) VALUES
           (10, 'telegram', 'press.9', 1, 'telegram:501', 'yes', 6, 6, 'poll', 'pending', 2, 6);
         INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, reacts_to, segments, deadline_at, created_at, updated_at) VALUES
           (8, 'reaction', 1, 'reply', 'telegram:9', 'telegram:501', '+1', '7.ab', 1, 9, 6, 6),
           (9, 'long', 1, 'reply', 'telegram:9', 'telegram:501', '{}', NULL, 1, 9, 6, 6)",
        "x".repeat(4096)
    );
    conn.batch_execute(&bot).unwrap();

    revert_down_to(&mut conn, TELEGRAM_MIGRATION);

    let rows = "SELECT 'in ' || channel || ' ' || external_id || ' ' || state AS line FROM inbound_events WHERE id = 10
                UNION ALL SELECT 'out ' || id || ' ' || state || ' ' || length(body) FROM outbox WHERE id > 7";
    insta::assert_snapshot!(load_lines(&mut conn, rows), @r"
    in twilio telegram:press.9 completed
    out 8 suppressed 2
    out 9 queued 1600
    ");
    let longer = "UPDATE outbox SET body = printf('%2000s', 'x') WHERE id = 9";
    assert!(conn.batch_execute(longer).is_err());
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute(longer).unwrap();
}

#[test]
fn down_migration_of_rooms_blocks_the_rooms() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let room = "INSERT INTO users (id, status, role, can_add, can_delete, can_4k, created_at, updated_at) VALUES
           (50, 'active', 'member', 0, 0, 0, 6, 6);
         INSERT INTO memory_groups (id, members) VALUES (5, 'room:50');
         INSERT INTO rooms (id, mode, group_id, created_at) VALUES (50, 'mentioned', 5, 6);
         INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, state, room_id, updated_at) VALUES
           (10, 'telegram', '7.ab', 1, 'telegram:501', 'status', 6, 6, 'poll', 'pending', 50, 6);
         INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, quotes, room_id, segments, deadline_at, created_at, updated_at) VALUES
           (8, 'answer', 1, 'reply', 'telegram:-5', 'telegram:501', 'Fine.', '7.ab', 50, 1, 9, 6, 6)";
    conn.batch_execute(room).unwrap();

    revert_down_to(&mut conn, ROOMS_MIGRATION);

    let rows = "SELECT 'in ' || state || ' ' || outcome_reason AS line FROM inbound_events WHERE id = 10
                UNION ALL SELECT 'out ' || state FROM outbox WHERE id = 8
                UNION ALL SELECT 'room ' || status FROM users WHERE id = 50";
    insta::assert_snapshot!(load_lines(&mut conn, rows), @r"
    in completed remembered
    out suppressed
    room blocked
    ");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute("INSERT INTO rooms (id, mode, group_id, created_at) VALUES (50, 'off', 5, 6)")
        .unwrap();
}

#[test]
fn down_migrations_of_votes_and_reactions_keep_the_messages() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let vote = "INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at) VALUES
           (8, 'poll:1:ask', 1, 'reply', 'telegram:9', 'telegram:501', 'Which one?', 1, 9, 6, 6);
         INSERT INTO votes (id, user_id, question, options, created_at, closes_at) VALUES (1, 1, 'Which one?', '[\"a\",\"b\"]', 6, 9);
         INSERT INTO vote_messages (outbox_id, vote_id, part) VALUES (8, 1, 'ballot');
         INSERT INTO ballots (vote_id, user_id, choice, updated_at) VALUES (1, 1, 2, 6);
         INSERT INTO reactions (id, user_id, author, outbox_id, emoji, created_at) VALUES (70, 1, 'user', 8, '+', 6)";
    conn.batch_execute(vote).unwrap();
    let placed = "INSERT INTO reactions (id, user_id, author, outbox_id, emoji, created_at) VALUES (71, 1, 'user', 8, '+', 6)";

    revert_down_to(&mut conn, PLACED_REACTIONS_MIGRATION);
    assert_eq!(load_lines(&mut conn, "SELECT 'reaction ' || id AS line FROM reactions WHERE id >= 70"), "");
    assert!(conn.batch_execute(placed).is_err());
    revert_down_to(&mut conn, VOTES_MIGRATION);
    let rows = "SELECT 'out ' || body AS line FROM outbox WHERE id = 8";
    assert_eq!(load_lines(&mut conn, rows), "out Which one?");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute(placed).unwrap();
}

#[test]
fn down_migration_of_checked_votes_ends_those_that_are_open() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let votes = "INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at) VALUES
           (8, 'vote:1:user:1', 1, 'notice', 'telegram:9', 'telegram:501', 'Heat?', 1, 9, 6, 6),
           (9, 'vote:2:user:1', 1, 'notice', 'telegram:9', 'telegram:501', 'Which one?', 1, 9, 6, 6);
         INSERT INTO votes (id, user_id, question, options, created_at, closes_at, reasons, checked_kind, checked_cap) VALUES
           (1, 1, 'Heat?', '[\"a\",\"b\"]', 6, 9, '[]', 'movie', 13);
         INSERT INTO votes (id, room_id, user_id, question, options, created_at, closes_at, closed_at, winner) VALUES
           (2, NULL, 1, 'Which one?', '[\"a\",\"b\"]', 6, 9, 8, 1);
         INSERT INTO vote_messages (outbox_id, vote_id, part) VALUES (8, 1, 'ballot'), (9, 2, 'ballot')";
    conn.batch_execute(votes).unwrap();

    revert_down_to(&mut conn, CHECKED_VOTES_MIGRATION);

    let rows = "SELECT 'vote ' || id || ' ' || closed_at AS line FROM votes
                UNION ALL SELECT 'out ' || id || ' ' || state FROM outbox WHERE id IN (8, 9)";
    insta::assert_snapshot!(load_lines(&mut conn, rows), @r"
    vote 1 9
    vote 2 8
    out 8 suppressed
    out 9 queued
    ");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute("UPDATE votes SET winner = 2 WHERE id = 2").unwrap();
}

#[test]
fn down_migration_of_seerr_requests_keeps_the_titles_and_drops_the_offers() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let offer = "INSERT INTO approvals (id, kind, user_id, code, state, created_at, expires_at, instance, item_id, \
                 account_id, account_name, title) VALUES (71, 'seerr', 3, '1235', 'open', 1, 9, 'seerr', 4, '3', 'Sam', \
                 'Dune')";
    conn.batch_execute(offer).unwrap();
    conn.batch_execute(
        "UPDATE requests SET seerr_request = 4, seerr_state = 'pending';
         UPDATE outbox SET dedupe_key = 'approval:71:user:1' WHERE id = 6",
    )
    .unwrap();
    let titles = "SELECT title AS line FROM requests";
    let before = load_lines(&mut conn, titles);
    revert_down_to(&mut conn, SEERR_REQUESTS_MIGRATION);
    assert_eq!(load_lines(&mut conn, titles), before);
    assert_eq!(load_lines(&mut conn, "SELECT 'approval ' || id AS line FROM approvals"), "approval 7");
    let texts = "SELECT id || ' ' || state AS line FROM outbox WHERE id IN (6, 7)";
    assert_eq!(load_lines(&mut conn, texts), "6 suppressed\n7 queued");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute(offer).unwrap();
}

#[test]
fn down_migration_of_seerr_accounts_drops_their_links_alone() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let request = "INSERT INTO approvals (id, kind, user_id, code, state, created_at, expires_at, instance, account_id, \
                   account_name) VALUES (70, 'account', 3, '1234', 'open', 1, 9, 'seerr', '3', 'Sam')";
    conn.batch_execute(request).unwrap();
    conn.batch_execute(
        "INSERT INTO viewer_accounts VALUES ('jellyfin', 'a', 'Sam', 3, 1), ('seerr', '3', 'Sam', 3, 1);
         UPDATE outbox SET dedupe_key = 'approval:70:user:1' WHERE id = 6",
    )
    .unwrap();
    revert_down_to(&mut conn, SEERR_ACCOUNTS_MIGRATION);
    assert_eq!(load_lines(&mut conn, "SELECT server AS line FROM viewer_accounts"), "jellyfin");
    assert_eq!(load_lines(&mut conn, "SELECT 'approval ' || id AS line FROM approvals"), "approval 7");
    let texts = "SELECT id || ' ' || state AS line FROM outbox WHERE id IN (6, 7)";
    assert_eq!(load_lines(&mut conn, texts), "6 suppressed\n7 queued");
    assert!(conn.batch_execute("INSERT INTO viewer_accounts VALUES ('seerr', '4', 'Kim', 3, 1)").is_err());
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute(request).unwrap();
}

#[test]
fn down_migration_of_viewer_accounts_drops_links_and_their_outcomes() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let request = "INSERT INTO approvals (id, kind, user_id, code, state, created_at, expires_at, instance, account_id, \
                   account_name) VALUES (70, 'account', 3, '1234', 'open', 1, 9, 'jellyfin', 'a', 'Sam')";
    conn.batch_execute(request).unwrap();
    conn.batch_execute(
        "INSERT INTO viewer_accounts VALUES ('jellyfin', 'a', 'Sam', 3, 1);
         UPDATE turns SET about_viewing = 1 WHERE id = 1;
         UPDATE outbox SET dedupe_key = 'approval:70:user:1' WHERE id = 6;
         UPDATE tool_call_items SET result = iif(ord = 0, '\"being_watched\"', '\"viewing_unknown\"')
           WHERE result IS NOT NULL",
    )
    .unwrap();
    revert_down_to(&mut conn, VIEWER_ACCOUNTS_MIGRATION);
    let results = "SELECT result AS line FROM tool_call_items WHERE result IS NOT NULL";
    assert_eq!(load_lines(&mut conn, results), "\"failed\"\n\"failed\"");
    assert_eq!(load_lines(&mut conn, "SELECT 'approval ' || id AS line FROM approvals"), "approval 7");
    let texts = "SELECT id || ' ' || state AS line FROM outbox WHERE id IN (6, 7)";
    assert_eq!(load_lines(&mut conn, texts), "6 suppressed\n7 queued");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
    conn.batch_execute(request).unwrap();
}

#[test]
fn down_migration_of_season_offers_erases_their_texts() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    conn.batch_execute(
        "UPDATE outbox SET dedupe_key = 'next_season:' || id || ':user:1' WHERE id IN (1, 4);
         INSERT INTO notices (user_id, matter, words, outbox_id, created_at) VALUES (2, 'next_season:0a', 'Dark', 4, 1)",
    )
    .unwrap();
    revert_down_to(&mut conn, SEASON_OFFERS_MIGRATION);
    let texts = "SELECT id || ' ' || state || ' ' || body AS line FROM outbox WHERE id IN (1, 3, 4)";
    assert_eq!(load_lines(&mut conn, texts), "1 accepted \n3 queued ready\n4 suppressed ");
    let phrases = "SELECT 'phrase ' || words AS line FROM notices WHERE words IS NOT NULL";
    assert_eq!(load_lines(&mut conn, phrases), "");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
}

#[test]
fn migration_attributes_titles_to_the_users_whose_requests_were_added() {
    let mut conn = crate::store::scratch();
    revert_down_to(&mut conn, TITLE_ATTRIBUTIONS_MIGRATION);
    conn.batch_execute(
        "INSERT INTO users (id, status, role, created_at, updated_at) VALUES
           (1, 'active', 'member', 1, 1), (2, 'active', 'member', 1, 1);
         INSERT INTO requests (user_id, instance, kind, catalog_id, title, year, state, created_at) VALUES
           (1, 'radarr', 'movie', 949, 'Heat', 1995, 'added', 5),
           (1, 'radarr', 'movie', 949, 'Heat', 1995, 'added', 3),
           (1, 'radarr', 'movie', 348, 'Alien', 1979, 'given_up', 4),
           (2, 'radarr', 'movie', 949, 'Heat', 1995, 'added', 7);",
    )
    .unwrap();

    conn.run_pending_migrations(MIGRATIONS).unwrap();

    let attributions = "SELECT user_id || ' ' || instance || ' ' || catalog_id || ' since ' || first_requested_at AS line \
        FROM title_attributions ORDER BY user_id";
    assert_eq!(load_lines(&mut conn, attributions), "1 radarr 949 since 3\n2 radarr 949 since 7");
}

#[test]
fn down_migration_of_digests_withdraws_those_that_wait() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    conn.batch_execute(
        "UPDATE outbox SET dedupe_key = 'digest:1:user:' || id WHERE id IN (1, 4);
         INSERT INTO digest_settings (user_id, weekday, hour, set_at) VALUES (2, 5, 18, 1);
         INSERT INTO digest_lines (outbox_id, number, kind, reference, title) VALUES (1, 1, 'movie', 0, 'Heat');",
    )
    .unwrap();

    revert_down_to(&mut conn, DIGESTS_MIGRATION);

    let texts = "SELECT id || ' ' || state AS line FROM outbox WHERE id IN (1, 3, 4)";
    assert_eq!(load_lines(&mut conn, texts), "1 accepted\n3 queued\n4 suppressed");
    conn.run_pending_migrations(MIGRATIONS).unwrap();
}

#[test]
fn schema_edited_for_fewer_pages_stays_intact_in_both_directions() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    let faults = "SELECT integrity_check AS line FROM pragma_integrity_check
        UNION ALL SELECT \"table\" || ' ' || parent FROM pragma_foreign_key_check";
    let largest_ids = "SELECT name || ' ' || seq AS line FROM sqlite_sequence
        WHERE name IN ('inbound_events', 'turns', 'tool_calls', 'outbox', 'agent_responses') ORDER BY name";
    let repeat_id = "UPDATE outbox SET state = 'accepted', provider_sid = 'SM1' WHERE id = 4";
    assert_eq!(load_lines(&mut conn, faults), "ok");
    assert_eq!(load_lines(&mut conn, largest_ids), "");
    assert!(conn.batch_execute(repeat_id).is_err());

    revert_down_to(&mut conn, FEWER_PAGES_MIGRATION);

    assert_eq!(load_lines(&mut conn, faults), "ok");
    assert_eq!(
        load_lines(&mut conn, largest_ids),
        "agent_responses 0\ninbound_events 9\noutbox 7\ntool_calls 5\nturns 6"
    );
    assert!(conn.batch_execute(repeat_id).is_err());
    let answer = |turn: &str, source: &str| {
        format!(
            "INSERT INTO agent_responses (turn_id, source, scope, owner, user_id, agent, trigger_text, response_text,
             likeness, state, revision, created_at) VALUES
             ({turn}, '{source}', 'user', 'u1', 1, 'm', 'hi', 'hello', 1, 'pending', 1, 1)"
        )
    };
    conn.batch_execute(&answer("1", "turn:1")).unwrap();
    assert!(conn.batch_execute(&answer("1", "turn:2")).is_err());
    assert!(conn.batch_execute(&answer("2", "turn:1")).is_err());

    conn.run_pending_migrations(MIGRATIONS).unwrap();
    assert_eq!(load_lines(&mut conn, faults), "ok");
    conn.batch_execute(&answer("NULL", "notice:1")).unwrap();
    assert!(conn.batch_execute(&answer("NULL", "notice:1")).is_err());
    let next = "INSERT INTO turns (user_id, conversation_id, kind, state, prompt, deadline_at, created_at, updated_at,
        finished_at) VALUES (1, 1, 'chat', 'COMPLETED', '{}', 9, 1, 2, 2) RETURNING 'turn ' || id AS line";
    assert_eq!(load_lines(&mut conn, next), "turn 7");
}

#[test]
fn migration_charges_interrupted_model_calls_for_their_input() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    revert_down_to(&mut conn, RUNNING_CALLS_MIGRATION);
    conn.batch_execute(
        "UPDATE usage SET model_calls = 2, tokens_in = 50, tokens_out = 9, cost_micros = 6 WHERE user_id = 1;
         INSERT INTO reservations VALUES
           (2, '2026-11-20', 1, 100, 20, 7, 3), (4, '2026-11-20', 2, 30, 20, 1, 1), (6, '2026-11-21', 1, 10, 20, 2, 1);",
    )
    .unwrap();

    conn.run_pending_migrations(MIGRATIONS).unwrap();

    let charged = "SELECT day || ' user ' || user_id || ': ' || model_calls || ' calls, ' || tokens_in || '+' || tokens_out
        || ', cost ' || cost_micros AS line FROM usage WHERE model_calls > 0 ORDER BY day, user_id";
    assert_eq!(
        load_lines(&mut conn, charged),
        "2026-11-20 user 1: 3 calls, 150+9, cost 13\n2026-11-20 user 2: 1 calls, 30+0, cost 1\n\
         2026-11-21 user 1: 1 calls, 10+0, cost 2"
    );
}

#[test]
fn down_migration_of_smaller_rows_restores_what_they_omit() {
    let mut conn = crate::store::scratch();
    conn.batch_execute(FIXTURE_SQL).unwrap();
    conn.batch_execute(
        r#"UPDATE turns SET prompt = iif(id = 1, '{"notes":["a"]}', '{"brain":"keyword"}');
         UPDATE tool_calls SET request = iif(id = 1, '{}', '{"raw":"x"}');
         UPDATE tool_calls SET response = iif(id = 1, '{"for_user":"a"}', '{"for_user":"b","shown":[{"tmdb":7}]}');
         INSERT INTO agent_responses (turn_id, source, scope, owner, user_id, agent, trigger_text, response_text,
           likeness, state, revision, created_at) VALUES
           (1, '', 'user', 'u1', 1, 'm', 'hi', 'hello', 1, 'pending', 1, 1),
           (2, 'turn:2', 'user', 'u1', 1, 'm', 'hi', 'hello', 1, 'pending', 2, 1),
           (NULL, 'notice:1', 'user', 'u1', 1, 'm', 'hi', 'hello', 1, 'pending', 3, 1);"#,
    )
    .unwrap();

    revert_down_to(&mut conn, SMALLER_ROWS_MIGRATION);

    let plans = "SELECT prompt AS line FROM turns WHERE id <= 2 ORDER BY id";
    assert_eq!(
        load_lines(&mut conn, plans),
        "{\"notes\":[\"a\"],\"brain\":\"model\"}\n{\"brain\":\"keyword\"}"
    );
    let results = "SELECT response AS line FROM tool_calls WHERE id <= 2 ORDER BY id";
    assert_eq!(
        load_lines(&mut conn, results),
        "{\"for_user\":\"a\",\"shown\":[]}\n{\"for_user\":\"b\",\"shown\":[{\"tmdb\":7}]}"
    );
    let requests = "SELECT request AS line FROM tool_calls WHERE id <= 2 ORDER BY id";
    assert_eq!(load_lines(&mut conn, requests), "{\"arguments\":{}}\n{\"raw\":\"x\"}");
    let sources = "SELECT source AS line FROM agent_responses ORDER BY id";
    assert_eq!(load_lines(&mut conn, sources), "turn:1\nturn:2\nnotice:1");
}
