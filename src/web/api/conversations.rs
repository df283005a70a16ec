//! Conversations: the list, one conversation with its turns, and reopening.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Id, Params};
use super::paging::{Page, Paging, Place};
use super::users::Person;
use super::{unavailable, users};
use crate::conversation::transcript::ConversationId;
use crate::engine::console::Reopened;
use crate::store::console::listing::{self as stored, Wanted};
use crate::store::stream::snapshot;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::Problem;
use crate::web::sse_wire::{Asides, Question, Turn, asides, iso, question, turn};

/// Conversation with one user.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Conversation {
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
    end_reason: Option<String>,
}

impl Conversation {
    fn of(conversation: stored::Conversation) -> Self {
        let (ended_at, end_reason) = conversation.ended.unzip();
        Self {
            id: conversation.id.0,
            user: conversation.user.0,
            name: conversation.name,
            started_at: iso(conversation.started_at),
            last_activity_at: iso(conversation.last_activity_at),
            ended_at: ended_at.map(iso),
            end_reason,
        }
    }
}

/// Conversation with a page of its turns.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WholeConversation {
    #[serde(flatten)]
    conversation: Conversation,
    /// Turns, newest first.
    turns: Page<Turn>,
    #[serde(flatten)]
    asides: Asides,
    /// Pending action that awaits confirmation.
    question: Option<Question>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
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
    params(Filter),
    responses(
        (status = 200, description = "A page of conversations", body = Page<Conversation>),
        (status = 404, description = "Nobody is known by this id or number"),
        (status = 422, description = "The user is neither an id nor a phone number"),
    )
)]
pub(super) async fn list(
    State(console): State<ConsoleState>,
    _caller: Caller,
    Params(filter): Params<Filter>,
) -> Result<Json<Page<Conversation>>, Problem> {
    let place = Place::of(filter.before, filter.limit)?;
    let user = match filter.user.as_deref() {
        Some(text) => Some(users::find(&console, Person::read(text)?).await?.id),
        None => None,
    };
    let wanted = match filter.open {
        None => Wanted::All,
        Some(true) => Wanted::Open,
        Some(false) => Wanted::Ended,
    };
    let listed =
        console.db.read(move |conn| stored::list(conn, user, wanted, place.before, place.fits)).await;
    Ok(Json(Page::of(listed.map_err(unavailable)?, Conversation::of)))
}

/// Show a conversation and its turns, newest first
#[utoipa::path(
    get,
    path = "/conversations/{id}",
    tag = "conversations",
    operation_id = "show_conversation",
    params(("id" = i64, Path, description = "A conversation's id"), Paging),
    responses(
        (status = 200, description = "The conversation with a page of its turns", body = WholeConversation),
        (status = 404, description = "No conversation has this id"),
    )
)]
pub(super) async fn show(
    State(console): State<ConsoleState>,
    _caller: Caller,
    Id(id): Id,
    Params(paging): Params<Paging>,
) -> Result<Json<WholeConversation>, Problem> {
    let (id, place) = (ConversationId(id), paging.place()?);
    let read = move |conn: &mut _| {
        let Some(conversation) = stored::one(conn, id)? else { return Ok(None) };
        Ok(Some((conversation, snapshot::page(conn, id, place.before, place.fits)?)))
    };
    let found = console.db.read(read).await.map_err(unavailable)?;
    let (conversation, mut shown) = found.ok_or_else(unknown)?;
    shown.turns.reverse();
    let oldest = shown.turns.last().map(|turn| turn.id.0).filter(|_| shown.cut);
    let listed = crate::store::console::Listed { rows: shown.turns, older: oldest };
    Ok(Json(WholeConversation {
        conversation: Conversation::of(conversation),
        turns: Page::of(listed, turn),
        asides: asides(shown.asides),
        question: shown.question.map(question),
    }))
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
        (status = 200, description = "It is open", body = Conversation),
        (status = 404, description = "No conversation has this id"),
        (status = 409, description = "A text of theirs is being answered, or they are not let in"),
    )
)]
pub(super) async fn reopen(
    State(console): State<ConsoleState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Json<Conversation>, Problem> {
    let id = ConversationId(id);
    console.db.read(move |conn| stored::one(conn, id)).await.map_err(unavailable)?.ok_or_else(unknown)?;
    let conflict = |detail| Err(Problem::new(StatusCode::CONFLICT, detail));
    match console.engine.reopen(id, caller.by()).await.map_err(unavailable)? {
        Reopened::Open | Reopened::WasOpen => {}
        Reopened::Busy => return conflict("a text of theirs is being answered in another conversation"),
        Reopened::NotActive => return conflict("they are blocked or not let in"),
    }
    let found = console.db.read(move |conn| stored::one(conn, id)).await.map_err(unavailable)?;
    Ok(Json(Conversation::of(found.ok_or_else(unknown)?)))
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no conversation has this id")
}
