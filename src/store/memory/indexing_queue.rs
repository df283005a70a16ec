//! Processing of remembered answers: each is claimed for work, annotated once, embedded, and embedded again when the
//! model changes. The table itself is the queue.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::responses::{AnswerState, SharingState, next_revision};
use super::shared_answers;
use crate::conversation::memory::answer_metadata::{AnswerMetadata, RECOMMEND, TurnEffect};
use crate::conversation::stream_events::CallPhase;
use crate::conversation::transcript::{EffectLevel, TurnId, UserId};
use crate::memory::vector::UnitVector;
use crate::store::codec::{convert_integer, ms, to_json};
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::LiteralSql;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{agent_responses, tool_calls};
use crate::store::{Conn, QueryResult};

/// Delay before a row is retried after a failure or a crash.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// Maximum number of embedding attempts for a row, after errors that a retry cannot fix.
const MAX_EMBED_ATTEMPTS: i64 = 3;

pub(in crate::store) const PENDING: LiteralSql = LiteralSql("agent_responses.state = 'pending'");
const DONE: LiteralSql = LiteralSql("agent_responses.state = 'done'");

/// Answer that was claimed for processing.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingJob {
    pub id: i64,
    pub user: Option<UserId>,
    pub turn: Option<TurnId>,
    pub question: String,
    pub answer: String,
    pub effect: TurnEffect,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

stored_enum! {
    /// Source of the notes on an answer.
    pub enum AnnotationSource {
        Model = "model",
        Code = "code",
    }
}

/// Vectors of an answer, computed by one model.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedAnswer {
    pub model: String,
    pub trigger: Option<UnitVector>,
    pub response: UnitVector,
}

/// Result of processing an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingResult {
    pub extraction: AnswerMetadata,
    pub source: AnnotationSource,
    /// True if the answer may be suggested to an admin for sharing with everyone.
    pub is_shareable: bool,
    pub vectors: Option<EmbeddedAnswer>,
}

/// Outcome of recording a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexingOutcome {
    Recorded,
    /// The row was already processed or erased.
    NotPending,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_responses)]
struct IndexingJobRow {
    id: i64,
    user_id: Option<UserId>,
    turn_id: Option<TurnId>,
    trigger_text: String,
    response_text: String,
    attempts: i64,
}

/// Claims the oldest rows that are due. The attempt is counted before it is made, so that a row that crashes the
/// program is not retried forever.
pub fn claim_indexing_jobs(conn: &mut Conn, most: i64, now: Timestamp) -> QueryResult<Vec<IndexingJob>> {
    let rows: Vec<IndexingJobRow> = agent_responses::table
        .filter(PENDING.and(agent_responses::not_before.le(ms(now))))
        .order((agent_responses::not_before, agent_responses::id))
        .limit(most)
        .select(IndexingJobRow::as_select())
        .load(conn)?;
    let mut taken = Vec::new();
    for row in rows {
        let attempt = row.attempts + 1;
        diesel::update(agent_responses::table.find(row.id))
            .set((agent_responses::attempts.eq(attempt), agent_responses::not_before.eq(ms(now + PAUSE))))
            .cached()
            .execute(conn)?;
        taken.push(IndexingJob {
            id: row.id,
            user: row.user_id,
            turn: row.turn_id,
            question: row.trigger_text,
            answer: row.response_text,
            effect: load_turn_effect(conn, row.turn_id)?,
            attempt: convert_integer(attempt)?,
        });
    }
    Ok(taken)
}

/// Returns the most significant effect of a turn's tools.
fn load_turn_effect(conn: &mut Conn, turn: Option<TurnId>) -> QueryResult<TurnEffect> {
    let Some(turn) = turn else { return Ok(TurnEffect::NoToolCall) };
    // A confirmed deletion was called in an earlier turn and ran in this one.
    let of_turn = tool_calls::turn_id.eq(turn).or(tool_calls::run_turn_id.eq(turn));
    let calls: Vec<(String, EffectLevel, CallPhase)> = tool_calls::table
        .filter(of_turn)
        .select((tool_calls::tool_name, tool_calls::effect, tool_calls::state))
        .load(conn)?;
    let changed =
        calls.iter().any(|(_, effect, state)| *effect != EffectLevel::Read && *state == CallPhase::Complete);
    let recommended = calls.iter().any(|(name, _, _)| name == RECOMMEND);
    Ok(match (changed, recommended, calls.is_empty()) {
        (true, _, _) => TurnEffect::Changed,
        (false, true, _) => TurnEffect::Recommended,
        (false, false, false) => TurnEffect::LookedUp,
        (false, false, true) => TurnEffect::NoToolCall,
    })
}

/// Returns a claimed row to the queue without counting the attempt, which a temporary problem prevented: the row is
/// retried after a pause.
pub fn release_indexing_job(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<()> {
    diesel::update(agent_responses::table.find(id).filter(PENDING.and(agent_responses::attempts.gt(0))))
        .set((
            agent_responses::attempts.eq(agent_responses::attempts - 1),
            agent_responses::not_before.eq(ms(now + PAUSE)),
        ))
        .cached()
        .execute(conn)
        .map(drop)
}

/// Excludes a row, such as a greeting or a bare reply, from search.
pub fn exclude_answer(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<IndexingOutcome> {
    let skipped = diesel::update(agent_responses::table.find(id).filter(PENDING))
        .set((agent_responses::state.eq(AnswerState::Skipped), agent_responses::processed_at.eq(ms(now))))
        .cached()
        .execute(conn)?;
    Ok(if skipped == 0 { IndexingOutcome::NotPending } else { IndexingOutcome::Recorded })
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_responses)]
struct PendingAnswerRow {
    owner: String,
    likeness: i64,
    trigger_text: String,
    response_text: String,
}

/// Records the result for a row, with vectors and state in one update.
pub fn complete_indexing_job(
    conn: &mut Conn,
    id: i64,
    learned: &IndexingResult,
    now: Timestamp,
) -> QueryResult<IndexingOutcome> {
    let row: Option<PendingAnswerRow> = agent_responses::table
        .find(id)
        .filter(PENDING)
        .select(PendingAnswerRow::as_select())
        .first(conn)
        .optional()?;
    let Some(row) = row else { return Ok(IndexingOutcome::NotPending) };
    let before = retire_earlier_copies(conn, &row.owner, row.likeness, now)?;
    let revision = next_revision(conn)?;
    let AnswerMetadata { summary, topics, keywords, kind, importance, .. } = &learned.extraction;
    let vectors = learned.vectors.as_ref();
    diesel::update(agent_responses::table.find(id))
        .set((
            (
                agent_responses::state.eq(AnswerState::Done),
                agent_responses::summary.eq(summary),
                agent_responses::topics.eq(to_json(topics)?),
                agent_responses::keywords.eq(to_json(keywords)?),
                agent_responses::response_type.eq(*kind),
                agent_responses::importance.eq(importance),
                agent_responses::extracted_by.eq(learned.source),
                agent_responses::times.eq(before.times + 1),
                before.refused.then_some(agent_responses::for_everyone.eq(SharingState::Refused)),
            ),
            (
                agent_responses::embed_model.eq(vectors.map(|vectors| vectors.model.as_str())),
                agent_responses::trigger_vec
                    .eq(vectors.and_then(|vectors| vectors.trigger.as_ref()).map(UnitVector::to_bytes)),
                agent_responses::response_vec.eq(vectors.map(|vectors| vectors.response.to_bytes())),
                agent_responses::revision.eq(revision),
                agent_responses::processed_at.eq(ms(now)),
            ),
        ))
        .cached()
        .execute(conn)?;
    if learned.is_shareable {
        shared_answers::suggest_answer(conn, id, &row.trigger_text, &row.response_text)?;
    }
    Ok(IndexingOutcome::Recorded)
}

/// Properties of earlier copies of an exchange.
#[derive(Debug, Default)]
struct EarlierCopies {
    /// Number of times the exchange occurred.
    times: i64,
    /// True if an admin refused to share the exchange with everyone.
    refused: bool,
}

/// Retires earlier copies of the same exchange, word for word, so that it is found only once: the newer one replaces
/// the older.
fn retire_earlier_copies(
    conn: &mut Conn,
    owner: &str,
    likeness: i64,
    now: Timestamp,
) -> QueryResult<EarlierCopies> {
    let same: Vec<(i64, i64, SharingState)> = agent_responses::table
        .filter(DONE.and(agent_responses::likeness.eq(likeness)).and(agent_responses::owner.eq(owner)))
        .select((agent_responses::id, agent_responses::times, agent_responses::for_everyone))
        .load(conn)?;
    let mut before = EarlierCopies::default();
    for (id, said, for_everyone) in same {
        before.times += said;
        before.refused |= for_everyone == SharingState::Refused;
        let revision = next_revision(conn)?;
        diesel::update(agent_responses::table.find(id))
            .set((
                agent_responses::state.eq(AnswerState::Repeated),
                agent_responses::embed_model.eq(None::<String>),
                agent_responses::trigger_vec.eq(None::<Vec<u8>>),
                agent_responses::response_vec.eq(None::<Vec<u8>>),
                agent_responses::revision.eq(revision),
                agent_responses::processed_at.eq(ms(now)),
            ))
            .cached()
            .execute(conn)?;
    }
    Ok(before)
}

/// Loads answers whose vectors are missing or come from another model, oldest first.
pub fn load_answers_without_vectors(
    conn: &mut Conn,
    model: &str,
    most: i64,
) -> QueryResult<Vec<(i64, String, String)>> {
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

/// Stores the vectors of a row, unless the row has been erased since it was loaded.
pub fn store_vectors(
    conn: &mut Conn,
    id: i64,
    vectors: &EmbeddedAnswer,
    now: Timestamp,
) -> QueryResult<IndexingOutcome> {
    let revision = next_revision(conn)?;
    let changed = diesel::update(agent_responses::table.find(id).filter(DONE))
        .set((
            agent_responses::embed_model.eq(&vectors.model),
            agent_responses::trigger_vec.eq(vectors.trigger.as_ref().map(UnitVector::to_bytes)),
            agent_responses::response_vec.eq(vectors.response.to_bytes()),
            agent_responses::embed_attempts.eq(0),
            agent_responses::embed_failed_by.eq(None::<String>),
            agent_responses::revision.eq(revision),
            agent_responses::processed_at.eq(ms(now)),
        ))
        .cached()
        .execute(conn)?;
    Ok(if changed == 0 { IndexingOutcome::NotPending } else { IndexingOutcome::Recorded })
}

/// Counts a failed embedding of this row by this model. Another model may succeed, and vectors from another model are
/// not changed.
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
        .cached()
        .execute(conn)
        .map(drop)
}
