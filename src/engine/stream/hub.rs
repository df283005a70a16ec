//! Hub of the readers of conversations, which resets them after shell commands and ends them with the program.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::command_changes;
use super::reader::StreamReader;
use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::ConversationId;
use crate::store::database::db::Db;
use crate::store::stream::event_log::LogPosition;
use crate::store::{Conn, QueryResult};

/// Handle to the hub; clones share it.
#[derive(Clone)]
pub struct Hub {
    db: Db,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Hub {
    pub fn new(db: Db) -> Self {
        let hub = Self { db, tasks: TaskTracker::new(), closing: CancellationToken::new() };
        let (db, closing) = (hub.db.clone(), hub.closing.clone());
        hub.tasks.spawn(async move {
            tokio::select! {
                () = command_changes::watch_commands(&db) => {}
                () = closing.cancelled() => {}
            }
        });
        hub
    }

    /// Connects a reader to a conversation, from a cursor in the log or from its current state. `snapshot` loads the
    /// state: at the start if there is no cursor, and whenever the cursor is invalid.
    pub fn connect<S>(
        &self,
        conversation: ConversationId,
        after: Option<EventSeq>,
        snapshot: impl Fn(&mut Conn, &LogPosition) -> QueryResult<S> + Send + Sync + 'static,
    ) -> StreamReader<S> {
        StreamReader::new(self.db.clone(), self.closing.clone(), conversation, after, Arc::new(snapshot))
    }

    /// Ends all readers.
    pub async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
