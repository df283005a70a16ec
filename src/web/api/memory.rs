//! Memory routes: recall preview for a user, counts, adding and deleting answers, and indexing.

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
use crate::store::memory::search::RecallRange;
use crate::store::memory::shared_answers::ReviewOutcome;
use crate::store::memory::stats::{self, load_answer_stats};
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::format_iso;

/// Longest accepted question, in characters.
const MAX_QUESTION_CHARS: usize = 1_000;
/// Longest accepted answer, in characters.
const MAX_ANSWER_CHARS: usize = 2_000;

/// User and message of a recall preview.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RecallParams {
    /// User's id, or their phone number in E.164 format.
    #[param(example = "+15550100002", pattern = r"^([0-9]{1,18}|\+[1-9][0-9]{6,14})$")]
    user: String,
    /// The user's message; not blank.
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

/// Recalled answer.
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
    fn from_ranked(ranked: &RankedAnswer) -> Self {
        let row = ranked.candidate.clone();
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
            score: ranked.score,
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
    QueryParams(params): QueryParams<RecallParams>,
) -> Result<Json<MemoryContext>, ProblemDetails> {
    let query = check_length("query", &params.query, MAX_QUESTION_CHARS)?;
    let user = find_user(&console, UserIdentifier::parse(&params.user)?).await?;
    let recalled = console
        .engine
        .recall
        .recall_answers(user.id, query, RecallRange::default())
        .await
        .map_err(database_unavailable)?;
    let answers_json =
        |answers: &[RankedAnswer]| answers.iter().map(RecalledAnswerJson::from_ranked).collect();
    Ok(Json(MemoryContext {
        lines: recall::format_recall_lines(&recalled, &[], &console.zone()),
        similar_questions: answers_json(&recalled.similar_questions),
        said_to_user: answers_json(&recalled.user_answers),
        said_in_group: answers_json(&recalled.group_answers),
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
    /// Answers that can be found, by the model of their vectors; "" without vectors.
    by_model: Vec<NamedCount>,
    /// Answers whose indexing failed and will be retried.
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
    let stats: stats::StoredAnswerStats =
        console.db.read(load_answer_stats).await.map_err(database_unavailable)?;
    let named_counts = |counts: std::collections::BTreeMap<String, i64>| {
        counts.into_iter().map(|(name, count)| NamedCount { name, count }).collect()
    };
    Ok(Json(MemoryStats {
        by_state: named_counts(stats.by_state),
        by_scope: named_counts(stats.by_scope),
        by_type: named_counts(stats.by_type),
        by_model: named_counts(stats.by_model),
        failing: stats.failing,
        facts: stats.facts,
        vector_bytes: stats.vector_bytes,
        last_worked_at: stats.last_indexed_at.map(format_iso),
    }))
}

/// Question and answer to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewResponse {
    /// User's id or phone number: only this user can recall the answer. If absent, every user can.
    #[schema(pattern = r"^([0-9]{1,18}|\+[1-9][0-9]{6,14})$")]
    user: Option<String>,
    /// Question; not blank.
    #[schema(example = "where do i watch it", min_length = 1, max_length = 1000, pattern = r"\S")]
    trigger: String,
    /// Answer; not blank.
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

/// Add a question and its answer manually
#[utoipa::path(
    post,
    path = "/memory/responses",
    tag = "memory",
    operation_id = "add_memory_response",
    request_body = NewResponse,
    responses(
        (status = 201, description = "The answer can be found by full-text search at once, and by similarity after indexing", body = AddedResponse),
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
        check_length("response", &new.response, MAX_ANSWER_CHARS)?,
    );
    let audience = match &new.user {
        Some(user) => AnswerAudience::User(find_user(&console, UserIdentifier::parse(user)?).await?.id),
        None => AnswerAudience::Everyone,
    };
    let addition = ManualAnswer { audience, question: question.to_owned(), answer: answer.to_owned() };
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
        ReviewOutcome::TooLate => Err(ProblemDetails::new(StatusCode::NOT_FOUND, "no answer has this id")),
    }
}

/// Outcome of indexing answers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Processed)]
pub(super) struct IndexingSummary {
    /// Answers that were indexed.
    learned: usize,
    /// Greetings and the like, which are excluded from recall.
    skipped: usize,
    /// Answers that failed and will be retried.
    failed: usize,
    /// Answers that got vectors, because they had none or those of another model.
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

/// Trims a text, and checks that it is not blank or too long.
fn check_length<'a>(field: &str, text: &'a str, max: usize) -> Result<&'a str, ProblemDetails> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > max {
        let detail = format!("{field} must have 1 to {max} characters");
        return Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    Ok(text)
}
