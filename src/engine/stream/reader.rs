//! Reader of one conversation, which catches up from its cursor. Early or late, slow or reconnecting, the code is the
//! same: from a cursor in the log to the next events, and a snapshot if the cursor has expired.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::feed::{BATCH, Feed};
use crate::conversation::stream::{Event, Seq};
use crate::conversation::transcript::ConversationId;
use crate::store::db::DbError;
use crate::store::stream::reading::{self, Since};
use crate::store::{Conn, QueryResult};

type ReadSnapshot<S> = Arc<dyn Fn(&mut Conn) -> QueryResult<S> + Send + Sync>;

/// Next batch for a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Batch<S> {
    /// The cursor has expired: discard everything, a snapshot follows.
    Reset,
    /// State of the conversation at this cursor in the log.
    Snapshot(Seq, S),
    /// Next events, in order: never empty, without a gap, nothing twice.
    Events(Vec<Arc<Event>>),
    /// All past events were delivered; events after this are live. Sent once after the beginning and after each reset.
    CaughtUp,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("read the conversation")]
    Db(#[from] DbError),
    #[error("follow a conversation while the program stops")]
    Closed,
}

pub struct Reader<S> {
    feed: Arc<Feed>,
    bell: watch::Receiver<()>,
    closing: CancellationToken,
    snapshot: ReadSnapshot<S>,
    place: Place,
    caught_up: bool,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// Cursor before a snapshot.
    Nowhere,
    /// Cursor that the client claims to have reached.
    Claimed(Seq),
    /// Cursor up to which everything was delivered.
    At(Seq),
}

impl<S: Send + 'static> Reader<S> {
    /// Waits for the next batch. A call that is dropped before it returns loses nothing.
    pub async fn next(&mut self) -> Result<Batch<S>, ReadError> {
        let closing = self.closing.clone();
        tokio::select! {
            biased;
            () = closing.cancelled() => Err(ReadError::Closed),
            batch = self.advance() => batch,
        }
    }

    async fn advance(&mut self) -> Result<Batch<S>, ReadError> {
        loop {
            // Marked as seen before the read: an event that arrives after the read rings again.
            self.bell.borrow_and_update();
            let events = match self.place {
                Place::Nowhere => return self.start().await,
                Place::Claimed(place) => self.read(place).await?,
                Place::At(place) => match self.feed.recent(place) {
                    Some(events) => Some(events),
                    None => self.read(place).await?,
                },
            };
            let Some(events) = events else {
                self.place = Place::Nowhere;
                return Ok(Batch::Reset);
            };
            if let Some(last) = events.last() {
                self.reach(last.seq);
                return Ok(Batch::Events(events));
            }
            if !self.caught_up {
                self.caught_up = true;
                return Ok(Batch::CaughtUp);
            }
            if self.bell.changed().await.is_err() {
                return Err(ReadError::Closed);
            }
        }
    }

    async fn start(&mut self) -> Result<Batch<S>, ReadError> {
        let snapshot = self.snapshot.clone();
        let read = move |conn: &mut _| Ok((reading::last(conn)?, snapshot(conn)?));
        let (place, state) = self.feed.db.read_aside(read).await?;
        self.place = Place::At(place);
        self.caught_up = false;
        Ok(Batch::Snapshot(place, state))
    }

    /// Reads the next events from the database; `None` if the cursor has expired.
    async fn read(&mut self, place: Seq) -> Result<Option<Vec<Arc<Event>>>, ReadError> {
        let conversation = self.feed.conversation;
        let read = move |conn: &mut _| reading::since(conn, conversation, place, BATCH);
        match self.feed.db.read_aside(read).await? {
            Since::Gone => Ok(None),
            Since::Events { events, up_to, floor: _ } => {
                self.reach(up_to);
                Ok(Some(events.into_iter().map(Arc::new).collect()))
            }
        }
    }

    /// Advances the cursor, never back: a read may cover more of the log than the last of its events.
    fn reach(&mut self, seq: Seq) {
        self.place = match self.place {
            Place::At(place) => Place::At(place.max(seq)),
            Place::Nowhere | Place::Claimed(_) => Place::At(seq),
        };
    }
}

impl<S> Reader<S> {
    pub fn conversation(&self) -> ConversationId {
        self.feed.conversation
    }

    /// Cursor up to which everything was delivered, or that the client claims; `None` before a snapshot.
    pub fn place(&self) -> Option<Seq> {
        match self.place {
            Place::Nowhere => None,
            Place::Claimed(seq) | Place::At(seq) => Some(seq),
        }
    }

    pub(super) fn new(
        feed: Arc<Feed>,
        bell: watch::Receiver<()>,
        closing: CancellationToken,
        after: Option<Seq>,
        snapshot: ReadSnapshot<S>,
    ) -> Self {
        let place = after.map_or(Place::Nowhere, Place::Claimed);
        Self { feed, bell, closing, snapshot, place, caught_up: false }
    }
}
