//! Messages that the transaction which queued them has also claimed, for the outbox relay. Such a message needs neither a
//! claim of its own nor a look at the outbox.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::outbox::DueMessage;

/// Maximum number of claimed messages that wait for the relay. Further messages are queued, and claimed by the relay.
const MAX_WAITING: usize = 8;

/// Queue of the claimed messages, with the hint that others may wait in the outbox. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ClaimedMessages(Arc<ClaimedMessagesInner>);

#[derive(Debug)]
struct ClaimedMessagesInner {
    is_open: AtomicBool,
    waiting: Mutex<VecDeque<DueMessage>>,
    arrived: Notify,
    /// False if no message waited when the relay last looked, and no transaction has left one waiting since. Commands in
    /// other processes do not set it, so the relay also looks at intervals.
    may_others_wait: AtomicBool,
}

impl Default for ClaimedMessagesInner {
    fn default() -> Self {
        Self {
            is_open: AtomicBool::default(),
            waiting: Mutex::default(),
            arrived: Notify::default(),
            may_others_wait: AtomicBool::new(true),
        }
    }
}

impl ClaimedMessages {
    /// Allows transactions to claim messages, because a relay takes them.
    pub fn open(&self) {
        self.0.is_open.store(true, Ordering::Release);
    }

    /// Lets no further transaction claim a message.
    pub fn close(&self) {
        self.0.is_open.store(false, Ordering::Release);
    }

    /// Returns whether a transaction may claim a message.
    pub(in crate::store) fn have_room(&self) -> bool {
        self.0.is_open.load(Ordering::Acquire) && self.lock_waiting().len() < MAX_WAITING
    }

    /// Adds the messages of a transaction that is on disk.
    pub(in crate::store) fn publish(&self, messages: Vec<DueMessage>) {
        if messages.is_empty() {
            return;
        }
        self.lock_waiting().extend(messages);
        self.0.arrived.notify_one();
    }

    /// Sets the hint that messages may wait in the outbox.
    pub(crate) fn mark_others_waiting(&self) {
        self.0.may_others_wait.store(true, Ordering::Release);
    }

    /// Returns whether messages may wait in the outbox, and clears the hint. A later commit sets it again.
    pub fn take_others_waiting(&self) -> bool {
        self.0.may_others_wait.swap(false, Ordering::AcqRel)
    }

    /// Takes the oldest message.
    pub fn take(&self) -> Option<DueMessage> {
        self.lock_waiting().pop_front()
    }

    /// Waits until a message arrives. A message that arrived before may also complete the wait.
    pub async fn wait_for_arrival(&self) {
        self.0.arrived.notified().await;
    }

    fn lock_waiting(&self) -> MutexGuard<'_, VecDeque<DueMessage>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
