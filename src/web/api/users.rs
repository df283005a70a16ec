//! Users: listing, approving, blocking, and clearing their conversation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::extract::{Id, Params};
use super::paging::{Page, Paging};
use super::unavailable;
use crate::conversation::transcript::{self, PhoneNumber, Role, Status, UserId};
use crate::engine::operator::{Clearing, Joining};
use crate::store::console::Listed;
use crate::store::roster;
use crate::store::spend::Day;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::Problem;
use crate::web::sse_wire::iso;

/// User who has texted, or may.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct User {
    id: i64,
    #[schema(example = "+15550100002")]
    phone: String,
    name: Option<String>,
    /// `pending`, `active` or `blocked`.
    status: &'static str,
    /// `admin` or `member`.
    role: &'static str,
    may_add: bool,
    may_delete: bool,
    may_4k: bool,
    /// True after the user sent STOP: no message of ours reaches them.
    opted_out: bool,
    /// True after too many wrong codes from the user's number today: they cannot delete or approve by text until
    /// tomorrow.
    codes_suspended: bool,
    /// True for a test user, created in the console: their replies only appear there.
    test: bool,
    #[schema(format = DateTime)]
    last_text_at: Option<String>,
}

impl User {
    fn from_person(person: roster::Person, today: &Day) -> Self {
        let roster::Person { user, last_text, code_misses, .. } = person;
        Self {
            id: user.id.0,
            phone: user.phone.as_str().to_owned(),
            name: user.name,
            status: match user.status {
                Status::Pending => "pending",
                Status::Active => "active",
                Status::Blocked => "blocked",
            },
            role: match user.rights.role {
                Role::Admin => "admin",
                Role::Member => "member",
            },
            may_add: user.rights.may_add(),
            may_delete: user.rights.may_delete(),
            may_4k: user.rights.may_four_k(),
            opted_out: user.opted_out,
            codes_suspended: code_misses.suspend_on(today),
            test: user.test,
            last_text_at: last_text.map(iso),
        }
    }
}

/// Identifier of a user.
#[derive(Debug, Clone)]
pub(super) enum Person {
    Id(UserId),
    Phone(PhoneNumber),
}

impl Person {
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        if let Ok(id) = text.parse() {
            // A value that begins with "+" is a phone number, however short.
            if !text.starts_with('+') {
                return Ok(Self::Id(UserId(id)));
            }
        }
        PhoneNumber::parse(text).map(Self::Phone).map_err(|_| {
            let detail = "user is the id of a user or a phone number in E.164 form such as +15550100123";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        })
    }
}

/// Somebody who is known and not forgotten.
pub(super) async fn find(console: &ConsoleState, person: Person) -> Result<transcript::User, Problem> {
    let find = move |conn: &mut _| match person {
        Person::Id(id) => roster::known(conn, id),
        Person::Phone(phone) => match roster::by_phone(conn, &phone)? {
            Some(id) => roster::known(conn, id),
            None => Ok(None),
        },
    };
    console.db.read(find).await.map_err(unavailable)?.ok_or_else(nobody)
}

pub(super) fn nobody() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "nobody is known by this id or number")
}

/// List users, newest first
#[utoipa::path(
    get,
    path = "/users",
    tag = "users",
    operation_id = "list_users",
    params(Paging),
    responses((status = 200, description = "A page of users", body = Page<User>))
)]
pub(super) async fn list(
    State(console): State<ConsoleState>,
    _caller: Caller,
    Params(paging): Params<Paging>,
) -> Result<Json<Page<User>>, Problem> {
    let place = paging.place()?;
    let mut rows = console.db.read(roster::everyone).await.map_err(unavailable)?;
    rows.retain(|person| person.user.id.0 < place.before);
    rows.sort_by_key(|person| std::cmp::Reverse(person.user.id));
    let goes_on = rows.len() > place.fits;
    rows.truncate(place.fits);
    let older = rows.last().map(|person| person.user.id.0).filter(|_| goes_on);
    let today = today(&console);
    Ok(Json(Page::of(Listed { rows, older }, |person| User::from_person(person, &today))))
}

/// Approve a user, as an admin does by text
#[utoipa::path(
    post,
    path = "/users/{id}/approve",
    tag = "users",
    operation_id = "approve_user",
    params(("id" = i64, Path, description = "A user's id")),
    responses(
        (status = 200, description = "They are let in, and told so if they had asked", body = User),
        (status = 404, description = "Nobody is known by this id"),
    )
)]
pub(super) async fn approve(
    State(console): State<ConsoleState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Json<User>, Problem> {
    let joining = console.engine.let_in(UserId(id), caller.by()).await.map_err(unavailable)?;
    changed(&console, id, joining).await
}

/// Block a user: their messages get no reply from now on
#[utoipa::path(
    post,
    path = "/users/{id}/block",
    tag = "users",
    operation_id = "block_user",
    params(("id" = i64, Path, description = "A user's id")),
    responses(
        (status = 200, description = "They are blocked, and what ran for them ends", body = User),
        (status = 404, description = "Nobody is known by this id"),
        (status = 409, description = "They are the last active admin"),
    )
)]
pub(super) async fn block(
    State(console): State<ConsoleState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Json<User>, Problem> {
    let joining = console.engine.shut_out(UserId(id), caller.by()).await.map_err(unavailable)?;
    changed(&console, id, joining).await
}

async fn changed(console: &ConsoleState, id: i64, joining: Joining) -> Result<Json<User>, Problem> {
    match joining {
        Joining::Done => {
            let person = console.db.read(move |conn| roster::person(conn, UserId(id))).await;
            Ok(Json(User::from_person(person.map_err(unavailable)?, &today(console))))
        }
        Joining::LastAdmin => {
            Err(Problem::new(StatusCode::CONFLICT, "they are the last active admin, make another one first"))
        }
        Joining::Nobody => Err(nobody()),
    }
}

fn today(console: &ConsoleState) -> Day {
    Day::of(console.clock.now(), &console.zone)
}

/// Outcome of clearing a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cleared {
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
            description = "Their conversation is over: their next text begins another. What runs ends between two \
                effects, and an open question is dropped.",
            body = Cleared
        ),
        (status = 404, description = "Nobody is known by this id"),
    )
)]
pub(super) async fn clear(
    State(console): State<ConsoleState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Json<Cleared>, Problem> {
    match console.engine.clear(UserId(id), caller.by()).await.map_err(unavailable)? {
        Clearing::Ended(conversation) => Ok(Json(Cleared { conversation_id: Some(conversation.0) })),
        Clearing::NothingOpen => Ok(Json(Cleared { conversation_id: None })),
        Clearing::Nobody => Err(nobody()),
    }
}
