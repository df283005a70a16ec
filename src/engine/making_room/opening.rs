//! Start of a proposal: the questions to the people concerned are queued in the transaction that stores it.

use jiff::Timestamp;

use super::phases;
use super::records::is_reachable;
use crate::conversation::making_room::messages;
use crate::conversation::making_room::proposal::ProposalPlan;
use crate::conversation::transcript::User;
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::store::library::space_answers::QUESTION_KEY;
use crate::store::library::space_proposals::{self, OpenOutcome};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Opens a proposal, and asks the people concerned. An admin who started it is told if it did not start.
pub(in crate::engine) fn open_proposal(
    conn: &mut Conn,
    plan: &ProposalPlan,
    started_by: Option<&User>,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let is_current = has_same_readers(conn, plan, settings)?;
    let outcome = match is_current {
        true => space_proposals::open_proposal(conn, plan, started_by.map(|user| user.id), now)?,
        false => OpenOutcome::Outdated,
    };
    let OpenOutcome::Opened(proposal) = outcome else {
        if let Some(admin) = started_by {
            let address = ReplyAddress::load_for_user(conn, admin, &settings.senders)?;
            let key = format!("room_outdated:{}", now.as_millisecond());
            let message = address.notification_message(&key, messages::NOT_STARTED);
            outbox::queue_message_once(conn, &message, now)?;
        }
        return Ok(());
    };
    for question in &plan.questions {
        let user = users::load_user(conn, question.user)?;
        let send_at = earliest_send_time(conn, user.id, settings, now)?;
        let address = ReplyAddress::load_for_user(conn, &user, &settings.senders)?;
        let message = address.notification_message(&format!("{QUESTION_KEY}:{proposal}"), &question.text);
        outbox::queue_message_once_at(conn, &message, send_at, now)?;
    }
    // Without anybody to ask, the titles can be reviewed at once.
    phases::advance_proposal(conn, settings, started_by.map(|user| user.id), now)
}

/// Returns whether the people to ask can still be asked, with the caps with which their titles were checked.
fn has_same_readers(conn: &mut Conn, plan: &ProposalPlan, settings: &HouseholdSettings) -> QueryResult<bool> {
    for question in &plan.questions {
        let user = users::load_user(conn, question.user)?;
        if user.rights.rating_caps() != question.caps || !is_reachable(conn, &user, settings)? {
            return Ok(false);
        }
    }
    Ok(true)
}
