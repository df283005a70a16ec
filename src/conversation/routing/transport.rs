//! Who brings our texts to their receivers.

use crate::conversation::transcript::{Address, LOCAL};

const CONSOLE: &str = "console";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTransport {
    /// By phone, for money.
    Carrier,
    Terminal,
    /// No carrier: the message is shown in the console.
    Console,
}

impl Address {
    /// Our own in the console, where texts are only shown.
    pub fn console() -> Self {
        Self::new(CONSOLE)
    }

    /// How texts leave this address of ours.
    pub fn transport(&self) -> MessageTransport {
        match self.as_str() {
            LOCAL => MessageTransport::Terminal,
            CONSOLE => MessageTransport::Console,
            _ => MessageTransport::Carrier,
        }
    }
}
