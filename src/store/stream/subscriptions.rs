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

/// Conversations that have subscribers.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct SubscriptionRegistry(Arc<Mutex<SubscriptionSenders>>);

impl SubscriptionRegistry {
    fn lock_senders(&self) -> MutexGuard<'_, SubscriptionSenders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::store) fn subscribe(&self, conversation: ConversationId) -> Subscription {
        let bell =
            self.lock_senders().entry(conversation).or_insert_with(|| watch::Sender::new(())).subscribe();
        Subscription { bell, conversation, registry: self.clone() }
    }
}

/// Subscription that wakes its subscriber after each commit in which an event of a conversation was logged.
#[derive(Debug)]
pub struct Subscription {
    bell: watch::Receiver<()>,
    conversation: ConversationId,
    registry: SubscriptionRegistry,
}

impl Subscription {
    /// Marks all wake-ups so far as seen. Call this function before reading the log: a commit after the read wakes the
    /// subscriber again.
    pub fn mark_seen(&mut self) {
        self.bell.borrow_and_update();
    }

    /// Waits for a wake-up since the last call of [`Subscription::mark_seen`].
    pub async fn wait_for_event(&mut self) {
        if self.bell.changed().await.is_err() {
            // The sender exists as long as it has subscribers.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut bells = self.registry.lock_senders();
        let is_last = bells.get(&self.conversation).is_some_and(|bell| bell.receiver_count() <= 1);
        if is_last {
            bells.remove(&self.conversation);
        }
    }
}

/// Announcer of the events that the writer has committed. The writer owns the announcer, so that commits are announced
/// in order.
#[derive(Debug)]
pub(in crate::store) struct CommitAnnouncer {
    registry: SubscriptionRegistry,
    /// Last announced event; `None` while there are no subscribers.
    announced: Option<EventSeq>,
}

impl CommitAnnouncer {
    pub(in crate::store) fn new(watched: SubscriptionRegistry) -> Self {
        Self { registry: watched, announced: None }
    }

    /// Announces new events. Call this function after each commit. The function reads nothing while there are no
    /// subscribers.
    pub(in crate::store) fn announce_commit(&mut self, conn: &mut Conn) {
        if self.registry.lock_senders().is_empty() {
            self.announced = None;
            return;
        }
        match self.load_announced_conversations(conn) {
            Ok(changed) => {
                let bells = self.registry.lock_senders();
                changed.iter().filter_map(|conversation| bells.get(conversation)).for_each(notify_subscriber);
            }
            Err(error) => {
                tracing::warn!(%error, "failed to read the logged events; woke every subscriber");
                self.announced = None;
                self.registry.lock_senders().values().for_each(notify_subscriber);
            }
        }
    }

    /// Returns the conversations with events that were not announced. A new subscriber has to read the events committed
    /// before it subscribed, so the first announcement wakes all subscribers once.
    fn load_announced_conversations(&mut self, conn: &mut Conn) -> QueryResult<BTreeSet<ConversationId>> {
        let Some(announced) = self.announced else {
            self.announced = Some(event_reader::load_last_seq(conn)?);
            return Ok(self.registry.lock_senders().keys().copied().collect());
        };
        let events = event_reader::load_changed_conversations(conn, announced)?;
        if let Some((seq, _)) = events.last() {
            self.announced = Some(*seq);
        }
        Ok(events.into_iter().map(|(_, conversation)| conversation).collect())
    }
}

fn notify_subscriber(bell: &watch::Sender<()>) {
    bell.send_replace(());
}
