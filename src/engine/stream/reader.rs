//! Reader of one conversation. New, slow and reconnecting readers use the same code: they read from a cursor in the log
//! to the next events, or start from a snapshot if the cursor is invalid.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::command_changes::reset_after_commands;
use crate::conversation::stream_events::{EventSeq, StreamEvent};
use crate::conversation::transcript::ConversationId;
use crate::store::database::db::{Db, DbError};
use crate::store::stream::event_log::{EventsSince, LogPosition};
use crate::store::stream::subscription::Subscription;
use crate::store::{Conn, QueryResult};

/// Maximum number of events in a batch.
const EVENT_BATCH: usize = 256;

type SnapshotQuery<S> = Arc<dyn Fn(&mut Conn, &LogPosition) -> QueryResult<S> + Send + Sync>;

/// Next batch of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamBatch<S> {
    /// The cursor is invalid. The client discards its state, and a snapshot follows.
    Reset,
    /// Snapshot of the conversation at this cursor in the log.
    Snapshot(EventSeq, S),
    /// Next events in order, without gaps or repeats. The batch is never empty.
    Events(Vec<Arc<StreamEvent>>),
    /// All past events were delivered, and later events are live. Sent once after the start and after each reset.
    CaughtUp,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("read the conversation")]
    Db(#[from] DbError),
    #[error("follow a conversation while the program stops")]
    Closed,
}

/// Reader of one conversation's events, with its own cursor.
pub struct StreamReader<S> {
    db: Db,
    conversation: ConversationId,
    subscription: Subscription,
    closing: CancellationToken,
    snapshot: SnapshotQuery<S>,
    position: ReadPosition,
    caught_up: bool,
}

#[derive(Debug, Clone, Copy)]
enum ReadPosition {
    /// No cursor yet: a snapshot comes first.
    NeedsSnapshot,
    /// Cursor that the client sent, such as `Last-Event-ID`.
    Claimed(EventSeq),
    /// Cursor up to which everything was delivered.
    DeliveredTo(EventSeq),
}

impl<S: Send + 'static> StreamReader<S> {
    /// Waits for the next batch. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<StreamBatch<S>, ReadError> {
        let closing = self.closing.clone();
        tokio::select! {
            biased;
            () = closing.cancelled() => Err(ReadError::Closed),
            batch = self.advance() => batch,
        }
    }

    async fn advance(&mut self) -> Result<StreamBatch<S>, ReadError> {
        loop {
            self.subscription.mark_seen();
            let cursor = match self.position {
                ReadPosition::NeedsSnapshot => return self.read_snapshot().await,
                ReadPosition::Claimed(cursor) => {
                    // A command may have changed the conversation while the client was away.
                    reset_after_commands(&self.db).await?;
                    cursor
                }
                ReadPosition::DeliveredTo(cursor) => cursor,
            };
            let since = self.db.event_log().events_since(self.conversation, cursor, EVENT_BATCH);
            let Some(EventsSince { events, up_to }) = since else {
                self.position = ReadPosition::NeedsSnapshot;
                return Ok(StreamBatch::Reset);
            };
            self.position = ReadPosition::DeliveredTo(up_to);
            if !events.is_empty() {
                return Ok(StreamBatch::Events(events));
            }
            if !self.caught_up {
                self.caught_up = true;
                return Ok(StreamBatch::CaughtUp);
            }
            self.subscription.wait_for_event().await;
        }
    }

    async fn read_snapshot(&mut self) -> Result<StreamBatch<S>, ReadError> {
        let snapshot = self.snapshot.clone();
        let read =
            move |conn: &mut Conn, position: &LogPosition| Ok((position.cursor, snapshot(conn, position)?));
        let (cursor, state) = self.db.read_with_position(self.conversation, read).await?;
        self.position = ReadPosition::DeliveredTo(cursor);
        self.caught_up = false;
        Ok(StreamBatch::Snapshot(cursor, state))
    }
}

impl<S> StreamReader<S> {
    pub(super) fn new(
        db: Db,
        closing: CancellationToken,
        conversation: ConversationId,
        after: Option<EventSeq>,
        snapshot: SnapshotQuery<S>,
    ) -> Self {
        let subscription = db.event_log().subscribe(conversation);
        let position = after.map_or(ReadPosition::NeedsSnapshot, ReadPosition::Claimed);
        Self { db, conversation, subscription, closing, snapshot, position, caught_up: false }
    }

    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Returns the cursor up to which everything was delivered, or that the client sent; `None` before a snapshot.
    pub fn cursor(&self) -> Option<EventSeq> {
        match self.position {
            ReadPosition::NeedsSnapshot => None,
            ReadPosition::Claimed(seq) | ReadPosition::DeliveredTo(seq) => Some(seq),
        }
    }
}
