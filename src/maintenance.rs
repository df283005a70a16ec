//! Maintenance that runs every few minutes: expires what is due, deletes rows that are no longer needed, and erases
//! message text whose retention period is over.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::conversation::stream_events::EventSeq;
use crate::engine::approvals::expiry::DueExpiry;
use crate::store::console_access;
use crate::store::database::db::{Db, DbError};
use crate::store::database::migration;
use crate::store::library::arr_events;
use crate::store::privacy::retention::{RetentionProgress, erase_expired_text};
use crate::store::queue::notifications;
use crate::store::stream::pruning::{self, PruneProgress};

/// Time that events are stored after they were logged and their turn has ended.
const EVENT_RETENTION: SignedDuration = SignedDuration::from_hours(1);
/// Time that an arr event is stored after all its notifications were sent; the history of a server is read no further
/// back.
const ARR_EVENT_RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Time that a copy from before an upgrade is stored: after that time no operator returns to the earlier program.
const COPY_RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);
const INTERVAL: Duration = Duration::from_mins(10);
/// Rows of each table in one transaction. The number is small because incoming messages wait for the end of the
/// transaction.
const BATCH_ROWS: i64 = 50;

#[derive(Clone)]
pub struct Maintenance {
    pub expiry: Arc<DueExpiry>,
    pub db: Db,
    pub clock: Clock,
    /// Time that message text is stored.
    pub retention: SignedDuration,
    pub stop: CancellationToken,
}

impl Maintenance {
    pub async fn run(self) {
        // Runs before the first wait: a program that restarts often would otherwise never get to this work.
        if let Err(error) = self.forget_events().await {
            tracing::warn!(%error, "failed to delete old events");
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.stop.cancelled() => return,
            }
            self.run_once().await;
        }
    }

    /// Runs one round. A failed step is logged and tried again in the next round; it does not delay the other steps.
    pub async fn run_once(&self) {
        if let Err(error) = self.expiry.expire_due().await {
            tracing::warn!(%error, "failed to expire conversations and requests");
        }
        if let Err(error) = self.forget_events().await {
            tracing::warn!(%error, "failed to delete old events");
        }
        if let Err(error) = self.forget_sessions().await {
            tracing::warn!(%error, "failed to expire console sessions");
        }
        if let Err(error) = self.forget_notices().await {
            tracing::warn!(%error, "failed to delete old notifications");
        }
        if let Err(error) = self.erase_old_words().await {
            tracing::warn!(%error, "failed to erase old message text");
        }
        if let Err(error) = self.forget_copies().await {
            tracing::warn!(%error, "failed to check for copies from before an upgrade");
        }
    }

    /// Deletes old events piece by piece, until none are left or the program stops.
    async fn forget_events(&self) -> Result<(), DbError> {
        let before = self.clock.now() - EVENT_RETENTION;
        let mut after = EventSeq(0);
        while !self.stop.is_cancelled() {
            match self.db.write(move |conn| pruning::prune_events(conn, after, before)).await? {
                PruneProgress::UpTo(seq) => after = seq,
                PruneProgress::Complete => return Ok(()),
            }
        }
        Ok(())
    }

    async fn forget_sessions(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        self.db.write(move |conn| console_access::delete_expired_access(conn, now)).await
    }

    async fn forget_notices(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let (told, reported) = (now - self.retention, now - ARR_EVENT_RETENTION);
        let forget = move |conn: &mut _| {
            notifications::delete_old_notifications(conn, told)?;
            arr_events::delete_reported_events(conn, reported)
        };
        self.db.write(forget).await.map(drop)
    }

    async fn forget_copies(&self) -> Result<(), DbError> {
        let before = self.clock.now() - COPY_RETENTION;
        self.db.read(move |conn| migration::remove_old_copies(conn, before)).await
    }

    /// Erases old message text until none is left or the program stops; the next round continues where this one ends.
    async fn erase_old_words(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let before = now - self.retention;
        while !self.stop.is_cancelled() {
            match self.db.write(move |conn| erase_expired_text(conn, before, BATCH_ROWS, now)).await? {
                RetentionProgress::More => {}
                RetentionProgress::Done => return Ok(()),
            }
        }
        Ok(())
    }
}
