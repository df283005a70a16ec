//! Answers to polls of a channel.

use jiff::Timestamp;

use crate::clock::Clock;
use crate::conversation::transcript::UserStatus;
use crate::engine::parts::EngineParts;
use crate::messaging::PollAnswer;
use crate::store::database::db::{Db, DbError};
use crate::store::people::users;
use crate::store::votes::{self, Voter};
use crate::store::{Conn, QueryResult};

/// Outcome of recording an answer to a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    Recorded,
    /// The poll belongs to no vote, its vote is closed, or the person may not vote.
    NotCounted,
}

/// Recorder of answers to polls.
pub struct VoteAnswers {
    db: Db,
    clock: Clock,
}

impl VoteAnswers {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, .. } = parts.clone();
        Self { db, clock }
    }

    /// Records an answer. Recording it again changes nothing.
    pub async fn record_answer(&self, answer: PollAnswer) -> Result<AnswerOutcome, DbError> {
        let now = self.clock.now();
        self.db.write_or_busy(move |conn| store_answer(conn, &answer, now)).await
    }
}

/// Everybody in a group can vote there, also without access to Dialarr, because everybody sees the poll. A person whom an
/// admin has blocked cannot.
fn store_answer(conn: &mut Conn, answer: &PollAnswer, now: Timestamp) -> QueryResult<AnswerOutcome> {
    let vote = votes::find_vote_of_poll(conn, &answer.poll)?.filter(|vote| vote.closed_at.is_none());
    let Some(vote) = vote else { return Ok(AnswerOutcome::NotCounted) };
    if answer.choice.is_some_and(|choice| vote.question.option(choice).is_none()) {
        return Ok(AnswerOutcome::NotCounted);
    }
    let voter = Voter::find(conn, &answer.voter)?;
    if let Voter::User(user) = &voter
        && users::load_user(conn, *user)?.status == UserStatus::Blocked
    {
        return Ok(AnswerOutcome::NotCounted);
    }
    votes::store_ballot(conn, vote.id, &voter, answer.choice, now)?;
    Ok(AnswerOutcome::Recorded)
}
