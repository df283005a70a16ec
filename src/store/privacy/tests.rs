//! Tests of erasure, retention and export. Every stored text of the user contains "walrus".

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel_migrations::MigrationHarness;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::erase_user_content;
use super::export::export_user;
use super::forget::{ErasureOutcome, forget_user};
use super::retention::{RetentionProgress, erase_expired_text, erase_viewing_texts};
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::channel_list;
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, TargetFingerprint, ViewingKnowledge,
};
use crate::conversation::model_cost::TokenUsage;
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{
    Address, CallFailure, CallResult, CallState, ConversationId, EffectLevel, FailureCode, MediaKind,
    PhoneNumber, Responder, StopReason, ToolArguments, TurnId, UserAddress, UserId,
};
use crate::conversation::turn::StepFailure;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::ended_prompt;
use crate::store::confirmation::pending_action::{self, NewPendingAction};
use crate::store::conversation::history_cache::HistoryCache;
use crate::store::conversation::{conversations as conversation_rows, history};
use crate::store::database::migration::MIGRATIONS;
use crate::store::people::users::{self as user_rows, FirstContactRole};
use crate::store::queue::delivery_reports::AcceptancePolicy;
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy, MessageOutcome};
use crate::store::queue::outbox::{self, AcceptedMessage, NewOutboundMessage, OutboundKind};
use crate::store::queue::outbox_schedule::{self, OutboxTask};
use crate::store::turns::calls;
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::model_steps::{self, AbandonedAttempt, AttemptId, NewCall, RecordedResponse};
use crate::store::turns::turn_lifecycle::{self as turn_rows, ActiveTurn, NewTurn, TurnKind, TurnPlan};
use crate::store::{Conn, scratch};

const SAM: &str = "+15550100077";
const ANN: &str = "+15550100002";
const ALL_TEXT_COLUMNS: [&str; 35] = [
    "agent_responses.keywords",
    "agent_responses.response_text",
    "agent_responses.summary",
    "agent_responses.topics",
    "agent_responses.trigger_text",
    "approvals.account_name",
    "approvals.fingerprint",
    "approvals.title",
    "approvals.wanted",
    "audit_log.detail",
    "blocks.content",
    "conversations.name",
    "digest_lines.title",
    "inbound_events.body",
    "inbound_events.media",
    "kept_titles.title",
    "llm_steps.error",
    "notices.matter",
    "notices.words",
    "outbox.body",
    "outbox.media_url",
    "pending_actions.summary",
    "reactions.emoji",
    "requests.arguments",
    "requests.title",
    "tool_call_items.fingerprint",
    "tool_calls.error",
    "tool_calls.request",
    "tool_calls.response",
    "turns.prompt",
    "turns.response_text",
    "user_facts.key",
    "user_facts.value",
    "users.display_name",
    "users.first_request",
];

fn day_time(day: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * (100 + day))
}

fn create_user(conn: &mut Conn, phone: &str, newcomer: FirstContactRole) -> UserId {
    user_rows::ensure_user(conn, PhoneNumber::parse(phone).unwrap(), newcomer, day_time(0)).unwrap()
}

/// Creates Sam, a member, and Ann, the admin who was notified about Sam.
fn create_household(conn: &mut Conn) -> (UserId, UserId) {
    let (ann, sam) =
        (create_user(conn, ANN, FirstContactRole::Admin), create_user(conn, SAM, FirstContactRole::Member));
    execute(
        conn,
        "UPDATE users SET display_name = 'Walrus', first_request = 'Walrus', first_request_at = 1 WHERE role = 'member'",
    );
    let body = "New number +1 555 010 0077, \"Walrus\"".into();
    let notification = NewOutboundMessage { body, media: None, ..reply(ann, ANN, None) };
    let notification = outbox::queue_message(conn, &notification, day_time(0)).unwrap();
    outbox::record_acceptance(
        conn,
        notification,
        &AcceptedMessage { sid: "SM-ann", created_at: None },
        &acceptance_policy(),
        day_time(0),
    )
    .unwrap();
    (sam, ann)
}

fn acceptance_policy() -> AcceptancePolicy {
    AcceptancePolicy { confirm_for: SignedDuration::from_mins(5), zone: TimeZone::UTC, quiet: None }
}

fn execute(conn: &mut Conn, statement: &str) {
    diesel::connection::SimpleConnection::batch_execute(conn, statement).unwrap();
}

fn reply(user: UserId, phone: &str, turn: Option<TurnId>) -> NewOutboundMessage {
    NewOutboundMessage {
        key: format!("{user}:{turn:?}"),
        user,
        address: None,
        turn,
        kind: OutboundKind::Reply,
        to: Address::new(phone),
        from: Address::new("+15550100000"),
        body: "Hello walrus.".into(),
        media: Some("https://walrus.invalid/poster.jpg".into()),
        reacts_to: None,
        quotes: None,
        room: None,
        vote: None,
        segments: 1,
    }
}

/// Admits a message from Sam.
fn admit_text(
    conn: &mut Conn,
    sid: &str,
    now: Timestamp,
) -> (UserId, crate::conversation::transcript::EventId) {
    let message = ReceivedMessage {
        channel: channel_list::TWILIO,
        external_id: sid.into(),
        from: UserAddress::parse(SAM).unwrap(),
        to: Address::new("+15550100000"),
        body: "find the walrus".into(),
        media: vec![MessageMedia { url: "https://walrus.invalid".into(), content_type: "image/png".into() }],
        via: MessageSource::Webhook,
        authority: FieldAuthority::Certain,
        provider_at: now,
        received_at: now,
        carrier_word: None,
        pressed: None,
        room: None,
    };
    let debounce = DebouncePolicy { quiet_ms: 0, max_delay_ms: 0 };
    match inbound_messages::admit_message(conn, &message, debounce).unwrap() {
        AdmissionOutcome::New { user, event, .. } => (user, event),
        AdmissionOutcome::Duplicate | AdmissionOutcome::NoUser | AdmissionOutcome::NotKept => {
            panic!("the message was not admitted")
        }
    }
}

/// Receives a message from Sam and starts its turn.
fn start_turn(conn: &mut Conn, sid: &str, now: Timestamp) -> (UserId, ConversationId, TurnId) {
    let (user, event) = admit_text(conn, sid, now);
    let conversation = match conversation_rows::load_open_conversation(conn, user).unwrap() {
        Some(open) => open.id,
        None => conversation_rows::start_conversation(conn, user, "Walrus", now).unwrap(),
    };
    let plan = TurnPlan {
        notes: vec!["a walrus was kept".into()],
        preface: Some("Walrus is kept.".into()),
        ..TurnPlan::for_responder(Responder::Model)
    };
    let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
    let turn = turn_rows::create_turn(conn, new, now).unwrap();
    inbound_messages::assign_to_turn(conn, &[event], turn, now).unwrap();
    (user, conversation, turn)
}

fn new_call(name: &str, effect: EffectLevel) -> NewCall {
    NewCall { name: name.into(), arguments: ToolArguments::parse(json!({ "query": "walrus" })), effect }
}

/// Records a step with three calls, after a failed attempt.
fn record_step(conn: &mut Conn, turn: TurnId, now: Timestamp) {
    let first = AttemptId { turn, step: 0, attempt: 1 };
    model_steps::start_attempt(conn, first, Responder::Model, "a-model", now).unwrap();
    let (failure, message) = (StepFailure::Permanent, "no walrus served".to_owned());
    model_steps::abandon_attempt(conn, first, &AbandonedAttempt { failure, message }, now).unwrap();
    let second = AttemptId { attempt: 2, ..first };
    model_steps::start_attempt(conn, second, Responder::Model, "a-model", now).unwrap();
    let response = RecordedResponse {
        text: "I look for the walrus.".into(),
        thinking: "Which walrus?".into(),
        stop: StopReason::Done,
        calls: vec![
            new_call("search_media", EffectLevel::Read),
            new_call("add_movie", EffectLevel::Write),
            new_call("check_status", EffectLevel::Read),
        ],
        tokens: Some(TokenUsage { input: 10, cached: 0, output: 5 }),
        response_id: None,
        is_private: false,
    };
    model_steps::complete_attempt(conn, second, &response, now).unwrap();
    let call_rows = load_call_rows(conn, turn);
    let found = CallResult {
        for_model: json!({ "title": "Walrus" }),
        for_user: "Found Walrus.".into(),
        shown: Vec::new(),
    };
    let refused = CallFailure {
        code: FailureCode::NotPermitted,
        for_model: json!({ "error": "no walrus" }),
        for_user: Some("No walrus.".into()),
    };
    calls::finish_call(conn, call_rows[0], &CallState::Done(found), now).unwrap();
    calls::finish_call(conn, call_rows[1], &CallState::Failed(refused), now).unwrap();
}

fn load_call_rows(conn: &mut Conn, turn: TurnId) -> Vec<crate::conversation::transcript::CallRow> {
    let conversation = load_conversation_id(conn, turn);
    let active_turn = ActiveTurn { id: turn, kind: TurnKind::Chat, conversation, room: None, agent: None };
    let loaded = turn_rows::load_turn(conn, active_turn).unwrap();
    loaded.turn.steps.iter().flat_map(|step| &step.calls).map(|call| call.row).collect()
}

fn load_conversation_id(conn: &mut Conn, turn: TurnId) -> ConversationId {
    use crate::store::schema::turns;
    turns::table.find(turn).select(turns::conversation_id).first(conn).unwrap()
}

/// Answers a message from Sam, with every kind of row that a turn creates.
fn run_turn(conn: &mut Conn, sid: &str, now: Timestamp) -> TurnId {
    let (user, _, turn) = start_turn(conn, sid, now);
    record_step(conn, turn, now);
    let texts = vec![NewOutboundMessage { key: sid.into(), ..reply(user, SAM, Some(turn)) }];
    let end = TurnEnd {
        turn,
        outcome: MessageOutcome::Replied,
        answer: Some("Hello walrus. And more.".to_owned()),
        messages: texts,
    };
    finished_turns::finish_turn(conn, &end, now).unwrap();
    let due = outbox_schedule::load_outbox_schedule(conn, &[], now).unwrap().due;
    for (id, _) in due.into_iter().filter(|(_, task)| *task == OutboxTask::Send) {
        outbox::record_acceptance(
            conn,
            id,
            &AcceptedMessage { sid, created_at: None },
            &acceptance_policy(),
            now,
        )
        .unwrap();
    }
    turn
}

/// Holds a deletion of Walrus until Sam confirms it.
fn hold_deletion(conn: &mut Conn, sid: &str, now: Timestamp) -> TurnId {
    let (user, conversation, turn) = start_turn(conn, sid, now);
    let row = model_steps::add_call(conn, turn, "remove_media", now).unwrap();
    let fingerprint = TargetFingerprint {
        title: "Walrus".into(),
        year: 2021,
        path: "/movies/walrus".into(),
        size_bytes: 1,
        seasons: None,
        ids: CatalogIds::default(),
        viewing: ViewingKnowledge::default(),
    };
    let item = DeletionTarget {
        instance: "radarr".into(),
        kind: MediaKind::Movie,
        id: 1,
        delete_files: true,
        scope: DeletionScope::Whole,
        fingerprint,
    };
    let summary = "Delete Walrus (2021)?".to_owned();
    let prompt =
        NewOutboundMessage { body: summary.clone(), key: sid.into(), ..reply(user, SAM, Some(turn)) };
    let action = NewPendingAction {
        turn,
        user,
        conversation,
        items: vec![item],
        summary,
        code: None,
        prompt,
        announcement: None,
        asked_by_agent: false,
    };
    pending_action::hold_deletion(conn, row, &action, now).unwrap();
    turn
}

/// Adds a removal request from Sam that an admin has decided, a title that Sam requested and was notified of, a
/// reaction, current and former facts about Sam, and an entry in the audit log.
fn insert_rows_outside_turns(conn: &mut Conn, user: UserId) {
    execute(
        conn,
        "INSERT INTO reactions (user_id, author, said_in, emoji, created_at)
         SELECT user_id, 'user', id, 'walrus', received_at FROM inbound_events LIMIT 1;
         INSERT INTO approvals (kind, user_id, code, instance, item_kind, item_id, fingerprint, state, created_at,
           expires_at, settled_at)
         SELECT 'delete', user_id, '4821', 'radarr', 'movie', 1, '{\"title\":\"Walrus\",\"year\":2021,\"path\":
           \"/walrus\",\"size_bytes\":1,\"seasons\":null}', 'denied', received_at, received_at, received_at
         FROM inbound_events LIMIT 1;
         INSERT INTO approvals (kind, user_id, code, instance, item_id, account_id, account_name, title, state,
           created_at, expires_at, settled_at, passed_on_at)
         SELECT 'seerr', user_id, '4823', 'seerr', 4, '3', 'Walrus', 'Walrus', 'approved', received_at, received_at,
           received_at, received_at FROM inbound_events LIMIT 1;
         INSERT INTO approvals (kind, user_id, code, instance, item_kind, item_id, wanted, state, created_at,
           expires_at, settled_at)
         SELECT 'title', user_id, '4824', 'radarr', 'movie', 1, '{\"title\":\"Walrus\",\"year\":2021,
           \"seasons\":null,\"rating\":\"R\",\"arguments\":\"{}\"}', 'denied', received_at, received_at,
           received_at FROM inbound_events LIMIT 1;
         INSERT INTO approved_titles (user_id, kind, catalog_id, approved_at)
         SELECT user_id, 'movie', 1, received_at FROM inbound_events LIMIT 1;
         INSERT INTO approvals (kind, user_id, code, state, created_at, expires_at)
         SELECT 'join', user_id, '4822', 'open', received_at, received_at FROM inbound_events LIMIT 1;
         INSERT INTO requests (user_id, instance, kind, catalog_id, title, year, state, arguments, created_at,
           settled_at)
         SELECT user_id, 'radarr', 'movie', 1, 'Walrus', 2021, 'added', '{\"query\":\"walrus\"}', received_at, received_at
         FROM inbound_events LIMIT 1;
         INSERT INTO title_attributions (user_id, instance, kind, catalog_id, first_requested_at)
         SELECT user_id, 'radarr', 'movie', 1, received_at FROM inbound_events LIMIT 1;
         INSERT INTO space_proposals (id, silence, phase, opened_at, answers_end_at)
         SELECT 1, 'stays', 'asking', received_at, received_at FROM inbound_events LIMIT 1;
         INSERT INTO space_proposal_titles (proposal_id, number, instance, kind, item_id, catalog_id, title, year,
           size_bytes, reason, state)
         VALUES (1, 1, 'radarr', 'movie', 1, 1, 'Seal', 2021, 9, 'finished', 'asked');
         INSERT INTO space_proposal_answers (proposal_id, number, user_id, position, answer, answered_at)
         SELECT 1, 1, user_id, 1, 'free', received_at FROM inbound_events LIMIT 1;
         INSERT INTO kept_titles (kind, catalog_id, user_id, title, year, kept_at, kept_until_at)
         SELECT 'movie', 1, user_id, 'Walrus', 2021, received_at, received_at FROM inbound_events LIMIT 1;
         INSERT INTO digest_settings (user_id, weekday, hour, set_at)
         SELECT user_id, 5, 18, received_at FROM inbound_events LIMIT 1;
         INSERT INTO digest_lines (outbox_id, number, kind, reference, title)
         SELECT max(id), 1, 'movie', 0, 'Walrus' FROM outbox
         WHERE user_id = (SELECT user_id FROM inbound_events LIMIT 1) AND state = 'accepted' HAVING max(id) > 0;
         INSERT INTO follows (user_id, instance, kind, catalog_id, created_at, ended_at)
         SELECT user_id, 'radarr', 'movie', 1, received_at, received_at FROM inbound_events LIMIT 1;
         INSERT INTO notices (user_id, matter, words, created_at)
         SELECT user_id, 'ready:walrus', 'Walrus', received_at FROM inbound_events LIMIT 1;
         UPDATE agent_responses SET state = 'done', summary = 'A walrus', topics = '[\"Walrus\"]', keywords = '[\"walrus\"]',
           processed_at = created_at;
         INSERT INTO user_facts (user_id, kind, key, value, state, source, created_at, ended_at)
         SELECT user_id, 'alias', 'walrus', 'The Walrus', 'superseded', 'said', received_at, received_at
         FROM inbound_events LIMIT 1;
         INSERT INTO user_facts (user_id, kind, key, value, number, state, source, event_id, created_at)
         SELECT user_id, 'alias', 'walrus', 'Walrus (2021)', 1, 'active', 'said', id, received_at
         FROM inbound_events LIMIT 1;
         INSERT INTO user_facts (user_id, kind, key, value, state, source, created_at)
         SELECT user_id, 'dislike', 'walrus', 'Walrus', 'suggested', 'noticed', received_at
         FROM inbound_events LIMIT 1;",
    );
    let detail = json!({ "tool": "add_movie", "arguments": { "query": "walrus" } });
    let entry =
        NewAuditEntry { actor: Actor::User(user), kind: "write", subject: AuditSubject::User(user), detail };
    audit::record_change(conn, &entry, day_time(0)).unwrap();
}

#[derive(QueryableByName)]
struct ColumnPath {
    #[diesel(sql_type = Text)]
    path: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

fn count(conn: &mut Conn, query: &str) -> i64 {
    diesel::sql_query(query).get_result::<Count>(conn).unwrap().n
}

/// Returns the columns of all tables that contain a lower-case word, ignoring case and spaces.
fn columns_containing(conn: &mut Conn, word: &str) -> Vec<String> {
    let columns: Vec<ColumnPath> = diesel::sql_query(
        "SELECT m.name || '.' || c.name AS path FROM sqlite_master m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND c.type = 'TEXT' ORDER BY path",
    )
    .load(conn)
    .unwrap();
    assert!(columns.len() > 60, "{} columns", columns.len());
    let contains_word = |path: &String| {
        let (table, column) = path.split_once('.').unwrap();
        let without_spaces = format!("replace(lower(\"{column}\"), ' ', '')");
        count(
            conn,
            &format!("SELECT count(*) AS n FROM \"{table}\" WHERE instr({without_spaces}, '{word}') > 0"),
        ) > 0
    };
    columns.into_iter().map(|column| column.path).filter(contains_word).collect()
}

/// Checks that all data that a later turn reads can be loaded.
fn check_turn_is_readable(conn: &mut Conn, turn: TurnId) {
    let conversation = load_conversation_id(conn, turn);
    turn_rows::load_turn(
        conn,
        ActiveTurn { id: turn, kind: TurnKind::Chat, conversation, room: None, agent: None },
    )
    .unwrap();
    history::load_past_turns(conn, &HistoryCache::default(), conversation).unwrap();
    calls::load_shown_media(conn, conversation).unwrap();
    for call in load_call_rows(conn, turn) {
        pending_action::load_deletion_items(conn, call).unwrap();
    }
}

#[test]
fn erased_conversation_has_no_text_and_stays_readable() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    let answered = run_turn(&mut conn, "SM1", day_time(0));
    insert_rows_outside_turns(&mut conn, sam);
    let held = hold_deletion(&mut conn, "SM2", day_time(1));
    assert_eq!(columns_containing(&mut conn, "walrus"), ALL_TEXT_COLUMNS);
    let count_rows = "SELECT (SELECT count(*) FROM turns) + (SELECT count(*) FROM blocks) \
         + (SELECT count(*) FROM tool_calls) + (SELECT count(*) FROM outbox) AS n";
    let before = count(&mut conn, count_rows);

    erase_user_content(&mut conn, sam, day_time(1)).unwrap();

    // The confirmation prompt is closed, but its message is not settled; the message to Ann is not erased.
    let remaining = ["audit_log.detail", "outbox.body", "outbox.media_url", "users.display_name"];
    assert_eq!(columns_containing(&mut conn, "walrus"), remaining);
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM outbox WHERE user_id = 2 AND body <> ''"), 1);
    assert_eq!(count(&mut conn, count_rows), before);
    assert_eq!(conversation_rows::load_open_conversation(&mut conn, sam).unwrap(), None);
    assert_eq!(pending_action::load_pending_action(&mut conn, sam).unwrap(), None);
    assert_eq!(ended_prompt::load_ended_prompt(&mut conn, sam, None, day_time(1)).unwrap(), None);
    for turn in [answered, held] {
        check_turn_is_readable(&mut conn, turn);
        let conversation = load_conversation_id(&mut conn, turn);
        assert_eq!(
            history::load_past_turns(&mut conn, &HistoryCache::default(), conversation).unwrap().len(),
            0
        );
    }
}

#[test]
fn message_waiting_for_its_turn_keeps_its_text() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    run_turn(&mut conn, "SM1", day_time(0));
    admit_text(&mut conn, "SM2", day_time(0));
    erase_user_content(&mut conn, sam, day_time(0)).unwrap();
    let waiting = inbound_messages::load_waiting_messages(&mut conn, sam, 10).unwrap();
    assert_eq!(waiting.iter().map(|message| message.body.as_str()).collect::<Vec<_>>(), ["find the walrus"]);
}

#[test]
fn erased_user_leaves_no_value_in_any_column() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    let answered = run_turn(&mut conn, "SM1", day_time(0));
    insert_rows_outside_turns(&mut conn, sam);
    hold_deletion(&mut conn, "SM2", day_time(1));
    admit_text(&mut conn, "SM3", day_time(1));
    assert_eq!(columns_containing(&mut conn, "walrus"), ALL_TEXT_COLUMNS);
    assert_eq!(
        columns_containing(&mut conn, "15550100077"),
        ["outbox.body", "outbox.to_addr", "user_addresses.address"]
    );

    assert_eq!(forget_user(&mut conn, sam, Actor::Shell, day_time(2)).unwrap(), ErasureOutcome::Erased);

    assert_eq!(columns_containing(&mut conn, "walrus"), Vec::<String>::new());
    assert_eq!(columns_containing(&mut conn, "15550100077"), Vec::<String>::new());
    check_turn_is_readable(&mut conn, answered);
    assert_eq!(user_rows::load_user(&mut conn, sam).unwrap().address, None);
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM approvals WHERE state = 'open'"), 0);
    assert_eq!(inbound_messages::load_waiting_messages(&mut conn, sam, 10).unwrap(), []);
    assert_eq!(
        outbox_schedule::load_outbox_schedule(&mut conn, &[], day_time(2)).unwrap(),
        outbox_schedule::OutboxSchedule::default()
    );
    let newcomer = create_user(&mut conn, SAM, FirstContactRole::Newcomer);
    assert_ne!(newcomer, sam);
}

/// Migration that removes the names of other users from the audit log.
const AUDIT_NAMES_MIGRATION: &str = "20261123120000";

#[test]
fn migration_removes_names_of_others_from_the_audit_log() {
    let mut conn = scratch();
    while conn
        .applied_migrations()
        .unwrap()
        .iter()
        .any(|version| version.to_string().as_str() >= AUDIT_NAMES_MIGRATION)
    {
        conn.revert_last_migration(MIGRATIONS).unwrap();
    }
    execute(
        &mut conn,
        "INSERT INTO users (id, phone, status, role, created_at, updated_at)
         VALUES (1, '+15550100002', 'active', 'admin', 1, 1);
         INSERT INTO audit_log (at, epoch, user_id, kind, subject, detail) VALUES
           (1, 1, 1, 'write_done', 'tool_call:1', '{\"tool\":\"add_movie\",\"title\":\"Dune (2021)\",
             \"asked_by\":\"Walrus on Nov 20\"}')",
    );
    assert_eq!(columns_containing(&mut conn, "walrus"), ["audit_log.detail"]);

    conn.run_pending_migrations(MIGRATIONS).unwrap();

    assert_eq!(columns_containing(&mut conn, "walrus"), Vec::<String>::new());
    assert_eq!(columns_containing(&mut conn, "dune"), ["audit_log.detail"]);
}

#[test]
fn second_erasure_changes_nothing() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    run_turn(&mut conn, "SM1", day_time(0));
    for _ in 0..2 {
        assert_eq!(forget_user(&mut conn, sam, Actor::Shell, day_time(2)).unwrap(), ErasureOutcome::Erased);
    }
    assert_eq!(user_rows::load_user(&mut conn, sam).unwrap().address, None);
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM users"), 2);
}

#[test]
fn last_admin_cannot_be_erased() {
    let mut conn = scratch();
    let (_, ann) = create_household(&mut conn);
    assert_eq!(forget_user(&mut conn, ann, Actor::Shell, day_time(0)).unwrap(), ErasureOutcome::LastAdmin);
    create_user(&mut conn, "+15550100003", FirstContactRole::Admin);
    assert_eq!(forget_user(&mut conn, ann, Actor::Shell, day_time(0)).unwrap(), ErasureOutcome::Erased);
}

#[test]
fn user_with_a_running_turn_is_not_erased() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    start_turn(&mut conn, "SM1", day_time(0));
    assert_eq!(forget_user(&mut conn, sam, Actor::Shell, day_time(0)).unwrap(), ErasureOutcome::Busy);
}

/// Returns the days of the turns, of the inbound messages and of the outbound messages that still have text.
fn days_with_text(conn: &mut Conn) -> [Vec<i64>; 3] {
    [
        "SELECT (created_at / 86400000) - 100 AS n FROM turns WHERE response_text IS NOT NULL ORDER BY id",
        "SELECT (received_at / 86400000) - 100 AS n FROM inbound_events WHERE body <> '' ORDER BY id",
        "SELECT (created_at / 86400000) - 100 AS n FROM outbox WHERE body <> '' AND user_id = 2 ORDER BY id",
    ]
    .map(|query| diesel::sql_query(query).load::<Count>(conn).unwrap().into_iter().map(|row| row.n).collect())
}

#[test]
fn retention_erases_old_texts_in_batches() {
    let mut conn = scratch();
    create_household(&mut conn);
    let oldest = run_turn(&mut conn, "SM0", day_time(0));
    for day in 1..6 {
        run_turn(&mut conn, &format!("SM{day}x"), day_time(day));
    }
    assert_eq!(erase_expired_text(&mut conn, day_time(4), 2, day_time(9)).unwrap(), RetentionProgress::More);
    // The first row of the outbox is Ann's.
    assert_eq!(days_with_text(&mut conn), [vec![2, 3, 4, 5], vec![2, 3, 4, 5], vec![1, 2, 3, 4, 5]]);
    assert_eq!(erase_expired_text(&mut conn, day_time(4), 2, day_time(9)).unwrap(), RetentionProgress::More);
    assert_eq!(days_with_text(&mut conn), [vec![4, 5], vec![4, 5], vec![3, 4, 5]]);
    assert_eq!(erase_expired_text(&mut conn, day_time(4), 2, day_time(9)).unwrap(), RetentionProgress::Done);
    assert_eq!(days_with_text(&mut conn), [vec![4, 5], vec![4, 5], vec![4, 5]]);
    check_turn_is_readable(&mut conn, oldest);
    assert_eq!(
        erase_expired_text(&mut conn, day_time(9), 100, day_time(9)).unwrap(),
        RetentionProgress::Done
    );
    let remaining = ["audit_log.detail", "users.display_name"];
    assert_eq!(columns_containing(&mut conn, "walrus"), remaining[1..]);
}

#[test]
fn retention_erases_the_text_of_settled_rows_in_every_table() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    run_turn(&mut conn, "SM1", day_time(0));
    insert_rows_outside_turns(&mut conn, sam);
    assert_eq!(
        erase_expired_text(&mut conn, day_time(9), 100, day_time(9)).unwrap(),
        RetentionProgress::Done
    );
    // Facts about Sam remain until they are changed or forgotten, and kept titles until their period is over.
    let remaining =
        ["audit_log.detail", "kept_titles.title", "user_facts.key", "user_facts.value", "users.display_name"];
    assert_eq!(columns_containing(&mut conn, "walrus"), remaining);
    assert_eq!(
        count(&mut conn, "SELECT count(*) AS n FROM user_facts WHERE value <> '' AND ended_at IS NOT NULL"),
        0
    );
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM follows"), 0);
}

#[test]
fn offer_of_a_season_is_erased_once_it_is_sent_and_a_day_old() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    let body = "You have 1 episode of Walrus left.".to_owned();
    let key = "next_season:1:user:2".to_owned();
    let kind = OutboundKind::Notice;
    let offer = NewOutboundMessage { key, body, kind, media: None, ..reply(sam, SAM, None) };
    let id = outbox::queue_message_at(&mut conn, &offer, day_time(2), day_time(0)).unwrap();
    let notice = format!(
        "INSERT INTO notices (user_id, matter, words, outbox_id, created_at) SELECT user_id, 'next_season:0a', 'Walrus', \
         id, created_at FROM outbox WHERE id = {}",
        id.0
    );
    diesel::sql_query(notice).execute(&mut conn).unwrap();
    let erase_before = |conn: &mut Conn, day| {
        assert_eq!(erase_viewing_texts(conn, day_time(day), 9, day_time(9)), Ok(RetentionProgress::Done));
        count(
            conn,
            "SELECT (SELECT count(*) FROM outbox WHERE instr(body, 'Walrus left')) + \
                     (SELECT count(*) FROM notices WHERE words IS NOT NULL) AS n",
        )
    };
    assert_eq!(erase_before(&mut conn, 3), 2, "it may still be sent");
    let accepted = AcceptedMessage { sid: "SM-offer", created_at: None };
    outbox::record_acceptance(&mut conn, id, &accepted, &acceptance_policy(), day_time(2)).unwrap();
    assert_eq!((erase_before(&mut conn, 0), erase_before(&mut conn, 1)), (2, 0));
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM notices WHERE matter = 'next_season:0a'"), 1);
}

#[test]
fn open_requests_and_follows_survive_retention_but_not_erasure() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    execute(
        &mut conn,
        "INSERT INTO requests (user_id, instance, kind, catalog_id, title, year, state, arguments, next_try_at, created_at)
         SELECT id, 'radarr', 'movie', 1, 'Walrus', 2021, 'queued', '{}', 1, 0 FROM users WHERE role = 'member';
         INSERT INTO follows (user_id, instance, kind, catalog_id, created_at)
         SELECT id, 'radarr', 'movie', 1, 0 FROM users WHERE role = 'member';",
    );
    let count_open = "SELECT (SELECT count(*) FROM requests) + (SELECT count(*) FROM follows) AS n";
    erase_expired_text(&mut conn, day_time(9), 100, day_time(9)).unwrap();
    assert_eq!(count(&mut conn, count_open), 2);
    erase_user_content(&mut conn, sam, day_time(9)).unwrap();
    assert_eq!(count(&mut conn, count_open), 0);
}

#[test]
fn title_attributions_outlast_their_requests_but_not_the_user() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    run_turn(&mut conn, "SM1", day_time(0));
    insert_rows_outside_turns(&mut conn, sam);
    let count_attributions = "SELECT count(*) AS n FROM title_attributions";
    erase_expired_text(&mut conn, day_time(9), 100, day_time(9)).unwrap();
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM requests"), 0);
    assert_eq!(count(&mut conn, count_attributions), 1);
    erase_user_content(&mut conn, sam, day_time(9)).unwrap();
    assert_eq!(count(&mut conn, count_attributions), 1);
    forget_user(&mut conn, sam, Actor::Shell, day_time(9)).unwrap();
    assert_eq!(count(&mut conn, count_attributions), 0);
}

#[test]
fn retention_keeps_unsettled_messages_and_all_later_ones() {
    let mut conn = scratch();
    create_household(&mut conn);
    run_turn(&mut conn, "SM0", day_time(0));
    hold_deletion(&mut conn, "SM1", day_time(1));
    execute(&mut conn, "UPDATE outbox SET state = 'unknown', unknown_at = 0 WHERE state = 'queued'");
    let (_, last) = (admit_text(&mut conn, "SM2", day_time(2)), run_turn(&mut conn, "SM3", day_time(3)));
    erase_expired_text(&mut conn, day_time(9), 100, day_time(9)).unwrap();
    assert_eq!(days_with_text(&mut conn), [vec![1, 3], vec![2, 3], vec![1, 3]]);

    execute(&mut conn, "UPDATE outbox SET state = 'failed' WHERE state IN ('unknown','queued')");
    execute(&mut conn, "UPDATE inbound_events SET state = 'completed', outcome = 'skipped'");
    erase_expired_text(&mut conn, day_time(9), 100, day_time(9)).unwrap();
    assert_eq!(days_with_text(&mut conn), [const { Vec::<i64>::new() }; 3]);
    check_turn_is_readable(&mut conn, last);
}

#[test]
fn export_contains_all_data_of_a_user() {
    let mut conn = scratch();
    let (sam, _) = create_household(&mut conn);
    run_turn(&mut conn, "SM1", day_time(0));
    insert_rows_outside_turns(&mut conn, sam);
    hold_deletion(&mut conn, "SM2", day_time(1));
    admit_text(&mut conn, "SM3", day_time(1));
    insta::assert_json_snapshot!(serde_json::to_value(export_user(&mut conn, sam).unwrap()).unwrap());
}
