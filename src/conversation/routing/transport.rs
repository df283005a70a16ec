//! Transport of outbound messages to their recipients.

use crate::conversation::transcript::{Address, LOCAL};

const CONSOLE: &str = "console";

/// Way in which an outbound message reaches its recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTransport {
    /// By phone, at a price per message.
    Carrier,
    Terminal,
    /// Shown in the console, without a carrier.
    Console,
}

impl MessageTransport {
    /// Returns the transport of messages that are sent from this address.
    pub fn from_sender(address: &str) -> Self {
        match address {
            LOCAL => Self::Terminal,
            CONSOLE => Self::Console,
            _ => Self::Carrier,
        }
    }
}

impl Address {
    /// Returns our own address in the console, where messages are only shown.
    pub fn console() -> Self {
        Self::new(CONSOLE)
    }

    /// Returns the transport of messages from this address.
    pub fn transport(&self) -> MessageTransport {
        MessageTransport::from_sender(self.as_str())
    }
}
