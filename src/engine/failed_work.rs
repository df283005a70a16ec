//! Work that keeps failing: counted, and ended before it blocks the next message of its user.

use jiff::Timestamp;

use super::ending::WayBack;
use super::{Settings, wishes};
use crate::conversation::deletion::{self, ItemOutcome};
use crate::conversation::transcript::{Address, CallRow, Status, TurnId, UserId};
use crate::conversation::turn::Excuse;
use crate::store::approvals::{self, About};
use crate::store::ledger::{self, FailedText, Outcome};
use crate::store::pending::{self, Closing};
use crate::store::turns::{self, FailedTurn};
use crate::store::{Conn, QueryResult, calls, outbox, steps, undone_if_failed, users};

/// Answer of a turn that started a change and has an unreadable log.
const CHANGE_UNKNOWN: &str = "Something went wrong on my side, and I can't tell whether your change was made. \
                              Please check before you ask again.";

/// Counts a failed turn. A turn ends itself at its limits, but not if its log cannot be read: such a turn is ended
/// here, and its rows are kept.
pub(super) fn count_failed_turn(
    conn: &mut Conn,
    user: UserId,
    turn: TurnId,
    settings: &Settings,
    now: Timestamp,
) -> QueryResult<()> {
    let (limits, number) = (&settings.limits, settings.number.as_ref());
    steps::abandon_unfinished(conn, turn, now)?;
    let FailedTurn { failures, run } = turns::count_resume(conn, turn, now)?;
    // The limit is one run beyond the turn's own last limit, so that a readable turn has ended itself by then.
    if failures <= 2 * limits.resumes + 1 {
        return Ok(());
    }
    tracing::error!(%turn, failures, "ended a turn that keeps failing");
    let has_started = calls::has_started_a_change(conn, turn)?;
    let answer = if has_started { CHANGE_UNKNOWN } else { Excuse::WentWrong.text() };
    if let Some(call) = pending::abandon_claimed(conn, turn, answer, now)? {
        let outcome = if has_started { ItemOutcome::Unknown } else { ItemOutcome::Failed };
        let report = |conn: &mut Conn| report_removal_request(conn, call, (outcome, number), now);
        if let Err(error) = undone_if_failed(conn, report) {
            // The turn ends all the same: it must not block the admin.
            tracing::error!(%turn, %error, "failed to report the end of a removal request");
        }
    }
    let user = users::get(conn, user)?;
    let back = WayBack::to_user(conn, &user, None)?.of_turn(turn).in_run(turn, run);
    turns::finish(conn, &back.end(turn, Outcome::FailedNotified, answer), now)
}

/// Notifies the member who requested the removal that `call` carries out, if it carries out such a request.
fn report_removal_request(
    conn: &mut Conn,
    call: CallRow,
    (outcome, number): (ItemOutcome, Option<&Address>),
    now: Timestamp,
) -> QueryResult<()> {
    let Some(request) = approvals::requested_through(conn, call)? else { return Ok(()) };
    let told = match &request.about {
        About::Join => return Ok(()),
        About::Removal(item) => deletion::wish_outcome(item, outcome),
        About::UnreadableRemoval => deletion::untitled_wish_outcome(outcome),
    };
    let member = users::get(conn, request.user)?;
    let notice = WayBack::to_user(conn, &member, number)?.notice(&wishes::done_key(request.id), &told);
    outbox::queue_once(conn, &notice, now)
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
