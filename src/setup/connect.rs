//! The Connect webhook of a Sonarr or Radarr: how it should be, how it is, and making it so.

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
/// The name that goes with the secret; our webhook looks at the secret alone.
const USERNAME: &str = "dialarr";
const TOKEN_HEADER: &str = "X-Dialarr-Token";
/// How the servers write the method POST.
const POST: i64 = 1;

/// Where a server is to report, and with which secret.
#[derive(Debug, Clone)]
pub(crate) struct WebhookTarget {
    pub(crate) address: Url,
    pub(crate) secret: SecretString,
}

impl WebhookTarget {
    /// `None` if the configuration has no secret for reports, or no address of ours.
    pub(crate) fn from_config(config: &Config, instance: &ArrInstance) -> Option<Self> {
        let notifications = &config.notifications;
        let (base, secret) = notifications.url.as_ref().zip(notifications.secret.clone())?;
        let mut address = base.clone();
        address.set_path(&format!("{}/webhook/{}", base.path().trim_end_matches('/'), instance.name));
        Some(Self { address, secret })
    }
}

/// What there is, or what would be made, and what about it is not as it should be.
pub(crate) struct WebhookPlan {
    pub(crate) connection: ConnectEntry,
    pub(crate) changes: Vec<SettingDiff>,
    /// Further webhooks to the same place.
    pub(crate) doubles: usize,
    /// Webhooks with our name that lead elsewhere, perhaps to another installation.
    pub(crate) elsewhere: Vec<ConflictingWebhook>,
}

/// A webhook with our name that leads elsewhere.
pub(crate) struct ConflictingWebhook {
    pub(crate) name: String,
    /// Without what may be secret.
    pub(crate) address: String,
}

/// Shows or does what a server's webhook needs.
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

/// Looks up the webhook and compares it. The one that leads here is ours, whatever its name. One with our name that leads
/// elsewhere may be that of another installation.
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
            let mut blank = instance.common_api().blank_webhook().await?.ok_or(ArrError::NotFound)?;
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

/// `Dialarr`, or `Dialarr 2` where there is one already: the servers want names that differ.
fn free_name(names: &[String]) -> String {
    let is_free = |name: &String| !names.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number: u32| format!("{NAME} {number}"));
    std::iter::once(NAME.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// `Dialarr` or `Dialarr 2`, in whatever letters.
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
        // Nobody can tell whether it is the right one.
        (VisibleSecret::Masked, _) | (VisibleSecret::Nothing, VisibleSecret::Masked) => None,
        (VisibleSecret::Plain(known), _) | (VisibleSecret::Nothing, VisibleSecret::Plain(known)) => (known
            != hook.secret.expose_secret())
        .then(|| SettingDiff::new("secret", "another one", "NOTIFICATION_SECRET")),
        (VisibleSecret::Nothing, VisibleSecret::Nothing) => {
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
            &in_words(&missing_events(connection, app)),
        ),
        SettingDiff::between("restricted to", tags, ""),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn amend_webhook(connection: &mut ConnectEntry, app: ServerKind, hook: &WebhookTarget) {
    let events = missing_events(connection, app);
    connection.tell_only(&events);
    connection.set_field("url", &json!(hook.address.as_str()));
    connection.set_field("method", &json!(POST));
    if connection.text_field("username").is_none() {
        connection.set_field("username", &json!(USERNAME));
    }
    // What is masked would stay as it is, right or wrong.
    connection.set_field("password", &json!(hook.secret.expose_secret()));
}

/// What we want to hear, as far as this version can tell it. A season pack is one import that is complete, and many
/// that are not; where only those are told, they have to do.
fn missing_events(connection: &ConnectEntry, app: ServerKind) -> Vec<&'static str> {
    let imported = match app {
        ServerKind::Sonarr if connection.can_be_told("onImportComplete") => "onImportComplete",
        ServerKind::Sonarr | ServerKind::Radarr => "onDownload",
    };
    let wanted = [imported, "onManualInteractionRequired", "onHealthIssue", "onHealthRestored"];
    wanted.into_iter().filter(|event| connection.can_be_told(event)).collect()
}

/// `onImportComplete` as `import complete`, in the order of the alphabet.
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
    let mut told: Vec<String> = events.iter().map(words).collect();
    told.sort_unstable();
    told.join(", ")
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
        ArrError::Unreachable(_) | ArrError::NoAnswer(_) | ArrError::Unavailable(_) => {
            format!("check that {app} runs and can be reached from here")
        }
        ArrError::Server { .. } | ArrError::Unreadable(_) => format!("look into the log of {app}"),
    };
    SetupOutcome::Failed { changes, why: error.to_string(), hint }
}
