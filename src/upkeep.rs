//! What is done every few minutes: what time alone brings about happens, what nobody looks at any more is forgotten, and
//! words whose time is over are erased.

use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::conversation::stream::Seq;
use crate::engine::Engine;
use crate::store::db::{Db, DbError};
use crate::store::privacy::sweep::{Swept, sweep};
use crate::store::stream::forgetting::{self, Forgotten};
use crate::store::{access, arr_events, notices, upgrade};

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
pub struct Upkeep {
    pub engine: Engine,
    pub db: Db,
    pub clock: Clock,
    /// For how long words are kept.
    pub retention: SignedDuration,
    pub stop: CancellationToken,
}

impl Upkeep {
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
            self.once().await;
        }
    }

    /// One round. What fails is told and tried again in the next; nothing else is held up by it.
    pub async fn once(&self) {
        if let Err(error) = self.engine.keep_up().await {
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
        let mut after = Seq(0);
        while !self.stop.is_cancelled() {
            match self.db.write(move |conn| forgetting::forget(conn, after, before)).await? {
                Forgotten::UpTo(seq) => after = seq,
                Forgotten::Everything => return Ok(()),
            }
        }
        Ok(())
    }

    async fn forget_sessions(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        self.db.write(move |conn| access::forget(conn, now)).await
    }

    async fn forget_notices(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let (told, reported) = (now - self.retention, now - REPORTS_KEPT);
        let forget = move |conn: &mut _| {
            notices::forget(conn, told)?;
            arr_events::forget(conn, reported)
        };
        self.db.write(forget).await.map(drop)
    }

    async fn forget_copies(&self) -> Result<(), DbError> {
        let before = self.clock.now() - COPIES_KEPT;
        self.db.read(move |conn| upgrade::forget_copies(conn, before)).await
    }

    /// Until nothing is left or the program stops; the next round goes on where this one ends.
    async fn erase_old_words(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let before = now - self.retention;
        while !self.stop.is_cancelled() {
            match self.db.write(move |conn| sweep(conn, before, ROWS_SWEPT, now)).await? {
                Swept::More => {}
                Swept::Done => return Ok(()),
            }
        }
        Ok(())
    }
}
