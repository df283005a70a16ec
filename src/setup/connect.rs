//! Webhook entry of a Sonarr or Radarr instance: comparison with its target settings, and update.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use url::Url;

use super::arr_instance::ConfiguredInstance;
use super::setting_diff::{SettingDiff, without_secrets};
use super::{ConflictPolicy, SetupOutcome, SetupRequest, WebhookSecret};
use crate::arr::ArrError;
use crate::arr::common_api::ServerKind;
use crate::arr::connect_settings::{ConnectEntry, VisibleSecret};
use crate::config::Config;

const ENTRY_NAME: &str = "Dialarr";
/// User name beside the secret. Dialarr checks only the secret.
const USERNAME: &str = "dialarr";
const TOKEN_HEADER: &str = "X-Dialarr-Token";
const SECRET: &str = "secret";
/// Name of the difference for a webhook that stays unchanged.
pub(crate) const ANOTHER_WEBHOOK: &str = "another webhook";
/// Number of the method POST in the API.
const POST_METHOD: i64 = 1;

/// URL to which an instance sends events, and their secret.
#[derive(Debug, Clone)]
pub(crate) struct WebhookTarget {
    pub(crate) url: Url,
    pub(crate) secret: SecretString,
}

impl WebhookTarget {
    /// Creates the target. Returns `None` if the secret or the URL of Dialarr is not configured.
    pub(crate) fn from_config(config: &Config, instance: &ConfiguredInstance) -> Option<Self> {
        let notifications = &config.notifications;
        let (base, secret) = notifications.url.as_ref().zip(notifications.secret.clone())?;
        let mut url = base.clone();
        url.set_path(&format!("{}/webhook/{}", base.path().trim_end_matches('/'), instance.name));
        Some(Self { url, secret })
    }
}

/// Existing or new webhook entry, and its differences from the target.
pub(crate) struct WebhookPlan {
    pub(crate) entry: ConnectEntry,
    pub(crate) changes: Vec<SettingDiff>,
    /// Number of additional webhooks with the same URL.
    pub(crate) duplicates: usize,
    /// Webhooks with Dialarr's name but another URL, perhaps of another installation.
    pub(crate) conflicts: Vec<ConflictingWebhook>,
}

/// Webhook with Dialarr's name but another URL.
pub(crate) struct ConflictingWebhook {
    pub(crate) name: String,
    /// URL without secrets.
    pub(crate) url: String,
}

/// Plans or applies the changes that the webhook of an instance needs.
pub(crate) async fn set_up(
    instance: &ConfiguredInstance,
    target: &WebhookTarget,
    request: SetupRequest,
) -> SetupOutcome {
    let WebhookPlan { mut entry, mut changes, conflicts, .. } =
        match plan_webhook(instance, target, request.conflict_policy).await {
            Ok(plan) => plan,
            Err(error) => return failed_outcome(Vec::new(), &error, instance, target),
        };
    let may_differ = entry.id().is_some() && !changes.iter().any(|change| change.name() == SECRET);
    if request.secret == WebhookSecret::Renew && may_differ {
        changes.push(SettingDiff::new(SECRET, "not readable", "sent again"));
    }
    if !changes.is_empty() {
        changes.extend(conflicts.iter().map(unchanged_conflict));
    }
    if changes.is_empty() || !request.applies() {
        return SetupOutcome::planned(changes);
    }
    apply_target(&mut entry, instance.server_kind(), target);
    let saved = instance.common_api().save_connect_entry(&entry).await;
    if let Err(error) = &saved
        && !error.outcome_unknown()
    {
        return failed_outcome(changes, error, instance, target);
    }
    match (plan_webhook(instance, target, ConflictPolicy::Leave).await, saved) {
        (Ok(remaining), _) if remaining.changes.is_empty() && remaining.entry.id().is_some() => {
            SetupOutcome::Applied(changes)
        }
        (_, Err(error)) | (Err(error), Ok(())) => failed_outcome(changes, &error, instance, target),
        (Ok(remaining), Ok(())) => SetupOutcome::unchanged(changes, &remaining.changes),
    }
}

/// Finds the webhook with the target's URL, whatever its name, and compares it with the target. A webhook with Dialarr's
/// name but another URL may belong to another installation.
pub(crate) async fn plan_webhook(
    instance: &ConfiguredInstance,
    target: &WebhookTarget,
    conflict_policy: ConflictPolicy,
) -> Result<WebhookPlan, ArrError> {
    let entries = instance.common_api().fetch_connect_entries().await?;
    let names: Vec<String> = entries.iter().map(|entry| entry.name().to_owned()).collect();
    let webhooks = entries.into_iter().filter(ConnectEntry::is_webhook);
    let (ours, others): (Vec<_>, Vec<_>) = webhooks.partition(|entry| points_here(entry, target));
    let mut same_name: Vec<ConnectEntry> =
        others.into_iter().filter(|entry| is_our_name(entry.name())).collect();
    let duplicates = ours.len().saturating_sub(1);
    let entry = match ours.into_iter().next() {
        Some(entry) => entry,
        None if conflict_policy == ConflictPolicy::TakeOver && !same_name.is_empty() => same_name.remove(0),
        None => {
            let mut template =
                instance.common_api().fetch_webhook_template().await?.ok_or(ArrError::NotFound)?;
            template.rename(&free_name(&names));
            template
        }
    };
    let changes = webhook_diffs(&entry, instance.server_kind(), target);
    let conflicts = same_name.iter().map(ConflictingWebhook::from_entry).collect();
    Ok(WebhookPlan { entry, changes, duplicates, conflicts })
}

fn points_here(entry: &ConnectEntry, target: &WebhookTarget) -> bool {
    entry.text_field("url").and_then(|url| Url::parse(url).ok()).as_ref() == Some(&target.url)
}

/// Returns `Dialarr`, or a name such as `Dialarr 2` if that one is taken. Names must be unique.
fn free_name(names: &[String]) -> String {
    let is_free = |name: &String| !names.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number: u32| format!("{ENTRY_NAME} {number}"));
    std::iter::once(ENTRY_NAME.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// Returns whether the name is `Dialarr` or one such as `Dialarr 2`, ignoring case.
fn is_our_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let number = lower.strip_prefix(&ENTRY_NAME.to_ascii_lowercase()).map(str::trim);
    number.is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit()))
}

fn unchanged_conflict(conflict: &ConflictingWebhook) -> SettingDiff {
    SettingDiff::new(ANOTHER_WEBHOOK, conflict.to_string(), "unchanged")
}

impl ConflictingWebhook {
    fn from_entry(entry: &ConnectEntry) -> Self {
        let url = without_secrets(entry.text_field("url").unwrap_or_default());
        Self { name: entry.name().to_owned(), url }
    }
}

impl fmt::Display for ConflictingWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.url)
    }
}

fn webhook_diffs(entry: &ConnectEntry, kind: ServerKind, target: &WebhookTarget) -> Vec<SettingDiff> {
    let target_url = target.url.as_str();
    let method = match entry.number_field("method") {
        Some(POST_METHOD) | None => "POST",
        Some(_) => "PUT",
    };
    let tags = if entry.tag_count() == 0 { "" } else { "only tagged titles" };
    let secret = match (entry.visible_secret("password"), entry.visible_header(TOKEN_HEADER)) {
        // A masked secret cannot be compared.
        (VisibleSecret::Masked, _) | (VisibleSecret::Missing, VisibleSecret::Masked) => None,
        (VisibleSecret::Plain(current), _) | (VisibleSecret::Missing, VisibleSecret::Plain(current)) => {
            (current != target.secret.expose_secret())
                .then(|| SettingDiff::new(SECRET, "a different one", "NOTIFICATION_SECRET"))
        }
        (VisibleSecret::Missing, VisibleSecret::Missing) => {
            Some(SettingDiff::new(SECRET, "", "NOTIFICATION_SECRET"))
        }
    };
    [
        SettingDiff::between_urls("address", entry.text_field("url").unwrap_or_default(), target_url),
        SettingDiff::between("method", method, "POST"),
        secret,
        SettingDiff::between(
            "events",
            &format_event_names(&entry.events()),
            &format_event_names(&supported_events(entry, kind)),
        ),
        SettingDiff::between("restricted to", tags, ""),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn apply_target(entry: &mut ConnectEntry, kind: ServerKind, target: &WebhookTarget) {
    let events = supported_events(entry, kind);
    entry.limit_events(&events);
    entry.set_field("url", &json!(target.url.as_str()));
    entry.set_field("method", &json!(POST_METHOD));
    if entry.text_field("username").is_none() {
        entry.set_field("username", &json!(USERNAME));
    }
    // A masked secret would otherwise stay unchanged.
    entry.set_field("password", &json!(target.secret.expose_secret()));
}

/// Returns the events that Dialarr needs and this version of the server supports. `onImportComplete` reports a season
/// pack in one event. Older versions support only `onDownload`, with one event per file.
fn supported_events(entry: &ConnectEntry, kind: ServerKind) -> Vec<&'static str> {
    let imported = match kind {
        ServerKind::Sonarr if entry.supports_event("onImportComplete") => "onImportComplete",
        ServerKind::Sonarr | ServerKind::Radarr => "onDownload",
    };
    let needed = [imported, "onManualInteractionRequired", "onHealthIssue", "onHealthRestored"];
    needed.into_iter().filter(|event| entry.supports_event(event)).collect()
}

/// Formats `onImportComplete` as `import complete`, in alphabetical order.
fn format_event_names(events: &[&str]) -> String {
    let format_name = |event: &&str| {
        let mut name = String::new();
        for letter in event.trim_start_matches("on").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push(' ');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    };
    let mut names: Vec<String> = events.iter().map(format_name).collect();
    names.sort_unstable();
    names.join(", ")
}

fn failed_outcome(
    changes: Vec<SettingDiff>,
    error: &ArrError,
    instance: &ConfiguredInstance,
    target: &WebhookTarget,
) -> SetupOutcome {
    let app = instance.server_kind().name();
    let hint = match error {
        ArrError::Refused(_) => format!(
            "{app} sends a test before it saves; Dialarr must be running, and {app} must reach it at {}",
            target.url
        ),
        ArrError::NotFound => format!("update {app}: this version does not support webhooks"),
        ArrError::Unauthorized => format!("copy the API key from {app}: Settings, General, Security"),
        ArrError::WrongUrl(_) => format!("check the URL of {app} and its URL base"),
        ArrError::Unreachable(_) | ArrError::NoResponse(_) | ArrError::Unavailable(_) => {
            format!("check that {app} is running and reachable from here")
        }
        ArrError::Server { .. } | ArrError::Unreadable(_) => format!("check the log of {app}"),
    };
    SetupOutcome::Failed { changes, reason: error.to_string(), hint }
}
