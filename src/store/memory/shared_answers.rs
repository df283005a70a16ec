//! Answers that may be shared with everyone: suggested by the model, filtered by code, and then approved by an admin or
//! given to two users who asked the same question, word for word.

use diesel::prelude::*;
use jiff::Timestamp;

use super::responses::{AnswerOwner, FINDABLE, SharingState, next_revision};
use crate::conversation::memory::recall::RecallScope;
use crate::conversation::text::normalization::normalize_title;
use crate::conversation::transcript::UserId;
use crate::store::database::literal_sql::LiteralSql;
use crate::store::people::users;
use crate::store::schema::agent_responses;
use crate::store::{Conn, QueryResult};

const SUGGESTED: LiteralSql =
    LiteralSql("agent_responses.for_everyone = 'suggested' AND agent_responses.state = 'done'");
const DONE: LiteralSql = LiteralSql("agent_responses.state = 'done'");
/// Maximum number of suggestions that are loaded; an admin with this many open needs no more.
const LOOKED_AT: i64 = 200;

/// Answer that waits for an admin's decision, or that everyone may find.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = agent_responses)]
pub struct SharedAnswer {
    pub id: i64,
    #[diesel(column_name = trigger_text)]
    pub question: String,
    #[diesel(column_name = response_text)]
    pub answer: String,
    #[diesel(column_name = created_at)]
    pub answered_at: Timestamp,
}

/// Outcome of an admin's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewOutcome {
    Applied,
    /// The suggestion was decided earlier, or the answer no longer exists.
    TooLate,
}

pub fn load_suggested_answers(conn: &mut Conn) -> QueryResult<Vec<SharedAnswer>> {
    let suggested = agent_responses::table.filter(SUGGESTED).order(agent_responses::id.desc());
    suggested.limit(LOOKED_AT).select(SharedAnswer::as_select()).load(conn)
}

/// Loads the answers that everyone may find, most recently changed first.
pub fn load_shared_answers(conn: &mut Conn) -> QueryResult<Vec<SharedAnswer>> {
    let findable = agent_responses::state.eq_any(FINDABLE);
    let shared = agent_responses::table
        .filter(agent_responses::owner.eq(AnswerOwner::Everyone.column_value()).and(findable))
        .order(agent_responses::revision.desc());
    shared.limit(LOOKED_AT).select(SharedAnswer::as_select()).load(conn)
}

/// Suggests an answer to the admins. If another user asked the same question and got the same answer, word for word, it
/// is shared with everyone from then on. An answer to a test user is never shared.
pub(super) fn suggest_answer(conn: &mut Conn, id: i64, question: &str, answer: &str) -> QueryResult<()> {
    let (user, likeness): (Option<UserId>, i64) = agent_responses::table
        .find(id)
        .select((agent_responses::user_id, agent_responses::likeness))
        .first(conn)?;
    if user.map(|user| users::load_user(conn, user)).transpose()?.is_some_and(|user| user.test) {
        return Ok(());
    }
    let same_words = DONE.and(agent_responses::likeness.eq(likeness));
    let shared = agent_responses::owner.eq(AnswerOwner::Everyone.column_value());
    let settled: i64 = agent_responses::table
        .filter(same_words.and(agent_responses::for_everyone.eq(SharingState::Refused).or(shared)))
        .count()
        .get_result(conn)?;
    // The decision of an admin applies to this wording, for every user who receives it later.
    if settled > 0 {
        return Ok(());
    }
    let others: Vec<(Option<UserId>, String, String)> = agent_responses::table
        .filter(SUGGESTED.and(agent_responses::id.ne(id)))
        .order(agent_responses::id.desc())
        .limit(LOOKED_AT)
        .select((agent_responses::user_id, agent_responses::trigger_text, agent_responses::response_text))
        .load(conn)?;
    let same = |one: &str, other: &str| normalize_title(one) == normalize_title(other);
    let agreed = others.iter().any(|(other, asked, told)| {
        *other != user && other.is_some() && user.is_some() && same(asked, question) && same(told, answer)
    });
    let suggested =
        agent_responses::table.find(id).filter(agent_responses::for_everyone.eq(SharingState::No));
    diesel::update(suggested).set(agent_responses::for_everyone.eq(SharingState::Suggested)).execute(conn)?;
    if agreed {
        approve_answer(conn, id)?;
    }
    Ok(())
}

/// Approves an answer: everyone may find it from then on, and the same wording for other users needs no further
/// decision. The answer still belongs to the user who asked: erasing that user's text also erases the answer.
pub fn approve_answer(conn: &mut Conn, id: i64) -> QueryResult<ReviewOutcome> {
    let revision = next_revision(conn)?;
    let row = agent_responses::table.find(id).filter(SUGGESTED);
    let changed = diesel::update(row)
        .set((
            agent_responses::for_everyone.eq(SharingState::Approved),
            agent_responses::scope.eq(RecallScope::Global),
            agent_responses::owner.eq(AnswerOwner::Everyone.column_value()),
            agent_responses::revision.eq(revision),
        ))
        .execute(conn)?;
    if changed == 0 {
        return Ok(ReviewOutcome::TooLate);
    }
    settle_copies(conn, id, SharingState::Approved)?;
    Ok(ReviewOutcome::Applied)
}

/// Refuses future copies of a shared answer that is about to be erased: the same wording is not shared again
/// automatically.
pub fn refuse_future_copies(conn: &mut Conn, id: i64) -> QueryResult<()> {
    let shared: i64 = agent_responses::table
        .filter(
            agent_responses::id.eq(id).and(agent_responses::owner.eq(AnswerOwner::Everyone.column_value())),
        )
        .count()
        .get_result(conn)?;
    if shared > 0 { settle_copies(conn, id, SharingState::Refused) } else { Ok(()) }
}

/// Applies the decision on one answer to copies in the same wording that only their own users find.
fn settle_copies(conn: &mut Conn, id: i64, settled: SharingState) -> QueryResult<()> {
    let likeness: i64 = agent_responses::table.find(id).select(agent_responses::likeness).first(conn)?;
    let same =
        DONE.and(agent_responses::likeness.eq(likeness)).and(agent_responses::scope.eq(RecallScope::User));
    let open = agent_responses::for_everyone.eq_any([SharingState::Suggested, SharingState::Approved]);
    diesel::update(agent_responses::table.filter(same.and(open)))
        .set(agent_responses::for_everyone.eq(settled))
        .execute(conn)
        .map(drop)
}

pub fn refuse_answer(conn: &mut Conn, id: i64) -> QueryResult<ReviewOutcome> {
    let changed = diesel::update(agent_responses::table.find(id).filter(SUGGESTED))
        .set(agent_responses::for_everyone.eq(SharingState::Refused))
        .execute(conn)?;
    if changed == 0 {
        return Ok(ReviewOutcome::TooLate);
    }
    settle_copies(conn, id, SharingState::Refused)?;
    Ok(ReviewOutcome::Applied)
}

/// Loads the user who asked the suggested question, for the reviewer of the suggestion.
pub fn load_asking_user(conn: &mut Conn, id: i64) -> QueryResult<Option<UserId>> {
    let asking = agent_responses::table.find(id).select(agent_responses::user_id);
    Ok(asking.first(conn).optional()?.flatten())
}
