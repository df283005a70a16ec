//! Changes of stored settings by the running service.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash;
use jiff::Timestamp;
use tokio::sync::{Mutex, Notify};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use super::change::{SettingsChange, SettingsContext, SettingsOutcome, apply_changes, remove_unused_secrets};
use super::prepared_change::PreparedChange;
use crate::config::ConfigSources;
use crate::live::Live;
use crate::store::audit::Actor;
use crate::store::database::db::{Db, DbError};
use crate::store::settings::{load_settings, load_settings_version};

/// Time limit for the use of a change, after which its author no longer waits for it.
const USE_TIMEOUT: Duration = Duration::from_secs(10);

/// Use of the stored settings by the running program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsUse {
    /// Number of the newest change that the program has tried to use; `None` before the first attempt.
    pub version: Option<i64>,
    /// Reason why earlier settings are still in use.
    pub failure: Option<String>,
    /// Names of the changed settings that take effect at the next start.
    pub needing_restart: Vec<&'static str>,
}

/// Use of a stored change by the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseStatus {
    InUse,
    /// The program still uses earlier settings, or has not tried the change yet.
    NotInUse,
}

/// Failure to change the settings. Nothing is changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("hash the console's password: {0}")]
    Hash(password_hash::Error),
    #[error("prepare the change")]
    TaskFailed(#[from] JoinError),
    #[error(transparent)]
    Store(#[from] DbError),
}

/// Stored settings of the running service. Clones share the settings.
#[derive(Clone)]
pub struct LiveSettings {
    db: Db,
    context: Arc<SettingsContext>,
    /// Held until a change is committed: transactions of one process may share a commit, and the secrets of a change
    /// that is not committed yet must not replace those in force.
    turn: Arc<Mutex<()>>,
    /// Signal that a change is stored.
    changed: Arc<Notify>,
    current_use: Live<SettingsUse>,
}

impl LiveSettings {
    pub fn new(db: Db, context: SettingsContext) -> Self {
        Self {
            db,
            context: Arc::new(context),
            turn: Arc::default(),
            changed: Arc::default(),
            current_use: Live::new(SettingsUse::default()),
        }
    }

    /// Reads the stored settings, also those that a command has changed.
    pub async fn load_sources(&self) -> Result<ConfigSources, DbError> {
        let mut rows = self.db.read(load_settings).await?;
        loop {
            let secrets = self.context.secrets_file.load();
            // A change between the two reads may have removed a secret that its row named.
            let later_rows = self.db.read(load_settings).await?;
            if later_rows == rows {
                return Ok(self.context.with_rows(&rows, &secrets));
            }
            rows = later_rows;
        }
    }

    /// Validates and stores a change. It is on disk when this function returns.
    pub async fn apply_changes(
        &self,
        change: SettingsChange,
        actor: Actor,
        now: Timestamp,
    ) -> Result<SettingsOutcome, ChangeError> {
        let _turn = self.turn.lock().await;
        let current = self.load_sources().await?;
        let prepared = spawn_blocking(move || PreparedChange::new(change, &current)).await?;
        let change = prepared.map_err(ChangeError::Hash)?;
        let context = self.context.clone();
        let apply = move |conn: &mut _| apply_changes(conn, &context, &change, actor, now);
        let outcome = self.db.write(apply).await?;
        if matches!(outcome, SettingsOutcome::Changed { .. }) {
            let context = self.context.clone();
            if let Err(error) = self.db.write(move |conn| remove_unused_secrets(conn, &context)).await? {
                // The next change removes them.
                tracing::warn!(%error, "failed to remove unused secrets");
            }
            self.changed.notify_one();
        }
        Ok(outcome)
    }

    /// Returns the number of the newest change, also of one by a command.
    pub async fn load_version(&self) -> Result<i64, DbError> {
        self.db.read_in_background(load_settings_version).await
    }

    /// Waits for a stored change. One that was stored since the last wait ends the wait at once.
    pub async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    pub fn current_use(&self) -> Arc<SettingsUse> {
        self.current_use.current()
    }

    /// Waits until the program has tried to use a change.
    pub async fn wait_until_tried(&self, version: i64) -> Arc<SettingsUse> {
        let mut uses = self.current_use.subscribe();
        let tried = uses.wait_for(|current| current.version >= Some(version)).await;
        tried.map_or_else(|_| self.current_use(), |current| current.clone())
    }

    /// Waits until a change is in use, for a limited time.
    pub async fn wait_until_used(&self, version: i64) -> UseStatus {
        match timeout(USE_TIMEOUT, self.wait_until_tried(version)).await {
            Ok(current) if current.failure.is_none() => UseStatus::InUse,
            Ok(_) | Err(_) => UseStatus::NotInUse,
        }
    }

    pub fn record_use(&self, current: SettingsUse) {
        self.current_use.replace(current);
    }
}
