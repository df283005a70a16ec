//! Reader of one conversation. New, slow and reconnecting readers use the same code: they read from a cursor in the log
//! to the next events, or start from a snapshot if the cursor has expired.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::feed::{EVENT_BATCH, Feed};
use crate::conversation::stream_events::{EventSeq, StreamEvent};
use crate::conversation::transcript::ConversationId;
use crate::store::database::db::DbError;
use crate::store::stream::event_reader::{self, EventsSince};
use crate::store::{Conn, QueryResult};

type SnapshotQuery<S> = Arc<dyn Fn(&mut Conn) -> QueryResult<S> + Send + Sync>;

/// Next batch of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamBatch<S> {
    /// The cursor has expired. The client discards its state, and a snapshot follows.
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
    feed: Arc<Feed>,
    wakeup: watch::Receiver<()>,
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
            // The signal is marked as seen before the read, so that an event that arrives after the read signals again.
            self.wakeup.borrow_and_update();
            let events = match self.position {
                ReadPosition::NeedsSnapshot => return self.read_snapshot().await,
                ReadPosition::Claimed(cursor) => self.read_events(cursor).await?,
                ReadPosition::DeliveredTo(cursor) => match self.feed.recent_events(cursor) {
                    Some(events) => Some(events),
                    None => self.read_events(cursor).await?,
                },
            };
            let Some(events) = events else {
                self.position = ReadPosition::NeedsSnapshot;
                return Ok(StreamBatch::Reset);
            };
            if let Some(last) = events.last() {
                self.advance_to(last.seq);
                return Ok(StreamBatch::Events(events));
            }
            if !self.caught_up {
                self.caught_up = true;
                return Ok(StreamBatch::CaughtUp);
            }
            if self.wakeup.changed().await.is_err() {
                return Err(ReadError::Closed);
            }
        }
    }

    async fn read_snapshot(&mut self) -> Result<StreamBatch<S>, ReadError> {
        let snapshot = self.snapshot.clone();
        let read = move |conn: &mut _| Ok((event_reader::load_last_seq(conn)?, snapshot(conn)?));
        let (cursor, state) = self.feed.db.read_in_background(read).await?;
        self.position = ReadPosition::DeliveredTo(cursor);
        self.caught_up = false;
        Ok(StreamBatch::Snapshot(cursor, state))
    }

    /// Reads the next events from the database; `None` if the cursor has expired.
    async fn read_events(&mut self, cursor: EventSeq) -> Result<Option<Vec<Arc<StreamEvent>>>, ReadError> {
        let conversation = self.feed.conversation;
        let read =
            move |conn: &mut _| event_reader::load_events_since(conn, conversation, cursor, EVENT_BATCH);
        match self.feed.db.read_in_background(read).await? {
            EventsSince::Pruned => Ok(None),
            EventsSince::Events { events, up_to, floor: _ } => {
                self.advance_to(up_to);
                Ok(Some(events.into_iter().map(Arc::new).collect()))
            }
        }
    }

    /// Advances the cursor, and never moves it back. The cursor may be past the last delivered event, because the log
    /// also contains events of other conversations.
    fn advance_to(&mut self, seq: EventSeq) {
        self.position = match self.position {
            ReadPosition::DeliveredTo(cursor) => ReadPosition::DeliveredTo(cursor.max(seq)),
            ReadPosition::NeedsSnapshot | ReadPosition::Claimed(_) => ReadPosition::DeliveredTo(seq),
        };
    }
}

impl<S> StreamReader<S> {
    pub fn conversation(&self) -> ConversationId {
        self.feed.conversation
    }

    /// Returns the cursor up to which everything was delivered, or that the client sent; `None` before a snapshot.
    pub fn cursor(&self) -> Option<EventSeq> {
        match self.position {
            ReadPosition::NeedsSnapshot => None,
            ReadPosition::Claimed(seq) | ReadPosition::DeliveredTo(seq) => Some(seq),
        }
    }

    pub(super) fn new(
        feed: Arc<Feed>,
        wakeup: watch::Receiver<()>,
        closing: CancellationToken,
        after: Option<EventSeq>,
        snapshot: SnapshotQuery<S>,
    ) -> Self {
        let position = after.map_or(ReadPosition::NeedsSnapshot, ReadPosition::Claimed);
        Self { feed, wakeup, closing, snapshot, position, caught_up: false }
    }
}
