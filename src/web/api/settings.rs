//! Settings routes: all settings with their sources, and changes of stored ones. Secrets can be replaced and are never
//! returned.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use super::database_unavailable;
use super::extract::JsonBody;
use crate::config::{ConfigSources, IneffectiveReason, VARIABLES, ValueSource, Variable, find_setting};
use crate::settings::change::{NeededSecret, SettingsChange, SettingsOutcome};
use crate::settings::{ChangeError, LiveSettings, UseStatus};
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;

/// Setting with its value, unless it is a secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Setting)]
struct SettingJson {
    #[schema(example = "DAILY_TOKENS")]
    name: &'static str,
    group: &'static str,
    label: &'static str,
    /// True for a secret, whose value is never returned.
    secret: bool,
    has_value: bool,
    /// Value from any source. Null for a secret, and for a setting without a value.
    value: Option<String>,
    source: SettingSource,
    /// False for a setting that only the environment or `.env` can set.
    storable: bool,
    /// True if a change takes effect at the next start.
    needs_restart: bool,
    /// Reason why the value is not used.
    problem: Option<String>,
}

/// Source of a setting's value.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum SettingSource {
    Environment,
    EnvFile,
    Stored,
    Default,
}

/// All settings.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Settings {
    /// Number of the newest change.
    version: i64,
    /// Reason why earlier settings are still in use.
    failure: Option<String>,
    /// Changed settings that take effect at the next start.
    needing_restart: Vec<&'static str>,
    settings: Vec<SettingJson>,
}

impl SettingJson {
    fn describe(sources: &ConfigSources, variable: Variable) -> Self {
        let reason = sources.find_ineffective(variable.name).map(|setting| setting.reason);
        Self {
            name: variable.name,
            group: variable.group.id(),
            label: variable.label,
            secret: variable.is_secret(),
            has_value: sources.has_value(variable),
            value: sources.plain_text(variable).map(str::to_owned),
            source: match sources.value_source(variable.name) {
                ValueSource::Environment => SettingSource::Environment,
                ValueSource::EnvFile(_) => SettingSource::EnvFile,
                ValueSource::Stored => SettingSource::Stored,
                ValueSource::Default => SettingSource::Default,
            },
            storable: variable.is_storable(),
            needs_restart: variable.needs_restart(),
            problem: reason.and_then(|reason| match reason {
                IneffectiveReason::Unusable(reason) => Some(reason),
                IneffectiveReason::Overridden(_)
                | IneffectiveReason::EnvironmentOnly
                | IneffectiveReason::Unknown => None,
            }),
        }
    }
}

/// List all settings
#[utoipa::path(
    get,
    path = "/settings",
    tag = "settings",
    operation_id = "list_settings",
    responses(
        (status = 200, description = "All settings", body = Settings),
        (status = 404, description = "A simulated program has no settings"),
    )
)]
pub(super) async fn list_settings(
    State(console): State<ConsoleState>,
    _caller: Caller,
) -> Result<Json<Settings>, ProblemDetails> {
    let settings = live_settings(&console)?;
    // The version is loaded first, so that a change in between is a conflict.
    let version = settings.load_version().await.map_err(database_unavailable)?;
    let sources = settings.load_sources().await.map_err(database_unavailable)?;
    let current = settings.current_use();
    Ok(Json(Settings {
        version,
        failure: current.failure.clone(),
        needing_restart: current.needing_restart.clone(),
        settings: VARIABLES.iter().map(|variable| SettingJson::describe(&sources, *variable)).collect(),
    }))
}

/// Change of stored settings. There is no debug output, because the values contain secrets.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "version": 4, "values": { "DAILY_TOKENS": "2000000", "QUIET_HOURS": null } }))]
pub(super) struct SettingsPatch {
    /// `version` of the settings that the change is based on: if one of them was changed since, nothing is changed.
    #[schema(value_type = Option<i64>)]
    version: Option<Number>,
    /// New values by name. Null removes the stored value.
    values: BTreeMap<String, Option<String>>,
}

impl SettingsPatch {
    fn into_change(self) -> Result<SettingsChange, ProblemDetails> {
        let version = match self.version {
            None => None,
            Some(number) => {
                Some(number.as_i64().ok_or_else(|| unprocessable("version must be an integer".to_owned()))?)
            }
        };
        let mut change = SettingsChange { expected_version: version, ..SettingsChange::default() };
        for (name, value) in self.values {
            let variable = find_setting(&name).map_err(|error| unprocessable(error.to_string()))?;
            match value.as_deref().map(str::trim) {
                None => change.unset.push(name),
                Some("") => {
                    return Err(unprocessable(format!("{name}: the value is empty; null removes it")));
                }
                Some(value) => change.set.push((variable, SecretString::from(value))),
            }
        }
        Ok(change)
    }
}

/// Outcome of a change.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangedSettings {
    /// Number of the change. Null if there was nothing to change.
    version: Option<i64>,
    status: ChangeStatus,
    /// Changed settings that have no effect, because the environment or `.env` sets them too.
    overridden: Vec<&'static str>,
    /// Changed settings that take effect at the next start.
    needing_restart: Vec<&'static str>,
}

/// `unchanged`: the settings already had these values. `in_use`: the change is stored and in use. `not_in_use`: it is
/// stored, and the program still uses earlier settings.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ChangeStatus {
    Unchanged,
    InUse,
    NotInUse,
}

/// Change stored settings
///
/// All values are changed together, or none is. The change is in use when the response is sent, except for settings
/// that need a restart. A new password of the console ends all sessions.
#[utoipa::path(
    patch,
    path = "/settings",
    tag = "settings",
    operation_id = "change_settings",
    request_body = SettingsPatch,
    responses(
        (status = 200, description = "The change is stored, or there was nothing to change", body = ChangedSettings),
        (status = 404, description = "A simulated program has no settings"),
        (status = 409, description = "A setting was changed since the given version"),
        (status = 422, description = "A value is invalid, or a secret has to be given again; the detail lists each"),
    )
)]
pub(super) async fn change_settings(
    State(console): State<ConsoleState>,
    caller: Caller,
    JsonBody(patch): JsonBody<SettingsPatch>,
) -> Result<Json<ChangedSettings>, ProblemDetails> {
    let settings = live_settings(&console)?;
    let change = patch.into_change()?;
    let outcome = settings.apply_changes(change, caller.actor(), console.clock.now()).await;
    let (version, status, overridden) = match outcome.map_err(change_failed)? {
        SettingsOutcome::Changed { version, overridden } => {
            let status = match settings.wait_until_used(version).await {
                UseStatus::InUse => ChangeStatus::InUse,
                UseStatus::NotInUse => ChangeStatus::NotInUse,
            };
            (Some(version), status, overridden.into_iter().map(|(name, _)| name).collect())
        }
        SettingsOutcome::Unchanged => (None, ChangeStatus::Unchanged, Vec::new()),
        SettingsOutcome::Conflict => {
            let detail = "a setting was changed since this version, read the settings again";
            return Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
        }
        SettingsOutcome::Invalid(problems) => {
            let problems = problems.iter().map(|problem| format!("{}: {}", problem.variable, problem.reason));
            return Err(unprocessable(problems.collect::<Vec<_>>().join("; ")));
        }
        SettingsOutcome::SecretNeeded(needed) => {
            return Err(unprocessable(needed.iter().map(describe_needed).collect::<Vec<_>>().join("; ")));
        }
        SettingsOutcome::SecretsFileFailed(error) => {
            tracing::error!(%error, "failed to store secrets");
            let detail = "the file of the secrets cannot be used, see the log";
            return Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
    };
    let needing_restart = settings.current_use().needing_restart.clone();
    Ok(Json(ChangedSettings { version, status, overridden, needing_restart }))
}

fn live_settings(console: &ConsoleState) -> Result<&LiveSettings, ProblemDetails> {
    let no_settings = || ProblemDetails::new(StatusCode::NOT_FOUND, "a simulated program has no settings");
    console.settings.as_ref().ok_or_else(no_settings)
}

fn unprocessable(detail: String) -> ProblemDetails {
    ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

fn change_failed(error: ChangeError) -> ProblemDetails {
    match error {
        ChangeError::Store(error) => database_unavailable(error),
        error @ (ChangeError::Hash(_) | ChangeError::TaskFailed(_)) => {
            tracing::error!(%error, "failed to change settings");
            ProblemDetails::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the change could not be prepared, try again later",
            )
        }
    }
}

fn describe_needed(NeededSecret { variable, source, origin }: &NeededSecret) -> String {
    let origin = origin.as_deref().unwrap_or("no server");
    let repair = match source {
        ValueSource::Stored | ValueSource::Default => "give its value for the new server too".to_owned(),
        ValueSource::Environment | ValueSource::EnvFile(_) => {
            format!("change the URL in the same place as the secret ({source})")
        }
    };
    format!("{variable} belongs to {origin}, and is not sent to another server: {repair}")
}
