//! Subscriptions to new log entries. A wake-up carries no data and comes after the commit: the subscriber marks the
//! wake-up as seen, and then reads the log.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::reading;
use crate::conversation::stream::Seq;
use crate::conversation::transcript::ConversationId;
use crate::store::{Conn, QueryResult};

type Bells = HashMap<ConversationId, watch::Sender<()>>;

/// Conversations that have subscribers.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Watched(Arc<Mutex<Bells>>);

impl Watched {
    fn bells(&self) -> MutexGuard<'_, Bells> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::store) fn watch(&self, conversation: ConversationId) -> Watch {
        let bell = self.bells().entry(conversation).or_insert_with(|| watch::Sender::new(())).subscribe();
        Watch { bell, conversation, watched: self.clone() }
    }
}

/// Subscription that rings after each commit in which an event of a conversation was logged.
#[derive(Debug)]
pub struct Watch {
    bell: watch::Receiver<()>,
    conversation: ConversationId,
    watched: Watched,
}

impl Watch {
    /// Marks all rings so far as seen. Call it before reading the log: a commit after the read rings again.
    pub fn mark_seen(&mut self) {
        self.bell.borrow_and_update();
    }

    /// Returns once the subscription has rung since it was marked as seen.
    pub async fn rung(&mut self) {
        if self.bell.changed().await.is_err() {
            // The bell exists as long as it has subscribers.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut bells = self.watched.bells();
        let is_last = bells.get(&self.conversation).is_some_and(|bell| bell.receiver_count() <= 1);
        if is_last {
            bells.remove(&self.conversation);
        }
    }
}

/// Rings for the events that the writer has committed. It belongs to the writer, so that commits are announced in their
/// order.
#[derive(Debug)]
pub(in crate::store) struct Announcer {
    watched: Watched,
    /// Last announced event; `None` while there are no subscribers.
    announced: Option<Seq>,
}

impl Announcer {
    pub(in crate::store) fn new(watched: Watched) -> Self {
        Self { watched, announced: None }
    }

    /// Announces new events; call it after each commit. It reads nothing while there are no subscribers.
    pub(in crate::store) fn committed(&mut self, conn: &mut Conn) {
        if self.watched.bells().is_empty() {
            self.announced = None;
            return;
        }
        match self.news(conn) {
            Ok(changed) => {
                let bells = self.watched.bells();
                changed.iter().filter_map(|conversation| bells.get(conversation)).for_each(ring);
            }
            Err(error) => {
                tracing::warn!(%error, "what was logged could not be looked up; everyone is woken");
                self.announced = None;
                self.watched.bells().values().for_each(ring);
            }
        }
    }

    /// Returns the conversations with events that were not announced. A new subscriber has to read the events committed
    /// before it subscribed, so the first announcement wakes all subscribers once.
    fn news(&mut self, conn: &mut Conn) -> QueryResult<BTreeSet<ConversationId>> {
        let Some(announced) = self.announced else {
            self.announced = Some(reading::last(conn)?);
            return Ok(self.watched.bells().keys().copied().collect());
        };
        let events = reading::changed_since(conn, announced)?;
        if let Some((seq, _)) = events.last() {
            self.announced = Some(*seq);
        }
        Ok(events.into_iter().map(|(_, conversation)| conversation).collect())
    }
}

fn ring(bell: &watch::Sender<()>) {
    bell.send_replace(());
}
