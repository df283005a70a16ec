//! Webhooks in the setup assistant: their changes are shown first, and made by one button.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use super::home::actions::ButtonForm;
use super::responses::{PageError, PageResult};
use super::setting_field::FieldInput;
use super::settings_form::SettingSection;
use super::settings_save::load_settings;
use super::setup_assistant::{SetupPageRequest, StepOutcome};
use crate::access_rules::{is_loopback_host, parse_host};
use crate::config::variables::{NOTIFICATION_SECRET, NOTIFICATION_URL, PUBLIC_URL};
use crate::config::{Bootstrap, Config, ConfigSources};
use crate::http::HttpClient;
use crate::settings::change::SettingsChange;
use crate::settings::setup_step::SetupStep;
use crate::setup::webhooks::{WebhookSetup, set_up_webhooks};
use crate::setup::{ConflictPolicy, SetupMode, SetupOutcome, SetupRequest, WebhookSecret};
use crate::store::Conn;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::web::auth::{Operator, SignedForm, random_secret};
use crate::web::console_state::ConsoleState;

/// Time limit for reading or changing all webhooks.
const WEBHOOKS_TIMEOUT: Duration = Duration::from_secs(30);

/// Webhook with its changes.
pub(super) struct WebhookLine {
    pub(super) subject: String,
    pub(super) class: &'static str,
    pub(super) state: &'static str,
    pub(super) reason: Option<String>,
    pub(super) changes: Vec<String>,
    pub(super) hint: Option<String>,
    /// True if the button makes the changes.
    pub(super) is_planned: bool,
}

pub(in crate::web) async fn install_webhooks(
    State(console): State<ConsoleState>,
    operator: Operator,
    headers: HeaderMap,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    let settings = console.settings.as_ref().ok_or(PageError::NotFound)?;
    let (_, sources) = load_settings(settings).await?;
    let (intent, now) = (audit_entry("write", json!({})), console.clock.now());
    console.db.write(move |conn| audit::record_intent(conn, &intent, now)).await?;
    let setups = run_setup(&sources, SetupMode::Apply).await;
    console.connection_tester.current().request_check();
    // Without an outcome the row keeps saying that the change was started.
    if let Ok(setups) = &setups {
        let (entry, now) = (outcome_entry(setups), console.clock.now());
        let record = move |conn: &mut Conn| {
            audit::record_outcome(conn, &entry, now);
            Ok(())
        };
        console.db.write(record).await?;
    }
    let webhooks = Some(WebhookLine::list(setups));
    let outcome = StepOutcome { webhooks, ..StepOutcome::default() };
    let request = SetupPageRequest { console: &console, operator: &operator, headers: &headers };
    request.render_step(Some(SetupStep::Webhooks), outcome).await
}

/// Lists the changes that the webhooks need; none before their secret and URL are known.
pub(super) async fn plan_webhooks(sources: &ConfigSources) -> Vec<WebhookLine> {
    let has_url = sources.has_value(NOTIFICATION_URL) || sources.has_value(PUBLIC_URL);
    if has_url && sources.has_value(NOTIFICATION_SECRET) {
        WebhookLine::list(run_setup(sources, SetupMode::Show).await)
    } else {
        Vec::new()
    }
}

/// Adds a random webhook secret to a change if there is none.
pub(super) fn add_missing_secret(change: &mut SettingsChange, sources: &ConfigSources) {
    if !sources.has_value(NOTIFICATION_SECRET) {
        change.set.push((NOTIFICATION_SECRET, random_secret()));
    }
}

/// Fills an empty URL field with the address at which the browser reaches this machine, before the webhooks are set up:
/// Sonarr and Radarr can usually reach it too, but a tunnel of the public URL forwards only the requests of Twilio. A
/// loopback address is of no use to a Sonarr or Radarr on another machine or in another container.
pub(super) fn suggest_url(section: &mut SettingSection, sources: &ConfigSources, headers: &HeaderMap) {
    let host = headers.get(HOST).and_then(|host| parse_host(host.to_str().ok()?));
    let Some(host) = host.filter(|_| !sources.has_value(NOTIFICATION_SECRET)) else { return };
    if is_loopback_host(&host) && has_distant_library(sources) {
        return;
    }
    let Ok(Bootstrap { listen, .. }) = Bootstrap::from_sources(sources) else { return };
    let empty = section.fields.iter_mut().filter(|field| {
        field.name == NOTIFICATION_URL.name && field.input == FieldInput::Text && field.value.is_empty()
    });
    empty.for_each(|field| field.value = format!("http://{host}:{}", listen.port()));
}

/// Returns whether any Sonarr or Radarr is not on this machine.
fn has_distant_library(sources: &ConfigSources) -> bool {
    SetupStep::Library.variables().iter().any(|variable| {
        let url = sources.plain_text(*variable).and_then(|text| Url::parse(text.trim()).ok());
        url.and_then(|url| url.host().map(|host| !is_loopback_host(&host))).unwrap_or(false)
    })
}

/// Plans or makes the changes. The error is a sentence for the operator.
async fn run_setup(sources: &ConfigSources, mode: SetupMode) -> Result<Vec<WebhookSetup>, String> {
    // A webhook from before a new secret looks the same, so the secret is always sent again.
    let request = SetupRequest { mode, secret: WebhookSecret::Renew, conflict_policy: ConflictPolicy::Leave };
    let config = Config::from_sources(sources).map_err(|error| format!("failed to {error}"))?;
    let http = HttpClient::network().map_err(|error| format!("failed to set up the HTTP client: {error}"))?;
    let setups = timeout(WEBHOOKS_TIMEOUT, set_up_webhooks(&config, &http, request)).await;
    setups.map_err(|_| "no response in time".to_owned())
}

fn audit_entry(kind: &'static str, detail: Value) -> NewAuditEntry {
    NewAuditEntry { actor: Actor::Console, kind, subject: AuditSubject::Webhooks, detail }
}

/// Returns the audit entry of an installation that has ended, with the names of the changed and failed webhooks.
fn outcome_entry(setups: &[WebhookSetup]) -> NewAuditEntry {
    let (mut changed, mut failed) = (Vec::new(), Vec::new());
    for WebhookSetup { subject, outcome } in setups {
        match outcome {
            SetupOutcome::Applied(_) => changed.push(subject),
            SetupOutcome::Failed { .. } => failed.push(subject),
            SetupOutcome::Skipped { .. } | SetupOutcome::UpToDate | SetupOutcome::Planned(_) => {}
        }
    }
    match (changed.as_slice(), failed.as_slice()) {
        ([], []) => audit_entry("write_unchanged", json!({})),
        (changed, []) => audit_entry("write_done", json!({ "changed": changed })),
        (changed, failed) => audit_entry("write_failed", json!({ "changed": changed, "failed": failed })),
    }
}

impl WebhookLine {
    fn list(setups: Result<Vec<WebhookSetup>, String>) -> Vec<Self> {
        match setups {
            Ok(setups) => setups.into_iter().map(Self::from_setup).collect(),
            Err(reason) => vec![Self::failed(reason)],
        }
    }

    fn failed(reason: String) -> Self {
        Self {
            subject: "Webhooks".to_owned(),
            class: "bad",
            state: "failed",
            reason: Some(reason),
            changes: Vec::new(),
            hint: None,
            is_planned: false,
        }
    }

    fn from_setup(WebhookSetup { subject, outcome }: WebhookSetup) -> Self {
        let is_planned = matches!(outcome, SetupOutcome::Planned(_));
        let (class, state, changes) = match &outcome {
            SetupOutcome::Skipped { .. } => ("", "skipped", [].as_slice()),
            SetupOutcome::UpToDate => ("good", "nothing to change", [].as_slice()),
            SetupOutcome::Planned(changes) => ("warn", "to change", changes.as_slice()),
            SetupOutcome::Applied(changes) => ("good", "done", changes.as_slice()),
            SetupOutcome::Failed { changes, .. } => ("bad", "failed", changes.as_slice()),
        };
        let changes = changes.iter().map(ToString::to_string).collect();
        let (reason, hint) = match outcome {
            SetupOutcome::Skipped { reason, hint } => (Some(reason), Some(hint)),
            SetupOutcome::Failed { reason, hint, .. } => (Some(format!("failed to {reason}")), Some(hint)),
            SetupOutcome::UpToDate | SetupOutcome::Planned(_) | SetupOutcome::Applied(_) => (None, None),
        };
        Self { subject, class, state, reason, changes, hint, is_planned }
    }
}
