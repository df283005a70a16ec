//! Maintenance task that runs every few minutes. It expires conversations and approvals, deletes rows that are no
//! longer needed, erases text after its retention period, and samples the libraries.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::store::console_access;
use crate::store::database::db::{Db, DbError};
use crate::store::database::migration;
use crate::store::library::arr_events;
use crate::store::privacy::retention::{RetentionProgress, erase_expired_text, erase_viewing_texts};
use crate::store::queue::{alerts, notifications};

/// Retention period of events in the event log.
const EVENT_RETENTION: SignedDuration = SignedDuration::from_hours(1);
/// Retention period of arr events whose notifications were sent. The history of an instance is not read further back.
const ARR_EVENT_RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Retention period of database copies from before an upgrade, which allow a downgrade.
const UPGRADE_COPY_RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);
const INTERVAL: Duration = Duration::from_mins(10);
/// Retention period of messages that mention what somebody has watched.
const VIEWING_RETENTION: SignedDuration = SignedDuration::from_hours(24);
/// Number of rows of each table that one transaction erases. It is small, because a transaction blocks incoming
/// messages.
const ERASURE_BATCH_ROWS: i64 = 50;

#[derive(Clone)]
pub struct Maintenance {
    pub engine: Arc<Engine>,
    pub db: Db,
    pub clock: Clock,
    pub stop: CancellationToken,
}

impl Maintenance {
    pub async fn run(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.stop.cancelled() => return,
            }
            self.run_once().await;
        }
    }

    /// Runs one round. A failed step is logged, does not prevent the other steps, and is retried in the next round.
    pub async fn run_once(&self) {
        if let Err(error) = self.engine.expiry.expire_due().await {
            tracing::warn!(%error, "failed to expire conversations and requests");
        }
        if let Err(error) = self.engine.checkers.room.advance_proposal().await {
            tracing::warn!(%error, "failed to advance a proposal to make room");
        }
        self.db.event_log().drop_events_before(self.clock.now() - EVENT_RETENTION);
        if let Err(error) = self.delete_expired_sessions().await {
            tracing::warn!(%error, "failed to expire console sessions");
        }
        if let Err(error) = self.delete_old_notifications_and_events().await {
            tracing::warn!(%error, "failed to delete old notifications and arr events");
        }
        if let Err(error) = self.erase_old_text().await {
            tracing::warn!(%error, "failed to erase old message text");
        }
        self.engine.drop_old_responses();
        if let Err(error) = self.engine.moved_servers.store_samples().await {
            tracing::warn!(%error, "failed to store samples of the libraries");
        }
        if let Err(error) = self.delete_old_upgrade_copies().await {
            tracing::warn!(%error, "failed to delete old upgrade copies");
        }
    }

    async fn delete_expired_sessions(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        self.db.write(move |conn| console_access::delete_expired_access(conn, now)).await
    }

    async fn delete_old_notifications_and_events(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let notified_before = now - self.engine.settings().retention;
        let received_before = now - ARR_EVENT_RETENTION;
        let delete_rows = move |conn: &mut _| {
            notifications::delete_old_notifications(conn, notified_before)?;
            alerts::delete_old_alerts(conn, received_before)?;
            arr_events::delete_handled_events(conn, received_before)
        };
        self.db.write(delete_rows).await.map(drop)
    }

    async fn delete_old_upgrade_copies(&self) -> Result<(), DbError> {
        let before = self.clock.now() - UPGRADE_COPY_RETENTION;
        self.db.read(move |conn| migration::remove_old_copies(conn, before)).await
    }

    /// Erases old message text in batches, until none is left or the program stops.
    async fn erase_old_text(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let (before, viewed_before) = (now - self.engine.settings().retention, now - VIEWING_RETENTION);
        let erase = move |conn: &mut _| {
            let viewing = erase_viewing_texts(conn, viewed_before, ERASURE_BATCH_ROWS, now)?;
            let text = erase_expired_text(conn, before, ERASURE_BATCH_ROWS, now)?;
            let is_done = [viewing, text].iter().all(|progress| *progress == RetentionProgress::Done);
            Ok(if is_done { RetentionProgress::Done } else { RetentionProgress::More })
        };
        while !self.stop.is_cancelled() {
            match self.db.write(erase).await? {
                RetentionProgress::More => {}
                RetentionProgress::Done => return Ok(()),
            }
        }
        Ok(())
    }
}
