//! Changes of stored settings by the running service.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Mutex;

use super::change::{SettingsChange, SettingsContext, SettingsOutcome, apply_changes, remove_unused_secrets};
use crate::config::ConfigSources;
use crate::store::audit::Actor;
use crate::store::database::db::{Db, DbError};
use crate::store::settings::load_settings;

/// Stored settings of the running service. Clones share the settings.
#[derive(Clone)]
pub struct LiveSettings {
    db: Db,
    context: Arc<SettingsContext>,
    /// Held until a change is committed: transactions of one process may share a commit, and the secrets of a change
    /// that is not committed yet must not replace those in force.
    turn: Arc<Mutex<()>>,
}

impl LiveSettings {
    pub fn new(db: Db, context: SettingsContext) -> Self {
        Self { db, context: Arc::new(context), turn: Arc::default() }
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
    ) -> Result<SettingsOutcome, DbError> {
        let _turn = self.turn.lock().await;
        let context = self.context.clone();
        let apply = move |conn: &mut _| apply_changes(conn, &context, &change, actor, now);
        let outcome = self.db.write(apply).await?;
        if matches!(outcome, SettingsOutcome::Changed { .. }) {
            let context = self.context.clone();
            if let Err(error) = self.db.write(move |conn| remove_unused_secrets(conn, &context)).await? {
                // The next change removes them.
                tracing::warn!(%error, "failed to remove unused secrets");
            }
        }
        Ok(outcome)
    }
}
