//! The conversations that are followed. Each has one feed, which comes with its first reader and goes with its last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed::Feed;
use super::reader::Reader;
use crate::conversation::stream::Seq;
use crate::conversation::transcript::ConversationId;
use crate::store::db::Db;
use crate::store::{Conn, QueryResult};

/// A handle to the hub; clones share it.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    db: Db,
    feeds: Mutex<HashMap<ConversationId, Arc<Feed>>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Hub {
    pub fn new(db: Db) -> Self {
        let (feeds, tasks, closing) = (Mutex::default(), TaskTracker::new(), CancellationToken::new());
        Self(Arc::new(Inner { db, feeds, tasks, closing }))
    }

    /// Follows a conversation from after a place in its log, or from how it stands now. `snapshot` reads how it
    /// stands, in the transaction that tells the place: at the beginning where there is none, and whenever it is gone.
    pub fn connect<S>(
        &self,
        conversation: ConversationId,
        after: Option<Seq>,
        snapshot: impl Fn(&mut Conn) -> QueryResult<S> + Send + Sync + 'static,
    ) -> Reader<S> {
        let mut feeds = self.feeds();
        let feed = feeds.entry(conversation).or_insert_with(|| self.start(conversation)).clone();
        // Under the lock, so that the feed does not take its leave meanwhile.
        let bell = feed.listen();
        drop(feeds);
        Reader::new(feed, bell, self.0.closing.clone(), after, Arc::new(snapshot))
    }

    fn start(&self, conversation: ConversationId) -> Arc<Feed> {
        let feed = Arc::new(Feed::new(self.0.db.clone(), conversation));
        let (hub, followed) = (self.clone(), feed.clone());
        self.0.tasks.spawn(async move {
            let watch = followed.db.watch(conversation);
            tokio::select! {
                () = followed.follow(watch) => {}
                () = hub.forsaken(&followed) => {}
                () = hub.0.closing.cancelled() => {
                    hub.feeds().remove(&conversation);
                }
            }
        });
        feed
    }

    /// Returns once a feed has lost its last reader and nobody can find it any more.
    async fn forsaken(&self, feed: &Feed) {
        loop {
            feed.left().await;
            let mut feeds = self.feeds();
            // Somebody may have come since.
            if !feed.is_followed() {
                feeds.remove(&feed.conversation);
                return;
            }
        }
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<ConversationId, Arc<Feed>>> {
        self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many conversations are followed.
    pub fn followed(&self) -> usize {
        self.feeds().len()
    }

    /// Ends every reader, and returns when nothing of them is under way here.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
