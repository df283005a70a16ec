//! Queue of stored answers to be annotated and embedded. The table of answers is itself the queue. An answer is
//! embedded again when the embedding model changes.

use diesel::dsl::{max, sql};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::{SignedDuration, Timestamp};

use super::responses::{AnswerState, NEXT_REVISION, SharingState};
use super::search::pad_list;
use super::shared_answers;
use crate::conversation::memory::answer_metadata::{AnswerMetadata, RECOMMEND, STATE_TOOLS, TurnEffect};
use crate::conversation::stream_events::CallPhase;
use crate::conversation::transcript::{EffectLevel, TurnId, UserId};
use crate::memory::vector::UnitVector;
use crate::store::codec::{convert_integer, ms, to_json};
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::literal_sql;
use crate::store::database::statement_cache::{CacheStatement, cached_update};
use crate::store::schema::{agent_responses, tool_calls};
use crate::store::{Conn, QueryResult};

/// Delay before a row is retried after a failure or a crash.
const RETRY_DELAY: SignedDuration = SignedDuration::from_mins(5);
/// Maximum number of due rows from which a batch is selected.
const MAX_DUE_ROWS: i64 = 32;
/// Maximum length of the texts of a batch.
const MAX_BATCH_BYTES: usize = 12 << 10;
/// Maximum number of attempts to embed a row with one model.
const MAX_EMBED_ATTEMPTS: i64 = 3;

literal_sql! {
    pub(in crate::store) const PENDING = "agent_responses.state = 'pending'";
    const DONE = "agent_responses.state = 'done'";
}

/// Stored answer that was claimed for indexing.
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
    /// Source of the metadata of an answer.
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

/// Result of indexing an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingResult {
    pub metadata: AnswerMetadata,
    pub source: AnnotationSource,
    /// True if the answer may be suggested to an admin for sharing with everyone.
    pub is_shareable: bool,
    pub vectors: Option<EmbeddedAnswer>,
}

/// Outcome of writing to a row of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexingOutcome {
    Recorded,
    /// The row was already indexed or erased.
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

/// Answers that one batch may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchScope {
    /// Answers of all users, whose metadata is extracted by code.
    AllUsers,
    /// At most this many answers of one user, which share a model call.
    OneUser(usize),
}

/// Claimed batch of answers.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingBatch {
    pub jobs: Vec<IndexingJob>,
    /// False if no other answer is due.
    pub has_more: bool,
}

/// Loads the id of the newest stored answer; 0 if there is none.
pub fn load_newest_answer(conn: &mut Conn) -> QueryResult<i64> {
    let newest: Option<i64> = agent_responses::table.select(max(agent_responses::id)).first(conn)?;
    Ok(newest.unwrap_or_default())
}

/// Claims the row that is due for longest, and the rows that may be in a batch with it. Rows after `newest` are left for
/// a later run. The attempts are counted in advance, so that a row that crashes the program is not retried forever.
pub fn claim_indexing_jobs(
    conn: &mut Conn,
    scope: BatchScope,
    newest: i64,
    now: Timestamp,
) -> QueryResult<IndexingBatch> {
    let is_due = agent_responses::not_before.le(ms(now)).and(agent_responses::id.le(newest));
    let due: Vec<IndexingJobRow> = agent_responses::table
        .filter(PENDING.and(is_due))
        .order((agent_responses::not_before, agent_responses::id))
        .limit(MAX_DUE_ROWS)
        .select(IndexingJobRow::as_select())
        .load(conn)?;
    let due_count = due.len();
    let rows = select_batch(due, scope);
    let has_more =
        rows.len() < due_count || i64::try_from(due_count).is_ok_and(|count| count == MAX_DUE_ROWS);
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    if ids.is_empty() {
        return Ok(IndexingBatch { jobs: Vec::new(), has_more });
    }
    cached_update(agent_responses::table.filter(agent_responses::id.eq_any(pad_list(&ids))))
        .set((
            agent_responses::attempts.eq(agent_responses::attempts + 1),
            agent_responses::not_before.eq(ms(now + RETRY_DELAY)),
        ))
        .run(conn)?;
    let turns: Vec<TurnId> = rows.iter().filter_map(|row| row.turn_id).collect();
    let calls = load_turn_calls(conn, &turns)?;
    let into_job = |row: IndexingJobRow| {
        Ok(IndexingJob {
            id: row.id,
            user: row.user_id,
            turn: row.turn_id,
            question: row.trigger_text,
            answer: row.response_text,
            effect: row.turn_id.map_or(TurnEffect::NoToolCall, |turn| turn_effect(&calls, turn)),
            attempt: convert_integer(row.attempts + 1)?,
        })
    };
    Ok(IndexingBatch { jobs: rows.into_iter().map(into_job).collect::<QueryResult<_>>()?, has_more })
}

/// Selects the first row, and the rows that may be in a batch with it. Rows that share a model call are from one user, so
/// that the text of one user cannot affect the metadata of another. A row that failed before is retried alone.
fn select_batch(mut due: Vec<IndexingJobRow>, scope: BatchScope) -> Vec<IndexingJobRow> {
    let Some(first) = due.first() else { return due };
    if first.attempts > 0 {
        due.truncate(1);
        return due;
    }
    let limit = match scope {
        BatchScope::AllUsers => {
            due.retain(|row| row.attempts == 0);
            return due;
        }
        BatchScope::OneUser(limit) => limit,
    };
    let (user, is_from_turn) = (first.user_id, first.turn_id.is_some());
    due.retain(|row| row.attempts == 0 && row.user_id == user && row.turn_id.is_some() == is_from_turn);
    let mut bytes = 0;
    let fits = |row: &&IndexingJobRow| {
        bytes += row.trigger_text.len() + row.response_text.len();
        bytes <= MAX_BATCH_BYTES
    };
    let count = due.iter().take(limit).take_while(fits).count();
    due.truncate(count.max(1));
    due
}

/// Tool call of a turn. A confirmed deletion was called in an earlier turn than the one in which it ran.
#[derive(Queryable, Selectable)]
#[diesel(table_name = tool_calls)]
struct TurnCallRow {
    turn_id: TurnId,
    run_turn_id: Option<TurnId>,
    tool_name: String,
    effect: EffectLevel,
    state: CallPhase,
}

/// Loads the tool calls that were called or ran in these turns.
fn load_turn_calls(conn: &mut Conn, turns: &[TurnId]) -> QueryResult<Vec<TurnCallRow>> {
    if turns.is_empty() {
        return Ok(Vec::new());
    }
    let turns = pad_list(turns);
    tool_calls::table
        .filter(tool_calls::turn_id.eq_any(turns.clone()).or(tool_calls::run_turn_id.eq_any(turns)))
        .select(TurnCallRow::as_select())
        .cached()
        .load(conn)
}

/// Returns the most significant effect of a turn's tools.
fn turn_effect(calls: &[TurnCallRow], turn: TurnId) -> TurnEffect {
    let calls = || calls.iter().filter(|call| call.turn_id == turn || call.run_turn_id == Some(turn));
    if calls().any(|call| call.effect != EffectLevel::Read && call.state == CallPhase::Complete) {
        TurnEffect::Changed
    } else if calls().any(|call| call.tool_name == RECOMMEND) {
        TurnEffect::Recommended
    } else if calls().next().is_none() {
        TurnEffect::NoToolCall
    } else if calls().all(|call| STATE_TOOLS.contains(&call.tool_name.as_str())) {
        TurnEffect::ReadState
    } else {
        TurnEffect::LookedUp
    }
}

/// Returns a claimed row to the queue without counting the attempt, because a temporary problem prevented it. The row
/// is retried after a delay.
pub fn release_indexing_job(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<()> {
    cached_update(agent_responses::table.find(id).filter(PENDING.and(agent_responses::attempts.gt(0))))
        .set((
            agent_responses::attempts.eq(agent_responses::attempts - 1),
            agent_responses::not_before.eq(ms(now + RETRY_DELAY)),
        ))
        .run(conn)
}

/// Excludes rows, such as greetings or bare replies, from search. Returns the number of rows that were waiting.
pub fn exclude_answers(conn: &mut Conn, ids: &[i64], now: Timestamp) -> QueryResult<usize> {
    if ids.is_empty() {
        return Ok(0);
    }
    // A bound value, so that the rows are found by their ids and not among all that wait.
    let is_pending = agent_responses::state.eq(AnswerState::Pending);
    let waiting = agent_responses::table.filter(agent_responses::id.eq_any(pad_list(ids)).and(is_pending));
    let excluded: Vec<i64> = cached_update(waiting)
        .set((agent_responses::state.eq(AnswerState::Skipped), agent_responses::processed_at.eq(ms(now))))
        .returning(agent_responses::id)
        .load(conn)?;
    Ok(excluded.len())
}

/// Number of times that the exchange of a row occurred, with earlier copies.
const TIMES_WITH_COPIES: &str = "(SELECT coalesce(sum(copies.times), 0) + 1 FROM agent_responses AS copies
    WHERE copies.state = 'done' AND copies.likeness = agent_responses.likeness
    AND copies.owner = agent_responses.owner)";

/// Answer whose metadata was recorded.
#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_responses)]
struct CompletedAnswerRow {
    owner: String,
    likeness: i64,
    times: i64,
    trigger_text: String,
    response_text: String,
}

/// Records the metadata and the vectors of a row, and retires earlier copies of the same exchange.
pub fn complete_indexing_job(
    conn: &mut Conn,
    id: i64,
    result: &IndexingResult,
    now: Timestamp,
) -> QueryResult<IndexingOutcome> {
    let AnswerMetadata { summary, topics, keywords, kind, importance, .. } = &result.metadata;
    let vectors = result.vectors.as_ref();
    let completed: Option<CompletedAnswerRow> =
        cached_update(agent_responses::table.find(id).filter(PENDING))
            .set((
                (
                    agent_responses::state.eq(AnswerState::Done),
                    agent_responses::summary.eq(summary),
                    agent_responses::topics.eq(to_json(topics)?),
                    agent_responses::keywords.eq(to_json(keywords)?),
                    agent_responses::response_type.eq(*kind),
                    agent_responses::importance.eq(importance),
                    agent_responses::extracted_by.eq(result.source),
                    agent_responses::times.eq(sql::<BigInt>(TIMES_WITH_COPIES)),
                ),
                (
                    agent_responses::embed_model.eq(vectors.map(|vectors| vectors.model.as_str())),
                    agent_responses::trigger_vec
                        .eq(vectors.and_then(|vectors| vectors.trigger.as_ref()).map(UnitVector::to_bytes)),
                    agent_responses::response_vec.eq(vectors.map(|vectors| vectors.response.to_bytes())),
                    agent_responses::revision.eq(NEXT_REVISION),
                    agent_responses::processed_at.eq(ms(now)),
                ),
            ))
            .returning(CompletedAnswerRow::as_returning())
            .get_result(conn)
            .optional()?;
    let Some(row) = completed else { return Ok(IndexingOutcome::NotPending) };
    if row.times > 1 {
        retire_earlier_copies(conn, id, &row, now)?;
    }
    if result.is_shareable {
        shared_answers::suggest_answer(conn, id, &row.trigger_text, &row.response_text)?;
    }
    Ok(IndexingOutcome::Recorded)
}

/// Retires earlier copies of the same exchange, so that a search finds only the newest one. If an admin refused to share
/// a copy with everyone, the refusal applies to the newest one.
fn retire_earlier_copies(
    conn: &mut Conn,
    newest: i64,
    CompletedAnswerRow { owner, likeness, .. }: &CompletedAnswerRow,
    now: Timestamp,
) -> QueryResult<()> {
    let is_copy = agent_responses::likeness.eq(likeness).and(agent_responses::owner.eq(owner));
    let copies: Vec<(i64, SharingState)> = agent_responses::table
        .filter(DONE.and(is_copy).and(agent_responses::id.ne(newest)))
        .select((agent_responses::id, agent_responses::for_everyone))
        .load(conn)?;
    if copies.iter().any(|(_, sharing)| *sharing == SharingState::Refused) {
        cached_update(agent_responses::table.find(newest))
            .set(agent_responses::for_everyone.eq(SharingState::Refused))
            .run(conn)?;
    }
    for (id, _) in copies {
        cached_update(agent_responses::table.find(id))
            .set((
                agent_responses::state.eq(AnswerState::Repeated),
                agent_responses::embed_model.eq(None::<String>),
                agent_responses::trigger_vec.eq(None::<Vec<u8>>),
                agent_responses::response_vec.eq(None::<Vec<u8>>),
                agent_responses::revision.eq(NEXT_REVISION),
                agent_responses::processed_at.eq(ms(now)),
            ))
            .run(conn)?;
    }
    Ok(())
}

/// Returns whether any answer is indexed.
pub fn has_indexed_answers(conn: &mut Conn) -> QueryResult<bool> {
    let answer: Option<i64> =
        agent_responses::table.filter(DONE).select(agent_responses::id).first(conn).optional()?;
    Ok(answer.is_some())
}

/// Loads answers whose vectors are missing or come from another model, oldest first.
pub fn load_answers_without_vectors(
    conn: &mut Conn,
    model: &str,
    limit: i64,
) -> QueryResult<Vec<(i64, String, String)>> {
    let needs_vectors = || {
        let has_attempts_left = agent_responses::embed_attempts.lt(MAX_EMBED_ATTEMPTS);
        DONE.and(has_attempts_left.or(agent_responses::embed_failed_by.assume_not_null().ne(model)))
    };
    let columns = (agent_responses::id, agent_responses::trigger_text, agent_responses::response_text);
    let mut rows: Vec<(i64, String, String)> = agent_responses::table
        .filter(needs_vectors().and(agent_responses::embed_model.is_null()))
        .order(agent_responses::id)
        .limit(limit)
        .select(columns)
        .load(conn)?;
    // Separate queries for model names that sort before and after this one, because the index does not support a
    // not-equal condition.
    let (sorts_before, sorts_after) =
        (agent_responses::embed_model.lt(model), agent_responses::embed_model.gt(model));
    let remaining_limit = |rows: &Vec<_>| limit.saturating_sub(i64::try_from(rows.len()).unwrap_or(i64::MAX));
    let rest = remaining_limit(&rows);
    let embedded_before: Vec<_> = agent_responses::table
        .filter(needs_vectors().and(sorts_before))
        .order((agent_responses::embed_model, agent_responses::id))
        .limit(rest)
        .select(columns)
        .load(conn)?;
    rows.extend(embedded_before);
    let rest = remaining_limit(&rows);
    let embedded_after: Vec<_> = agent_responses::table
        .filter(needs_vectors().and(sorts_after))
        .order((agent_responses::embed_model, agent_responses::id))
        .limit(rest)
        .select(columns)
        .load(conn)?;
    rows.extend(embedded_after);
    Ok(rows)
}

/// Stores the vectors of a row, unless the row has been erased since it was loaded.
pub fn store_vectors(
    conn: &mut Conn,
    id: i64,
    vectors: &EmbeddedAnswer,
    now: Timestamp,
) -> QueryResult<IndexingOutcome> {
    let updated: Option<i64> = cached_update(agent_responses::table.find(id).filter(DONE))
        .set((
            agent_responses::embed_model.eq(&vectors.model),
            agent_responses::trigger_vec.eq(vectors.trigger.as_ref().map(UnitVector::to_bytes)),
            agent_responses::response_vec.eq(vectors.response.to_bytes()),
            agent_responses::embed_attempts.eq(0),
            agent_responses::embed_failed_by.eq(None::<String>),
            agent_responses::revision.eq(NEXT_REVISION),
            agent_responses::processed_at.eq(ms(now)),
        ))
        .returning(agent_responses::id)
        .get_result(conn)
        .optional()?;
    Ok(updated.map_or(IndexingOutcome::NotPending, |_| IndexingOutcome::Recorded))
}

/// Counts a failed attempt to embed a row with this model. The count starts again for another model, and existing
/// vectors of another model do not change.
pub fn count_failed_embedding(conn: &mut Conn, id: i64, model: &str) -> QueryResult<()> {
    let failures: Option<(i64, Option<String>)> = agent_responses::table
        .find(id)
        .filter(DONE)
        .select((agent_responses::embed_attempts, agent_responses::embed_failed_by))
        .first(conn)
        .optional()?;
    let Some((attempts, failed_model)) = failures else { return Ok(()) };
    let attempts = if failed_model.as_deref() == Some(model) { attempts + 1 } else { 1 };
    cached_update(agent_responses::table.find(id).filter(DONE))
        .set((agent_responses::embed_attempts.eq(attempts), agent_responses::embed_failed_by.eq(model)))
        .run(conn)
}
