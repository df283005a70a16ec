//! Ends of the phases of a proposal: the answers end, the review ends, and everybody who was asked learns the outcome.

use jiff::Timestamp;

use super::records::is_reachable;
use crate::conversation::making_room::{ProposedTitle, messages};
use crate::conversation::transcript::{User, UserId};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::store::library::space_answers;
use crate::store::library::space_proposals::{
    self, ProposalId, ProposalPhase, ProposedTitleState, SpaceProposal,
};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Ends the phase of the open proposal if its time is over or everything is decided. `informed` is an admin who learns it
/// from an answer.
pub(in crate::engine) fn advance_proposal(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    informed: Option<UserId>,
    now: Timestamp,
) -> QueryResult<()> {
    let Some(open) = space_proposals::load_open_proposal(conn)? else { return Ok(()) };
    match open.phase {
        ProposalPhase::Asking if open.answers_end_at <= now || !is_awaited(conn, open.id)? => {
            end_answers(conn, &open, (settings, informed), now)
        }
        ProposalPhase::Review => {
            let is_over = open.review_ends_at.is_none_or(|end| end <= now);
            match is_over || space_proposals::load_titles_to_review(conn)?.is_empty() {
                true => close_proposal(conn, open.id, settings, now),
                false => Ok(()),
            }
        }
        ProposalPhase::Asking | ProposalPhase::Closed => Ok(()),
    }
}

/// Returns whether somebody has not answered about a title that nobody keeps.
fn is_awaited(conn: &mut Conn, proposal: ProposalId) -> QueryResult<bool> {
    let titles = space_proposals::load_titles(conn, proposal)?;
    let is_open = |number: i64| {
        titles.iter().any(|title| title.number == number && title.state == ProposedTitleState::Asked)
    };
    let answers = space_answers::load_answers(conn, proposal)?;
    Ok(answers.iter().any(|(number, _, answer)| answer.is_none() && is_open(*number)))
}

fn end_answers(
    conn: &mut Conn,
    open: &SpaceProposal,
    (settings, informed): (&HouseholdSettings, Option<UserId>),
    now: Timestamp,
) -> QueryResult<()> {
    let may_go = space_proposals::begin_review(conn, open, now)?;
    let text = match may_go.as_slice() {
        [] => messages::EVERYTHING_STAYS.to_owned(),
        titles => messages::format_review(titles.len(), total_bytes(titles)),
    };
    for admin in users::load_admins(conn)?.iter().filter(|admin| Some(admin.id) != informed) {
        notify(conn, (admin, settings), &format!("room_review:{}", open.id), &text, now)?;
    }
    if may_go.is_empty() { close_proposal(conn, open.id, settings, now) } else { Ok(()) }
}

fn total_bytes(titles: &[ProposedTitle]) -> u64 {
    titles.iter().fold(0, |sum, title| sum.saturating_add(title.size_bytes))
}

/// Closes a proposal, and tells everybody who was asked what became of their titles.
fn close_proposal(
    conn: &mut Conn,
    proposal: ProposalId,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    space_proposals::close_proposal(conn, proposal, now)?;
    for user in space_answers::load_asked_people(conn, proposal)? {
        let titles = space_answers::load_titles_asked(conn, proposal, user)?;
        let (gone, staying): (Vec<_>, Vec<_>) =
            titles.into_iter().partition(|title| title.state == ProposedTitleState::Deleted);
        if gone.is_empty() && staying.is_empty() {
            continue;
        }
        let user = users::load_user(conn, user)?;
        // Stored titles have no rating, so they are not named to a person with a cap.
        let text = if user.rights.rating_caps().is_unlimited() {
            let names = |titles: Vec<space_answers::AskedTitle>| -> Vec<String> {
                titles.into_iter().map(|title| title.title).collect()
            };
            messages::format_outcome(&names(gone), &names(staying))
        } else {
            messages::format_outcome_counts(gone.len(), staying.len())
        };
        notify(conn, (&user, settings), &format!("room_outcome:{proposal}"), &text, now)?;
    }
    Ok(())
}

/// Notifies a user once, outside the quiet hours.
fn notify(
    conn: &mut Conn,
    (user, settings): (&User, &HouseholdSettings),
    key: &str,
    text: &str,
    now: Timestamp,
) -> QueryResult<()> {
    if !is_reachable(conn, user, settings)? {
        return Ok(());
    }
    let send_at = earliest_send_time(conn, user.id, settings, now)?;
    let address = ReplyAddress::load_for_user(conn, user, &settings.senders)?;
    outbox::queue_message_once_at(conn, &address.notification_message(key, text), send_at, now)
}
