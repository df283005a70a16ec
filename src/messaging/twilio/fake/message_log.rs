//! Messages of the simulated carrier, and their subscribers.

use std::collections::HashMap;

use jiff::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::carrier::{FakeDelivery, SentMessage};
use crate::conversation::transcript::Address;

/// Message of the carrier.
#[derive(Debug, Clone)]
pub(super) struct FakeMessage {
    pub sid: String,
    pub from: Address,
    pub to: Address,
    pub body: String,
    pub at: Timestamp,
    /// Time from which the list shows the message.
    pub listed_at: Timestamp,
    pub direction: MessageDirection,
}

#[derive(Debug, Clone)]
pub(super) enum MessageDirection {
    Inbound { media: usize },
    Outbound { sent: SentMessage, delivery: FakeDelivery },
}

/// All messages of the carrier, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct MessageLog {
    messages: Vec<FakeMessage>,
    positions: HashMap<String, usize>,
    subscribers: HashMap<String, Vec<UnboundedSender<SentMessage>>>,
}

impl MessageLog {
    /// Adds a message, and passes an outbound one to the subscribers of its recipient.
    pub fn add(&mut self, message: FakeMessage) {
        if let MessageDirection::Outbound { sent, .. } = &message.direction
            && let Some(subscribers) = self.subscribers.get_mut(sent.to.as_str())
        {
            subscribers.retain(|subscriber| subscriber.send(sent.clone()).is_ok());
        }
        self.positions.insert(message.sid.clone(), self.messages.len());
        self.messages.push(message);
    }

    pub fn find(&self, sid: &str) -> Option<&FakeMessage> {
        self.messages.get(*self.positions.get(sid)?)
    }

    pub fn find_mut(&mut self, sid: &str) -> Option<&mut FakeMessage> {
        self.messages.get_mut(*self.positions.get(sid)?)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &FakeMessage> {
        self.messages.iter()
    }

    /// Returns a receiver of each later message to `recipient`.
    pub fn subscribe(&mut self, recipient: &str) -> UnboundedReceiver<SentMessage> {
        let (sender, receiver) = unbounded_channel();
        self.subscribers.entry(recipient.to_owned()).or_default().push(sender);
        receiver
    }
}
