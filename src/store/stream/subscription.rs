//! Subscriptions to the events of a conversation. A wake-up carries no data and follows the events: the subscriber marks
//! the wake-up as seen, and then reads the log.

use tokio::sync::watch;

use super::event_log::EventLog;
use crate::conversation::transcript::ConversationId;

/// Subscription that wakes its subscriber after each event of a conversation. While it exists, a cursor stays valid
/// until an event of this conversation after it is dropped.
#[derive(Debug)]
pub struct Subscription {
    pub(super) receiver: watch::Receiver<()>,
    pub(super) conversation: ConversationId,
    pub(super) log: EventLog,
}

impl Subscription {
    /// Marks all earlier wake-ups as seen. Must be called before reading the log, so that an event that is published
    /// after the read wakes the subscriber again.
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
        self.log.end_subscription(self.conversation);
    }
}
