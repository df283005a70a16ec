//! Delivery status of outbound messages, first in the outbox and then at the carrier.

/// Delivery status of an outbound message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeliveryStatus {
    Queued,
    /// The message could not be sent yet, and is queued for another attempt.
    Delayed,
    /// The message is being passed to its channel.
    Attempting,
    /// The carrier may have accepted the message; this is being checked.
    Unknown,
    /// The message is shown in the console or the terminal and is not sent to a carrier.
    Shown,
    /// The carrier has the message and has reported no further status.
    Accepted,
    /// The carrier has scheduled the message for later.
    Scheduled,
    QueuedByCarrier,
    Sending,
    Sent,
    Delivered,
    Read,
    Undelivered,
    Failed,
    Canceled,
    /// Not sent, because the recipient has opted out, was blocked or was erased.
    Suppressed,
}

impl DeliveryStatus {
    /// Parses a status as the outbox or the event log stores it; `None` if it is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "queued" => Self::Queued,
            "attempting" => Self::Attempting,
            "unknown" => Self::Unknown,
            "accepted" => Self::Accepted,
            "suppressed" => Self::Suppressed,
            "failed" => Self::Failed,
            other => return Self::from_carrier_status(other),
        })
    }

    /// Returns the status as the outbox and the event log store it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued | Self::Delayed | Self::QueuedByCarrier => "queued",
            Self::Attempting => "attempting",
            Self::Unknown => "unknown",
            Self::Shown | Self::Accepted => "accepted",
            Self::Scheduled => "scheduled",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Undelivered => "undelivered",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Suppressed => "suppressed",
        }
    }

    /// Parses a status that the carrier reports; `None` if it is unknown.
    pub fn from_carrier_status(text: &str) -> Option<Self> {
        Some(match text {
            "accepted" => Self::Accepted,
            "scheduled" => Self::Scheduled,
            "queued" => Self::QueuedByCarrier,
            "sending" => Self::Sending,
            "sent" => Self::Sent,
            "delivered" => Self::Delivered,
            "read" => Self::Read,
            "undelivered" => Self::Undelivered,
            "failed" => Self::Failed,
            "canceled" => Self::Canceled,
            _ => return None,
        })
    }

    /// Returns the rank of the status at the carrier. The rank of a message never decreases.
    pub fn carrier_progress(self) -> u8 {
        match self {
            Self::Queued
            | Self::Delayed
            | Self::Attempting
            | Self::Unknown
            | Self::Shown
            | Self::Suppressed
            | Self::Accepted
            | Self::Scheduled => 0,
            Self::QueuedByCarrier => 1,
            Self::Sending => 2,
            Self::Sent => 3,
            Self::Delivered | Self::Undelivered | Self::Failed | Self::Canceled => 4,
            Self::Read => 5,
        }
    }

    /// Returns whether the carrier reports nothing after this status, except for a read receipt.
    pub fn is_final_report(self) -> bool {
        self.carrier_progress() >= 4
    }

    pub fn has_arrived(self) -> bool {
        matches!(self, Self::Delivered | Self::Read)
    }

    pub fn has_failed(self) -> bool {
        matches!(self, Self::Undelivered | Self::Failed | Self::Canceled)
    }
}
