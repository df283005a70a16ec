//! Sharing of answers with everyone. The model suggests an answer; it is shared once an admin approves it, or once a
//! second user has got the same answer to the same question.

use diesel::prelude::*;
use jiff::Timestamp;

use super::responses::{AnswerOwner, FINDABLE, SharingState, next_revision};
use crate::conversation::memory::recall::RecallScope;
use crate::conversation::text::normalization::normalize_title;
use crate::conversation::transcript::UserId;
use crate::store::database::literal_sql::literal_sql;
use crate::store::people::users;
use crate::store::schema::agent_responses;
use crate::store::{Conn, QueryResult};

literal_sql! {
    const SUGGESTED = "agent_responses.for_everyone = 'suggested' AND agent_responses.state = 'done'";
    const DONE = "agent_responses.state = 'done'";
}
/// Maximum number of answers that one query loads.
const ANSWER_LIMIT: i64 = 200;

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

/// Outcome of deciding on a suggested answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewOutcome {
    Applied,
    /// The suggestion was decided earlier, or the answer no longer exists.
    TooLate,
}

pub fn load_suggested_answers(conn: &mut Conn) -> QueryResult<Vec<SharedAnswer>> {
    let suggested = agent_responses::table.filter(SUGGESTED).order(agent_responses::id.desc());
    suggested.limit(ANSWER_LIMIT).select(SharedAnswer::as_select()).load(conn)
}

/// Loads the answers that everyone may find, most recently changed first.
pub fn load_shared_answers(conn: &mut Conn) -> QueryResult<Vec<SharedAnswer>> {
    let findable = agent_responses::state.eq_any(FINDABLE);
    let shared = agent_responses::table
        .filter(agent_responses::owner.eq(AnswerOwner::Everyone.column_value()).and(findable))
        .order(agent_responses::revision.desc());
    shared.limit(ANSWER_LIMIT).select(SharedAnswer::as_select()).load(conn)
}

/// Suggests an answer to the admins. If another user has asked the same question and got the same answer, it is shared
/// with everyone immediately. An answer to a test user is never suggested.
pub(super) fn suggest_answer(conn: &mut Conn, id: i64, question: &str, answer: &str) -> QueryResult<()> {
    let (user, text_hash, scope): (Option<UserId>, i64, RecallScope) = agent_responses::table
        .find(id)
        .select((agent_responses::user_id, agent_responses::likeness, agent_responses::scope))
        .first(conn)?;
    // What was said in a room stays there.
    if scope == RecallScope::Group {
        return Ok(());
    }
    if user.map(|user| users::load_user(conn, user)).transpose()?.is_some_and(|user| user.test) {
        return Ok(());
    }
    let has_same_text = DONE.and(agent_responses::likeness.eq(text_hash));
    let is_shared = agent_responses::owner.eq(AnswerOwner::Everyone.column_value());
    let decided_count: i64 = agent_responses::table
        .filter(has_same_text.and(agent_responses::for_everyone.eq(SharingState::Refused).or(is_shared)))
        .count()
        .get_result(conn)?;
    // The decision of an admin also applies to later copies of the same text.
    if decided_count > 0 {
        return Ok(());
    }
    let others: Vec<(Option<UserId>, String, String)> = agent_responses::table
        .filter(SUGGESTED.and(agent_responses::id.ne(id)))
        .order(agent_responses::id.desc())
        .limit(ANSWER_LIMIT)
        .select((agent_responses::user_id, agent_responses::trigger_text, agent_responses::response_text))
        .load(conn)?;
    let is_same_text = |a: &str, b: &str| normalize_title(a) == normalize_title(b);
    let is_confirmed = others.iter().any(|(other_user, other_question, other_answer)| {
        *other_user != user
            && other_user.is_some()
            && user.is_some()
            && is_same_text(other_question, question)
            && is_same_text(other_answer, answer)
    });
    let undecided =
        agent_responses::table.find(id).filter(agent_responses::for_everyone.eq(SharingState::No));
    diesel::update(undecided).set(agent_responses::for_everyone.eq(SharingState::Suggested)).execute(conn)?;
    if is_confirmed {
        approve_answer(conn, id)?;
    }
    Ok(())
}

/// Approves an answer: everyone may find it from then on, and copies of the same text need no further decision. The
/// answer still belongs to the user who asked: erasing that user's text also erases the answer.
pub fn approve_answer(conn: &mut Conn, id: i64) -> QueryResult<ReviewOutcome> {
    let revision = next_revision(conn)?;
    let row = agent_responses::table.find(id).filter(SUGGESTED);
    let updated_rows = diesel::update(row)
        .set((
            agent_responses::for_everyone.eq(SharingState::Approved),
            agent_responses::scope.eq(RecallScope::Global),
            agent_responses::owner.eq(AnswerOwner::Everyone.column_value()),
            agent_responses::revision.eq(revision),
        ))
        .execute(conn)?;
    if updated_rows == 0 {
        return Ok(ReviewOutcome::TooLate);
    }
    settle_copies(conn, id, SharingState::Approved)?;
    Ok(ReviewOutcome::Applied)
}

/// Refuses future copies of a shared answer that is about to be erased, so that the same text is not shared again
/// automatically.
pub fn refuse_future_copies(conn: &mut Conn, id: i64) -> QueryResult<()> {
    let shared_count: i64 = agent_responses::table
        .filter(
            agent_responses::id.eq(id).and(agent_responses::owner.eq(AnswerOwner::Everyone.column_value())),
        )
        .count()
        .get_result(conn)?;
    if shared_count > 0 { settle_copies(conn, id, SharingState::Refused) } else { Ok(()) }
}

/// Applies the decision on one answer to the private copies of the same text.
fn settle_copies(conn: &mut Conn, id: i64, decision: SharingState) -> QueryResult<()> {
    let text_hash: i64 = agent_responses::table.find(id).select(agent_responses::likeness).first(conn)?;
    let is_private_copy =
        DONE.and(agent_responses::likeness.eq(text_hash)).and(agent_responses::scope.eq(RecallScope::User));
    let is_open = agent_responses::for_everyone.eq_any([SharingState::Suggested, SharingState::Approved]);
    diesel::update(agent_responses::table.filter(is_private_copy.and(is_open)))
        .set(agent_responses::for_everyone.eq(decision))
        .execute(conn)
        .map(drop)
}

pub fn refuse_answer(conn: &mut Conn, id: i64) -> QueryResult<ReviewOutcome> {
    let updated_rows = diesel::update(agent_responses::table.find(id).filter(SUGGESTED))
        .set(agent_responses::for_everyone.eq(SharingState::Refused))
        .execute(conn)?;
    if updated_rows == 0 {
        return Ok(ReviewOutcome::TooLate);
    }
    settle_copies(conn, id, SharingState::Refused)?;
    Ok(ReviewOutcome::Applied)
}

/// Loads the user who asked the question of a suggested answer, for its reviewer.
pub fn load_asking_user(conn: &mut Conn, id: i64) -> QueryResult<Option<UserId>> {
    let user_id = agent_responses::table.find(id).select(agent_responses::user_id);
    Ok(user_id.first(conn).optional()?.flatten())
}
