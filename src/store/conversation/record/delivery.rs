//! Delivery status of outbound messages, and their failure reasons.

use std::collections::HashMap;

use diesel::prelude::*;
use serde::{Deserialize, Serialize};

use super::messages::OutboundRecord;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::routing::transport::MessageTransport;
use crate::conversation::transcript::OutboxId;
use crate::store::codec::convert_integer;
use crate::store::column_types::StoredJson;
use crate::store::schema::{delivery_events, outbox};
use crate::store::{Conn, QueryResult};

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
    pub(in crate::store) fn status(&self, transport: MessageTransport) -> DeliveryStatus {
        match (self.state, self.reported, transport) {
            (DeliveryStatus::Queued, ..) if self.error.is_some() => DeliveryStatus::Delayed,
            (DeliveryStatus::Accepted, _, MessageTransport::Console | MessageTransport::Terminal) => {
                DeliveryStatus::Shown
            }
            // Once the carrier has accepted the message, the status that it reports takes precedence.
            (DeliveryStatus::Accepted, Some(reported), MessageTransport::Carrier) => reported,
            (state, ..) => state,
        }
    }

    /// Returns the recorded reason why the message was not accepted.
    fn send_failure(&self) -> QueryResult<DeliveryFailure> {
        self.error.as_ref().map_or(Ok(DeliveryFailure::default()), |error| error.parse("error"))
    }
}

/// Reason why a message has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct DeliveryFailure {
    /// Error code from the carrier.
    pub code: Option<u32>,
    /// Meaning of the error, recorded when the message could not be sent.
    pub meaning: Option<String>,
}

/// Failure reasons by message.
pub type DeliveryFailures = HashMap<OutboxId, DeliveryFailure>;

/// Loads the failure reasons of those messages that failed or are delayed.
pub fn load_delivery_failures<'a>(
    conn: &mut Conn,
    messages: impl IntoIterator<Item = &'a OutboundRecord>,
) -> QueryResult<DeliveryFailures> {
    let mut failures = DeliveryFailures::new();
    let mut failed_at_carrier: Vec<(&str, OutboxId)> = Vec::new();
    for message in messages {
        match (&message.carrier_id, message.status()) {
            (Some(sid), status) if status.has_failed() => failed_at_carrier.push((sid, message.id)),
            (None, status) if status.has_failed() || status == DeliveryStatus::Delayed => {
                failures.insert(message.id, message.delivery.send_failure()?);
            }
            _ => {}
        }
    }
    if failed_at_carrier.is_empty() {
        return Ok(failures);
    }
    let is_failed = delivery_events::provider_sid.eq_any(failed_at_carrier.iter().map(|(sid, _)| *sid));
    let codes: Vec<(String, i64)> = delivery_events::table
        .filter(is_failed.and(delivery_events::error_code.is_not_null()))
        .order((delivery_events::provider_sid, delivery_events::status.desc()))
        .select((delivery_events::provider_sid, delivery_events::error_code.assume_not_null()))
        .load(conn)?;
    // The statuses of a message are in descending order and later rows replace earlier ones, so the code of the first
    // status in alphabetical order is kept.
    let codes: HashMap<String, i64> = codes.into_iter().collect();
    for (sid, id) in failed_at_carrier {
        let code = codes.get(sid).map(|code| convert_integer(*code)).transpose()?;
        failures.insert(id, DeliveryFailure { code, meaning: None });
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, state: &str, reported: Option<&str>, expected: DeliveryStatus) {
        let state = DeliveryStatus::parse(state).unwrap();
        let reported = reported.map(|value| DeliveryStatus::from_carrier_status(value).unwrap());
        let columns = DeliveryColumns { state, reported, error: None };
        assert_eq!(columns.status(MessageTransport::from_sender(from)), expected);
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
