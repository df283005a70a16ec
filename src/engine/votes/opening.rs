//! Start of a vote in a room.

use jiff::Timestamp;

use crate::conversation::transcript::{CallRow, VoteId};
use crate::conversation::votes::{VoteMessage, VoteQuestion, vote_messages};
use crate::engine::reply_address::ReplyAddress;
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::votes::{self, StartOutcome};
use crate::store::{Conn, QueryResult};

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
