//! End of the access of a room, because we left the group or an admin blocked it.

use jiff::Timestamp;

use crate::conversation::transcript::UserId;
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::people::addresses::{self, OptOutcome, OptTarget};
use crate::store::people::rooms;
use crate::store::queue::suppression;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Closes a room: nothing more is sent to it, its turns are canceled, and its prompts are closed. `left_at` is the time at
/// which we left the group, which may be long before this.
pub(in crate::engine) fn close_room(
    conn: &mut Conn,
    room: UserId,
    left_at: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    let target = OptTarget { user: room, address: None };
    if addresses::opt_out(conn, target, left_at, now)? == OptOutcome::Overtaken {
        // We have joined the group again since.
        return Ok(());
    }
    suppression::suppress_messages_to_room(conn, room, now)?;
    turn_lifecycle::request_cancel_in_room(conn, room, now)?;
    close_prompts_in_room(conn, room, now)
}

/// Closes the prompts that people were asked in a room, because its conversation ends.
pub(in crate::engine) fn close_prompts_in_room(
    conn: &mut Conn,
    room: UserId,
    now: Timestamp,
) -> QueryResult<()> {
    for asked in rooms::load_people_with_prompts(conn, room)? {
        pending_action::close_pending_action(conn, asked, CloseReason::Dropped, now)?;
    }
    Ok(())
}
