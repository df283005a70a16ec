//! Page of a conversation: its messages, every step behind them, and all open items.

pub mod head;
pub mod steps;
pub mod texts;

use diesel::prelude::*;
use jiff::Timestamp;

use super::Listed;
use crate::conversation::stream::{Seq, TurnState};
use crate::conversation::transcript::{ConversationId, TurnId};
use crate::store::codec::{ms, time};
use crate::store::schema::turns;
use crate::store::span::Time;
use crate::store::stream::reading;
use crate::store::{Conn, QueryResult};
use head::{Head, Tail};
use steps::{Call, Step};
use texts::{Received, Sent};

/// Number of turns on one page.
pub const TURNS: usize = 50;

/// Content of the page, and the cursor in the log to which it corresponds.
#[derive(Debug, Clone)]
pub struct Thread {
    pub head: Head,
    pub tail: Tail,
    /// Entries, oldest first.
    pub entries: Vec<Entry>,
    /// Cursor below which older turns are found.
    pub older: Option<i64>,
    pub seq: Seq,
}

/// Entry in the chronological order of a conversation.
#[derive(Debug, Clone)]
pub enum Entry {
    Turn(Turn),
    /// Outbound message without a turn.
    Notice(Sent),
    /// Inbound message that got no turn.
    Unanswered(Received),
}

impl Entry {
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Turn(turn) => turn.created_at,
            Self::Notice(sent) => sent.at,
            Self::Unanswered(received) => received.at,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Turn {
    pub id: TurnId,
    pub state: TurnState,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// True if the end of the turn was requested and the turn is still running.
    pub is_ending: bool,
    pub received: Vec<Received>,
    pub steps: Vec<Step>,
    /// Held calls of an earlier turn that this one executes.
    pub carries_out: Vec<Call>,
    pub sent: Vec<Sent>,
}

/// Loads the newest turns below `before` and the messages between them; returns an error if the conversation does not
/// exist.
pub fn read(conn: &mut Conn, id: ConversationId, before: i64) -> QueryResult<Thread> {
    let seq = reading::last(conn)?;
    let head = head::read(conn, id)?;
    let ids: Vec<i64> = turns::table
        .filter(turns::conversation_id.eq(id.0).and(turns::id.lt(before)))
        .order(turns::id.desc())
        .limit(super::one_more(TURNS))
        .select(turns::id)
        .load(conn)?;
    let Listed { rows, older } = Listed::of(ids, TURNS, |id| *id);
    let turns = turns_of(conn, &rows)?;
    let oldest = turns.first().map(|turn| ms(turn.created_at)).filter(|_| older.is_some());
    let span = Time::of(conn, id, oldest, before)?;
    let mut entries: Vec<Entry> = turns.into_iter().map(Entry::Turn).collect();
    entries.extend(texts::notices(conn, span)?.into_iter().map(Entry::Notice));
    entries.extend(texts::unanswered(conn, span)?.into_iter().map(Entry::Unanswered));
    entries.sort_by_key(Entry::at);
    let tail = head::tail(conn, &head)?;
    Ok(Thread { head, tail, entries, older, seq })
}

/// Loads turns by their ids, oldest first.
pub fn turns_of(conn: &mut Conn, ids: &[i64]) -> QueryResult<Vec<Turn>> {
    type Row = (i64, String, i64, Option<i64>, Option<i64>);
    let rows: Vec<Row> = turns::table
        .filter(turns::id.eq_any(ids))
        .order(turns::id)
        .select((turns::id, turns::state, turns::created_at, turns::finished_at, turns::cancel_requested_at))
        .load(conn)?;
    let mut received = texts::received(conn, ids)?;
    let mut sent = texts::sent(conn, ids)?;
    let mut steps = steps::read(conn, ids)?;
    let mut carried = steps::carried_out(conn, ids)?;
    rows.into_iter()
        .map(|(id, state, created_at, finished_at, cancel)| {
            Ok(Turn {
                id: TurnId(id),
                state: reading::turn_state(&state)?,
                created_at: time(created_at)?,
                finished_at: finished_at.map(time).transpose()?,
                is_ending: cancel.is_some() && finished_at.is_none(),
                received: received.remove(&id).unwrap_or_default(),
                steps: steps.remove(&id).unwrap_or_default(),
                carries_out: carried.remove(&id).unwrap_or_default(),
                sent: sent.remove(&id).unwrap_or_default(),
            })
        })
        .collect()
}

/// Rows grouped by the id of their turn.
pub(super) type ByTurn<T> = std::collections::HashMap<i64, Vec<T>>;

fn by_turn<T>(rows: impl IntoIterator<Item = QueryResult<(i64, T)>>) -> QueryResult<ByTurn<T>> {
    let mut groups: ByTurn<T> = ByTurn::new();
    for row in rows {
        let (turn, item) = row?;
        groups.entry(turn).or_default().push(item);
    }
    Ok(groups)
}
