//! Turn routes: resuming a failed turn and canceling a running one.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::database_unavailable;
use super::extract::PathId;
use crate::conversation::transcript::TurnId;
use crate::engine::operator::turns::{CancelRequestOutcome, ResumeTurnOutcome};
use crate::store::turns::turn_resume::ResumeBlocker;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;

/// Turn that is being resumed or canceled.
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
        (status = 202, description = "The turn is resumed", body = Intervention),
        (status = 404, description = "No turn has this id"),
        (status = 409, description = "The turn cannot be resumed; the detail gives the reason"),
    )
)]
pub(super) async fn resume_turn(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<(StatusCode, Json<Intervention>), ProblemDetails> {
    match console
        .engine
        .turn_actions
        .resume_turn(TurnId(id), caller.actor())
        .await
        .map_err(database_unavailable)?
    {
        ResumeTurnOutcome::Resumed => Ok((StatusCode::ACCEPTED, Json(Intervention { turn_id: id }))),
        ResumeTurnOutcome::NotResumable(blocker) => {
            Err(ProblemDetails::new(StatusCode::CONFLICT, blocker_message(blocker)))
        }
        ResumeTurnOutcome::Unknown => Err(turn_not_found()),
    }
}

/// Cancel a running turn
///
/// The turn ends before its next effect. An effect that has started is completed, and the reply reports all completed
/// effects.
#[utoipa::path(
    post,
    path = "/turns/{id}/cancel",
    tag = "turns",
    operation_id = "cancel_turn",
    params(("id" = i64, Path, description = "A turn's id")),
    responses(
        (status = 202, description = "The turn ends as soon as possible", body = Intervention),
        (status = 404, description = "No turn has this id"),
        (status = 409, description = "The turn has already finished"),
    )
)]
pub(super) async fn cancel_turn(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<(StatusCode, Json<Intervention>), ProblemDetails> {
    match console
        .engine
        .turn_actions
        .cancel_turn(TurnId(id), caller.actor())
        .await
        .map_err(database_unavailable)?
    {
        CancelRequestOutcome::Requested => Ok((StatusCode::ACCEPTED, Json(Intervention { turn_id: id }))),
        CancelRequestOutcome::AlreadyEnded => {
            Err(ProblemDetails::new(StatusCode::CONFLICT, "the turn has already finished"))
        }
        CancelRequestOutcome::Unknown => Err(turn_not_found()),
    }
}

fn turn_not_found() -> ProblemDetails {
    ProblemDetails::new(StatusCode::NOT_FOUND, "no turn has this id")
}

fn blocker_message(blocker: ResumeBlocker) -> &'static str {
    match blocker {
        ResumeBlocker::NotFailed => "the turn is running or did not fail",
        ResumeBlocker::NotNewest => "the conversation has newer messages",
        ResumeBlocker::ConversationEnded => "the conversation has ended",
        ResumeBlocker::Busy => "another turn of the user is running, or a text of theirs is waiting",
        ResumeBlocker::NotServed => "the user is not active, or has opted out",
        ResumeBlocker::Paused => "the assistant is paused",
        ResumeBlocker::Erased => "the messages were erased",
    }
}
