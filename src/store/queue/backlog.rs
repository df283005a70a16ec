//! Size of the work that is due now, and the age of its oldest part. Each number is computed from an index of open rows
//! alone, so the query may run every second.

use diesel::dsl::{count_star, min};
use diesel::prelude::*;
use jiff::Timestamp;

use super::inbound_messages::PENDING;
use super::outbox::{OPEN, OutboundKind, SEND_WITHIN};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::people::pauses;
use crate::store::schema::{inbound_events, outbox, turns};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Received messages that no turn has processed.
    pub waiting: QueueDepth,
    /// Messages that are due for sending, without those that wait for their time.
    pub unsent: QueueDepth,
    /// Number of running turns.
    pub live_turns: i64,
    pub assistant: AssistantState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    pub length: i64,
    pub oldest: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssistantState {
    Running,
    /// An admin has paused the assistant, so waiting messages are expected.
    Paused,
}

pub fn load_backlog(conn: &mut Conn, now: Timestamp) -> QueryResult<Backlog> {
    let (length, oldest) = inbound_events::table
        .filter(PENDING)
        .select((count_star(), min(inbound_events::received_at)))
        .first(conn)?;
    let waiting = QueueDepth { length, oldest };
    // A notification may wait for the morning or for a reply. After the first try it counts like any other message.
    let due = outbox::not_before.le(ms(now)).and(outbox::kind.ne(OutboundKind::Notice));
    let (length, deadline): (i64, Option<Timestamp>) = outbox::table
        .filter(OPEN.and(due.or(outbox::attempts.gt(0))))
        .select((count_star(), min(outbox::deadline_at)))
        .first(conn)?;
    // The age counts from the due time: a notification may have been written the evening before.
    let unsent = QueueDepth { length, oldest: deadline.map(|deadline| deadline - SEND_WITHIN) };
    let live_turns = turns::table.filter(turns::finished_at.is_null()).count().get_result(conn)?;
    let assistant = if pauses::load_current_pause(conn)?.is_some() {
        AssistantState::Paused
    } else {
        AssistantState::Running
    };
    Ok(Backlog { waiting, unsent, live_turns, assistant })
}
