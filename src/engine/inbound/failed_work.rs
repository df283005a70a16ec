//! Counts of failures of the same work. Work that keeps failing is ended before it blocks the next message of its user.

use jiff::Timestamp;

use crate::conversation::deletion::deletion_messages::{self, ItemOutcome};
use crate::conversation::transcript::{Address, CallRow, TurnId, UserId, UserStatus};
use crate::conversation::turn::FallbackReply;
use crate::engine::approvals::removal_requests;
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::approvals::{self, About};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::people::users;
use crate::store::queue::inbound_messages::{self, FailedMessage, MessageOutcome};
use crate::store::queue::outbox;
use crate::store::turns::turn_lifecycle::{self, FailedTurn};
use crate::store::turns::{calls, model_steps};
use crate::store::{Conn, QueryResult, with_savepoint};

/// Reply of a turn that started a change and has an unreadable log.
const CHANGE_UNKNOWN: &str = "Something went wrong on my side, and I can't tell whether your change was made. \
                              Please check before you ask again.";

/// Counts a failed turn. A turn ends itself at its limits unless its log is unreadable. Such a turn is ended here, and
/// its rows remain stored.
pub(super) fn count_failed_turn(
    conn: &mut Conn,
    user: UserId,
    turn: TurnId,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let (limits, number) = (&settings.limits, settings.number.as_ref());
    model_steps::abandon_unfinished(conn, turn, now)?;
    let FailedTurn { failures, run } = turn_lifecycle::count_turn_resume(conn, turn, now)?;
    // The limit is one run beyond the turn's own last limit, so that a turn with a readable log has ended itself by
    // then.
    if failures <= 2 * limits.resumes + 1 {
        return Ok(());
    }
    tracing::error!(%turn, failures, "ended a turn that keeps failing");
    let has_started = calls::has_started_change(conn, turn)?;
    let answer = if has_started { CHANGE_UNKNOWN } else { FallbackReply::InternalError.text() };
    if let Some(call) = pending_action::abandon_claimed(conn, turn, answer, now)? {
        let outcome = if has_started { ItemOutcome::Unknown } else { ItemOutcome::Failed };
        let report = |conn: &mut Conn| report_removal_request(conn, call, (outcome, number), now);
        if let Err(error) = with_savepoint(conn, report) {
            // The turn ends despite the error, because it must not block the admin.
            tracing::error!(%turn, %error, "failed to report the end of a removal request");
        }
    }
    let user = users::load_user(conn, user)?;
    let back = ReplyAddress::load_for_user(conn, &user, None)?.with_turn(turn).with_run(turn, run);
    turn_lifecycle::finish_turn(conn, &back.turn_end(turn, MessageOutcome::FailedNotified, answer), now)
}

/// Notifies the member whose removal request `call` executes, if it executes one.
fn report_removal_request(
    conn: &mut Conn,
    call: CallRow,
    (outcome, number): (ItemOutcome, Option<&Address>),
    now: Timestamp,
) -> QueryResult<()> {
    let Some(request) = approvals::requested_through(conn, call)? else { return Ok(()) };
    let told = match &request.about {
        About::Join => return Ok(()),
        About::Removal(item) => deletion_messages::format_removal_outcome(item, outcome),
        About::UnreadableRemoval => deletion_messages::format_untitled_removal(outcome),
    };
    let member = users::load_user(conn, request.user)?;
    let notice = ReplyAddress::load_for_user(conn, &member, number)?
        .notification_message(&removal_requests::done_key(request.id), &told);
    outbox::queue_message_once(conn, &notice, now)
}

/// Gives up a message whose work cannot begin after `tries` tries. An active user gets one reply that reports the
/// failure.
pub(super) fn count_failed_start(
    conn: &mut Conn,
    user: UserId,
    tries: i64,
    now: Timestamp,
) -> QueryResult<()> {
    let Some(FailedMessage { event, to, failures }) =
        inbound_messages::count_message_failure(conn, user, now)?
    else {
        return Ok(());
    };
    if failures < tries {
        return Ok(());
    }
    inbound_messages::end_message(conn, event, MessageOutcome::FailedNotified, now)?;
    // An unreadable confirmation prompt would also fail the start of every later message.
    if pending_action::load_pending_action(conn, user).is_err() {
        pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
    }
    let user = users::load_user(conn, user)?;
    if user.status == UserStatus::Active && !user.opted_out {
        let text = ReplyAddress::from_unreadable_message(&user, event, to)
            .reply_message(FallbackReply::InternalError.text().to_owned());
        outbox::queue_message(conn, &text, now)?;
    }
    Ok(())
}
