//! One conversation, read once for all its readers: a task reads each batch when the database signals new events, and
//! holds the last events for the readers, whom it wakes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::ring::Ring;
use crate::conversation::stream::{Event, Seq};
use crate::conversation::transcript::ConversationId;
use crate::store::db::{Db, DbError};
use crate::store::stream::reading::{self, Since};
use crate::store::stream::watch::Watch;

/// Maximum number of events that are read together.
pub(super) const BATCH: usize = 256;
/// Interval at which the log is checked without a wake-up: shell commands write to it from their own process.
const LOOK: Duration = Duration::from_secs(15);
/// Pause after the database failed.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Feed {
    pub(super) db: Db,
    pub(super) conversation: ConversationId,
    /// `None` until the first check.
    ring: Mutex<Option<Ring>>,
    /// Rings when the ring has changed.
    bell: watch::Sender<()>,
}

impl Feed {
    pub(super) fn new(db: Db, conversation: ConversationId) -> Self {
        Self { db, conversation, ring: Mutex::new(None), bell: watch::Sender::new(()) }
    }

    pub(super) fn listen(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }

    pub(super) fn is_followed(&self) -> bool {
        self.bell.receiver_count() > 0
    }

    /// Returns when the last reader is gone.
    pub(super) async fn left(&self) {
        self.bell.closed().await;
    }

    /// Returns the events after a cursor; `None` if they have to be read from the database.
    pub(super) fn recent(&self, place: Seq) -> Option<Vec<Arc<Event>>> {
        self.ring().as_ref()?.since(place, BATCH)
    }

    fn ring(&self) -> MutexGuard<'_, Option<Ring>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all events that are logged from now on, for as long as it is polled.
    pub(super) async fn follow(&self, mut watch: Watch) {
        loop {
            watch.mark_seen();
            match self.look().await {
                Ok(()) => {
                    // The wait also ends after the timeout, which is the time for the next check.
                    let _ = tokio::time::timeout(LOOK, watch.rung()).await;
                }
                Err(error) => {
                    tracing::warn!(conversation = %self.conversation, %error, "the log could not be read");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Adds everything that was logged since the last check to the ring.
    async fn look(&self) -> Result<(), DbError> {
        loop {
            let place = self.ring().as_ref().map(Ring::up_to);
            let Some(place) = place else { return self.begin_anew().await };
            let conversation = self.conversation;
            let read = move |conn: &mut _| reading::since(conn, conversation, place, BATCH);
            let Since::Events { events, up_to, floor } = self.db.read(read).await? else {
                return self.begin_anew().await;
            };
            let count = events.len();
            if let Some(ring) = self.ring().as_mut() {
                ring.add(events, up_to);
                ring.forget(floor);
            }
            if count > 0 {
                self.bell.send_replace(());
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }

    /// Restarts the ring at the end of the log. Readers with an earlier cursor find missed events in the database, or
    /// get the result that they are gone.
    async fn begin_anew(&self) -> Result<(), DbError> {
        let last = self.db.read(reading::last).await?;
        *self.ring() = Some(Ring::from(last));
        self.bell.send_replace(());
        Ok(())
    }
}
