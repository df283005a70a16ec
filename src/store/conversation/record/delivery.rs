//! Delivery status of outbound messages, and their failure reasons.

use diesel::prelude::*;
use serde::{Deserialize, Serialize};

use crate::conversation::channel::Channel;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::store::QueryResult;
use crate::store::column_types::StoredJson;
use crate::store::schema::outbox;

/// Columns of a message from which its delivery status is derived.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = outbox)]
pub struct DeliveryColumns {
    state: DeliveryStatus,
    #[diesel(column_name = delivery)]
    #[serde(rename = "delivery")]
    reported: Option<DeliveryStatus>,
    error: Option<StoredJson>,
}

impl DeliveryColumns {
    pub(in crate::store) fn status(&self, channel: Channel) -> DeliveryStatus {
        match (self.state, self.reported) {
            (DeliveryStatus::Queued, _) if self.error.is_some() => DeliveryStatus::Delayed,
            (DeliveryStatus::Accepted, _) if channel.is_shown() => DeliveryStatus::Shown,
            // Once the carrier has accepted the message, the status that it reports takes precedence.
            (DeliveryStatus::Accepted, Some(reported)) => reported,
            (state, _) => state,
        }
    }

    pub(super) fn failure(&self) -> QueryResult<DeliveryFailure> {
        self.error.as_ref().map_or(Ok(DeliveryFailure::default()), |error| error.parse("error"))
    }
}

/// Reason why a message has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeliveryFailure {
    /// Error code from the carrier.
    pub code: Option<u32>,
    /// Meaning of the error, recorded when the message could not be sent.
    pub meaning: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::Address;

    #[track_caller]
    fn check(from: &str, state: &str, reported: Option<&str>, expected: DeliveryStatus) {
        let state = DeliveryStatus::parse(state).unwrap();
        let reported = reported.map(|value| DeliveryStatus::from_carrier_status(value).unwrap());
        let columns = DeliveryColumns { state, reported, error: None };
        assert_eq!(columns.status(Address::new(from).channel()), expected);
    }

    #[test]
    fn carrier_status_takes_precedence_after_acceptance() {
        check("+15550100001", "queued", None, DeliveryStatus::Queued);
        check("+15550100001", "accepted", None, DeliveryStatus::Accepted);
        check("+15550100001", "accepted", Some("queued"), DeliveryStatus::QueuedByCarrier);
        check("+15550100001", "accepted", Some("undelivered"), DeliveryStatus::Undelivered);
        check("+15550100001", "accepted", Some("delivered"), DeliveryStatus::Delivered);
        check("console", "accepted", None, DeliveryStatus::Shown);
    }
}
