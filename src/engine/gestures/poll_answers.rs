//! Answers to polls of a channel.

use jiff::Timestamp;

use super::GestureOutcome;
use crate::conversation::transcript::UserStatus;
use crate::messaging::PollAnswer;
use crate::store::people::users;
use crate::store::votes::{self, Ballot, Voter};
use crate::store::{Conn, QueryResult};

/// Stores an answer. Everybody in a group can vote there, also without access to Dialarr, because everybody sees the poll.
/// A person whom an admin has blocked cannot.
pub(super) fn store_answer(
    conn: &mut Conn,
    answer: &PollAnswer,
    now: Timestamp,
) -> QueryResult<GestureOutcome> {
    let vote = votes::find_vote_of_poll(conn, &answer.poll)?.filter(|vote| vote.closed_at.is_none());
    let Some(vote) = vote else { return Ok(GestureOutcome::Ignored) };
    if answer.choice.is_some_and(|choice| vote.question.option(choice).is_none()) {
        return Ok(GestureOutcome::Ignored);
    }
    let voter = Voter::find(conn, &answer.voter)?;
    if let Voter::User(user) = &voter
        && users::load_user(conn, *user)?.status == UserStatus::Blocked
    {
        return Ok(GestureOutcome::Ignored);
    }
    votes::store_ballot(
        conn,
        vote.id,
        &voter,
        Ballot { choice: answer.choice, number: Some(answer.number) },
        now,
    )?;
    Ok(GestureOutcome::Recorded)
}
