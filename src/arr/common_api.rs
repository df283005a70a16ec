//! API endpoints that are the same in Sonarr and Radarr: status, profiles, folders, queue, commands and health.

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::api::ApiClient;
use super::title_limit::{LimitedRecord, TitleLimit};
use super::{ArrError, QualityProfile, RemovalOutcome, RootFolder, SystemStatus, error_message, wire};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    Sonarr,
    Radarr,
}

/// Endpoints shared by Sonarr and Radarr, at one instance.
#[derive(Debug, Clone, Copy)]
pub struct CommonApi<'a>(pub(super) &'a ApiClient);

/// Handling of the release when a download is removed from the queue. Its downloaded files are always deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscardMode {
    /// Blocks the release, so that it is never grabbed again, and searches for no other release.
    Block,
    /// Blocks the release as `Block` does. The instance searches for another one if it is configured to do so.
    BlockAndReplace,
}

/// Problem that the instance reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthProblem {
    pub level: HealthLevel,
    /// Name of the check, such as `IndexerStatusCheck`.
    pub source: String,
    /// Message without file paths.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthLevel {
    Notice,
    Warning,
    Error,
}

impl ServerKind {
    /// Returns the name that the application uses for itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sonarr => "Sonarr",
            Self::Radarr => "Radarr",
        }
    }
}

impl CommonApi<'_> {
    /// Returns the identity of the server: scheme, host, port and URL base.
    pub fn identity(&self) -> String {
        self.0.identity()
    }

    pub async fn fetch_status(self) -> Result<SystemStatus, ArrError> {
        self.0.get("system/status", &[]).await
    }

    pub async fn fetch_profiles(self) -> Result<Vec<QualityProfile>, ArrError> {
        let profiles = self.0.get_list::<wire::ProfileResource, _>("qualityprofile", &[]).await?;
        self.0.remember_profiles(&profiles);
        Ok(profiles)
    }

    /// Returns the quality profiles as they were fetched last. The list is empty before the first fetch.
    pub fn known_profiles(self) -> Vec<QualityProfile> {
        self.0.known_profiles()
    }

    pub async fn fetch_root_folders(self) -> Result<Vec<RootFolder>, ArrError> {
        self.0.get_list::<wire::RootFolderResource, _>("rootfolder", &[]).await
    }

    /// Returns a counter that grows whenever Dialarr knows of a possible change in the instance. Data that was read at a
    /// smaller count may be outdated.
    pub fn change_count(self) -> u64 {
        self.0.change_count()
    }

    /// Records a change in the instance that did not come from this client, such as one reported by a webhook.
    pub fn record_change(self) {
        self.0.record_change();
    }

    /// Removes the whole download that `row` belongs to from the queue and from the download client.
    pub async fn discard_download(self, row: i64, mode: DiscardMode) -> Result<RemovalOutcome, ArrError> {
        let skip_redownload = match mode {
            DiscardMode::Block => "true",
            DiscardMode::BlockAndReplace => "false",
        };
        let query = [
            ("removeFromClient", "true"),
            ("blocklist", "true"),
            ("skipRedownload", skip_redownload),
            ("changeCategory", "false"),
        ];
        removal_outcome(self.0.delete(&format!("queue/{row}"), &query).await)
    }

    /// Marks a grab of the history as failed. Its release is never grabbed again, and the instance searches for another
    /// one if it is configured to do so. Returns `NotFound` if the history does not contain the grab.
    pub async fn fail_grab(self, history: i64) -> Result<(), ArrError> {
        self.0.post(&format!("history/failed/{history}")).await
    }

    /// Returns whether the instance automatically searches for another release after one has failed, even if the failed
    /// one was selected manually.
    pub async fn fetch_replaces_failed(self) -> Result<bool, ArrError> {
        let config: ClientConfig = self.0.get("config/downloadclient", &[]).await?;
        // Older versions do not distinguish manually selected releases.
        let includes_manual = config.auto_redownload_failed_from_interactive_search != Some(false);
        Ok(config.auto_redownload_failed == Some(true) && includes_manual)
    }

    /// Fetches the health problems. The result is empty if there are none.
    pub async fn fetch_health(self) -> Result<Vec<HealthProblem>, ArrError> {
        let checks: Vec<HealthCheck> = self.0.get("health", &[]).await?;
        Ok(checks.into_iter().filter_map(HealthCheck::into_problem).collect())
    }

    /// Starts a command. A command that is already under way is not started a second time.
    pub(super) async fn start_command(self, command: &Value) -> Result<(), ArrError> {
        self.0.write_json(Method::POST, "command", command).await
    }
}

/// Converts the result of a deletion. The deletion of a record that no longer exists is not a failure.
pub(super) fn removal_outcome(result: Result<(), ArrError>) -> Result<RemovalOutcome, ArrError> {
    match result {
        Ok(()) => Ok(RemovalOutcome::Removed),
        Err(ArrError::NotFound) => Ok(RemovalOutcome::AlreadyGone),
        Err(error) => Err(error),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ClientConfig {
    auto_redownload_failed: Option<bool>,
    auto_redownload_failed_from_interactive_search: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HealthCheck {
    source: Option<String>,
    r#type: Option<String>,
    message: Option<String>,
}

/// Settings of Radarr for metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MetadataConfig {
    pub(super) certification_country: Option<String>,
}

impl LimitedRecord for HealthCheck {
    /// Drops every problem, because its message may name a title.
    fn within_limit(self, _limit: &TitleLimit) -> Option<Self> {
        None
    }
}

impl HealthCheck {
    fn into_problem(self) -> Option<HealthProblem> {
        let level = match self.r#type.as_deref() {
            Some("ok") => return None,
            Some("notice") => HealthLevel::Notice,
            Some("error") => HealthLevel::Error,
            // An unknown level is reported, but not as an error.
            Some(_) | None => HealthLevel::Warning,
        };
        let message = self.message.as_deref().map(error_message::plain_message).unwrap_or_default();
        Some(HealthProblem { level, source: self.source.unwrap_or_default(), message })
    }
}
