//! Hub of the conversations that have readers. Each of them has one feed, which starts with the first reader and ends
//! with the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed::Feed;
use super::reader::StreamReader;
use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::ConversationId;
use crate::store::database::db::Db;
use crate::store::{Conn, QueryResult};

/// Handle to the hub; clones share it.
#[derive(Clone)]
pub struct Hub(Arc<HubInner>);

struct HubInner {
    db: Db,
    feeds: Mutex<HashMap<ConversationId, Arc<Feed>>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Hub {
    pub fn new(db: Db) -> Self {
        let (feeds, tasks, closing) = (Mutex::default(), TaskTracker::new(), CancellationToken::new());
        Self(Arc::new(HubInner { db, feeds, tasks, closing }))
    }

    /// Connects a reader to a conversation, from a cursor in its log or from its current state. `snapshot` loads the
    /// state: at the start if there is no cursor, and whenever the cursor has expired.
    pub fn connect<S>(
        &self,
        conversation: ConversationId,
        after: Option<EventSeq>,
        snapshot: impl Fn(&mut Conn) -> QueryResult<S> + Send + Sync + 'static,
    ) -> StreamReader<S> {
        let mut feeds = self.lock_feeds();
        let feed = feeds.entry(conversation).or_insert_with(|| self.start_feed(conversation)).clone();
        // The reader subscribes under the lock, so that the feed is not removed meanwhile.
        let wakeup = feed.subscribe();
        drop(feeds);
        StreamReader::new(feed, wakeup, self.0.closing.clone(), after, Arc::new(snapshot))
    }

    fn start_feed(&self, conversation: ConversationId) -> Arc<Feed> {
        let feed = Arc::new(Feed::new(self.0.db.clone(), conversation));
        let (hub, task_feed) = (self.clone(), feed.clone());
        self.0.tasks.spawn(async move {
            let subscription = task_feed.db.subscribe(conversation);
            tokio::select! {
                () = task_feed.read_new_events(subscription) => {}
                () = hub.remove_when_unread(&task_feed) => {}
                () = hub.0.closing.cancelled() => {
                    hub.lock_feeds().remove(&conversation);
                }
            }
        });
        feed
    }

    /// Waits until a feed has lost its last reader, and removes the feed from the hub, so that no new reader can find
    /// it.
    async fn remove_when_unread(&self, feed: &Feed) {
        loop {
            feed.wait_for_last_reader().await;
            let mut feeds = self.lock_feeds();
            // A new reader may have subscribed since.
            if !feed.is_followed() {
                feeds.remove(&feed.conversation);
                return;
            }
        }
    }

    fn lock_feeds(&self) -> MutexGuard<'_, HashMap<ConversationId, Arc<Feed>>> {
        self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all readers, and waits until no feed task is running.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
