//! Connect webhook of a Sonarr or Radarr: its target settings, its current settings, and their update.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use url::Url;

use super::arr_instance::ArrInstance;
use super::setting_diff::{SettingDiff, without_secrets};
use super::{ConflictPolicy, SetupOutcome, SetupRequest, WebhookSecret};
use crate::arr::ArrError;
use crate::arr::common_api::ServerKind;
use crate::arr::connect_settings::{ConnectEntry, VisibleSecret};
use crate::config::Config;

const NAME: &str = "Dialarr";
/// User name that goes with the secret; Dialarr's webhook checks only the secret.
const USERNAME: &str = "dialarr";
const TOKEN_HEADER: &str = "X-Dialarr-Token";
/// Number by which the servers represent the method POST.
const POST: i64 = 1;

/// URL to which a server sends events, and the secret for them.
#[derive(Debug, Clone)]
pub(crate) struct WebhookTarget {
    pub(crate) address: Url,
    pub(crate) secret: SecretString,
}

impl WebhookTarget {
    /// Builds the target; `None` if the configuration has no secret for events, or no address of Dialarr.
    pub(crate) fn from_config(config: &Config, instance: &ArrInstance) -> Option<Self> {
        let notifications = &config.notifications;
        let (base, secret) = notifications.url.as_ref().zip(notifications.secret.clone())?;
        let mut address = base.clone();
        address.set_path(&format!("{}/webhook/{}", base.path().trim_end_matches('/'), instance.name));
        Some(Self { address, secret })
    }
}

/// Existing or new webhook of a server, and its differences from the target.
pub(crate) struct WebhookPlan {
    pub(crate) connection: ConnectEntry,
    pub(crate) changes: Vec<SettingDiff>,
    /// Number of further webhooks with the same target.
    pub(crate) doubles: usize,
    /// Webhooks with Dialarr's name that lead elsewhere, perhaps to another installation.
    pub(crate) elsewhere: Vec<ConflictingWebhook>,
}

/// Webhook with Dialarr's name that leads elsewhere.
pub(crate) struct ConflictingWebhook {
    pub(crate) name: String,
    /// Address without its secret parts.
    pub(crate) address: String,
}

/// Shows or applies the changes that a server's webhook needs.
pub(crate) async fn set_up(instance: &ArrInstance, hook: &WebhookTarget, work: SetupRequest) -> SetupOutcome {
    let WebhookPlan { mut connection, mut changes, elsewhere, .. } =
        match plan_webhook(instance, hook, work.namesakes).await {
            Ok(plan) => plan,
            Err(error) => return failed_outcome(Vec::new(), &error, instance, hook),
        };
    if work.secret == WebhookSecret::Renew && connection.id().is_some() {
        changes.push(SettingDiff::new("secret", "cannot be read", "sent again"));
    }
    if !changes.is_empty() {
        changes.extend(elsewhere.iter().map(left_alone));
    }
    if changes.is_empty() || !work.applies() {
        return SetupOutcome::planned(changes);
    }
    amend_webhook(&mut connection, instance.server_kind(), hook);
    let saved = instance.common_api().save_connect_entry(&connection).await;
    if let Err(error) = &saved
        && !error.outcome_unknown()
    {
        return failed_outcome(changes, error, instance, hook);
    }
    match (plan_webhook(instance, hook, ConflictPolicy::Leave).await, saved) {
        (Ok(left), _) if left.changes.is_empty() && left.connection.id().is_some() => {
            SetupOutcome::Done(changes)
        }
        (_, Err(error)) | (Err(error), Ok(())) => failed_outcome(changes, &error, instance, hook),
        (Ok(left), Ok(())) => SetupOutcome::unchanged(changes, &left.changes),
    }
}

/// Finds the webhook and compares it with the target. The webhook that leads here belongs to Dialarr, whatever its
/// name. A webhook with Dialarr's name that leads elsewhere may be that of another installation.
pub(crate) async fn plan_webhook(
    instance: &ArrInstance,
    hook: &WebhookTarget,
    namesakes: ConflictPolicy,
) -> Result<WebhookPlan, ArrError> {
    let all = instance.common_api().fetch_connect_entries().await?;
    let names: Vec<String> = all.iter().map(|one| one.name().to_owned()).collect();
    let webhooks = all.into_iter().filter(ConnectEntry::is_webhook);
    let (ours, others): (Vec<_>, Vec<_>) = webhooks.partition(|connection| leads_here(connection, hook));
    let mut named: Vec<ConnectEntry> = others.into_iter().filter(|one| is_our_name(one.name())).collect();
    let doubles = ours.len().saturating_sub(1);
    let found = match ours.into_iter().next() {
        Some(connection) => connection,
        None if namesakes == ConflictPolicy::TakeOver && !named.is_empty() => named.remove(0),
        None => {
            let mut blank =
                instance.common_api().fetch_webhook_template().await?.ok_or(ArrError::NotFound)?;
            blank.rename(&free_name(&names));
            blank
        }
    };
    let changes = webhook_diffs(&found, instance.server_kind(), hook);
    let elsewhere = named.iter().map(ConflictingWebhook::from_settings).collect();
    Ok(WebhookPlan { connection: found, changes, doubles, elsewhere })
}

fn leads_here(connection: &ConnectEntry, hook: &WebhookTarget) -> bool {
    connection.text_field("url").and_then(|url| Url::parse(url).ok()).as_ref() == Some(&hook.address)
}

/// Returns `Dialarr`, or `Dialarr 2` if that name is taken: the servers require unique names.
fn free_name(names: &[String]) -> String {
    let is_free = |name: &String| !names.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number: u32| format!("{NAME} {number}"));
    std::iter::once(NAME.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// Returns whether the name is `Dialarr` or `Dialarr 2`, in any case.
fn is_our_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let number = lower.strip_prefix(&NAME.to_ascii_lowercase()).map(str::trim);
    number.is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit()))
}

fn left_alone(namesake: &ConflictingWebhook) -> SettingDiff {
    SettingDiff::new("another webhook", namesake.to_string(), "left alone; --take-over changes it instead")
}

impl ConflictingWebhook {
    fn from_settings(connection: &ConnectEntry) -> Self {
        let address = without_secrets(connection.text_field("url").unwrap_or_default());
        Self { name: connection.name().to_owned(), address }
    }
}

impl fmt::Display for ConflictingWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.address)
    }
}

fn webhook_diffs(connection: &ConnectEntry, app: ServerKind, hook: &WebhookTarget) -> Vec<SettingDiff> {
    let address = hook.address.as_str();
    let method = match connection.number_field("method") {
        Some(POST) | None => "POST",
        Some(_) => "PUT",
    };
    let tags = if connection.tag_count() == 0 { "" } else { "only tagged titles" };
    let secret = match (connection.visible_secret("password"), connection.visible_header(TOKEN_HEADER)) {
        // A masked secret cannot be compared.
        (VisibleSecret::Masked, _) | (VisibleSecret::Missing, VisibleSecret::Masked) => None,
        (VisibleSecret::Plain(known), _) | (VisibleSecret::Missing, VisibleSecret::Plain(known)) => (known
            != hook.secret.expose_secret())
        .then(|| SettingDiff::new("secret", "another one", "NOTIFICATION_SECRET")),
        (VisibleSecret::Missing, VisibleSecret::Missing) => {
            Some(SettingDiff::new("secret", "", "NOTIFICATION_SECRET"))
        }
    };
    [
        SettingDiff::of_address("address", connection.text_field("url").unwrap_or_default(), address),
        SettingDiff::between("method", method, "POST"),
        secret,
        SettingDiff::between(
            "tells of",
            &in_words(&connection.events()),
            &in_words(&supported_events(connection, app)),
        ),
        SettingDiff::between("restricted to", tags, ""),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn amend_webhook(connection: &mut ConnectEntry, app: ServerKind, hook: &WebhookTarget) {
    let events = supported_events(connection, app);
    connection.limit_events(&events);
    connection.set_field("url", &json!(hook.address.as_str()));
    connection.set_field("method", &json!(POST));
    if connection.text_field("username").is_none() {
        connection.set_field("username", &json!(USERNAME));
    }
    // A masked value would otherwise stay unchanged, right or wrong.
    connection.set_field("password", &json!(hook.secret.expose_secret()));
}

/// Returns the wanted events that this version of the server can send. A season pack is one complete import and many
/// that are not complete; for a version that sends only the latter, those are wanted.
fn supported_events(connection: &ConnectEntry, app: ServerKind) -> Vec<&'static str> {
    let imported = match app {
        ServerKind::Sonarr if connection.supports_event("onImportComplete") => "onImportComplete",
        ServerKind::Sonarr | ServerKind::Radarr => "onDownload",
    };
    let wanted = [imported, "onManualInteractionRequired", "onHealthIssue", "onHealthRestored"];
    wanted.into_iter().filter(|event| connection.supports_event(event)).collect()
}

/// Formats `onImportComplete` as `import complete`, in alphabetical order.
fn in_words(events: &[&str]) -> String {
    let words = |event: &&str| {
        let mut words = String::new();
        for letter in event.trim_start_matches("on").chars() {
            if letter.is_ascii_uppercase() && !words.is_empty() {
                words.push(' ');
            }
            words.push(letter.to_ascii_lowercase());
        }
        words
    };
    let mut names: Vec<String> = events.iter().map(words).collect();
    names.sort_unstable();
    names.join(", ")
}

fn failed_outcome(
    changes: Vec<SettingDiff>,
    error: &ArrError,
    instance: &ArrInstance,
    hook: &WebhookTarget,
) -> SetupOutcome {
    let app = instance.server_kind().name();
    let hint = match error {
        ArrError::Refused(_) => format!(
            "{app} sends a test before it saves; Dialarr must be running, and {app} must reach it at {}",
            hook.address
        ),
        ArrError::NotFound => format!("update {app}: this version knows no webhooks"),
        ArrError::Unauthorized => format!("copy the API key from {app}: Settings, General, Security"),
        ArrError::WrongUrl(_) => format!("check the URL of {app} and its URL base"),
        ArrError::Unreachable(_) | ArrError::NoResponse(_) | ArrError::Unavailable(_) => {
            format!("check that {app} runs and can be reached from here")
        }
        ArrError::Server { .. } | ArrError::Unreadable(_) => format!("look into the log of {app}"),
    };
    SetupOutcome::Failed { changes, why: error.to_string(), hint }
}
