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

impl Address {
    /// Our own address in the console, where messages are only shown.
    pub fn console() -> Self {
        Self::new(CONSOLE)
    }

    /// Returns the transport of messages from this address.
    pub fn transport(&self) -> MessageTransport {
        match self.as_str() {
            LOCAL => MessageTransport::Terminal,
            CONSOLE => MessageTransport::Console,
            _ => MessageTransport::Carrier,
        }
    }
}
