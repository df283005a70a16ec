//! What a program does to a turn: lets a failed one go on, ends one that runs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::extract::Id;
use super::unavailable;
use crate::conversation::transcript::TurnId;
use crate::engine::intervening::{Cancellation, Resumption};
use crate::store::resuming::Hindrance;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::Problem;

/// The turn that goes on, or that ends.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Intervention {
    turn_id: i64,
}

/// Let a failed turn go on from its log
///
/// What it has done is not done again. Its answer goes out beside the excuse that was sent when it failed.
#[utoipa::path(
    post,
    path = "/turns/{id}/resume",
    tag = "turns",
    operation_id = "resume_turn",
    params(("id" = i64, Path, description = "A turn's id")),
    responses(
        (status = 202, description = "It goes on", body = Intervention),
        (status = 404, description = "No turn has this id"),
        (status = 409, description = "It cannot go on; the detail says why"),
    )
)]
pub(super) async fn resume(
    State(console): State<ConsoleState>,
    caller: Caller,
    Id(id): Id,
) -> Result<(StatusCode, Json<Intervention>), Problem> {
    match console.engine.resume_turn(TurnId(id), caller.by()).await.map_err(unavailable)? {
        Resumption::Resumed => Ok((StatusCode::ACCEPTED, Json(Intervention { turn_id: id }))),
        Resumption::NotResumable(hindrance) => Err(Problem::new(StatusCode::CONFLICT, why(hindrance))),
        Resumption::Unknown => Err(unknown()),
    }
}

/// End a turn that runs
///
/// It ends before its next effect. What has begun is waited for, and what was done by then is told.
#[utoipa::path(
    post,
    path = "/turns/{id}/cancel",
    tag = "turns",
    operation_id = "cancel_turn",
    params(("id" = i64, Path, description = "A turn's id")),
    responses(
        (status = 202, description = "It ends as soon as it can", body = Intervention),
        (status = 404, description = "No turn has this id"),
        (status = 409, description = "It is over already"),
    )
)]
pub(super) async fn cancel(
    State(console): State<ConsoleState>,
    caller: Caller,
    Id(id): Id,
) -> Result<(StatusCode, Json<Intervention>), Problem> {
    match console.engine.cancel_turn(TurnId(id), caller.by()).await.map_err(unavailable)? {
        Cancellation::Requested => Ok((StatusCode::ACCEPTED, Json(Intervention { turn_id: id }))),
        Cancellation::AlreadyOver => Err(Problem::new(StatusCode::CONFLICT, "the turn is over already")),
        Cancellation::Unknown => Err(unknown()),
    }
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no turn has this id")
}

fn why(hindrance: Hindrance) -> &'static str {
    match hindrance {
        Hindrance::NotFailed => "the turn runs, or did not fail",
        Hindrance::NotNewest => "something was said in the conversation since",
        Hindrance::ConversationEnded => "its conversation is over",
        Hindrance::Busy => "another turn of the user runs, or a text of theirs waits",
        Hindrance::NotServed => "the user is not active, or has opted out",
        Hindrance::Paused => "the assistant is paused",
        Hindrance::Erased => "what was said is erased",
    }
}
