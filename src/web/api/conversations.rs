//! Conversation routes: the list, one conversation with its turns, and reopening.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::{PathId, QueryParams};
use super::paging::{Page, PageCursor, PagingParams};
use super::users::UserIdentifier;
use super::{database_unavailable, users};
use crate::conversation::transcript::ConversationId;
use crate::engine::operator::conversations::ReopenOutcome;
use crate::store::QueryResult;
use crate::store::console::ResultPage;
use crate::store::console::conversations::{self, ConversationFilter};
use crate::store::conversation::conversations::EndReason;
use crate::store::conversation::record::conversations::{ConversationRecord, load_conversation};
use crate::store::conversation::record::pages::{self, ConversationPage, PageContent};
use crate::store::stream::event_log::LogPosition;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::{
    QuestionJson, TurnJson, UnassignedMessagesJson, format_iso, question_json, turn_json,
    unassigned_messages_json,
};

/// Conversation with one user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Conversation)]
pub(super) struct ConversationJson {
    id: i64,
    user: i64,
    #[schema(example = "add dune")]
    name: String,
    #[schema(format = DateTime)]
    started_at: String,
    #[schema(format = DateTime)]
    last_activity_at: String,
    /// Null while the conversation is open.
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    /// Reason for the end: `idle`, `cleared`, `blocked` or `admin`.
    #[schema(value_type = Option<String>)]
    end_reason: Option<EndReason>,
}

impl ConversationJson {
    fn from_record(conversation: ConversationRecord) -> Self {
        Self {
            id: conversation.id.0,
            user: conversation.user.0,
            name: conversation.name,
            started_at: format_iso(conversation.started_at),
            last_activity_at: format_iso(conversation.last_activity_at),
            ended_at: conversation.ended_at.map(format_iso),
            end_reason: conversation.end_reason,
        }
    }
}

/// Conversation with a page of its turns.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WholeConversation {
    #[serde(flatten)]
    conversation: ConversationJson,
    /// Turns, newest first.
    turns: Page<TurnJson>,
    #[serde(flatten)]
    unassigned: UnassignedMessagesJson,
    /// Pending action that awaits confirmation.
    question: Option<QuestionJson>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ConversationsParams {
    /// Only conversations with this user: a user's id, or a phone number (write its `+` as `%2B`).
    #[param(pattern = r"^(\+[1-9][0-9]{6,14}|[0-9]{1,18})$")]
    user: Option<String>,
    /// Only open conversations (`true`), or only ended ones (`false`).
    open: Option<bool>,
    /// Only entries older than this cursor: the `next` of another page.
    before: Option<i64>,
    /// Number of entries to return.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
}

/// List conversations, newest first
#[utoipa::path(
    get,
    path = "/conversations",
    tag = "conversations",
    operation_id = "list_conversations",
    params(ConversationsParams),
    responses(
        (status = 200, description = "A page of conversations", body = Page<ConversationJson>),
        (status = 404, description = "No user has this id or number"),
        (status = 422, description = "The user is neither an id nor a phone number"),
    )
)]
pub(super) async fn list_conversations(
    State(console): State<ConsoleState>,
    _caller: Caller,
    QueryParams(params): QueryParams<ConversationsParams>,
) -> Result<Json<Page<ConversationJson>>, ProblemDetails> {
    let cursor = PageCursor::from_params(params.before, params.limit)?;
    let user = match params.user.as_deref() {
        Some(text) => Some(users::find_user(&console, UserIdentifier::parse(text)?).await?.id),
        None => None,
    };
    let filter = match params.open {
        None => ConversationFilter::All,
        Some(true) => ConversationFilter::Open,
        Some(false) => ConversationFilter::Ended,
    };
    let page = console
        .db
        .read(move |conn| {
            conversations::load_conversations(conn, user, filter, cursor.before, cursor.page_size)
        })
        .await;
    Ok(Json(Page::from_results(page.map_err(database_unavailable)?, ConversationJson::from_record)))
}

/// Show a conversation and its turns, newest first
#[utoipa::path(
    get,
    path = "/conversations/{id}",
    tag = "conversations",
    operation_id = "show_conversation",
    params(("id" = i64, Path, description = "A conversation's id"), PagingParams),
    responses(
        (status = 200, description = "The conversation with a page of its turns", body = WholeConversation),
        (status = 404, description = "No conversation has this id"),
    )
)]
pub(super) async fn show_conversation(
    State(console): State<ConsoleState>,
    _caller: Caller,
    PathId(id): PathId,
    QueryParams(paging): QueryParams<PagingParams>,
) -> Result<Json<WholeConversation>, ProblemDetails> {
    let (id, cursor) = (ConversationId(id), paging.page_cursor()?);
    let load = move |conn: &mut _, position: &LogPosition| {
        let page = pages::load_page(conn, id, (cursor.before, cursor.page_size), &position.streamed)?;
        page.map(WholeConversation::from_page).transpose()
    };
    let conversation = console.db.read_with_position(id, load).await.map_err(database_unavailable)?;
    conversation.map(Json).ok_or_else(conversation_not_found)
}

impl WholeConversation {
    fn from_page(page: ConversationPage) -> QueryResult<Self> {
        let ConversationPage { conversation, content, truncated, pending_action } = page;
        let PageContent { turns, unassigned, reactions } = content;
        let oldest = turns.first().map(|turn| turn.row.id.0).filter(|_| truncated);
        let turns = turns.into_iter().rev().map(|turn| turn_json(turn, &reactions));
        let page = ResultPage { rows: turns.collect::<QueryResult<_>>()?, older: oldest };
        Ok(Self {
            conversation: ConversationJson::from_record(conversation),
            turns: Page::from_results(page, |turn| turn),
            unassigned: unassigned_messages_json(unassigned, &reactions),
            question: pending_action.map(question_json),
        })
    }
}

/// Reopen an ended conversation
///
/// The user's next message continues it. Another open conversation of theirs ends.
#[utoipa::path(
    post,
    path = "/conversations/{id}/reopen",
    tag = "conversations",
    operation_id = "reopen_conversation",
    params(("id" = i64, Path, description = "A conversation's id")),
    responses(
        (status = 200, description = "The reopened conversation", body = ConversationJson),
        (status = 404, description = "No conversation has this id"),
        (status = 409, description = "A message of the user is being answered, or the user is not active"),
    )
)]
pub(super) async fn reopen_conversation(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<ConversationJson>, ProblemDetails> {
    let id = ConversationId(id);
    console
        .db
        .read(move |conn| load_conversation(conn, id))
        .await
        .map_err(database_unavailable)?
        .ok_or_else(conversation_not_found)?;
    let conflict = |detail| Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
    match console
        .engine
        .conversation_actions
        .reopen_conversation(id, caller.actor())
        .await
        .map_err(database_unavailable)?
    {
        ReopenOutcome::Reopened | ReopenOutcome::AlreadyOpen => {}
        ReopenOutcome::Busy => {
            return conflict("a text of the user is being answered in another conversation");
        }
        ReopenOutcome::OfAgent => {
            return conflict("the conversation belongs to an agent, whose next call starts another one");
        }
        ReopenOutcome::NotActive => return conflict("the user is blocked or not approved"),
    }
    let reopened =
        console.db.read(move |conn| load_conversation(conn, id)).await.map_err(database_unavailable)?;
    Ok(Json(ConversationJson::from_record(reopened.ok_or_else(conversation_not_found)?)))
}

fn conversation_not_found() -> ProblemDetails {
    ProblemDetails::new(StatusCode::NOT_FOUND, "no conversation has this id")
}
