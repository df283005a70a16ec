//! Feed of one conversation, which reads the log once for all readers. Its task reads new events when the database
//! signals them, buffers the newest events, and wakes the readers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::event_buffer::EventBuffer;
use crate::conversation::stream_events::{EventSeq, StreamEvent};
use crate::conversation::transcript::ConversationId;
use crate::store::database::db::{Db, DbError};
use crate::store::stream::event_reader::{self, EventsSince};
use crate::store::stream::subscriptions::Subscription;

/// Maximum number of events in one read.
pub(super) const EVENT_BATCH: usize = 256;
/// Interval at which the log is checked without a wake-up, since commands in other processes also write to the log.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
/// Delay before a failed read is retried.
const ERROR_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Feed of one conversation, shared by its readers.
pub(super) struct Feed {
    pub(super) db: Db,
    pub(super) conversation: ConversationId,
    /// `None` until the first check.
    buffer: Mutex<Option<EventBuffer>>,
    /// Wakes the readers after a change of the buffer.
    wakeup: watch::Sender<()>,
}

impl Feed {
    pub(super) fn new(db: Db, conversation: ConversationId) -> Self {
        Self { db, conversation, buffer: Mutex::new(None), wakeup: watch::Sender::new(()) }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.wakeup.subscribe()
    }

    pub(super) fn is_followed(&self) -> bool {
        self.wakeup.receiver_count() > 0
    }

    /// Waits until the last reader has disconnected.
    pub(super) async fn wait_for_last_reader(&self) {
        self.wakeup.closed().await;
    }

    /// Returns the events after a cursor; `None` if they have to be read from the database.
    pub(super) fn recent_events(&self, cursor: EventSeq) -> Option<Vec<Arc<StreamEvent>>> {
        self.lock_buffer().as_ref()?.events_after(cursor, EVENT_BATCH)
    }

    fn lock_buffer(&self) -> MutexGuard<'_, Option<EventBuffer>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all events that are logged from now on, for as long as the future is polled.
    pub(super) async fn read_new_events(&self, mut subscription: Subscription) {
        loop {
            subscription.mark_seen();
            match self.append_new_events().await {
                Ok(()) => {
                    // After the timeout, the log is checked even without a signal.
                    let _ = tokio::time::timeout(POLL_INTERVAL, subscription.wait_for_event()).await;
                }
                Err(error) => {
                    tracing::warn!(conversation = %self.conversation, %error, "failed to read the event log");
                    tokio::time::sleep(ERROR_RETRY_DELAY).await;
                }
            }
        }
    }

    /// Adds all events that were logged since the last check to the buffer.
    async fn append_new_events(&self) -> Result<(), DbError> {
        loop {
            let cursor = self.lock_buffer().as_ref().map(EventBuffer::up_to);
            let Some(cursor) = cursor else { return self.restart_buffer().await };
            let conversation = self.conversation;
            let read =
                move |conn: &mut _| event_reader::load_events_since(conn, conversation, cursor, EVENT_BATCH);
            let EventsSince::Events { events, up_to, floor } = self.db.read(read).await? else {
                return self.restart_buffer().await;
            };
            let count = events.len();
            if let Some(buffer) = self.lock_buffer().as_mut() {
                buffer.extend(events, up_to);
                buffer.drop_up_to(floor);
            }
            if count > 0 {
                self.wakeup.send_replace(());
            }
            if count < EVENT_BATCH {
                return Ok(());
            }
        }
    }

    /// Restarts the buffer at the end of the log. Readers with an earlier cursor read the missed events from the
    /// database, or a snapshot if the events were pruned.
    async fn restart_buffer(&self) -> Result<(), DbError> {
        let last = self.db.read(event_reader::load_last_seq).await?;
        *self.lock_buffer() = Some(EventBuffer::starting_after(last));
        self.wakeup.send_replace(());
        Ok(())
    }
}
