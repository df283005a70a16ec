//! Processing of remembered answers: claimed for work, annotated once, embedded, and embedded again when the model
//! changes. The table is the queue.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::everyone;
use super::responses::next_revision;
use crate::conversation::extraction::{Done, Extraction, RECOMMEND, ResponseType};
use crate::conversation::transcript::{TurnId, UserId};
use crate::memory::vector::Unit;
use crate::store::codec::{ms, number, to_json};
use crate::store::kept::Keep;
use crate::store::schema::{agent_responses, tool_calls};
use crate::store::written::Written;
use crate::store::{Conn, QueryResult};

/// Delay before a row is retried after a failure or a crash.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// Maximum number of embedding attempts for a row, after errors that a retry cannot fix.
const MAX_EMBED_ATTEMPTS: i64 = 3;

pub(in crate::store) const PENDING: Written = Written("agent_responses.state = 'pending'");
const DONE: Written = Written("agent_responses.state = 'done'");

/// Answer that was claimed for processing.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub id: i64,
    pub user: Option<UserId>,
    pub turn: Option<TurnId>,
    pub question: String,
    pub answer: String,
    pub done: Done,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

/// Source of the notes on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotedBy {
    Model,
    Code,
}

/// Vectors of an answer, computed by one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    pub model: String,
    pub trigger: Option<Unit>,
    pub response: Unit,
}

/// Result of processing an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    pub extraction: Extraction,
    pub by: NotedBy,
    /// True if the answer may be suggested to an admin for sharing with everyone.
    pub general: bool,
    pub vectors: Option<Embedded>,
}

/// Outcome of recording a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Done,
    /// The row was processed or erased in the meantime.
    NotPending,
}

/// Claims the oldest rows that are due. The attempt is counted before it is made, so that a row that crashes the
/// program is not retried forever.
pub fn take(conn: &mut Conn, most: i64, now: Timestamp) -> QueryResult<Vec<Taken>> {
    type Row = (i64, Option<i64>, Option<i64>, String, String, i64);
    let rows: Vec<Row> = agent_responses::table
        .filter(PENDING.and(agent_responses::not_before.le(ms(now))))
        .order((agent_responses::not_before, agent_responses::id))
        .limit(most)
        .select((
            agent_responses::id,
            agent_responses::user_id,
            agent_responses::turn_id,
            agent_responses::trigger_text,
            agent_responses::response_text,
            agent_responses::attempts,
        ))
        .load(conn)?;
    let mut taken = Vec::new();
    for (id, user, turn, question, answer, attempts) in rows {
        diesel::update(agent_responses::table.find(id))
            .set((
                agent_responses::attempts.eq(attempts + 1),
                agent_responses::not_before.eq(ms(now + PAUSE)),
            ))
            .kept()
            .execute(conn)?;
        let turn = turn.map(TurnId);
        let done = done_in(conn, turn)?;
        let user = user.map(UserId);
        taken.push(Taken { id, user, turn, question, answer, done, attempt: number(attempts + 1)? });
    }
    Ok(taken)
}

/// Returns the most significant effect of a turn's tools.
fn done_in(conn: &mut Conn, turn: Option<TurnId>) -> QueryResult<Done> {
    let Some(turn) = turn else { return Ok(Done::Talked) };
    // A confirmed deletion was called in an earlier turn and ran in this one.
    let of_turn = tool_calls::turn_id.eq(turn.0).or(tool_calls::run_turn_id.eq(turn.0));
    let calls: Vec<(String, String, String)> = tool_calls::table
        .filter(of_turn)
        .select((tool_calls::tool_name, tool_calls::effect, tool_calls::state))
        .load(conn)?;
    let changed = calls.iter().any(|(_, effect, state)| effect != "read" && state == "complete");
    let recommended = calls.iter().any(|(name, _, _)| name == RECOMMEND);
    Ok(match (changed, recommended, calls.is_empty()) {
        (true, _, _) => Done::Changed,
        (false, true, _) => Done::Recommended,
        (false, false, false) => Done::Read,
        (false, false, true) => Done::Talked,
    })
}

/// Returns a claimed row to the queue without counting the attempt, which a temporary problem prevented: the row is
/// retried after a pause.
pub fn give_back(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<()> {
    diesel::update(agent_responses::table.find(id).filter(PENDING.and(agent_responses::attempts.gt(0))))
        .set((
            agent_responses::attempts.eq(agent_responses::attempts - 1),
            agent_responses::not_before.eq(ms(now + PAUSE)),
        ))
        .kept()
        .execute(conn)
        .map(drop)
}

/// Excludes a row, such as a greeting or a bare reply, from search.
pub fn skip(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<Recorded> {
    let skipped = diesel::update(agent_responses::table.find(id).filter(PENDING))
        .set((agent_responses::state.eq("skipped"), agent_responses::processed_at.eq(ms(now))))
        .kept()
        .execute(conn)?;
    Ok(if skipped == 0 { Recorded::NotPending } else { Recorded::Done })
}

/// Records the result for a row, with vectors and state in one update.
pub fn complete(conn: &mut Conn, id: i64, learned: &Learned, now: Timestamp) -> QueryResult<Recorded> {
    let of_row: Option<(String, i64, String, String)> = agent_responses::table
        .find(id)
        .filter(PENDING)
        .select((
            agent_responses::owner,
            agent_responses::likeness,
            agent_responses::trigger_text,
            agent_responses::response_text,
        ))
        .first(conn)
        .optional()?;
    let Some((owner, likeness, question, answer)) = of_row else { return Ok(Recorded::NotPending) };
    let before = put_aside_the_same(conn, &owner, likeness, now)?;
    let revision = next_revision(conn)?;
    let Extraction { summary, topics, keywords, kind, importance, .. } = &learned.extraction;
    let vectors = learned.vectors.as_ref();
    diesel::update(agent_responses::table.find(id))
        .set((
            (
                agent_responses::state.eq("done"),
                agent_responses::summary.eq(summary),
                agent_responses::topics.eq(to_json(topics)?),
                agent_responses::keywords.eq(to_json(keywords)?),
                agent_responses::response_type.eq(kind_word(*kind)),
                agent_responses::importance.eq(importance),
                agent_responses::extracted_by.eq(noted_word(learned.by)),
                agent_responses::times.eq(before.times + 1),
                before.refused.then_some(agent_responses::for_everyone.eq("refused")),
            ),
            (
                agent_responses::embed_model.eq(vectors.map(|vectors| vectors.model.as_str())),
                agent_responses::trigger_vec
                    .eq(vectors.and_then(|vectors| vectors.trigger.as_ref()).map(Unit::to_bytes)),
                agent_responses::response_vec.eq(vectors.map(|vectors| vectors.response.to_bytes())),
                agent_responses::revision.eq(revision),
                agent_responses::processed_at.eq(ms(now)),
            ),
        ))
        .kept()
        .execute(conn)?;
    if learned.general {
        everyone::suggest(conn, id, &question, &answer)?;
    }
    Ok(Recorded::Done)
}

/// Properties of earlier copies of an exchange.
#[derive(Debug, Default)]
struct Before {
    /// Number of times the exchange occurred.
    times: i64,
    /// True if an admin refused to share the exchange with everyone.
    refused: bool,
}

/// Retires earlier copies of the same exchange, word for word, so that it is found only once: the newer one replaces
/// the older.
fn put_aside_the_same(conn: &mut Conn, owner: &str, likeness: i64, now: Timestamp) -> QueryResult<Before> {
    let same: Vec<(i64, i64, String)> = agent_responses::table
        .filter(DONE.and(agent_responses::likeness.eq(likeness)).and(agent_responses::owner.eq(owner)))
        .select((agent_responses::id, agent_responses::times, agent_responses::for_everyone))
        .load(conn)?;
    let mut before = Before::default();
    for (id, said, for_everyone) in same {
        before.times += said;
        before.refused |= for_everyone == "refused";
        let revision = next_revision(conn)?;
        diesel::update(agent_responses::table.find(id))
            .set((
                agent_responses::state.eq("repeated"),
                agent_responses::embed_model.eq(None::<String>),
                agent_responses::trigger_vec.eq(None::<Vec<u8>>),
                agent_responses::response_vec.eq(None::<Vec<u8>>),
                agent_responses::revision.eq(revision),
                agent_responses::processed_at.eq(ms(now)),
            ))
            .kept()
            .execute(conn)?;
    }
    Ok(before)
}

/// Loads answers whose vectors are missing or come from another model, oldest first.
pub fn without_vectors(conn: &mut Conn, model: &str, most: i64) -> QueryResult<Vec<(i64, String, String)>> {
    let worth_a_try = || {
        let few = agent_responses::embed_attempts.lt(MAX_EMBED_ATTEMPTS);
        DONE.and(few.or(agent_responses::embed_failed_by.assume_not_null().ne(model)))
    };
    let columns = (agent_responses::id, agent_responses::trigger_text, agent_responses::response_text);
    let mut rows: Vec<(i64, String, String)> = agent_responses::table
        .filter(worth_a_try().and(agent_responses::embed_model.is_null()))
        .order(agent_responses::id)
        .limit(most)
        .select(columns)
        .load(conn)?;
    // Separate queries for smaller and for larger names, so that each uses the index, which does not support a
    // not-equal condition.
    let (before, after) = (agent_responses::embed_model.lt(model), agent_responses::embed_model.gt(model));
    let left = |rows: &Vec<_>| most.saturating_sub(i64::try_from(rows.len()).unwrap_or(i64::MAX));
    let limit = left(&rows);
    let older: Vec<_> = agent_responses::table
        .filter(worth_a_try().and(before))
        .order((agent_responses::embed_model, agent_responses::id))
        .limit(limit)
        .select(columns)
        .load(conn)?;
    rows.extend(older);
    let limit = left(&rows);
    let newer: Vec<_> = agent_responses::table
        .filter(worth_a_try().and(after))
        .order((agent_responses::embed_model, agent_responses::id))
        .limit(limit)
        .select(columns)
        .load(conn)?;
    rows.extend(newer);
    Ok(rows)
}

/// Stores the vectors of a row, unless it was erased in the meantime.
pub fn embed(conn: &mut Conn, id: i64, vectors: &Embedded, now: Timestamp) -> QueryResult<Recorded> {
    let revision = next_revision(conn)?;
    let changed = diesel::update(agent_responses::table.find(id).filter(DONE))
        .set((
            agent_responses::embed_model.eq(&vectors.model),
            agent_responses::trigger_vec.eq(vectors.trigger.as_ref().map(Unit::to_bytes)),
            agent_responses::response_vec.eq(vectors.response.to_bytes()),
            agent_responses::embed_attempts.eq(0),
            agent_responses::embed_failed_by.eq(None::<String>),
            agent_responses::revision.eq(revision),
            agent_responses::processed_at.eq(ms(now)),
        ))
        .kept()
        .execute(conn)?;
    Ok(if changed == 0 { Recorded::NotPending } else { Recorded::Done })
}

/// Counts a failed embedding of this row by this model. Another model may succeed, and vectors from another model are
/// left as they are.
pub fn count_failed_embedding(conn: &mut Conn, id: i64, model: &str) -> QueryResult<()> {
    let before: Option<(i64, Option<String>)> = agent_responses::table
        .find(id)
        .filter(DONE)
        .select((agent_responses::embed_attempts, agent_responses::embed_failed_by))
        .first(conn)
        .optional()?;
    let Some((attempts, by)) = before else { return Ok(()) };
    let attempts = if by.as_deref() == Some(model) { attempts + 1 } else { 1 };
    diesel::update(agent_responses::table.find(id).filter(DONE))
        .set((agent_responses::embed_attempts.eq(attempts), agent_responses::embed_failed_by.eq(model)))
        .kept()
        .execute(conn)
        .map(drop)
}

pub(super) fn kind_word(kind: ResponseType) -> &'static str {
    match kind {
        ResponseType::Greeting => "greeting",
        ResponseType::Explanation => "explanation",
        ResponseType::Recommendation => "recommendation",
        ResponseType::Opinion => "opinion",
        ResponseType::Action => "action",
    }
}

fn noted_word(by: NotedBy) -> &'static str {
    match by {
        NotedBy::Model => "model",
        NotedBy::Code => "code",
    }
}
