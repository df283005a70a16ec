//! Delays before the outcome of an effect is checked: an effect in progress needs time to arrive.

use std::time::Duration;

use jiff::SignedDuration;

/// Delays that prevent an effect from being done twice. Shorter ones are for crash tests, whose peers respond at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryDelays {
    /// Delay before checking the outcome of a write whose response was lost.
    pub grace: Duration,
    /// Delays before reading the carrier's list, counted from the moment when a message's delivery status became
    /// unknown. The request itself may arrive there until its timeout, and the list shows fresh messages late.
    pub looks: [Duration; 2],
    /// Interval between two readings of the list of received messages.
    pub list_every: Duration,
    /// Interval between two readings if a message was too young to be admitted.
    pub list_soon: Duration,
    /// Age below which the webhook of a message may still be in progress. A message that arrives by webhook takes
    /// precedence.
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
