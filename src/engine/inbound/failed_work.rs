//! Failure counts of turns and messages. Work that keeps failing is ended, so that it does not block its user's next
//! message.

use jiff::Timestamp;

use crate::conversation::deletion::deletion_messages::{self, ItemOutcome};
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::{CallRow, UserId, UserStatus};
use crate::conversation::turn::FallbackReply;
use crate::engine::approvals::removal_requests;
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::approvals::{self, EndedApprovalSubject};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::people::users;
use crate::store::queue::inbound_messages::{self, FailedMessage, MessageOutcome};
use crate::store::queue::outbox;
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::turn_lifecycle::{self, ActiveTurn, FailedTurn};
use crate::store::turns::{calls, model_steps};
use crate::store::{Conn, QueryResult, with_savepoint};

/// Reply of a turn that started a change and then failed repeatedly.
const CHANGE_UNKNOWN: &str = "Something went wrong on my side, and I can't tell whether your change was made. \
                              Please check before you ask again.";

/// Counts a failure of a turn. A turn ends itself at its limits unless its log cannot be loaded; then it is ended here,
/// and its rows remain stored.
pub(super) fn count_failed_turn(
    conn: &mut Conn,
    user: UserId,
    active_turn: ActiveTurn,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let turn = active_turn.id;
    let (limits, senders) = (&settings.limits, &settings.senders);
    model_steps::abandon_unfinished_attempt(conn, turn, now)?;
    let FailedTurn { failures, run } = turn_lifecycle::count_turn_resume(conn, turn, now)?;
    // The limit is above the turn's own limits, so that a turn with a readable log ends itself first.
    if failures <= 2 * limits.resumes + 1 {
        return Ok(());
    }
    tracing::error!(%turn, failures, "ended a turn that keeps failing");
    let has_started = calls::has_started_change(conn, turn)?;
    let answer = if has_started { CHANGE_UNKNOWN } else { FallbackReply::InternalError.text() };
    if let Some(call) = pending_action::abandon_claimed_deletion(conn, turn, answer, now)? {
        let outcome = if has_started { ItemOutcome::Unknown } else { ItemOutcome::Failed };
        let report = |conn: &mut Conn| report_removal_request(conn, call, (outcome, senders), now);
        if let Err(error) = with_savepoint(conn, report) {
            // The turn ends despite the error, so that it does not block the admin's next message.
            tracing::error!(%turn, %error, "failed to report the end of a removal request");
        }
    }
    if active_turn.agent.is_some() {
        // The agent reads it in the call; the person has asked for nothing.
        return finished_turns::finish_turn(
            conn,
            &TurnEnd::without_message(turn, MessageOutcome::FailedNotified),
            now,
        );
    }
    let user = users::load_user(conn, user)?;
    let address =
        ReplyAddress::load_for_user(conn, &user, &Senders::default())?.with_turn(turn).with_run(turn, run);
    finished_turns::finish_turn(conn, &address.turn_end(turn, MessageOutcome::FailedNotified, answer), now)
}

/// Notifies the member whose removal request is executed by `call`, if there is one.
fn report_removal_request(
    conn: &mut Conn,
    call: CallRow,
    (outcome, senders): (ItemOutcome, &Senders),
    now: Timestamp,
) -> QueryResult<()> {
    let Some(request) = approvals::load_executed_removal_request(conn, call)? else { return Ok(()) };
    let message = match &request.subject {
        EndedApprovalSubject::Join
        | EndedApprovalSubject::AccountLink(_)
        | EndedApprovalSubject::UnreadableAccountLink
        | EndedApprovalSubject::SeerrRequest
        | EndedApprovalSubject::Title => return Ok(()),
        EndedApprovalSubject::Removal(item) => deletion_messages::format_removal_outcome(item, outcome),
        EndedApprovalSubject::UnreadableRemoval => deletion_messages::format_untitled_removal(outcome),
    };
    let member = users::load_user(conn, request.user)?;
    let notification = ReplyAddress::load_for_user(conn, &member, senders)?
        .notification_message(&removal_requests::outcome_notification_key(request.id), &message);
    outbox::queue_message_once(conn, &notification, now)
}

/// Counts a failure to start the work on a message, and gives the message up after `max_attempts` attempts. An active
/// user gets one reply that reports the failure.
pub(super) fn count_failed_start(
    conn: &mut Conn,
    user: UserId,
    max_attempts: i64,
    now: Timestamp,
) -> QueryResult<()> {
    let Some(FailedMessage { event, to, failures }) =
        inbound_messages::count_message_failure(conn, user, now)?
    else {
        return Ok(());
    };
    if failures < max_attempts {
        return Ok(());
    }
    inbound_messages::finish_message(conn, event, MessageOutcome::FailedNotified, now)?;
    // A malformed confirmation prompt would also fail the start of every later message.
    if pending_action::load_pending_action(conn, user).is_err() {
        pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
    }
    let user = users::load_user(conn, user)?;
    if user.status == UserStatus::Active && !user.opted_out {
        let message = ReplyAddress::from_unreadable_message(&user, event, to)
            .reply_message(FallbackReply::InternalError.text().to_owned());
        outbox::queue_message(conn, &message, now)?;
    }
    Ok(())
}
