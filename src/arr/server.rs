//! What Sonarr and Radarr have in common besides their libraries: queue, grabs, commands, disks and health.

use serde::Deserialize;
use serde_json::Value;

use super::api::Api;
use super::{ArrError, Profile, Removal, RootFolder, SystemStatus, remark, wire};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum App {
    Sonarr,
    Radarr,
}

/// One server, whichever of the two it is.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a>(pub(super) &'a Api);

/// What becomes of a download that is taken out of the queue, its data included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// The same release may be fetched again.
    Forget,
    /// The same release is never fetched again, and nothing else is looked for.
    Block,
    /// As `Block`, and the server looks for another one where `replaces_failed` says so.
    BlockAndReplace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub path: String,
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// Something that the server itself finds wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ailment {
    pub level: AilmentLevel,
    /// The name of the check, such as `IndexerStatusCheck`.
    pub source: String,
    /// Without paths.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AilmentLevel {
    Notice,
    Warning,
    Error,
}

/// How far a command has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandState {
    /// Waits or runs.
    Underway,
    /// With its last words, such as "Completed search for 1 movies. 1 reports downloaded."
    Completed(String),
    Failed(String),
}

impl App {
    /// As it calls itself.
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

    /// Grows whenever something may have changed there, as far as we know of it: what was read at a smaller number may be
    /// outdated.
    pub fn changes(self) -> u64 {
        self.0.changes()
    }

    /// Somebody says that something has changed there.
    pub fn changed(self) {
        self.0.changed();
    }

    /// Takes the whole download that `row` belongs to out of the queue and out of the download client.
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

    /// Says that a grab of the history was bad: its release is never fetched again, and another one is looked for where
    /// `replaces_failed` says so. `NotFound` where the history does not have it.
    pub async fn fail_grab(self, history: i64) -> Result<(), ArrError> {
        self.0.post(&format!("history/failed/{history}")).await
    }

    /// Whether the server looks for another release by itself after one has failed, however that one was picked.
    pub async fn replaces_failed(self) -> Result<bool, ArrError> {
        let config: ClientConfig = self.0.get("config/downloadclient", &[]).await?;
        // Older servers know no difference between what they picked and what was picked by hand.
        let by_hand_too = config.auto_redownload_failed_from_interactive_search != Some(false);
        Ok(config.auto_redownload_failed == Some(true) && by_hand_too)
    }

    /// Every mount of the server, which may show one disk more than once.
    pub async fn disks(self) -> Result<Vec<Disk>, ArrError> {
        self.0.list::<WireDisk, _>("diskspace", &[]).await
    }

    /// Empty when all is well.
    pub async fn health(self) -> Result<Vec<Ailment>, ArrError> {
        let checks: Vec<Check> = self.0.get("health", &[]).await?;
        Ok(checks.into_iter().filter_map(Check::ailment).collect())
    }

    /// `None` for a command that the server has forgotten.
    pub async fn command(self, id: i64) -> Result<Option<CommandState>, ArrError> {
        self.0.item::<Command, _>(&format!("command/{id}")).await
    }

    /// Gives the id of the command; one that is under way already is not begun a second time.
    pub(super) async fn begin(self, command: &Value) -> Result<i64, ArrError> {
        Ok(self.0.create::<Begun>("command", command).await?.id.unwrap_or_default())
    }
}

/// Deleting what is gone is no failure.
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
            // What we do not know is worth a look, and no alarm.
            Some(_) | None => AilmentLevel::Warning,
        };
        let message = self.message.as_deref().map(remark::plain).unwrap_or_default();
        Some(Ailment { level, source: self.source.unwrap_or_default(), message })
    }
}
