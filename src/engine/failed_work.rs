//! Work that keeps failing: counted, and ended before it blocks the next message of its user.

use jiff::Timestamp;

use super::ending::WayBack;
use crate::conversation::transcript::{Status, TurnId, UserId};
use crate::conversation::turn::{Excuse, Limits};
use crate::store::ledger::{self, FailedText, Outcome};
use crate::store::pending::{self, Closing};
use crate::store::turns::{self, FailedTurn};
use crate::store::{Conn, QueryResult, calls, outbox, steps, users};

/// Answer of a turn that started a change and has an unreadable log.
const CHANGE_UNKNOWN: &str = "Something went wrong on my side, and I can't tell whether your change was made. \
                              Please check before you ask again.";

/// Counts a failed turn. A turn ends itself at its limits, but not if its log cannot be read: such a turn is ended
/// here, and its rows are kept.
pub(super) fn count_failed_turn(
    conn: &mut Conn,
    user: UserId,
    turn: TurnId,
    limits: &Limits,
    now: Timestamp,
) -> QueryResult<()> {
    steps::abandon_unfinished(conn, turn, now)?;
    let FailedTurn { failures, run } = turns::count_resume(conn, turn, now)?;
    // The limit is one run beyond the turn's own last limit, so that a readable turn has ended itself by then.
    if failures <= 2 * limits.resumes + 1 {
        return Ok(());
    }
    tracing::error!(%turn, failures, "ended a turn that keeps failing");
    let answer =
        if calls::has_started_a_change(conn, turn)? { CHANGE_UNKNOWN } else { Excuse::WentWrong.text() };
    let user = users::get(conn, user)?;
    let back = WayBack::to_user(conn, &user, None)?.of_turn(turn).in_run(turn, run);
    turns::finish(conn, &back.end(turn, Outcome::FailedNotified, answer), now)
}

/// Gives up a message after `tries` if work on it cannot even begin, with one honest answer to an active user.
pub(super) fn count_failed_beginning(
    conn: &mut Conn,
    user: UserId,
    tries: i64,
    now: Timestamp,
) -> QueryResult<()> {
    let Some(FailedText { event, to, failures }) = ledger::count_failure(conn, user, now)? else {
        return Ok(());
    };
    if failures < tries {
        return Ok(());
    }
    ledger::end(conn, event, Outcome::FailedNotified, now)?;
    // A confirmation prompt that cannot be read would fail the beginning of every further message.
    if pending::open(conn, user).is_err() {
        pending::close(conn, user, Closing::Dropped, now)?;
    }
    let user = users::get(conn, user)?;
    if user.status == Status::Active && !user.opted_out {
        let text = WayBack::to_failed_text(&user, event, to).reply(Excuse::WentWrong.text().to_owned());
        outbox::queue(conn, &text, now)?;
    }
    Ok(())
}
