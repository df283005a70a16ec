//! Subscriptions to new log entries. A wake-up carries no data and follows the commit: the subscriber marks the wake-up
//! as seen, and then reads the log.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::event_reader;
use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::ConversationId;
use crate::store::{Conn, QueryResult};

type SubscriptionSenders = HashMap<ConversationId, watch::Sender<()>>;

/// Registry of the conversations with subscribers.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct SubscriptionRegistry(Arc<Mutex<SubscriptionSenders>>);

impl SubscriptionRegistry {
    fn lock_senders(&self) -> MutexGuard<'_, SubscriptionSenders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::store) fn subscribe(&self, conversation: ConversationId) -> Subscription {
        let receiver =
            self.lock_senders().entry(conversation).or_insert_with(|| watch::Sender::new(())).subscribe();
        Subscription { receiver, conversation, registry: self.clone() }
    }
}

/// Subscription that wakes its subscriber after each commit in which an event of a conversation was logged.
#[derive(Debug)]
pub struct Subscription {
    receiver: watch::Receiver<()>,
    conversation: ConversationId,
    registry: SubscriptionRegistry,
}

impl Subscription {
    /// Marks all earlier wake-ups as seen. Must be called before reading the log, so that a commit during the read
    /// wakes the subscriber again.
    pub fn mark_seen(&mut self) {
        self.receiver.borrow_and_update();
    }

    /// Waits for a wake-up that is not marked as seen.
    pub async fn wait_for_event(&mut self) {
        if self.receiver.changed().await.is_err() {
            // The sender exists as long as it has subscribers.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut senders = self.registry.lock_senders();
        let is_last = senders.get(&self.conversation).is_some_and(|sender| sender.receiver_count() <= 1);
        if is_last {
            senders.remove(&self.conversation);
        }
    }
}

/// Announcer of the events that the database writer has committed. The writer owns it, so that commits are announced in
/// order.
#[derive(Debug)]
pub(in crate::store) struct CommitAnnouncer {
    registry: SubscriptionRegistry,
    /// Last announced event; `None` while there are no subscribers.
    announced: Option<EventSeq>,
}

impl CommitAnnouncer {
    pub(in crate::store) fn new(registry: SubscriptionRegistry) -> Self {
        Self { registry, announced: None }
    }

    /// Announces new events. Must be called after each commit. Nothing is read while there are no subscribers.
    pub(in crate::store) fn announce_commit(&mut self, conn: &mut Conn) {
        if self.registry.lock_senders().is_empty() {
            self.announced = None;
            return;
        }
        match self.load_unannounced_conversations(conn) {
            Ok(changed) => {
                let senders = self.registry.lock_senders();
                changed
                    .iter()
                    .filter_map(|conversation| senders.get(conversation))
                    .for_each(notify_subscribers);
            }
            Err(error) => {
                tracing::warn!(%error, "failed to load new events; waking all subscribers");
                self.announced = None;
                self.registry.lock_senders().values().for_each(notify_subscribers);
            }
        }
    }

    /// Loads the conversations with events that were not announced. The first announcement wakes all subscribers,
    /// because it is unknown which events were committed since they subscribed.
    fn load_unannounced_conversations(&mut self, conn: &mut Conn) -> QueryResult<BTreeSet<ConversationId>> {
        let Some(announced) = self.announced else {
            self.announced = Some(event_reader::load_last_seq(conn)?);
            return Ok(self.registry.lock_senders().keys().copied().collect());
        };
        let events = event_reader::load_event_conversations(conn, announced)?;
        if let Some((seq, _)) = events.last() {
            self.announced = Some(*seq);
        }
        Ok(events.into_iter().map(|(_, conversation)| conversation).collect())
    }
}

fn notify_subscribers(sender: &watch::Sender<()>) {
    sender.send_replace(());
}
