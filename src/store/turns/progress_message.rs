//! Progress message of a turn that is still running. The message is sent at most once, and not after the turn is over.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{OutboxId, TurnId};
use crate::store::Conn;
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::schema::{outbox as texts, turns};

const PREFIX: &str = "turn:";
const SUFFIX: &str = ":progress";

/// Queues `text` for a turn, unless the turn is over or its cancellation was requested. The row references no turn,
/// because the message is not the answer of the turn.
pub fn queue_progress_message(
    conn: &mut Conn,
    turn: TurnId,
    text: NewOutboundMessage,
    now: Timestamp,
) -> QueryResult<()> {
    let at_work = turns::finished_at.is_null().and(turns::cancel_requested_at.is_null());
    let at_work: i64 = turns::table.find(turn).filter(at_work).count().get_result(conn)?;
    if at_work == 0 {
        return Ok(());
    }
    outbox::queue_message_once(
        conn,
        &NewOutboundMessage { key: format!("{PREFIX}{turn}{SUFFIX}"), turn: None, ..text },
        now,
    )
}

/// Returns whether a message is the progress message of a turn that is over. The answer of such a turn exists, so the
/// message is not needed.
pub(in crate::store) fn is_outdated_progress_message(conn: &mut Conn, text: OutboxId) -> QueryResult<bool> {
    let key: String = texts::table.find(text).select(texts::dedupe_key).first(conn)?;
    let turn = key.strip_prefix(PREFIX).and_then(|key| key.strip_suffix(SUFFIX));
    let Some(turn) = turn.and_then(|turn| turn.parse::<i64>().ok()) else { return Ok(false) };
    let live: i64 = turns::table.find(turn).filter(turns::finished_at.is_null()).count().get_result(conn)?;
    Ok(live == 0)
}
