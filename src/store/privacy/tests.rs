//! Tests of the text that is left after the erasure of a user whose every stored word is "walrus".

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel_migrations::MigrationHarness;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::erase_conversations;
use super::export::export_user;
use super::forget::{ErasureOutcome, forget_user};
use super::retention::{RetentionProgress, erase_expired_text};
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget, TargetFingerprint};
use crate::conversation::model_cost::{ModelCharge, TokenUsage};
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::stream_events::BlockKind;
use crate::conversation::transcript::{
    Address, CallFailure, CallResult, CallState, ChannelKind, ConversationId, EffectLevel, FailureCode,
    MediaKind, PhoneNumber, Responder, StopReason, ToolArguments, TurnId, UserId,
};
use crate::conversation::turn::StepFailure;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::ended_question;
use crate::store::confirmation::pending_action::{self, NewPendingAction};
use crate::store::conversation::{conversations as talks, history};
use crate::store::database::migration::MIGRATIONS;
use crate::store::people::users::{self as people, FirstContactRole};
use crate::store::queue::delivery_reports::AcceptancePolicy;
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy, MessageOutcome};
use crate::store::queue::outbox::{self, AcceptedMessage, NewOutboundMessage, OutboundKind};
use crate::store::queue::outbox_schedule::{self, OutboxTask};
use crate::store::stream::delta_writer::{self, BlockChunk};
use crate::store::turns::calls;
use crate::store::turns::model_steps::{self, AbandonedAttempt, AttemptId, NewCall, RecordedResponse};
use crate::store::turns::turn_lifecycle::{
    self as turn_rows, ActiveTurn, NewTurn, TurnEnd, TurnKind, TurnPlan,
};
use crate::store::{Conn, scratch};

const SAM: &str = "+15550100077";
const ANN: &str = "+15550100002";
const EVERYWHERE: [&str; 30] = [
    "agent_responses.keywords",
    "agent_responses.response_text",
    "agent_responses.summary",
    "agent_responses.topics",
    "agent_responses.trigger_text",
    "approvals.fingerprint",
    "audit_log.detail",
    "blocks.content",
    "conversations.name",
    "inbound_events.body",
    "inbound_events.media",
    "llm_steps.error",
    "notices.matter",
    "outbox.body",
    "outbox.media_url",
    "pending_actions.summary",
    "reactions.emoji",
    "requests.arguments",
    "requests.title",
    "stream_events.delta",
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

fn at(day: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * (100 + day))
}

fn person(conn: &mut Conn, phone: &str, newcomer: FirstContactRole) -> UserId {
    people::ensure_user(conn, &PhoneNumber::parse(phone).unwrap(), newcomer, at(0)).unwrap()
}

/// Creates Sam, a member, and Ann, the admin who was notified of Sam.
fn household(conn: &mut Conn) -> (UserId, UserId) {
    let (ann, sam) =
        (person(conn, ANN, FirstContactRole::Admin), person(conn, SAM, FirstContactRole::Member));
    run(
        conn,
        "UPDATE users SET display_name = 'Walrus', first_request = 'Walrus', first_request_at = 1 WHERE role = 'member'",
    );
    let body = "New number +1 555 010 0077, \"Walrus\"".into();
    let told = NewOutboundMessage { body, media: None, ..reply(ann, ANN, None) };
    let told = outbox::queue_message(conn, &told, at(0)).unwrap();
    outbox::record_acceptance(
        conn,
        told,
        &AcceptedMessage { sid: "SM-ann", created_at: None },
        &terms(),
        at(0),
    )
    .unwrap();
    (sam, ann)
}

fn terms() -> AcceptancePolicy {
    AcceptancePolicy { confirm_for: SignedDuration::from_mins(5), zone: TimeZone::UTC, quiet: None }
}

fn run(conn: &mut Conn, statement: &str) {
    diesel::connection::SimpleConnection::batch_execute(conn, statement).unwrap();
}

fn reply(user: UserId, phone: &str, turn: Option<TurnId>) -> NewOutboundMessage {
    NewOutboundMessage {
        key: format!("{user}:{turn:?}"),
        user,
        turn,
        kind: OutboundKind::Reply,
        to: Address::new(phone),
        from: Address::new("+15550100000"),
        body: "Hello walrus.".into(),
        media: Some("https://walrus.invalid/poster.jpg".into()),
        segments: 1,
    }
}

fn texts(conn: &mut Conn, sid: &str, now: Timestamp) -> (UserId, crate::conversation::transcript::EventId) {
    let text = ReceivedMessage {
        channel: ChannelKind::Twilio,
        external_id: sid.into(),
        from: PhoneNumber::parse(SAM).unwrap(),
        to: Address::new("+15550100000"),
        body: "find the walrus".into(),
        media: vec![MessageMedia { url: "https://walrus.invalid".into(), content_type: "image/png".into() }],
        via: MessageSource::Webhook,
        authority: FieldAuthority::Certain,
        provider_at: now,
        received_at: now,
        carrier_word: None,
    };
    let debounce = DebouncePolicy { quiet_ms: 0, at_most_ms: 0 };
    match inbound_messages::admit_message(conn, &text, debounce).unwrap() {
        AdmissionOutcome::New { user, event } => (user, event),
        AdmissionOutcome::Duplicate | AdmissionOutcome::NoUser => panic!("the text is not taken in"),
    }
}

/// Receives a message from Sam and begins its turn.
fn begins(conn: &mut Conn, sid: &str, now: Timestamp) -> (UserId, ConversationId, TurnId) {
    let (user, event) = texts(conn, sid, now);
    let conversation = match talks::load_open_conversation(conn, user).unwrap() {
        Some(open) => open.id,
        None => talks::start_conversation(conn, user, "Walrus", now).unwrap(),
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

fn call(name: &str, effect: EffectLevel) -> NewCall {
    NewCall { name: name.into(), arguments: ToolArguments::parse(json!({ "query": "walrus" })), effect }
}

/// Adds a step that failed once, with three calls.
fn steps_of(conn: &mut Conn, turn: TurnId, now: Timestamp) {
    let first = AttemptId { turn, step: 0, attempt: 1 };
    model_steps::start_attempt(conn, first, Responder::Model, "a-model", now).unwrap();
    let piece = BlockChunk { part: BlockKind::Text, ord: 0, text: "A walrus".into() };
    delta_writer::append_chunks(conn, first, &[piece], now).unwrap();
    let (why, message) = (StepFailure::Permanent, "no walrus served".to_owned());
    model_steps::abandon_attempt(
        conn,
        first,
        AbandonedAttempt { failure: why, message, charge: ModelCharge::Nothing },
        now,
    )
    .unwrap();
    let second = AttemptId { attempt: 2, ..first };
    model_steps::start_attempt(conn, second, Responder::Model, "a-model", now).unwrap();
    let response = RecordedResponse {
        text: "I look for the walrus.".into(),
        thinking: "Which walrus?".into(),
        stop: StopReason::Done,
        calls: vec![
            call("search_media", EffectLevel::Read),
            call("add_movie", EffectLevel::Write),
            call("check_status", EffectLevel::Read),
        ],
        tokens: Some(TokenUsage { input: 10, cached: 0, output: 5 }),
        charge: ModelCharge::Nothing,
        response_id: None,
    };
    model_steps::complete_attempt(conn, second, &response, now).unwrap();
    let of_turn = steps_with_calls(conn, turn);
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
    calls::finish_call(conn, of_turn[0], &CallState::Done(found), now).unwrap();
    calls::finish_call(conn, of_turn[1], &CallState::Failed(refused), now).unwrap();
}

fn steps_with_calls(conn: &mut Conn, turn: TurnId) -> Vec<crate::conversation::transcript::CallRow> {
    let conversation = conversation_of(conn, turn);
    let live = ActiveTurn { id: turn, kind: TurnKind::Chat, conversation };
    let loaded = turn_rows::load_turn(conn, live).unwrap();
    loaded.turn.steps.iter().flat_map(|step| &step.calls).map(|call| call.row).collect()
}

fn conversation_of(conn: &mut Conn, turn: TurnId) -> ConversationId {
    use crate::store::schema::turns;
    turns::table.find(turn).select(turns::conversation_id).first(conn).unwrap()
}

/// Answers a message from Sam, with every kind of row that a turn may create.
fn talks(conn: &mut Conn, sid: &str, now: Timestamp) -> TurnId {
    let (user, _, turn) = begins(conn, sid, now);
    steps_of(conn, turn, now);
    let texts = vec![NewOutboundMessage { key: sid.into(), ..reply(user, SAM, Some(turn)) }];
    let end = TurnEnd {
        turn,
        outcome: MessageOutcome::Replied,
        answer: Some("Hello walrus. And more.".to_owned()),
        texts,
    };
    turn_rows::finish_turn(conn, &end, now).unwrap();
    let due = outbox_schedule::load_outbox_schedule(conn, &[], now).unwrap().due;
    for (id, _) in due.into_iter().filter(|(_, todo)| *todo == OutboxTask::Send) {
        outbox::record_acceptance(conn, id, &AcceptedMessage { sid, created_at: None }, &terms(), now)
            .unwrap();
    }
    turn
}

/// Queues a confirmation prompt that asks Sam whether to delete Walrus.
fn is_asked(conn: &mut Conn, sid: &str, now: Timestamp) -> TurnId {
    let (user, conversation, turn) = begins(conn, sid, now);
    let row = model_steps::add_call(conn, turn, "remove_media", now).unwrap();
    let fingerprint = TargetFingerprint {
        title: "Walrus".into(),
        year: 2021,
        path: "/movies/walrus".into(),
        size_bytes: 1,
        seasons: None,
    };
    let item = DeletionTarget {
        instance: "radarr".into(),
        kind: MediaKind::Movie,
        id: 1,
        delete_files: true,
        scope: DeletionScope::Whole,
        fingerprint,
    };
    let words = "Delete Walrus (2021)?".to_owned();
    let text = NewOutboundMessage { body: words.clone(), key: sid.into(), ..reply(user, SAM, Some(turn)) };
    let question = NewPendingAction {
        turn,
        user,
        conversation,
        items: vec![item],
        summary: words,
        code: None,
        prompt: text,
    };
    pending_action::hold_deletion(conn, row, &question, now).unwrap();
    turn
}

/// Adds a removal request from Sam that an admin has decided, a title that Sam requested and was notified of, a
/// reaction, current and former facts about Sam, and an entry in the audit log.
fn reacts_and_asks_an_admin(conn: &mut Conn, user: UserId) {
    run(
        conn,
        "INSERT INTO reactions (user_id, author, said_in, emoji, created_at)
         SELECT user_id, 'user', id, 'walrus', received_at FROM inbound_events LIMIT 1;
         INSERT INTO approvals (kind, user_id, code, instance, item_kind, item_id, fingerprint, state, created_at,
           expires_at, settled_at)
         SELECT 'delete', user_id, '4821', 'radarr', 'movie', 1, '{\"title\":\"Walrus\",\"year\":2021,\"path\":
           \"/walrus\",\"size_bytes\":1,\"seasons\":null}', 'denied', received_at, received_at, received_at
         FROM inbound_events LIMIT 1;
         INSERT INTO approvals (kind, user_id, code, state, created_at, expires_at)
         SELECT 'join', user_id, '4822', 'open', received_at, received_at FROM inbound_events LIMIT 1;
         INSERT INTO requests (user_id, instance, kind, catalog_id, title, year, state, arguments, created_at,
           settled_at)
         SELECT user_id, 'radarr', 'movie', 1, 'Walrus', 2021, 'added', '{\"query\":\"walrus\"}', received_at, received_at
         FROM inbound_events LIMIT 1;
         INSERT INTO follows (user_id, instance, kind, catalog_id, created_at, ended_at)
         SELECT user_id, 'radarr', 'movie', 1, received_at, received_at FROM inbound_events LIMIT 1;
         INSERT INTO notices (user_id, matter, created_at)
         SELECT user_id, 'ready:walrus', received_at FROM inbound_events LIMIT 1;
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
    audit::record_change(conn, &entry, at(0)).unwrap();
}

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    place: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

fn count(conn: &mut Conn, query: &str) -> i64 {
    diesel::sql_query(query).get_result::<Count>(conn).unwrap().n
}

/// Returns every column of every table that contains a word, in any case and with any grouping of digits.
fn places(conn: &mut Conn, word: &str) -> Vec<String> {
    let columns: Vec<Column> = diesel::sql_query(
        "SELECT m.name || '.' || c.name AS place FROM sqlite_master m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND c.type = 'TEXT' ORDER BY place",
    )
    .load(conn)
    .unwrap();
    assert!(columns.len() > 60, "{} columns", columns.len());
    let holds = |place: &String| {
        let (table, column) = place.split_once('.').unwrap();
        let bare = format!("replace(lower(\"{column}\"), ' ', '')");
        count(conn, &format!("SELECT count(*) AS n FROM \"{table}\" WHERE instr({bare}, '{word}') > 0")) > 0
    };
    columns.into_iter().map(|column| column.place).filter(holds).collect()
}

/// Reads everything that a later turn would read.
fn reads_back(conn: &mut Conn, turn: TurnId) {
    let conversation = conversation_of(conn, turn);
    turn_rows::load_turn(conn, ActiveTurn { id: turn, kind: TurnKind::Chat, conversation }).unwrap();
    history::load_conversation_window(conn, conversation).unwrap();
    calls::load_shown_media(conn, conversation).unwrap();
    for call in steps_with_calls(conn, turn) {
        pending_action::load_deletion_items(conn, call).unwrap();
    }
}

#[test]
fn erased_conversation_has_no_text_and_stays_readable() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    let told = talks(&mut conn, "SM1", at(0));
    reacts_and_asks_an_admin(&mut conn, sam);
    let asked = is_asked(&mut conn, "SM2", at(1));
    assert_eq!(places(&mut conn, "walrus"), EVERYWHERE);
    let rows = "SELECT (SELECT count(*) FROM turns) + (SELECT count(*) FROM blocks) \
         + (SELECT count(*) FROM tool_calls) + (SELECT count(*) FROM outbox) AS n";
    let before = count(&mut conn, rows);

    erase_conversations(&mut conn, sam, at(1)).unwrap();

    // The confirmation prompt is closed but in transit; the messages to Ann belong to Ann.
    let left = ["audit_log.detail", "outbox.body", "outbox.media_url", "users.display_name"];
    assert_eq!(places(&mut conn, "walrus"), left);
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM outbox WHERE user_id = 2 AND body <> ''"), 1);
    assert_eq!(count(&mut conn, rows), before);
    assert_eq!(talks::load_open_conversation(&mut conn, sam).unwrap(), None);
    assert_eq!(pending_action::load_pending_action(&mut conn, sam).unwrap(), None);
    assert_eq!(ended_question::load_ended_question(&mut conn, sam, at(1)).unwrap(), None);
    for turn in [told, asked] {
        reads_back(&mut conn, turn);
        let conversation = conversation_of(&mut conn, turn);
        assert_eq!(history::load_conversation_window(&mut conn, conversation).unwrap().turns.len(), 0);
    }
}

#[test]
fn message_waiting_for_its_turn_keeps_its_text() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    talks(&mut conn, "SM1", at(0));
    texts(&mut conn, "SM2", at(0));
    erase_conversations(&mut conn, sam, at(0)).unwrap();
    let waiting = inbound_messages::load_waiting_messages(&mut conn, sam, 10).unwrap();
    assert_eq!(waiting.iter().map(|text| text.body.as_str()).collect::<Vec<_>>(), ["find the walrus"]);
}

#[test]
fn erased_user_leaves_no_value_in_any_column() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    let told = talks(&mut conn, "SM1", at(0));
    reacts_and_asks_an_admin(&mut conn, sam);
    is_asked(&mut conn, "SM2", at(1));
    texts(&mut conn, "SM3", at(1));
    assert_eq!(places(&mut conn, "walrus"), EVERYWHERE);
    assert_eq!(places(&mut conn, "15550100077"), ["outbox.body", "outbox.to_addr", "users.phone"]);

    assert_eq!(forget_user(&mut conn, sam, Actor::Shell, at(2)).unwrap(), ErasureOutcome::Erased);

    assert_eq!(places(&mut conn, "walrus"), Vec::<String>::new());
    assert_eq!(places(&mut conn, "15550100077"), Vec::<String>::new());
    reads_back(&mut conn, told);
    assert_eq!(people::load_user(&mut conn, sam).unwrap().phone.as_str(), "+9990002");
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM approvals WHERE state = 'open'"), 0);
    assert_eq!(inbound_messages::load_waiting_messages(&mut conn, sam, 10).unwrap(), []);
    assert_eq!(
        outbox_schedule::load_outbox_schedule(&mut conn, &[], at(2)).unwrap(),
        outbox_schedule::OutboxSchedule::default()
    );
    let stranger = person(&mut conn, SAM, FirstContactRole::Newcomer);
    assert_ne!(stranger, sam);
}

/// First migration after which no row of the audit log names others.
const AUDIT: &str = "20261123120000";

#[test]
fn upgrade_removes_names_of_others_from_audit_rows() {
    let mut conn = scratch();
    while conn.applied_migrations().unwrap().iter().any(|version| version.to_string().as_str() >= AUDIT) {
        conn.revert_last_migration(MIGRATIONS).unwrap();
    }
    run(
        &mut conn,
        "INSERT INTO users (id, phone, status, role, created_at, updated_at)
         VALUES (1, '+15550100002', 'active', 'admin', 1, 1);
         INSERT INTO audit_log (at, epoch, user_id, kind, subject, detail) VALUES
           (1, 1, 1, 'write_done', 'tool_call:1', '{\"tool\":\"add_movie\",\"title\":\"Dune (2021)\",
             \"asked_by\":\"Walrus on Nov 20\"}')",
    );
    assert_eq!(places(&mut conn, "walrus"), ["audit_log.detail"]);

    conn.run_pending_migrations(MIGRATIONS).unwrap();

    assert_eq!(places(&mut conn, "walrus"), Vec::<String>::new());
    assert_eq!(places(&mut conn, "dune"), ["audit_log.detail"]);
}

#[test]
fn second_erasure_changes_nothing() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    talks(&mut conn, "SM1", at(0));
    for _ in 0..2 {
        assert_eq!(forget_user(&mut conn, sam, Actor::Shell, at(2)).unwrap(), ErasureOutcome::Erased);
    }
    assert_eq!(people::load_user(&mut conn, sam).unwrap().phone.as_str(), "+9990002");
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM users"), 2);
}

#[test]
fn last_admin_cannot_be_erased() {
    let mut conn = scratch();
    let (_, ann) = household(&mut conn);
    assert_eq!(forget_user(&mut conn, ann, Actor::Shell, at(0)).unwrap(), ErasureOutcome::LastAdmin);
    person(&mut conn, "+15550100003", FirstContactRole::Admin);
    assert_eq!(forget_user(&mut conn, ann, Actor::Shell, at(0)).unwrap(), ErasureOutcome::Erased);
}

#[test]
fn user_with_a_running_turn_is_not_erased() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    begins(&mut conn, "SM1", at(0));
    assert_eq!(forget_user(&mut conn, sam, Actor::Shell, at(0)).unwrap(), ErasureOutcome::Busy);
}

/// Returns the days on which the turns that still hold text began, and the same for inbound and outbound messages.
fn days_left(conn: &mut Conn) -> [Vec<i64>; 3] {
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
    household(&mut conn);
    let oldest = talks(&mut conn, "SM0", at(0));
    for day in 1..6 {
        talks(&mut conn, &format!("SM{day}x"), at(day));
    }
    assert_eq!(erase_expired_text(&mut conn, at(4), 2, at(9)).unwrap(), RetentionProgress::More);
    // The first row of the outbox is Ann's.
    assert_eq!(days_left(&mut conn), [vec![2, 3, 4, 5], vec![2, 3, 4, 5], vec![1, 2, 3, 4, 5]]);
    assert_eq!(erase_expired_text(&mut conn, at(4), 2, at(9)).unwrap(), RetentionProgress::More);
    assert_eq!(days_left(&mut conn), [vec![4, 5], vec![4, 5], vec![3, 4, 5]]);
    assert_eq!(erase_expired_text(&mut conn, at(4), 2, at(9)).unwrap(), RetentionProgress::Done);
    assert_eq!(days_left(&mut conn), [vec![4, 5], vec![4, 5], vec![4, 5]]);
    reads_back(&mut conn, oldest);
    assert_eq!(erase_expired_text(&mut conn, at(9), 100, at(9)).unwrap(), RetentionProgress::Done);
    let kept = ["audit_log.detail", "users.display_name"];
    assert_eq!(places(&mut conn, "walrus"), kept[1..]);
}

#[test]
fn retention_erases_every_text_of_finished_work() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    talks(&mut conn, "SM1", at(0));
    reacts_and_asks_an_admin(&mut conn, sam);
    assert_eq!(erase_expired_text(&mut conn, at(9), 100, at(9)).unwrap(), RetentionProgress::Done);
    // Facts about Sam remain until they are changed or forgotten.
    let kept = ["audit_log.detail", "user_facts.key", "user_facts.value", "users.display_name"];
    assert_eq!(places(&mut conn, "walrus"), kept);
    assert_eq!(
        count(&mut conn, "SELECT count(*) AS n FROM user_facts WHERE value <> '' AND ended_at IS NOT NULL"),
        0
    );
    assert_eq!(count(&mut conn, "SELECT count(*) AS n FROM follows"), 0);
}

#[test]
fn open_requests_and_follows_survive_retention_but_not_erasure() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    run(
        &mut conn,
        "INSERT INTO requests (user_id, instance, kind, catalog_id, title, year, state, arguments, next_try_at, created_at)
         SELECT id, 'radarr', 'movie', 1, 'Walrus', 2021, 'queued', '{}', 1, 0 FROM users WHERE role = 'member';
         INSERT INTO follows (user_id, instance, kind, catalog_id, created_at)
         SELECT id, 'radarr', 'movie', 1, 0 FROM users WHERE role = 'member';",
    );
    let open = "SELECT (SELECT count(*) FROM requests) + (SELECT count(*) FROM follows) AS n";
    erase_expired_text(&mut conn, at(9), 100, at(9)).unwrap();
    assert_eq!(count(&mut conn, open), 2);
    erase_conversations(&mut conn, sam, at(9)).unwrap();
    assert_eq!(count(&mut conn, open), 0);
}

#[test]
fn open_turn_and_later_texts_survive_retention() {
    let mut conn = scratch();
    household(&mut conn);
    talks(&mut conn, "SM0", at(0));
    is_asked(&mut conn, "SM1", at(1));
    run(&mut conn, "UPDATE outbox SET state = 'unknown', unknown_at = 0 WHERE state = 'queued'");
    let (_, last) = (texts(&mut conn, "SM2", at(2)), talks(&mut conn, "SM3", at(3)));
    erase_expired_text(&mut conn, at(9), 100, at(9)).unwrap();
    assert_eq!(days_left(&mut conn), [vec![1, 3], vec![2, 3], vec![1, 3]]);

    run(&mut conn, "UPDATE outbox SET state = 'failed' WHERE state IN ('unknown','queued')");
    run(&mut conn, "UPDATE inbound_events SET state = 'completed', outcome = 'skipped'");
    erase_expired_text(&mut conn, at(9), 100, at(9)).unwrap();
    assert_eq!(days_left(&mut conn), [const { Vec::<i64>::new() }; 3]);
    reads_back(&mut conn, last);
}

#[test]
fn export_contains_all_data_of_a_user() {
    let mut conn = scratch();
    let (sam, _) = household(&mut conn);
    talks(&mut conn, "SM1", at(0));
    reacts_and_asks_an_admin(&mut conn, sam);
    is_asked(&mut conn, "SM2", at(1));
    texts(&mut conn, "SM3", at(1));
    insta::assert_json_snapshot!(serde_json::to_value(export_user(&mut conn, sam).unwrap()).unwrap());
}
