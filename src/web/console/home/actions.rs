//! Buttons of the home page.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use crate::engine::operator::decisions::DecisionOutcome;
use crate::store::people::pauses::PauseOutcome;
use crate::web::auth::SignedForm;
use crate::web::console::flash::FlashMessage;
use crate::web::console::responses::{PageId, PageResult, redirect_with_flash};
use crate::web::console_state::ConsoleState;

/// Form with only a button.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct ButtonForm {}

pub(in crate::web) async fn approve_removal(
    State(console): State<ConsoleState>,
    id: PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    let outcome = console.engine.decisions.approve_removal_request(id.0).await?;
    Ok(decision_response(outcome, FlashMessage::RemovalApproved))
}

pub(in crate::web) async fn deny_removal(
    State(console): State<ConsoleState>,
    id: PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    let outcome = console.engine.decisions.deny_removal_request(id.0).await?;
    Ok(decision_response(outcome, FlashMessage::RemovalDenied))
}

fn decision_response(outcome: DecisionOutcome, success: FlashMessage) -> Response {
    let flash = match outcome {
        DecisionOutcome::Decided => success,
        DecisionOutcome::TooLate => FlashMessage::AlreadyDecided,
        DecisionOutcome::NoAdmin => FlashMessage::NoActiveAdmin,
    };
    redirect_with_flash("/", flash)
}

pub(in crate::web) async fn resume_from_pause(
    State(console): State<ConsoleState>,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    Ok(match console.engine.decisions.resume_from_pause().await? {
        PauseOutcome::Changed => redirect_with_flash("/", FlashMessage::PauseEnded),
        PauseOutcome::Unchanged => redirect_with_flash("/", FlashMessage::NotPaused),
    })
}
