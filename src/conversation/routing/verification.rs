//! Verification of an ambiguous message against the carrier's own record of it.

use crate::conversation::transcript::Address;

/// Trust in the fields of a message. The carrier signs the concatenated fields without separators, so different fields
/// can have the same signature. A message for which that is possible is compared with the carrier's record before it
/// may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldAuthority {
    /// The signature fits no other fields, or the fields come from the carrier's record.
    Certain,
    /// The fields have not been compared yet.
    Ambiguous,
    /// The carrier's record has the same fields.
    Verified,
    /// The carrier's record differs, is missing, or could not be read.
    Unverified,
}

impl FieldAuthority {
    /// Returns whether the message may confirm a deletion, give a command or change an opt-out.
    pub fn may_act(self) -> bool {
        match self {
            Self::Certain | Self::Verified => true,
            Self::Ambiguous | Self::Unverified => false,
        }
    }
}

/// Fields of a message that are compared with the carrier's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageFields {
    pub from: Address,
    pub to: Address,
    pub body: String,
    pub media_count: usize,
}

impl MessageFields {
    /// Returns whether both are the fields of the same message, ignoring whitespace around the body.
    pub fn matches_fields(&self, other: &Self) -> bool {
        is_same_party(&self.from, &other.from)
            && is_same_party(&self.to, &other.to)
            && self.body.trim() == other.body.trim()
            && self.media_count == other.media_count
    }
}

/// Returns whether both addresses reach the same phone, with any prefix. Addresses without a phone number must be
/// equal.
pub fn is_same_party(one: &Address, other: &Address) -> bool {
    match (one.phone(), other.phone()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        (Err(_), Err(_)) => one == other,
    }
}

/// Outcome of the comparison with the carrier's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationOutcome {
    /// The record has the same fields.
    Agreed,
    /// The record has other fields: the signed text was split differently.
    Differed,
    /// The carrier has no message with this id.
    NotFound,
    /// The record could not be read.
    Failed,
}

impl VerificationOutcome {
    pub fn authority(self) -> FieldAuthority {
        match self {
            Self::Agreed => FieldAuthority::Verified,
            Self::Differed | Self::NotFound | Self::Failed => FieldAuthority::Unverified,
        }
    }

    /// Returns the label of the outcome in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::Differed => "differed",
            Self::NotFound => "not_found",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> MessageFields {
        MessageFields {
            from: Address::new("+15550100002"),
            to: Address::new("+15550100000"),
            body: "yes".into(),
            media_count: 0,
        }
    }

    #[test]
    fn record_matches_by_sender_recipient_body_and_media_count() {
        let same =
            MessageFields { from: Address::new("whatsapp:+15550100002"), body: " yes\n".into(), ..fields() };
        assert!(fields().matches_fields(&same));
        let mismatches = [
            MessageFields { from: Address::new("+15550100003"), ..fields() },
            MessageFields { to: Address::new("+15550100009"), ..fields() },
            MessageFields { body: "yesno".into(), ..fields() },
            MessageFields { media_count: 1, ..fields() },
        ];
        for mismatch in mismatches {
            assert!(!fields().matches_fields(&mismatch), "{mismatch:?}");
        }
    }
}
