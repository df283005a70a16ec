//! Size of the work that is due now, and the age of its oldest part. Each number is computed from an index of open rows
//! alone, so the query may run every second.

use diesel::dsl::{count_star, min};
use diesel::prelude::*;
use jiff::Timestamp;

use super::inbound_messages::PENDING;
use super::outbox::{OPEN, SEND_WITHIN};
use crate::store::Conn;
use crate::store::codec::{ms, timestamp_from_ms};
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
    let waiting: (i64, Option<i64>) = inbound_events::table
        .filter(PENDING)
        .select((count_star(), min(inbound_events::received_at)))
        .first(conn)?;
    // A notification may wait for the morning or for a reply. After the first try it counts like any other message.
    let due = outbox::not_before.le(ms(now)).and(outbox::kind.ne("notice"));
    let unsent: (i64, Option<i64>) = outbox::table
        .filter(OPEN.and(due.or(outbox::attempts.gt(0))))
        .select((count_star(), min(outbox::deadline_at)))
        .first(conn)?;
    let within = i64::try_from(SEND_WITHIN.as_millis()).unwrap_or(i64::MAX);
    // The age counts from the due time: a notification may have been written the evening before.
    let unsent = (unsent.0, unsent.1.map(|deadline| deadline - within));
    let live = turns::table.filter(turns::finished_at.is_null()).count().get_result(conn)?;
    let queue = |(length, oldest): (i64, Option<i64>)| {
        Ok::<_, diesel::result::Error>(QueueDepth {
            length,
            oldest: oldest.map(timestamp_from_ms).transpose()?,
        })
    };
    let assistant = if pauses::load_current_pause(conn)?.is_some() {
        AssistantState::Paused
    } else {
        AssistantState::Running
    };
    Ok(Backlog { waiting: queue(waiting)?, unsent: queue(unsent)?, live_turns: live, assistant })
}
