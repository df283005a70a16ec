//! What is done every few minutes: what time alone brings about happens, what nobody looks at any more is forgotten, and
//! words whose time is over are erased.

use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::conversation::stream_events::EventSeq;
use crate::engine::Engine;
use crate::store::console_access;
use crate::store::database::db::{Db, DbError};
use crate::store::database::migration;
use crate::store::library::arr_events;
use crate::store::privacy::retention::{RetentionProgress, erase_expired_text};
use crate::store::queue::notifications;
use crate::store::stream::pruning::{self, PruneProgress};

/// How long events are kept after they were logged and their turn has ended.
const EVENTS_KEPT: SignedDuration = SignedDuration::from_hours(1);
/// How long a report is kept that everyone was told of; its history is read no farther back.
const REPORTS_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long a copy is kept that was made before an upgrade: by then nobody goes back to the program before it.
const COPIES_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
const EVERY: Duration = Duration::from_mins(10);
/// Rows of each table in one transaction: few, since texts that come in wait for its end.
const ROWS_SWEPT: i64 = 50;

#[derive(Clone)]
pub struct Maintenance {
    pub engine: Engine,
    pub db: Db,
    pub clock: Clock,
    /// For how long words are kept.
    pub retention: SignedDuration,
    pub stop: CancellationToken,
}

impl Maintenance {
    pub async fn run(self) {
        // First of all: a program that is often started anew would never come to it.
        if let Err(error) = self.forget_events().await {
            tracing::warn!(%error, "old events could not be forgotten");
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = self.stop.cancelled() => return,
            }
            self.run_once().await;
        }
    }

    /// One round. What fails is told and tried again in the next; nothing else is held up by it.
    pub async fn run_once(&self) {
        if let Err(error) = self.engine.expire_due().await {
            tracing::warn!(%error, "conversations and requests could not be ended");
        }
        if let Err(error) = self.forget_events().await {
            tracing::warn!(%error, "old events could not be forgotten");
        }
        if let Err(error) = self.forget_sessions().await {
            tracing::warn!(%error, "sessions of the console could not be ended");
        }
        if let Err(error) = self.forget_notices().await {
            tracing::warn!(%error, "old notices could not be forgotten");
        }
        if let Err(error) = self.erase_old_words().await {
            tracing::warn!(%error, "old words could not be erased");
        }
        if let Err(error) = self.forget_copies().await {
            tracing::warn!(%error, "copies from before an upgrade could not be looked for");
        }
    }

    /// A piece at a time, until nothing is left or the program stops.
    async fn forget_events(&self) -> Result<(), DbError> {
        let before = self.clock.now() - EVENTS_KEPT;
        let mut after = EventSeq(0);
        while !self.stop.is_cancelled() {
            match self.db.write(move |conn| pruning::prune_events(conn, after, before)).await? {
                PruneProgress::UpTo(seq) => after = seq,
                PruneProgress::Everything => return Ok(()),
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
        let (told, reported) = (now - self.retention, now - REPORTS_KEPT);
        let forget = move |conn: &mut _| {
            notifications::delete_old_notifications(conn, told)?;
            arr_events::delete_reported_events(conn, reported)
        };
        self.db.write(forget).await.map(drop)
    }

    async fn forget_copies(&self) -> Result<(), DbError> {
        let before = self.clock.now() - COPIES_KEPT;
        self.db.read(move |conn| migration::remove_old_copies(conn, before)).await
    }

    /// Until nothing is left or the program stops; the next round goes on where this one ends.
    async fn erase_old_words(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let before = now - self.retention;
        while !self.stop.is_cancelled() {
            match self.db.write(move |conn| erase_expired_text(conn, before, ROWS_SWEPT, now)).await? {
                RetentionProgress::More => {}
                RetentionProgress::Done => return Ok(()),
            }
        }
        Ok(())
    }
}
