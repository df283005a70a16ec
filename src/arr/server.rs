//! Features that Sonarr and Radarr share besides their libraries: queue, grabs, commands, disks and health.

use serde::Deserialize;
use serde_json::Value;

use super::api::Api;
use super::{ArrError, Profile, Removal, RootFolder, SystemStatus, remark, wire};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum App {
    Sonarr,
    Radarr,
}

/// One instance of either Sonarr or Radarr.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a>(pub(super) &'a Api);

/// Treatment of the release when a download is removed from the queue, including its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// The same release may be fetched again.
    Forget,
    /// The same release is never fetched again, and no other release is searched for.
    Block,
    /// As `Block`, and the instance searches for another release if `replaces_failed` returns true.
    BlockAndReplace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub path: String,
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// Problem that the instance reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ailment {
    pub level: AilmentLevel,
    /// Name of the check, such as `IndexerStatusCheck`.
    pub source: String,
    /// Message without file paths.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AilmentLevel {
    Notice,
    Warning,
    Error,
}

/// Progress of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandState {
    /// The command is waiting or running.
    Underway,
    /// Last message of the command, such as "Completed search for 1 movies. 1 reports downloaded."
    Completed(String),
    Failed(String),
}

impl App {
    /// Returns the name that the application uses for itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sonarr => "Sonarr",
            Self::Radarr => "Radarr",
        }
    }
}

impl Server<'_> {
    pub async fn status(self) -> Result<SystemStatus, ArrError> {
        Ok(self.0.get::<wire::SystemStatus>("system/status", &[]).await?.into())
    }

    pub async fn profiles(self) -> Result<Vec<Profile>, ArrError> {
        self.0.list::<wire::Profile, _>("qualityprofile", &[]).await
    }

    pub async fn root_folders(self) -> Result<Vec<RootFolder>, ArrError> {
        self.0.list::<wire::RootFolder, _>("rootfolder", &[]).await
    }

    /// Returns a counter that grows whenever the instance may have changed, as far as we know: data that was read at a
    /// smaller number may be outdated.
    pub fn changes(self) -> u64 {
        self.0.changes()
    }

    /// Records that the instance has changed according to another source.
    pub fn changed(self) {
        self.0.changed();
    }

    /// Removes the whole download that `row` belongs to from the queue and from the download client.
    pub async fn discard(self, row: i64, how: Discard) -> Result<Removal, ArrError> {
        let (blocklist, skip_redownload) = match how {
            Discard::Forget => ("false", "false"),
            Discard::Block => ("true", "true"),
            Discard::BlockAndReplace => ("true", "false"),
        };
        let query = [
            ("removeFromClient", "true"),
            ("blocklist", blocklist),
            ("skipRedownload", skip_redownload),
            ("changeCategory", "false"),
        ];
        gone_or_removed(self.0.delete(&format!("queue/{row}"), &query).await)
    }

    /// Marks a grab of the history as failed: its release is never fetched again, and another one is searched for if
    /// `replaces_failed` returns true. Returns `NotFound` if the history does not contain the grab.
    pub async fn fail_grab(self, history: i64) -> Result<(), ArrError> {
        self.0.post(&format!("history/failed/{history}")).await
    }

    /// Returns whether the instance automatically searches for another release after one has failed, regardless of how
    /// that one was picked.
    pub async fn replaces_failed(self) -> Result<bool, ArrError> {
        let config: ClientConfig = self.0.get("config/downloadclient", &[]).await?;
        // Older versions make no difference between their own picks and manual picks.
        let by_hand_too = config.auto_redownload_failed_from_interactive_search != Some(false);
        Ok(config.auto_redownload_failed == Some(true) && by_hand_too)
    }

    /// Fetches every mount of the instance; the same disk may appear more than once.
    pub async fn disks(self) -> Result<Vec<Disk>, ArrError> {
        self.0.list::<WireDisk, _>("diskspace", &[]).await
    }

    /// Fetches the health problems; empty if there are none.
    pub async fn health(self) -> Result<Vec<Ailment>, ArrError> {
        let checks: Vec<Check> = self.0.get("health", &[]).await?;
        Ok(checks.into_iter().filter_map(Check::ailment).collect())
    }

    /// Fetches the state of a command; `None` if the instance no longer lists it.
    pub async fn command(self, id: i64) -> Result<Option<CommandState>, ArrError> {
        self.0.item::<Command, _>(&format!("command/{id}")).await
    }

    /// Starts a command and returns its id; a command that is already under way is not started a second time.
    pub(super) async fn begin(self, command: &Value) -> Result<i64, ArrError> {
        Ok(self.0.create::<Begun>("command", command).await?.id.unwrap_or_default())
    }
}

/// Converts the outcome of a deletion; deleting a record that is already gone is not a failure.
pub(super) fn gone_or_removed(outcome: Result<(), ArrError>) -> Result<Removal, ArrError> {
    match outcome {
        Ok(()) => Ok(Removal::Removed),
        Err(ArrError::NotFound) => Ok(Removal::AlreadyGone),
        Err(error) => Err(error),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClientConfig {
    auto_redownload_failed: Option<bool>,
    auto_redownload_failed_from_interactive_search: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Begun {
    id: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Command {
    status: Option<String>,
    result: Option<String>,
    message: Option<String>,
}

impl From<Command> for CommandState {
    fn from(wire: Command) -> Self {
        let message = wire.message.as_deref().map(remark::plain).unwrap_or_default();
        match (wire.status.as_deref(), wire.result.as_deref()) {
            (Some("completed"), Some("unsuccessful")) => Self::Failed(message),
            (Some("completed"), _) => Self::Completed(message),
            (Some("failed" | "aborted" | "cancelled" | "orphaned"), _) => Self::Failed(message),
            _ => Self::Underway,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireDisk {
    path: Option<String>,
    free_space: Option<u64>,
    total_space: Option<u64>,
}

impl From<WireDisk> for Disk {
    fn from(wire: WireDisk) -> Self {
        Self {
            path: wire.path.unwrap_or_default(),
            free_bytes: wire.free_space.unwrap_or_default(),
            total_bytes: wire.total_space.unwrap_or_default(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Check {
    source: Option<String>,
    r#type: Option<String>,
    message: Option<String>,
}

impl Check {
    fn ailment(self) -> Option<Ailment> {
        let level = match self.r#type.as_deref() {
            Some("ok") => return None,
            Some("notice") => AilmentLevel::Notice,
            Some("error") => AilmentLevel::Error,
            // An unknown level deserves a check, but is no alarm.
            Some(_) | None => AilmentLevel::Warning,
        };
        let message = self.message.as_deref().map(remark::plain).unwrap_or_default();
        Some(Ailment { level, source: self.source.unwrap_or_default(), message })
    }
}
