//! Transport of our messages to their recipients.

use crate::conversation::transcript::{Address, LOCAL};

const CONSOLE: &str = "console";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTransport {
    /// By phone, at a price per message.
    Carrier,
    Terminal,
    /// No carrier: the message is shown in the console.
    Console,
}

impl MessageTransport {
    /// Returns the transport of messages from an address of ours.
    pub fn from_sender(address: &str) -> Self {
        match address {
            LOCAL => Self::Terminal,
            CONSOLE => Self::Console,
            _ => Self::Carrier,
        }
    }
}

impl Address {
    /// Our own address in the console, where messages are only shown.
    pub fn console() -> Self {
        Self::new(CONSOLE)
    }

    /// Returns the transport of messages from this address.
    pub fn transport(&self) -> MessageTransport {
        MessageTransport::from_sender(self.as_str())
    }
}
