//! Delays before the unknown outcome of a request is checked: a request in flight needs time to arrive.

use std::time::Duration;

use jiff::SignedDuration;

/// Delays that prevent a request from being executed twice. Crash tests use shorter ones, because their peers respond
/// immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryDelays {
    /// Grace period before checking the outcome of a write whose response was lost.
    pub grace: Duration,
    /// Delays of the lookups in the carrier's list, counted from the time at which the delivery status of a message
    /// became unknown. The request may arrive until its timeout, and the list shows new messages late. The first delay is
    /// also the pause after an interrupted or failed lookup of a queued message.
    pub lookup_delays: [Duration; 2],
    /// Interval between two polls of the list of received messages.
    pub poll_interval: Duration,
    /// Interval until the next poll if a message was too new to be admitted, or the poll failed.
    pub short_poll_interval: Duration,
    /// Minimum age at which a message from the list is admitted. The webhook of a newer message may still be in flight,
    /// and takes precedence.
    pub min_message_age: SignedDuration,
}

impl RecoveryDelays {
    pub const STANDARD: Self = Self {
        grace: Duration::from_secs(3),
        lookup_delays: [Duration::from_secs(15), Duration::from_secs(75)],
        poll_interval: Duration::from_secs(300),
        short_poll_interval: Duration::from_secs(30),
        min_message_age: SignedDuration::from_secs(30),
    };
}
