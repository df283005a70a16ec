//! Actions of a program on a turn: resuming a failed one, ending a running one.

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

/// Turn that is resumed or that ends.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Intervention {
    turn_id: i64,
}

/// Resume a failed turn from its log
///
/// Completed steps are not repeated. The reply is sent in addition to the apology that was sent when the turn failed.
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

/// End a running turn
///
/// The turn ends before its next effect. An effect that has begun is completed, and the reply reports all completed
/// effects.
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
