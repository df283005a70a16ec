//! Check that every change which readers of a conversation must be told is an event in the log. Triggers that only the
//! connection of the writer has list the changes, independently of the code that records the events.

use std::collections::{BTreeMap, BTreeSet};

use dialarr::conversation::stream_events::{EventSeq, StreamEvent, StreamEventKind};
use dialarr::conversation::transcript::ConversationId;
use dialarr::store::Conn;
use dialarr::store::database::db::Db;
use diesel::connection::SimpleConnection;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::{QueryResult, QueryableByName, RunQueryDsl};

const TRIGGERS: &str = include_str!("../../data/expected_events.sql");

#[derive(QueryableByName)]
struct ExpectedEvent {
    #[diesel(sql_type = Nullable<BigInt>)]
    conversation_id: Option<i64>,
    #[diesel(sql_type = Text)]
    line: String,
}

/// List of the events that are expected of one run of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedEvents {
    /// Position in the log at which the list begins.
    start: EventSeq,
}

/// Result of comparing the log with the expected events.
#[derive(Debug, Default)]
pub(crate) struct EventReport {
    pub(crate) differences: Vec<String>,
    /// Kinds of rows with the states that they reached: `turn completed`.
    pub(crate) states: BTreeSet<String>,
}

impl ExpectedEvents {
    pub(crate) async fn begin(db: &Db) -> Self {
        db.write(|conn| conn.batch_execute(TRIGGERS)).await.unwrap();
        // Work of the program may commit events at any point of this loop.
        loop {
            let start = log_end(db).await;
            db.write(|conn| conn.batch_execute("DELETE FROM expected_events")).await.unwrap();
            if log_end(db).await == start {
                return Self { start };
            }
        }
    }

    /// Compares the log with the expected events. Conversations whose cursors were reset are left out.
    pub(crate) async fn compare(self, db: &Db) -> EventReport {
        let load = |conn: &mut Conn| -> QueryResult<Vec<ExpectedEvent>> {
            diesel::sql_query("SELECT conversation_id, line FROM expected_events ORDER BY id").load(conn)
        };
        let mut expected: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for ExpectedEvent { conversation_id, line } in db.write(load).await.unwrap() {
            if let Some(conversation) = conversation_id {
                expected.entry(conversation).or_default().push(line.replace('_', "").to_lowercase());
            }
        }
        let mut report = EventReport::default();
        for (conversation, expected) in expected {
            let log = db.event_log().events_since(ConversationId(conversation), self.start, usize::MAX);
            let Some(log) = log else { continue };
            let logged: Vec<String> = log.events.iter().filter_map(|event| describe(event)).collect();
            report.states.extend(logged.iter().map(|line| without_id(line)));
            report.differences.extend(compare(conversation, &expected, &logged));
        }
        report
    }
}

async fn log_end(db: &Db) -> EventSeq {
    db.read_with_position(ConversationId(0), |_, position| Ok(position.cursor)).await.unwrap()
}

/// Returns a description without the id of its row: `turn completed` for `turn 7 completed`.
fn without_id(line: &str) -> String {
    let words = line.split(' ').filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

/// Describes an event as the triggers do; `None` for a block.
fn describe(event: &StreamEvent) -> Option<String> {
    let turn = event.turn.map_or(0, |turn| turn.0);
    let line = match &event.kind {
        StreamEventKind::Turn(state) => format!("turn {turn} {state:?}"),
        StreamEventKind::StepAbandoned { step, attempt } => format!("abandoned {turn}.{step}.{attempt}"),
        StreamEventKind::ToolCall(call, phase) => format!("call {call} {phase:?}"),
        StreamEventKind::InboundMessage(id, status) => format!("inbound {id} {status:?}"),
        StreamEventKind::OutboundMessage(id, status) => format!("outbound {id} {status:?}"),
        StreamEventKind::Prompt(id, state) => format!("prompt {id} {state:?}"),
        StreamEventKind::Reaction(id, state) => format!("reaction {id} {state:?}"),
        StreamEventKind::Conversation(change) => format!("conversation {change:?}"),
        StreamEventKind::BlockStart(_) | StreamEventKind::BlockDelta(..) | StreamEventKind::BlockEnd(_) => {
            return None;
        }
    };
    Some(line.to_lowercase())
}

/// Compares the events of one conversation. The log may void the blocks of more attempts than those that failed: also of
/// one whose response differs from its streamed blocks. It also contains the starts of reads, which are not stored.
fn compare(conversation: i64, expected: &[String], logged: &[String]) -> Vec<String> {
    let is_void = |line: &&String| line.starts_with("abandoned ");
    let voids = |lines: &[String]| lines.iter().filter(is_void).cloned().collect::<BTreeSet<_>>();
    let others = |lines: &[String]| lines.iter().filter(|line| !is_void(line)).cloned().collect::<Vec<_>>();
    let missing = voids(expected).difference(&voids(logged)).cloned().collect::<Vec<_>>();
    let is_stored =
        |line: &String| !(line.starts_with("call ") && line.ends_with(" running")) || expected.contains(line);
    let mut logged = others(logged);
    logged.retain(is_stored);
    let expected = others(expected);
    if missing.is_empty() && expected == logged {
        return Vec::new();
    }
    let first = expected.iter().zip(&logged).take_while(|(expected, logged)| expected == logged).count();
    vec![format!(
        "conversation {conversation}: after {first} equal events, expected {:?}, logged {:?}; not voided: {missing:?}",
        expected[first..].iter().take(5).collect::<Vec<_>>(),
        logged[first..].iter().take(5).collect::<Vec<_>>(),
    )]
}
