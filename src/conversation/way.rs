//! Who brings our texts to their receivers.

use super::transcript::{Address, LOCAL};

const CONSOLE: &str = "console";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By phone, for money.
    Carrier,
    Terminal,
    /// Nobody: it is shown where it stands.
    Console,
}

impl Address {
    /// Our own in the console, where texts are only shown.
    pub fn console() -> Self {
        Self::new(CONSOLE)
    }

    /// How texts leave this address of ours.
    pub fn way(&self) -> Way {
        match self.as_str() {
            LOCAL => Way::Terminal,
            CONSOLE => Way::Console,
            _ => Way::Carrier,
        }
    }
}
