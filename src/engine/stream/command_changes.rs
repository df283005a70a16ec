//! Changes by shell commands. Commands run in their own process, so the event log does not contain their events; instead,
//! all readers are reset.

use std::time::Duration;

use crate::store::database::db::{Db, DbError};
use crate::store::stream::event_numbers;

/// Interval at which changes by shell commands are looked for while there are readers.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// Resets the readers after each change by a shell command, for as long as the future is polled.
pub(super) async fn watch_commands(db: &Db) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if db.event_log().is_followed()
            && let Err(error) = reset_after_commands(db).await
        {
            tracing::warn!(%error, "failed to look for changes by shell commands");
        }
    }
}

/// Resets all readers if a shell command has changed a conversation since the last check.
pub(super) async fn reset_after_commands(db: &Db) -> Result<(), DbError> {
    let changes = db.read_in_background(event_numbers::load_command_changes).await?;
    db.event_log().reset_after_command_changes(changes);
    Ok(())
}
