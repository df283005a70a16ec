//! User routes: listing, approving, blocking, and clearing the conversation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::database_unavailable;
use super::extract::{PathId, QueryParams};
use super::paging::{Page, PagingParams};
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::transcript::{self, PhoneNumber, UserAddress, UserId, UserRole, UserStatus};
use crate::engine::operator::decisions::{AccessOutcome, CloseOutcome};
use crate::store::console::user_details;
use crate::store::people::user_admin::{self, UserAccount};
use crate::store::turns::daily_budget::Day;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::format_iso;

/// User who has texted or was added.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub(super) struct UserJson {
    id: i64,
    /// First phone number of the user. Null for a user who has none.
    #[schema(example = "+15550100002")]
    phone: Option<String>,
    /// Phone numbers and accounts of the user, oldest first.
    #[schema(example = json!(["+15550100002"]))]
    addresses: Vec<String>,
    name: Option<String>,
    /// `pending`, `active` or `blocked`.
    status: &'static str,
    /// `admin` or `member`.
    role: &'static str,
    may_add: bool,
    may_delete: bool,
    may_4k: bool,
    /// Limit of the user's own for movies. Null: the household's limit applies.
    movie_limit: Option<u32>,
    /// Limit of the user's own for seasons. Null: the household's limit applies.
    season_limit: Option<u32>,
    /// Limit of the user's own for the gigabytes that their titles hold. Null: the household's limit applies.
    space_limit_gb: Option<u32>,
    /// Highest age rating of movies that the user sees, in years. Null: no cap.
    movie_age: Option<u8>,
    /// Highest age rating of shows that the user sees, in years. Null: no cap.
    show_age: Option<u8>,
    /// Whether the user decides about titles over the age ratings of others.
    parent: bool,
    /// Day of the week and hour of the weekly digest, in the time zone of the household. Null: no digest.
    #[schema(example = "friday 18")]
    digest: Option<String>,
    /// True after the user sent STOP: nothing is sent to them.
    opted_out: bool,
    /// True after too many wrong codes from the user's number today: they cannot delete or approve by text until
    /// tomorrow.
    codes_suspended: bool,
    /// True for a test user, created in the console: their replies only appear there.
    test: bool,
    #[schema(format = DateTime)]
    last_text_at: Option<String>,
}

impl UserJson {
    fn from_account(account: UserAccount, today: &Day) -> Self {
        let UserAccount {
            user,
            addresses,
            movies,
            seasons,
            space,
            digest,
            last_message_at: last_text,
            code_misses,
        } = account;
        Self {
            id: user.id.0,
            phone: user.address.as_ref().and_then(UserAddress::phone).map(|phone| phone.as_str().to_owned()),
            addresses: addresses.iter().map(|stored| stored.address.to_text()).collect(),
            name: user.name,
            status: match user.status {
                UserStatus::Pending => "pending",
                UserStatus::Active => "active",
                UserStatus::Blocked => "blocked",
            },
            role: match user.rights.role {
                UserRole::Admin => "admin",
                UserRole::Member => "member",
            },
            may_add: user.rights.may_add(),
            may_delete: user.rights.may_delete(),
            may_4k: user.rights.may_use_four_k(),
            movie_limit: movies.override_value(),
            season_limit: seasons.override_value(),
            space_limit_gb: space.override_value(),
            movie_age: user.rights.rating_caps().movies.map(|age| age.0),
            show_age: user.rights.rating_caps().shows.map(|age| age.0),
            parent: user.rights.parent,
            digest: digest.map(DigestSchedule::to_words),
            opted_out: user.opted_out,
            codes_suspended: code_misses.is_suspended_on(today),
            test: user.test,
            last_text_at: last_text.map(format_iso),
        }
    }
}

/// Identifier of a user.
#[derive(Debug, Clone)]
pub(super) enum UserIdentifier {
    Id(UserId),
    Phone(PhoneNumber),
}

impl UserIdentifier {
    pub(super) fn parse(text: &str) -> Result<Self, ProblemDetails> {
        if let Ok(id) = text.parse() {
            // A value that begins with "+" is a phone number, however short.
            if !text.starts_with('+') {
                return Ok(Self::Id(UserId(id)));
            }
        }
        PhoneNumber::parse(text).map(Self::Phone).map_err(|_| {
            let detail = "user must be a user id or a phone number in E.164 format such as +15550100123";
            ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        })
    }
}

/// Finds a user who was not erased.
pub(super) async fn find_user(
    console: &ConsoleState,
    identifier: UserIdentifier,
) -> Result<transcript::User, ProblemDetails> {
    let load = move |conn: &mut _| match identifier {
        UserIdentifier::Id(id) => user_admin::find_known_user(conn, id),
        UserIdentifier::Phone(phone) => match user_admin::find_user_id(conn, &phone)? {
            Some(id) => user_admin::find_known_user(conn, id),
            None => Ok(None),
        },
    };
    console.db.read(load).await.map_err(database_unavailable)?.ok_or_else(user_not_found)
}

pub(super) fn user_not_found() -> ProblemDetails {
    ProblemDetails::new(StatusCode::NOT_FOUND, "no user has this id or number")
}

/// List users, newest first
#[utoipa::path(
    get,
    path = "/users",
    tag = "users",
    operation_id = "list_users",
    params(PagingParams),
    responses((status = 200, description = "A page of users", body = Page<UserJson>))
)]
pub(super) async fn list_users(
    State(console): State<ConsoleState>,
    _caller: Caller,
    QueryParams(paging): QueryParams<PagingParams>,
) -> Result<Json<Page<UserJson>>, ProblemDetails> {
    let cursor = paging.page_cursor()?;
    let load =
        move |conn: &mut _| user_details::load_user_account_page(conn, cursor.before, cursor.page_size);
    let accounts = console.db.read(load).await.map_err(database_unavailable)?;
    let today = current_day(&console);
    Ok(Json(Page::from_results(accounts, |account| UserJson::from_account(account, &today))))
}

/// Approve a user, as an admin does by text
#[utoipa::path(
    post,
    path = "/users/{id}/approve",
    tag = "users",
    operation_id = "approve_user",
    params(("id" = i64, Path, description = "A user's id")),
    responses(
        (status = 200, description = "The user is approved, and notified if they had asked", body = UserJson),
        (status = 404, description = "No user has this id"),
    )
)]
pub(super) async fn approve_user(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<UserJson>, ProblemDetails> {
    let outcome = console
        .engine
        .decisions
        .approve_access(UserId(id), caller.actor())
        .await
        .map_err(database_unavailable)?;
    access_change_response(&console, id, outcome).await
}

/// Block a user: their messages get no reply from now on
#[utoipa::path(
    post,
    path = "/users/{id}/block",
    tag = "users",
    operation_id = "block_user",
    params(("id" = i64, Path, description = "A user's id")),
    responses(
        (status = 200, description = "The user is blocked, and their running turn ends", body = UserJson),
        (status = 404, description = "No user has this id"),
        (status = 409, description = "The user is the last active admin"),
    )
)]
pub(super) async fn block_user(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<UserJson>, ProblemDetails> {
    let outcome = console
        .engine
        .decisions
        .block_access(UserId(id), caller.actor())
        .await
        .map_err(database_unavailable)?;
    access_change_response(&console, id, outcome).await
}

async fn access_change_response(
    console: &ConsoleState,
    id: i64,
    outcome: AccessOutcome,
) -> Result<Json<UserJson>, ProblemDetails> {
    match outcome {
        AccessOutcome::Changed => show_user(console, UserId(id)).await,
        AccessOutcome::LastAdmin => Err(last_admin()),
        AccessOutcome::UnknownUser => Err(user_not_found()),
    }
}

/// Returns a user who exists.
pub(super) async fn show_user(console: &ConsoleState, id: UserId) -> Result<Json<UserJson>, ProblemDetails> {
    let account = console.db.read(move |conn| user_admin::load_user_account(conn, id)).await;
    Ok(Json(UserJson::from_account(account.map_err(database_unavailable)?, &current_day(console))))
}

pub(super) fn last_admin() -> ProblemDetails {
    let detail = "the user is the last active admin, make another user an admin first";
    ProblemDetails::new(StatusCode::CONFLICT, detail)
}

fn current_day(console: &ConsoleState) -> Day {
    Day::from_timestamp(console.clock.now(), &console.zone())
}

/// Outcome of clearing a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cleared)]
pub(super) struct ClearedConversation {
    /// Conversation that was ended. Null if none was open.
    conversation_id: Option<i64>,
}

/// Start a new conversation with a user, as /clear does
#[utoipa::path(
    post,
    path = "/users/{id}/clear",
    tag = "users",
    operation_id = "clear_user",
    params(("id" = i64, Path, description = "A user's id")),
    responses(
        (
            status = 200,
            description = "The conversation has ended, and the next message starts another. A running turn ends \
                before its next effect, and an open confirmation prompt is closed.",
            body = ClearedConversation
        ),
        (status = 404, description = "No user has this id"),
    )
)]
pub(super) async fn clear_conversation(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<ClearedConversation>, ProblemDetails> {
    match console
        .engine
        .decisions
        .close_conversation(UserId(id), caller.actor())
        .await
        .map_err(database_unavailable)?
    {
        CloseOutcome::Ended(conversation) => {
            Ok(Json(ClearedConversation { conversation_id: Some(conversation.0) }))
        }
        CloseOutcome::NoOpenConversation => Ok(Json(ClearedConversation { conversation_id: None })),
        CloseOutcome::UnknownUser => Err(user_not_found()),
    }
}
