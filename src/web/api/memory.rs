//! Memory of earlier conversations: a preview of recall for a user, counts, adding entries, and indexing now.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::database_unavailable;
use super::extract::{JsonBody, PathId, QueryParams};
use super::users::{UserIdentifier, find_user};
use crate::conversation::memory::answer_metadata::ResponseType;
use crate::conversation::memory::recall::{self, RankedAnswer, RecallScope};
use crate::engine::memory::indexer::IndexingProgress;
use crate::engine::operator::answers::{AnswerAudience, ManualAnswer};
use crate::store::memory::shared_answers::ReviewOutcome;
use crate::store::memory::stats::{self, load_answer_stats};
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::format_iso;

/// Longest accepted question, and longest accepted answer, in characters.
const MAX_QUESTION_CHARS: usize = 1_000;
const MAX_CHARS: usize = 2_000;

/// User and message of a recall preview.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RecallParams {
    /// User's id, or their phone number in E.164 form.
    #[param(example = "+15550100002", pattern = r"^([0-9]{1,18}|\+[1-9][0-9]{6,14})$")]
    user: String,
    /// The user's message; not only white space.
    #[param(example = "is severance there", min_length = 1, max_length = 1000, pattern = r"\S")]
    query: String,
}

/// Earlier messages that a turn of this user with this message would receive, besides the facts about the user.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MemoryContext {
    /// Lines of the prompt.
    lines: Vec<String>,
    similar_questions: Vec<RecalledAnswerJson>,
    said_to_user: Vec<RecalledAnswerJson>,
    said_in_group: Vec<RecalledAnswerJson>,
}

/// Earlier answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Remembered)]
pub(super) struct RecalledAnswerJson {
    id: i64,
    /// Scope: `user`, `group` or `global`.
    scope: &'static str,
    trigger: String,
    response: String,
    summary: String,
    /// `greeting`, `explanation`, `recommendation`, `opinion` or `action`; null before indexing.
    response_type: Option<&'static str>,
    /// Importance, from 0 to 1.
    importance: f32,
    /// Score. Larger is better; comparable within one response of the API only.
    score: f64,
    /// Cosine of the trigger's vector and the query's; null without vectors.
    trigger_likeness: Option<f32>,
    /// Cosine of the response's vector and the query's; null without vectors.
    response_likeness: Option<f32>,
    #[schema(format = DateTime)]
    said_at: String,
}

impl RecalledAnswerJson {
    fn from_found(found: &RankedAnswer) -> Self {
        let row = found.candidate.clone();
        Self {
            id: row.id,
            scope: match row.scope {
                RecallScope::User => "user",
                RecallScope::Group => "group",
                RecallScope::Global => "global",
            },
            trigger: row.question,
            response: row.answer,
            summary: row.summary,
            response_type: row.kind.map(response_type_name),
            importance: row.importance,
            score: found.score,
            trigger_likeness: row.question_similarity,
            response_likeness: row.answer_similarity,
            said_at: format_iso(row.answered_at),
        }
    }
}

fn response_type_name(kind: ResponseType) -> &'static str {
    match kind {
        ResponseType::Greeting => "greeting",
        ResponseType::Explanation => "explanation",
        ResponseType::Recommendation => "recommendation",
        ResponseType::Opinion => "opinion",
        ResponseType::Action => "action",
    }
}

/// Show which earlier answers a user's message would recall
///
/// Answers of the open conversation are included, although a turn has that conversation in its context anyway.
#[utoipa::path(
    get,
    path = "/memory/context",
    tag = "memory",
    operation_id = "memory_context",
    params(RecallParams),
    responses(
        (status = 200, description = "The lines of the prompt", body = MemoryContext),
        (status = 404, description = "No user has this id or number"),
        (status = 422, description = "The user is neither an id nor a phone number, or the query is blank or too long"),
    )
)]
pub(super) async fn show_memory_context(
    State(console): State<ConsoleState>,
    _caller: Caller,
    QueryParams(asked): QueryParams<RecallParams>,
) -> Result<Json<MemoryContext>, ProblemDetails> {
    let query = check_length("query", &asked.query, MAX_QUESTION_CHARS)?;
    let user = find_user(&console, UserIdentifier::parse(&asked.user)?).await?;
    let recalled =
        console.engine.recall.recall_answers(user.id, query, None).await.map_err(database_unavailable)?;
    let wire = |found: &[RankedAnswer]| found.iter().map(RecalledAnswerJson::from_found).collect();
    Ok(Json(MemoryContext {
        lines: recall::format_recall_lines(&recalled, &console.zone),
        similar_questions: wire(&recalled.similar_questions),
        said_to_user: wire(&recalled.user_answers),
        said_in_group: wire(&recalled.group_answers),
    }))
}

/// Counts of stored answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MemoryStats {
    by_state: Vec<NamedCount>,
    /// Answers that can be found, by scope.
    by_scope: Vec<NamedCount>,
    /// Answers that can be found and were indexed, by type.
    by_type: Vec<NamedCount>,
    /// Answers that can be found, by the model that made the vectors; "" without vectors.
    by_model: Vec<NamedCount>,
    /// Answers to be tried again.
    failing: i64,
    /// Current facts about users.
    facts: i64,
    vector_bytes: i64,
    #[schema(format = DateTime)]
    last_worked_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Count)]
pub(super) struct NamedCount {
    name: String,
    count: i64,
}

/// Count stored answers
#[utoipa::path(
    get,
    path = "/memory/stats",
    tag = "memory",
    operation_id = "memory_stats",
    responses((status = 200, description = "Counts", body = MemoryStats))
)]
pub(super) async fn show_memory_stats(
    State(console): State<ConsoleState>,
    _caller: Caller,
) -> Result<Json<MemoryStats>, ProblemDetails> {
    let counted: stats::StoredAnswerStats =
        console.db.read(load_answer_stats).await.map_err(database_unavailable)?;
    let list = |counts: std::collections::BTreeMap<String, i64>| {
        counts.into_iter().map(|(name, count)| NamedCount { name, count }).collect()
    };
    Ok(Json(MemoryStats {
        by_state: list(counted.by_state),
        by_scope: list(counted.by_scope),
        by_type: list(counted.by_type),
        by_model: list(counted.by_model),
        failing: counted.failing,
        facts: counted.facts,
        vector_bytes: counted.vector_bytes,
        last_worked_at: counted.last_indexed_at.map(format_iso),
    }))
}

/// Exchange to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewResponse {
    /// User's id or phone number: only this user will find the exchange. If absent: every user will.
    #[schema(pattern = r"^([0-9]{1,18}|\+[1-9][0-9]{6,14})$")]
    user: Option<String>,
    /// Question; not only white space.
    #[schema(example = "where do i watch it", min_length = 1, max_length = 1000, pattern = r"\S")]
    trigger: String,
    /// Answer; not only white space.
    #[schema(
        example = "Open Plex on your TV. New titles are under Recently Added.",
        min_length = 1,
        max_length = 2000,
        pattern = r"\S"
    )]
    response: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AddedResponse {
    id: i64,
}

/// Add an exchange manually
#[utoipa::path(
    post,
    path = "/memory/responses",
    tag = "memory",
    operation_id = "add_memory_response",
    request_body = NewResponse,
    responses(
        (status = 201, description = "The answer can be found by its words at once, and by its meaning after indexing", body = AddedResponse),
        (status = 404, description = "No user has this id or number"),
    )
)]
pub(super) async fn add_memory_response(
    State(console): State<ConsoleState>,
    caller: Caller,
    JsonBody(new): JsonBody<NewResponse>,
) -> Result<(StatusCode, Json<AddedResponse>), ProblemDetails> {
    let (question, answer) = (
        check_length("trigger", &new.trigger, MAX_QUESTION_CHARS)?,
        check_length("response", &new.response, MAX_CHARS)?,
    );
    let found_by = match &new.user {
        Some(user) => AnswerAudience::User(find_user(&console, UserIdentifier::parse(user)?).await?.id),
        None => AnswerAudience::Everyone,
    };
    let addition =
        ManualAnswer { audience: found_by, question: question.to_owned(), answer: answer.to_owned() };
    let id = console
        .engine
        .answer_actions
        .add_manual_answer(addition, caller.actor())
        .await
        .map_err(database_unavailable)?;
    Ok((StatusCode::CREATED, Json(AddedResponse { id })))
}

/// Delete an answer from memory
#[utoipa::path(
    delete,
    path = "/memory/responses/{id}",
    tag = "memory",
    operation_id = "forget_memory_response",
    params(("id" = i64, Path, description = "An answer's id")),
    responses(
        (status = 204, description = "The answer, its text and its vectors are deleted"),
        (status = 404, description = "No answer has this id, or it was deleted before"),
    )
)]
pub(super) async fn forget_memory_response(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<StatusCode, ProblemDetails> {
    match console
        .engine
        .answer_actions
        .forget_answer(id, caller.actor())
        .await
        .map_err(database_unavailable)?
    {
        ReviewOutcome::Applied => Ok(StatusCode::NO_CONTENT),
        ReviewOutcome::TooLate => Err(ProblemDetails::new(StatusCode::NOT_FOUND, "there is no such answer")),
    }
}

/// Outcome of indexing answers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Processed)]
pub(super) struct IndexingSummary {
    /// Answers whose subject and vectors are now known.
    learned: usize,
    /// Greetings and the like, which are excluded from recall.
    skipped: usize,
    /// Answers left for another try.
    failed: usize,
    /// Answers that had no vectors, or another model's.
    embedded: usize,
}

/// Index waiting answers now
#[utoipa::path(
    post,
    path = "/memory/process-pending",
    tag = "memory",
    operation_id = "process_pending_memory",
    responses((status = 200, description = "All due answers were indexed, each once", body = IndexingSummary))
)]
pub(super) async fn process_pending_memory(
    State(console): State<ConsoleState>,
    _caller: Caller,
) -> Result<Json<IndexingSummary>, ProblemDetails> {
    let IndexingProgress { indexed, skipped, failed, embedded } =
        console.engine.indexer.index_for_caller().await.map_err(database_unavailable)?;
    Ok(Json(IndexingSummary { learned: indexed, skipped, failed, embedded }))
}

/// Checks the length of a text and that it is not blank.
fn check_length<'a>(field: &str, text: &'a str, most: usize) -> Result<&'a str, ProblemDetails> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > most {
        let detail = format!("{field} has 1 to {most} characters");
        return Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    Ok(text)
}
