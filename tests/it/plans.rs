//! Query plans: no statement scans a growing table, with a short history and with a long one.

use std::collections::BTreeSet;
use std::path::Path;

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::rate_limit::RateLimit;
use dialarr::conversation::stream_events::EventSeq;
use dialarr::conversation::transcript::{ConversationId, MediaKind, PhoneNumber};
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::store::Conn;
use dialarr::store::console::conversations::{self, ConversationFilter as Listing};
use dialarr::store::console::deliveries::DeliveryFilter;
use dialarr::store::console::requests::{self, RequestFilter};
use dialarr::store::console::search::{self, SearchCursor, SearchQuery};
use dialarr::store::console::{
    NEWEST, attention, audit, conversation, deliveries, message_counts, usage, user_details,
};
use dialarr::store::conversation::record::pages;
use dialarr::store::database::db::Db;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::store::queue::resend;
use dialarr::store::stream::event_log::LogPosition;
use dialarr::store::stream::response_blocks::StreamedBlocks;
use dialarr::store::turns::daily_budget::Day;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::harness::ANN;
use crate::harness::model::{adds_movie, calls, finds, removes_movie, says};
use crate::harness::statements::{record_statements, take_statements};
use crate::harness::world::World;

/// Tables that are never emptied, and the log, which holds the last hour of all users.
const GROWING: [&str; 17] = [
    "agent_calls",
    "agent_responses",
    "user_facts",
    "audit_log",
    "conversations",
    "inbound_events",
    "turns",
    "llm_steps",
    "blocks",
    "tool_calls",
    "tool_call_items",
    "outbox",
    "usage",
    "arr_events",
    "requests",
    "follows",
    "notices",
];

/// Indexes of open work only, which may be scanned completely.
const OF_OPEN: [&str; 9] = [
    "ix_agent_call_waiting",
    "ix_event_pending",
    "ix_outbox_open",
    "ux_turn_live",
    "ix_conversation_unended",
    "ix_arr_event_open",
    "ux_follow_open",
    "ix_request_due",
    "ix_tool_unknown",
];

/// Returns whether the program built a statement. Statements that the tests write themselves have no quoted names, and a
/// migration begins with a comment. References of an inserted row are looked up only if a commit left some of them open,
/// which none does.
fn is_planned(statement: &str) -> bool {
    statement.contains('`') && !statement.starts_with("INSERT") && !statement.starts_with("--")
}

/// Runs every statement of the program on a good and a bad day.
async fn statements_of_two_days() -> BTreeSet<String> {
    record_statements();
    let mut world = World::start().await;
    let arrival = world.radarr().add_to_catalog(movie("Arrival").year(2016));
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays([&adds_movie("arrival", arrival)[..], &[says("Arrival is on its way.")]].concat());
    world.sms("get arrival").await;
    let report =
        world.twilio().status_callback(&world.twilio().sent_messages()[0], FakeDelivery::Delivered).unwrap();
    world.deliver(report.unwrap()).await;
    let heat = world.radarr().add_to_catalog(movie("Heat").year(1995));
    let [searches, adds] = adds_movie("heat", heat);
    world.model_plays([searches, says("Heat?"), adds, says("Later.")]);
    world.sms("heat").await;
    world.radarr().set_down(true);
    world.sms("yes").await;
    world.pass(5 * 60).await;
    world.radarr().set_down(false);
    world.pass(30 * 60).await;
    let follows =
        |stop: bool| calls("tell_me_when_ready", json!({ "type": "movie", "tmdb": heat, "stop": stop }));
    world.model_plays([finds("heat"), follows(false), follows(true), says("OK.")]);
    world.sms("tell me of heat").await;
    world.model_plays(removes_movie("dune", dune));
    world.sms("delete dune").await;
    world.sms("yes").await;
    let wants = |quality: &str| calls("remember", json!({ "kind": "quality", "value": quality }));
    world.model_plays([wants("4K"), says("4K."), wants("1080p"), says("1080p.")]);
    world.sms("4K only").await;
    world.sms("make that 1080p").await;
    world.sms("what do you know?").await;
    world.sms("forget 1").await;
    world.sms("Liked \u{201c}Arrival is on its way.\u{201d}").await;

    world.model_plays([says("Late, but here."), says("Lost."), says("Once more.")]);
    world.kill().await;
    world.miss_message("are you there?").await;
    world.pass(3 * 60).await;
    world.start_again().await;
    world.pass(60).await;
    world.twilio().hang_next();
    world.sms("and now?").await;
    world.pass(10 * 60).await;
    world.radarr().drop_next_write_response();
    world.model_plays(removes_movie("arrival", arrival));
    world.sms("delete arrival").await;
    world.sms("no").await;
    let heat_in_library = json!({ "query": "heat" });
    world.agent_calls(ANN, &[("find_in_library", heat_in_library), ("server_status", json!({}))]).await;
    world.sms("quiet 21-7").await;
    world.import_followed_titles().await;
    looks_at_every_page(&world).await;
    world.sms("notify off").await;
    world.sms("reset").await;
    world.sms("STOP").await;
    world.erase_old_texts().await;
    world.erase_texts_of_ann().await;
    world.kill().await;
    take_statements().into_iter().filter(|statement| is_planned(statement)).collect()
}

/// Opens every page of the console, and the next page of every list.
async fn looks_at_every_page(world: &World) {
    let (now, ann) = (world.now(), PhoneNumber::parse(ANN).unwrap());
    let (long_ago, rate) = (now - SignedDuration::from_hours(24 * 30), RateLimit::parse("10/7d"));
    let looks = move |conn: &mut Conn| {
        let ann = users::find_user_by_phone(conn, &ann)?.unwrap().id;
        attention::load_attention_items(conn, long_ago, &Day::from_timestamp(now, &TimeZone::UTC), now)?;
        message_counts::load_message_times(conn, long_ago)?;
        usage::load_usage_report(conn, "2026-10-20")?;
        usage::load_user_usage(conn, ann, "2026-10-20")?;
        conversations::load_latest_conversations(conn, 15)?;
        user_details::load_user_summaries(conn, (rate, rate), NEWEST, 50, now)?;
        users::load_active_users(conn, 100)?;
        user_details::load_user_details(conn, ann, (rate, rate), now)?;
        let words = SearchQuery::parse("arrival dune").unwrap();
        search::search_messages(conn, &words, SearchCursor::NEWEST)?;
        for before in [NEWEST, 3] {
            let position = LogPosition { cursor: EventSeq(0), streamed: StreamedBlocks::new() };
            conversation::load_conversation_view(conn, ConversationId(1), before, &position)?;
            pages::load_page(conn, ConversationId(1), (before, 1), &position.streamed)?;
            for which in [Listing::All, Listing::Open, Listing::Ended, Listing::Test] {
                conversations::load_conversation_summaries(conn, which, before)?;
            }
            conversations::load_user_conversations(conn, ann, before, 1)?;
            for which in [
                DeliveryFilter::All,
                DeliveryFilter::Waiting,
                DeliveryFilter::Failed,
                DeliveryFilter::To(ann),
            ] {
                deliveries::load_delivery_summaries(conn, which, before, 1)?;
            }
            for which in [RequestFilter::All, RequestFilter::Waiting, RequestFilter::By(ann)] {
                requests::load_request_summaries(conn, which, before, 1)?;
            }
            requests::load_requesters(conn, &[("radarr".to_owned(), MediaKind::Movie, 949)])?;
            for kind in [None, Some("write")] {
                audit::load_audit_entries(conn, kind, before, 1)?;
            }
        }
        resend::can_resend(conn, 1)
    };
    world.read_database(looks).await;
}

async fn a_database_that_knows_ann(path: &Path) -> SqliteConnection {
    let path = path.to_str().unwrap();
    let db = Db::open(path).unwrap();
    let ann = PhoneNumber::parse(ANN).unwrap();
    let know =
        move |conn: &mut _| users::ensure_user(conn, &ann, FirstContactRole::Admin, Timestamp::UNIX_EPOCH);
    db.write(know).await.unwrap();
    db.close().await;
    SqliteConnection::establish(path).unwrap()
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    detail: String,
}

/// Returns the full scans of growing tables with their statements, and the searches for open work among all messages of
/// a user.
fn slow_reads(conn: &mut SqliteConnection, statements: &BTreeSet<String>) -> Vec<String> {
    let is_scan = |detail: &str| {
        let table = detail.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
        let among_the_open = OF_OPEN.iter().any(|index| detail.ends_with(&format!("INDEX {index}")));
        table.is_some_and(|table| GROWING.contains(&table)) && !among_the_open
    };
    let is_detour =
        |detail: &str| ["ix_event_user", "ix_outbox_user"].iter().any(|index| detail.contains(index));
    let mut slow = Vec::new();
    for statement in statements {
        let plan: Vec<Line> =
            diesel::sql_query(format!("EXPLAIN QUERY PLAN {statement}")).load(conn).unwrap();
        let wants_open = ["inbound_events.state = 'pending'", "outbox.state IN"]
            .iter()
            .any(|open| statement.contains(open));
        let found =
            plan.into_iter().filter(|line| is_scan(&line.detail) || wants_open && is_detour(&line.detail));
        slow.extend(found.map(|line| format!("{}: {statement}", line.detail)));
    }
    slow
}

#[tokio::test]
async fn failed_messages_are_found_by_their_own_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut conn = a_database_that_knows_ann(&folder.path().join("test.db")).await;
    let failed = "(outbox.state = 'failed' OR outbox.delivery IN ('undelivered','failed'))";
    let statement = format!("SELECT body FROM outbox WHERE {failed} AND id < ? ORDER BY id DESC LIMIT 51");
    let plan: Vec<Line> =
        diesel::sql_query(format!("EXPLAIN QUERY PLAN {statement}")).load(&mut conn).unwrap();
    let steps: Vec<String> = plan.into_iter().map(|line| line.detail).collect();
    assert_eq!(steps, ["SEARCH outbox USING INDEX ix_outbox_failed (id<?)"]);
}

#[tokio::test(start_paused = true)]
async fn no_statement_scans_a_growing_table() {
    let statements = statements_of_two_days().await;
    assert!(statements.len() > 80, "{} statements", statements.len());
    let folder = tempfile::tempdir().unwrap();
    let mut conn = a_database_that_knows_ann(&folder.path().join("test.db")).await;
    let slow = BTreeSet::from(["SELECT turn_id FROM llm_steps WHERE state = 'complete'".to_owned()]);
    assert_eq!(
        slow_reads(&mut conn, &slow).len(),
        1,
        "an index of all that was ever completed is no way out"
    );
    let in_a_short_history = slow_reads(&mut conn, &statements);
    assert!(in_a_short_history.is_empty(), "{in_a_short_history:#?}");

    let history = include_str!("../data/long_history.sql").replace("50000", "3000");
    conn.batch_execute(&history).unwrap();
    let conversations = "WITH RECURSIVE n(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM n WHERE n < 3000)
        INSERT INTO conversations(id, user_id, name, started_at, last_activity_at, ended_at, end_reason)
        SELECT n, (SELECT id FROM users LIMIT 1), 'old', n, n, n, 'idle' FROM n";
    conn.batch_execute(conversations).unwrap();
    conn.batch_execute("ANALYZE").unwrap();
    let in_a_long_history = slow_reads(&mut conn, &statements);
    assert!(in_a_long_history.is_empty(), "{in_a_long_history:#?}");
}
