//! Page of a conversation: its messages, every step behind them, and all open items.

pub mod header;
pub mod message_entries;
pub mod steps;

use diesel::prelude::*;
use jiff::Timestamp;

use super::ResultPage;
use crate::conversation::stream_events::{EventSeq, StreamTurnState};
use crate::conversation::transcript::{ConversationId, TurnId};
use crate::store::codec::{ms, timestamp_from_ms};
use crate::store::conversation::turn_range::MessageTimeRange;
use crate::store::schema::turns;
use crate::store::stream::event_reader;
use crate::store::{Conn, QueryResult};
use header::{ConversationFooter, ConversationHeader};
use message_entries::{InboundEntry, OutboundEntry};
use steps::{StepEntry, ToolCallEntry};

/// Number of turns on one page.
pub const TURNS: usize = 50;

/// Content of the page, and the cursor in the log to which it corresponds.
#[derive(Debug, Clone)]
pub struct ConversationPage {
    pub header: ConversationHeader,
    pub footer: ConversationFooter,
    /// Entries, oldest first.
    pub entries: Vec<ConversationEntry>,
    /// Cursor below which older turns are found.
    pub older: Option<i64>,
    pub seq: EventSeq,
}

/// Entry in the chronological order of a conversation.
#[derive(Debug, Clone)]
pub enum ConversationEntry {
    Turn(TurnEntry),
    /// Outbound message without a turn.
    Notification(OutboundEntry),
    /// Inbound message that got no turn.
    Unanswered(InboundEntry),
}

impl ConversationEntry {
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::Turn(turn) => turn.created_at,
            Self::Notification(sent) => sent.at,
            Self::Unanswered(received) => received.at,
        }
    }
}

#[derive(Debug, Clone)]
pub struct TurnEntry {
    pub id: TurnId,
    pub state: StreamTurnState,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// True if the end of the turn was requested and the turn is still running.
    pub is_ending: bool,
    pub received: Vec<InboundEntry>,
    pub steps: Vec<StepEntry>,
    /// Held calls of an earlier turn that this one executes.
    pub executed_calls: Vec<ToolCallEntry>,
    pub sent: Vec<OutboundEntry>,
}

/// Loads the newest turns below `before` and the messages between them; returns an error if the conversation does not
/// exist.
pub fn load_conversation_page(
    conn: &mut Conn,
    id: ConversationId,
    before: i64,
) -> QueryResult<ConversationPage> {
    let seq = event_reader::load_last_seq(conn)?;
    let head = header::load_conversation_header(conn, id)?;
    let ids: Vec<i64> = turns::table
        .filter(turns::conversation_id.eq(id.0).and(turns::id.lt(before)))
        .order(turns::id.desc())
        .limit(super::query_limit(TURNS))
        .select(turns::id)
        .load(conn)?;
    let ResultPage { rows, older } = ResultPage::from_rows(ids, TURNS, |id| *id);
    let turns = load_turn_entries(conn, &rows)?;
    let oldest = turns.first().map(|turn| ms(turn.created_at)).filter(|_| older.is_some());
    let span = MessageTimeRange::load_for_page(conn, id, oldest, before)?;
    let mut entries: Vec<ConversationEntry> = turns.into_iter().map(ConversationEntry::Turn).collect();
    entries.extend(
        message_entries::load_notification_entries(conn, span)?
            .into_iter()
            .map(ConversationEntry::Notification),
    );
    entries.extend(
        message_entries::load_unanswered_entries(conn, span)?.into_iter().map(ConversationEntry::Unanswered),
    );
    entries.sort_by_key(ConversationEntry::timestamp);
    let tail = header::load_conversation_footer(conn, &head)?;
    Ok(ConversationPage { header: head, footer: tail, entries, older, seq })
}

/// Loads turns by their ids, oldest first.
pub fn load_turn_entries(conn: &mut Conn, ids: &[i64]) -> QueryResult<Vec<TurnEntry>> {
    type TurnEntryRow = (i64, String, i64, Option<i64>, Option<i64>);
    let rows: Vec<TurnEntryRow> = turns::table
        .filter(turns::id.eq_any(ids))
        .order(turns::id)
        .select((turns::id, turns::state, turns::created_at, turns::finished_at, turns::cancel_requested_at))
        .load(conn)?;
    let mut received = message_entries::load_inbound_by_turn(conn, ids)?;
    let mut sent = message_entries::load_outbound_by_turn(conn, ids)?;
    let mut steps = steps::load_step_entries(conn, ids)?;
    let mut carried = steps::load_executed_calls(conn, ids)?;
    rows.into_iter()
        .map(|(id, state, created_at, finished_at, cancel)| {
            Ok(TurnEntry {
                id: TurnId(id),
                state: event_reader::parse_turn_state(&state)?,
                created_at: timestamp_from_ms(created_at)?,
                finished_at: finished_at.map(timestamp_from_ms).transpose()?,
                is_ending: cancel.is_some() && finished_at.is_none(),
                received: received.remove(&id).unwrap_or_default(),
                steps: steps.remove(&id).unwrap_or_default(),
                executed_calls: carried.remove(&id).unwrap_or_default(),
                sent: sent.remove(&id).unwrap_or_default(),
            })
        })
        .collect()
}

/// Rows grouped by the id of their turn.
pub(super) type RowsByTurn<T> = std::collections::HashMap<i64, Vec<T>>;

fn group_rows_by_turn<T>(
    rows: impl IntoIterator<Item = QueryResult<(i64, T)>>,
) -> QueryResult<RowsByTurn<T>> {
    let mut groups: RowsByTurn<T> = RowsByTurn::new();
    for row in rows {
        let (turn, item) = row?;
        groups.entry(turn).or_default().push(item);
    }
    Ok(groups)
}
