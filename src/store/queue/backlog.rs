//! Backlog: number and age of the messages that wait, and number of running turns. Each value is read from a partial
//! index of open rows, so the queries may run every second.

use diesel::dsl::{count_star, min};
use diesel::prelude::*;
use jiff::Timestamp;

use super::inbound_messages::PENDING;
use super::outbox::{MAX_SEND_AGE, OPEN, OutboundKind};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::people::pauses;
use crate::store::schema::{inbound_events, outbox, turns};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Received messages that no turn has processed.
    pub waiting: QueueDepth,
    /// Outbound messages that are due, without those that wait for their send time.
    pub unsent: QueueDepth,
    /// Number of running turns.
    pub running_turns: i64,
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
    // A notification may wait for the end of the quiet hours or for a reply. After the first attempt it counts like any
    // other message.
    let is_due = outbox::not_before.le(ms(now)).and(outbox::kind.ne(OutboundKind::Notice));
    let (length, deadline): (i64, Option<Timestamp>) = outbox::table
        .filter(OPEN.and(is_due.or(outbox::attempts.gt(0))))
        .select((count_star(), min(outbox::deadline_at)))
        .first(conn)?;
    // The age counts from the due time, because a notification may have been queued long before it.
    let unsent = QueueDepth { length, oldest: deadline.map(|deadline| deadline - MAX_SEND_AGE) };
    let running_turns = turns::table.filter(turns::finished_at.is_null()).count().get_result(conn)?;
    let assistant = if pauses::load_current_pause(conn)?.is_some() {
        AssistantState::Paused
    } else {
        AssistantState::Running
    };
    Ok(Backlog { waiting, unsent, running_turns, assistant })
}
