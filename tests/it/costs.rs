//! Cost of a message: commits, statements, triggers, written rows and model requests, on a manual clock. Each bound is an
//! upper bound for the average of twenty messages of a kind, sent a few seconds apart, with everything that they cause:
//! delivery reports, metadata and indexing. The cost of the same time without messages is measured too, and subtracted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::store::Conn;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use jiff::{SignedDuration, Timestamp};

use crate::harness::model::{adds_movie, finds, removes_movie, says};
use crate::harness::statements::{record_statements, take_statements};
use crate::harness::world::World;

/// Number of messages of a kind that are measured together.
const MESSAGES: usize = 20;

/// Cost of one message on average.
#[derive(Debug, Clone, PartialEq)]
struct Cost {
    commits: f64,
    /// Commits that were synced to the disk before their results were used.
    synced_commits: f64,
    statements: f64,
    /// Triggers and actions of foreign keys that the statements can fire.
    triggers: f64,
    model_requests: f64,
    /// Inserted, changed and deleted rows of each table.
    rows: BTreeMap<String, f64>,
}

#[derive(QueryableByName)]
struct TableName {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct Opcode {
    #[diesel(sql_type = Text)]
    opcode: String,
}

#[derive(QueryableByName)]
struct RowCount {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

/// Counts the rows that this connection writes, by triggers that only this connection has. The tables of the text index
/// have none, because SQLite allows no triggers on virtual tables.
fn count_written_rows(conn: &mut Conn) -> QueryResult<()> {
    conn.batch_execute("CREATE TEMP TABLE written_rows (name TEXT PRIMARY KEY, rows INTEGER NOT NULL)")?;
    let tables = diesel::sql_query(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
         AND name NOT LIKE 'words_%' AND name NOT GLOB 'response_[wt]*' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'",
    )
    .load::<TableName>(conn)?;
    for TableName { name } in tables {
        for change in ["INSERT", "UPDATE", "DELETE"] {
            conn.batch_execute(&format!(
                "CREATE TEMP TRIGGER count_{change}_{name} AFTER {change} ON main.{name} BEGIN
                   INSERT INTO written_rows VALUES ('{name}', 1) ON CONFLICT (name) DO UPDATE SET rows = rows + 1;
                 END"
            ))?;
        }
    }
    Ok(())
}

fn take_written_rows(conn: &mut Conn) -> QueryResult<Vec<RowCount>> {
    let rows = diesel::sql_query("SELECT name, rows FROM temp.written_rows ORDER BY name").load(conn)?;
    conn.batch_execute("DELETE FROM temp.written_rows")?;
    Ok(rows)
}

/// Counts the triggers and actions of foreign keys in the statements, as SQLite compiles them.
fn count_triggers(conn: &mut Conn, statements: &[String]) -> QueryResult<usize> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let changes = statements.iter().filter(|text| {
        ["INSERT", "UPDATE", "DELETE"].iter().any(|change| text.trim_start().starts_with(change))
    });
    changes.for_each(|statement| *counts.entry(statement).or_default() += 1);
    let mut triggers = 0;
    for (statement, count) in counts {
        let opcodes = diesel::sql_query(format!("EXPLAIN {statement}")).load::<Opcode>(conn)?;
        triggers += count * opcodes.iter().filter(|row| row.opcode == "Program").count();
    }
    Ok(triggers)
}

struct CostMeter {
    world: World,
    reported: usize,
    started_at: Timestamp,
    syncs: u64,
    model_requests: usize,
}

/// Cost of a period.
struct PeriodCost {
    length: SignedDuration,
    statements: Vec<String>,
    synced_commits: usize,
    model_requests: usize,
    rows: Vec<RowCount>,
}

impl PeriodCost {
    fn commits(&self) -> usize {
        self.statements.iter().filter(|text| text.starts_with("BEGIN IMMEDIATE")).count()
    }

    fn row_counts(&self) -> BTreeMap<String, usize> {
        self.rows.iter().map(|row| (row.name.clone(), usize::try_from(row.rows).unwrap())).collect()
    }
}

impl CostMeter {
    async fn start() -> Self {
        record_statements();
        let world = World::start().await;
        world.write_database(count_written_rows).await;
        let (syncs, started_at) = (world.log_syncs(), world.now());
        Self { world, reported: 0, started_at, syncs, model_requests: 0 }
    }

    /// Sends a message from Ann, and three delivery reports for each message to her.
    async fn exchange(&mut self, body: &str) {
        self.world.sms(body).await;
        let sent = self.world.twilio().sent_messages();
        for message in &sent[self.reported..] {
            for delivery in [FakeDelivery::Queued, FakeDelivery::Sent, FakeDelivery::Delivered] {
                let report = self.world.twilio().status_callback(message, delivery).unwrap().unwrap();
                let status = self.world.deliver(report).await;
                assert!((200..300).contains(&status), "{status}");
            }
        }
        self.reported = sent.len();
        self.world.pass(3).await;
    }

    /// Waits until all work is done, and forgets the cost so far.
    async fn reset(&mut self) {
        self.world.pass(20 * 60).await;
        self.end_period().await;
    }

    /// Returns the cost since the end of the last period.
    async fn end_period(&mut self) -> PeriodCost {
        let synced_commits = usize::try_from(self.world.log_syncs() - self.syncs).unwrap();
        let rows = self.world.write_database(take_written_rows).await;
        // The last transaction is the one above.
        let mut statements = take_statements();
        let last = statements.iter().rposition(|statement| statement.starts_with("BEGIN")).unwrap();
        statements.truncate(last);
        let model_requests = self.world.model_request_count() - self.model_requests;
        self.model_requests += model_requests;
        // The sync of the transaction above is not counted.
        self.syncs = self.world.log_syncs();
        let length = self.world.now().duration_since(self.started_at);
        self.started_at = self.world.now();
        PeriodCost { length, statements, synced_commits, model_requests, rows }
    }

    async fn count_triggers(&self, period: &PeriodCost) -> usize {
        let statements = period.statements.clone();
        // A reader does not have the triggers that count written rows.
        self.world.read_database(move |conn| count_triggers(conn, &statements)).await
    }

    /// Returns the average cost of the messages since the last reset.
    async fn measure(&mut self) -> Cost {
        self.world.pass(20 * 60).await;
        let busy = self.end_period().await;
        if let Ok(path) = std::env::var("DIALARR_COST_STATEMENTS") {
            std::fs::write(path, busy.statements.join("\n")).unwrap();
        }
        self.world.pass(u64::try_from(busy.length.as_secs()).unwrap()).await;
        let idle = self.end_period().await;
        assert_eq!(idle.model_requests, 0);
        let [triggers, idle_triggers] = [self.count_triggers(&busy).await, self.count_triggers(&idle).await];
        let rows = busy.row_counts();
        let idle_rows = idle.row_counts();
        let rows = rows.iter().map(|(name, count)| {
            (name.clone(), per_message(*count) - per_message(idle_rows.get(name).copied().unwrap_or(0)))
        });
        Cost {
            commits: per_message(busy.commits()) - per_message(idle.commits()),
            synced_commits: per_message(busy.synced_commits) - per_message(idle.synced_commits),
            statements: per_message(busy.statements.len()) - per_message(idle.statements.len()),
            triggers: per_message(triggers) - per_message(idle_triggers),
            model_requests: per_message(busy.model_requests),
            rows: rows.collect(),
        }
    }
}

fn per_message(count: usize) -> f64 {
    count as f64 / MESSAGES as f64
}

/// Compares a cost with its bounds, and lists all that are exceeded at once.
fn assert_within(
    cost: &Cost,
    (commits, synced): (f64, f64),
    (statements, triggers): (f64, f64),
    model_requests: f64,
    rows: f64,
) {
    let written: f64 = cost.rows.values().sum();
    let mut exceeded = String::new();
    for (what, measured, bound) in [
        ("commits", cost.commits, commits),
        ("synced commits", cost.synced_commits, synced),
        ("statements", cost.statements, statements),
        ("triggers", cost.triggers, triggers),
        ("model requests", cost.model_requests, model_requests),
        ("written rows", written, rows),
    ] {
        if measured > bound {
            writeln!(exceeded, "{what}: {measured} > {bound}").unwrap();
        }
    }
    assert!(exceeded.is_empty(), "{exceeded}{cost:#?}");
}

#[tokio::test(start_paused = true)]
async fn cost_of_a_command_is_bounded() {
    let mut meter = CostMeter::start().await;
    meter.exchange("notify off").await;
    meter.reset().await;
    for message in 0..MESSAGES {
        meter.exchange(if message % 2 == 0 { "notify on" } else { "notify off" }).await;
    }
    let cost = meter.measure().await;
    assert_within(&cost, (6.1, 5.0), (52.5, 0.0), 0.0, 14.0);
}

#[tokio::test(start_paused = true)]
async fn cost_of_small_talk_is_bounded() {
    let mut meter = CostMeter::start().await;
    meter.world.model_plays(std::iter::repeat_n(says("Fine, and you?"), 2 * MESSAGES + 2));
    meter.exchange("how are you today?").await;
    meter.reset().await;
    for message in 0..MESSAGES {
        meter.exchange(&format!("how are you today? {message}")).await;
    }
    let cost = meter.measure().await;
    assert_within(&cost, (7.6, 5.0), (71.0, 1.0), 1.0, 22.5);
}

#[tokio::test(start_paused = true)]
async fn cost_of_a_read_is_bounded() {
    let mut meter = CostMeter::start().await;
    meter.world.radarr().add(movie("Heat").year(1995));
    let play = [finds("heat"), says("Heat (1995) is there, in 1080p.")];
    meter.world.model_plays(std::iter::repeat_n(play, MESSAGES + 1).flatten());
    meter.exchange("have we got heat?").await;
    meter.reset().await;
    for message in 0..MESSAGES {
        meter.exchange(&format!("have we got heat? {message}")).await;
    }
    let cost = meter.measure().await;
    assert_within(&cost, (9.6, 5.0), (91.0, 3.0), 2.0, 29.5);
}

#[tokio::test(start_paused = true)]
async fn cost_of_an_addition_is_bounded() {
    let mut meter = CostMeter::start().await;
    meter.world.damage_rows("UPDATE users SET movie_limit = 1000").await;
    let titles: Vec<(String, i64)> = (0..=MESSAGES)
        .map(|number| {
            let title = format!("Rocky {number}");
            let tmdb = meter.world.radarr().add_to_catalog(movie(&title).year(1976));
            (title, tmdb)
        })
        .collect();
    let plays = titles.iter().flat_map(|(title, tmdb)| {
        let [search, add] = adds_movie(title, *tmdb);
        [search, add, says("It is on its way.")]
    });
    meter.world.model_plays(plays.collect::<Vec<_>>());
    let mut titles = titles.iter().map(|(title, _)| format!("add {title} please"));
    meter.exchange(&titles.next().unwrap()).await;
    meter.reset().await;
    for text in titles {
        meter.exchange(&text).await;
    }
    let cost = meter.measure().await;
    assert_within(&cost, (13.6, 7.0), (141.0, 3.0), 3.0, 43.5);
}

#[tokio::test(start_paused = true)]
async fn cost_of_a_confirmed_deletion_is_bounded() {
    let mut meter = CostMeter::start().await;
    let titles: Vec<(String, i64)> = (0..=MESSAGES)
        .map(|number| {
            let title = format!("Rocky {number}");
            let id = meter.world.radarr().add(movie(&title).year(1976).size_gb(8.0));
            (title, id)
        })
        .collect();
    let plays = titles.iter().flat_map(|(title, id)| removes_movie(title, *id));
    meter.world.model_plays(plays.collect::<Vec<_>>());
    for (number, (title, _)) in titles.iter().enumerate() {
        meter.exchange(&format!("delete {title}")).await;
        meter.exchange("yes").await;
        if number == 0 {
            meter.reset().await;
        }
    }
    let cost = meter.measure().await;
    assert_within(&cost, (20.3, 14.0), (247.0, 3.0), 2.0, 55.0);
}

#[tokio::test(start_paused = true)]
async fn cost_of_an_idle_hour_is_bounded() {
    let mut meter = CostMeter::start().await;
    meter.reset().await;
    meter.world.pass(60 * 60).await;
    let idle = meter.end_period().await;
    let measured = (idle.commits(), idle.synced_commits, idle.statements.len(), idle.model_requests);
    assert!(measured.0 <= 120 && measured.1 <= 48 && measured.2 <= 1_004 && measured.3 == 0, "{measured:?}");
}
