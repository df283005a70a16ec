//! How long to wait before asking what became of something: an effect under way needs time to arrive.

use std::time::Duration;

use jiff::SignedDuration;

/// The waits that keep an effect from being done twice. Shorter ones are for crash tests, whose peers answer at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryDelays {
    /// Before looking what became of a write whose answer was lost.
    pub grace: Duration,
    /// After a text's fate became unknown: when the carrier's list is looked at. The request itself may arrive there
    /// until its time is up, and the list shows fresh texts late.
    pub looks: [Duration; 2],
    /// Between two readings of the list of received texts.
    pub list_every: Duration,
    /// The same, where a text was too young to be taken up.
    pub list_soon: Duration,
    /// The webhook of a text this young may still be under way, and what comes by it counts for more.
    pub too_young: SignedDuration,
}

impl RecoveryDelays {
    pub const STANDARD: Self = Self {
        grace: Duration::from_secs(3),
        looks: [Duration::from_secs(15), Duration::from_secs(75)],
        list_every: Duration::from_secs(300),
        list_soon: Duration::from_secs(30),
        too_young: SignedDuration::from_secs(30),
    };
}
