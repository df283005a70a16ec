//! Start of a vote by a tool.

use jiff::Timestamp;

use super::electorate::can_be_asked;
use super::gathering::find_obstacle;
use crate::conversation::people::naming;
use crate::conversation::transcript::{CallFailure, CallRow, User, UserId, VoteId};
use crate::conversation::votes::{VoteMessage, VoteQuestion, vote_messages};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::store::people::users;
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::votes::{self, StartOutcome, Vote};
use crate::store::{Conn, QueryResult};
use crate::tools::tonight::gathering::VoteObstacle;

/// Starts a vote that the model asked for with a call, and queues its poll, or the reason why there is none.
pub(in crate::engine) fn start_vote(
    conn: &mut Conn,
    (address, call): (&ReplyAddress, CallRow),
    question: &VoteQuestion,
    now: Timestamp,
) -> QueryResult<()> {
    let key = format!("poll:call:{call}");
    if outbox::is_message_queued(conn, &key)? {
        return Ok(());
    }
    let message = match votes::start_vote(conn, (address.user.id, address.room()), question, now)? {
        StartOutcome::Started(vote) => ballot_message(address, key, (vote.id, question)),
        StartOutcome::AlreadyOpen => {
            NewOutboundMessage { key, ..address.reply_message(vote_messages::ALREADY_OPEN.to_owned()) }
        }
        StartOutcome::TooMany => {
            NewOutboundMessage { key, ..address.reply_message(vote_messages::format_too_many()) }
        }
    };
    outbox::queue_message(conn, &message, now).map(drop)
}

/// Creates the message to a room that asks a vote.
fn ballot_message(
    address: &ReplyAddress,
    key: String,
    (vote, question): (VoteId, &VoteQuestion),
) -> NewOutboundMessage {
    NewOutboundMessage {
        key,
        vote: Some(VoteMessage::Asks(vote)),
        ..address.reply_message(vote_messages::format_question(question))
    }
}

/// Starts a vote about titles that a tool found, and asks it: in a room with a poll, in private chats the people with a
/// message each. The person who starts it there reads the question in the answer of the turn. Returns the failure of the
/// call if the vote cannot be started.
pub(in crate::engine) fn start_title_vote(
    conn: &mut Conn,
    (address, call): (&ReplyAddress, CallRow),
    (question, asked): (&VoteQuestion, &[UserId]),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Option<CallFailure>> {
    let (starter, room) = (&address.user, address.room());
    let StartOutcome::Started(vote) = votes::start_vote(conn, (starter.id, room), question, now)? else {
        let obstacle = find_obstacle(conn, (starter, room), now)?.unwrap_or(VoteObstacle::AlreadyOpen);
        return Ok(Some(obstacle.into_failure()));
    };
    if room.is_some() {
        let poll = ballot_message(address, format!("poll:call:{call}"), (vote.id, question));
        outbox::queue_message(conn, &poll, now)?;
    } else {
        for user in asked {
            let user = users::load_user(conn, *user)?;
            ask_person(conn, (&vote, starter), &user, settings, now)?;
        }
    }
    Ok(None)
}

/// Asks a person in the private chat, unless the person got a lower cap or cannot be asked any more.
fn ask_person(
    conn: &mut Conn,
    (vote, starter): (&Vote, &User),
    user: &User,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let is_allowed = vote.question.checked().is_some_and(|limit| limit.allows(user.rights.rating_caps()));
    if !is_allowed || !can_be_asked(conn, settings, user, now)? {
        return Ok(());
    }
    let name = naming::display_name(starter);
    let text = vote_messages::format_ballot(&vote.question, &name, vote.closes_at, &settings.zone);
    queue_ballot(conn, vote, (user, &text), settings, now)
}

/// Queues the message that asks a person in the private chat about a vote, once.
pub(in crate::engine) fn queue_ballot(
    conn: &mut Conn,
    vote: &Vote,
    (user, text): (&User, &str),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let address = ReplyAddress::load_for_user(conn, user, &settings.senders)?;
    let message = NewOutboundMessage {
        vote: Some(VoteMessage::Asks(vote.id)),
        ..address.notification_message(&format!("vote:{}", vote.id), text)
    };
    outbox::queue_message_once(conn, &message, now)
}
