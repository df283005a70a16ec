//! Age of a message when it is processed, beyond which its user's intent may be outdated.

use jiff::{SignedDuration, Timestamp};

use super::inbound_message::{InboundEvent, MessageSource};

/// Reason why a message is too old to be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleReason {
    /// The message reached us long after it was sent.
    Missed,
    /// The assistant was paused.
    Paused,
}

/// Age above which a message is not acted on, because the user's intent may be outdated.
const MAX_MESSAGE_AGE: SignedDuration = SignedDuration::from_hours(1);

/// Returns the reason why the message is too old to be acted on, if it is.
pub fn stale_reason(event: &InboundEvent, resumed_at: Option<Timestamp>) -> Option<StaleReason> {
    let was_missed = event.via == MessageSource::Recovery
        && event.received_at.duration_since(event.sent_at) > MAX_MESSAGE_AGE;
    let waited_for_resume =
        resumed_at.is_some_and(|resumed| resumed.duration_since(event.received_at) > MAX_MESSAGE_AGE);
    match (was_missed, waited_for_resume) {
        (true, _) => Some(StaleReason::Missed),
        (false, true) => Some(StaleReason::Paused),
        (false, false) => None,
    }
}
