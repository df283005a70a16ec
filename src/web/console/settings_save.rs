//! Use of a submitted form of settings: it is saved, in use when the response is sent, and its connections are tested.

use axum::http::header::{HeaderName, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::AppendHeaders;
use secrecy::SecretString;

use super::flash::FlashMessage;
use super::responses::PageError;
use super::settings_form::{FormScope, Refusal};
use super::test_report::TestReport;
use crate::config::ConfigSources;
use crate::settings::change::{SettingsChange, SettingsOutcome};
use crate::settings::{LiveSettings, UseStatus};
use crate::store::audit::Actor;
use crate::web::auth::sign_in::{self, SignInOutcome};
use crate::web::console_state::ConsoleState;

/// Outcome of saving a form.
pub(super) enum FormSave {
    Saved {
        /// `None` if there was nothing to change.
        flash: Option<FlashMessage>,
        session: SessionHeader,
    },
    Refused(StatusCode, Refusal),
}

/// Header with the cookie of a session that replaces the one that a changed password has ended.
pub(super) type SessionHeader = Option<AppendHeaders<[(HeaderName, String); 1]>>;

/// Saves a change of the operator, and waits until it is in use.
pub(super) async fn save_form(
    console: &ConsoleState,
    settings: &LiveSettings,
    headers: &HeaderMap,
    change: SettingsChange,
) -> Result<FormSave, PageError> {
    let password = change.plain_password();
    let outcome = settings.apply_changes(change, Actor::Console, console.clock.now()).await?;
    let (status, refusal) = match outcome {
        SettingsOutcome::Changed { version, .. } => {
            let flash = match settings.wait_until_used(version).await {
                UseStatus::InUse => FlashMessage::SettingsSaved,
                UseStatus::NotInUse => FlashMessage::SettingsNotInUse,
            };
            let session = match password {
                Some(password) => replace_session(console, headers, password).await,
                None => None,
            };
            return Ok(FormSave::Saved { flash: Some(flash), session });
        }
        SettingsOutcome::Unchanged => return Ok(FormSave::Saved { flash: None, session: None }),
        SettingsOutcome::Conflict => (StatusCode::CONFLICT, Refusal::Conflict),
        SettingsOutcome::Invalid(problems) => (StatusCode::UNPROCESSABLE_ENTITY, Refusal::Invalid(problems)),
        SettingsOutcome::SecretNeeded(needed) => {
            (StatusCode::UNPROCESSABLE_ENTITY, Refusal::SecretNeeded(needed))
        }
        SettingsOutcome::SecretsFileFailed(error) => {
            tracing::error!(%error, "failed to store secrets");
            (StatusCode::INTERNAL_SERVER_ERROR, Refusal::SecretsFile(error))
        }
    };
    Ok(FormSave::Refused(status, refusal))
}

/// Signs the operator in with the password that was just set, which has ended all sessions.
async fn replace_session(
    console: &ConsoleState,
    headers: &HeaderMap,
    password: SecretString,
) -> SessionHeader {
    match sign_in::sign_in_with_password(console, headers, password).await {
        Ok(SignInOutcome::SignedIn(cookie)) => Some(AppendHeaders([(SET_COOKIE, cookie)])),
        // The operator signs in on the page that follows.
        Ok(SignInOutcome::Refused | SignInOutcome::RetryAfter(_)) => None,
        Err(error) => {
            tracing::warn!(%error, "failed to sign in after a change of the password");
            None
        }
    }
}

/// Tests the connections of a form. Returns `None` if it has none.
pub(super) async fn check_scope(console: &ConsoleState, scope: &FormScope) -> Option<TestReport> {
    let outcome = console.connection_tester.current().check_group(scope.tested?).await;
    Some(TestReport::from_outcome(outcome))
}

/// Loads the sources, and a number that is not newer than they are, so that a change in between is a conflict.
pub(super) async fn load_settings(settings: &LiveSettings) -> Result<(i64, ConfigSources), PageError> {
    let version = settings.load_version().await?;
    Ok((version, settings.load_sources().await?))
}
