//! Buttons of the home page.

use axum::extract::State;
use serde::Deserialize;

use crate::store::people::pauses::PauseOutcome;
use crate::web::auth::SignedForm;
use crate::web::console::flash::FlashMessage;
use crate::web::console::responses::{PageResult, redirect_with_flash};
use crate::web::console_state::ConsoleState;

/// Form with only a button.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct ButtonForm {}

pub(in crate::web) async fn resume_from_pause(
    State(console): State<ConsoleState>,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    Ok(match console.engine.decisions.resume_from_pause().await? {
        PauseOutcome::Changed => redirect_with_flash("/", FlashMessage::PauseEnded),
        PauseOutcome::Unchanged => redirect_with_flash("/", FlashMessage::NotPaused),
    })
}
