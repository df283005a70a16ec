//! Reasons why a message gets no reply.

/// Reason why a message gets no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoReplyReason {
    Blocked,
    OptedOut,
    /// The carrier answers HELP and INFO itself.
    CarrierHelp,
    /// An opt-out or opt-in keyword that the carrier's record does not verify.
    Unverified,
    Reaction,
    /// Thanks or a bare emoji, when nothing is open.
    SmallTalk,
    Empty,
}

impl NoReplyReason {
    /// Returns the reason as it is stored.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::OptedOut => "opted_out",
            Self::CarrierHelp => "carrier_help",
            Self::Unverified => "unverified",
            Self::Reaction => "reaction",
            Self::SmallTalk => "small_talk",
            Self::Empty => "empty",
        }
    }
}
