//! Progress message of a running turn. The message is sent at most once, and not after the turn has finished.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{OutboxId, TurnId};
use crate::store::Conn;
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::schema::{outbox as outbox_rows, turns};

const KEY_PREFIX: &str = "turn:";
const KEY_SUFFIX: &str = ":progress";

/// Queues the progress message of a turn, unless the turn has finished or its cancellation was requested. The row
/// references no turn, because the message is not the turn's answer.
pub fn queue_progress_message(
    conn: &mut Conn,
    turn: TurnId,
    message: NewOutboundMessage,
    now: Timestamp,
) -> QueryResult<()> {
    let is_running = turns::finished_at.is_null().and(turns::cancel_requested_at.is_null());
    let running: i64 = turns::table.find(turn).filter(is_running).count().get_result(conn)?;
    if running == 0 {
        return Ok(());
    }
    outbox::queue_message_once(
        conn,
        &NewOutboundMessage { key: format!("{KEY_PREFIX}{turn}{KEY_SUFFIX}"), turn: None, ..message },
        now,
    )
}

/// Returns whether a message is the progress message of a finished turn, whose answer makes it obsolete.
pub(in crate::store) fn is_outdated_progress_message(
    conn: &mut Conn,
    message: OutboxId,
) -> QueryResult<bool> {
    let key: String = outbox_rows::table.find(message).select(outbox_rows::dedupe_key).first(conn)?;
    let turn = key.strip_prefix(KEY_PREFIX).and_then(|key| key.strip_suffix(KEY_SUFFIX));
    let Some(turn) = turn.and_then(|turn| turn.parse::<i64>().ok()) else { return Ok(false) };
    let running: i64 =
        turns::table.find(turn).filter(turns::finished_at.is_null()).count().get_result(conn)?;
    Ok(running == 0)
}
