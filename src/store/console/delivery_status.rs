//! Delivery status of an outbound message, as every page shows it.

use diesel::prelude::*;
use serde::Deserialize;

use crate::conversation::routing::transport::MessageTransport;
use crate::conversation::stream_events::OutboundStatus;
use crate::conversation::transcript::Address;
use crate::store::codec::{convert_integer, from_json, unreadable_column};
use crate::store::schema::{delivery_events, outbox};
use crate::store::stream::event_reader::parse_delivery;
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryStatus {
    Waiting,
    /// The message could not be sent yet.
    Delayed,
    Sending,
    /// The carrier may have accepted the message; this is being checked.
    Unknown,
    /// The message is shown in the console or the terminal and is not sent to a carrier.
    Shown,
    /// The carrier has the message and has reported no further status.
    Sent,
    Delivered,
    Read,
    Failed,
    /// The recipient has opted out, was blocked or is forgotten.
    Suppressed,
}

/// Reason why a message has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryFailure {
    /// Error code from the carrier.
    pub code: Option<u32>,
    /// Cause recorded when the message could not be sent.
    pub note: Option<String>,
}

/// Columns of a message from which its delivery status is derived.
#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
pub(super) struct DeliveryStatusRow {
    state: String,
    delivery: Option<String>,
    error: Option<String>,
    from_addr: String,
    provider_sid: Option<String>,
}

/// Error recorded for a message that was not accepted.
#[derive(Deserialize)]
struct StoredSendFailure {
    code: Option<u32>,
    meaning: Option<String>,
}

impl DeliveryStatusRow {
    pub(super) fn transport(&self) -> MessageTransport {
        Address::new(self.from_addr.clone()).transport()
    }

    pub(super) fn delivery_status(&self) -> QueryResult<DeliveryStatus> {
        match self.state.as_str() {
            "queued" if self.error.is_some() => Ok(DeliveryStatus::Delayed),
            "queued" => Ok(DeliveryStatus::Waiting),
            "attempting" => Ok(DeliveryStatus::Sending),
            "unknown" => Ok(DeliveryStatus::Unknown),
            "failed" => Ok(DeliveryStatus::Failed),
            "suppressed" => Ok(DeliveryStatus::Suppressed),
            "accepted" => match (self.transport(), &self.delivery) {
                (MessageTransport::Console | MessageTransport::Terminal, _) => Ok(DeliveryStatus::Shown),
                (MessageTransport::Carrier, None) => Ok(DeliveryStatus::Sent),
                (MessageTransport::Carrier, Some(word)) => parse_delivery(word).map(status_from_carrier),
            },
            _ => Err(unreadable_column("state of a text")),
        }
    }

    pub(super) fn load_delivery_failure(&self, conn: &mut Conn) -> QueryResult<DeliveryFailure> {
        match self.delivery_status()? {
            DeliveryStatus::Failed if self.state == "accepted" => {
                let code = self
                    .provider_sid
                    .as_deref()
                    .map(|sid| load_reported_error_code(conn, sid))
                    .transpose()?;
                Ok(DeliveryFailure { code: code.flatten(), note: None })
            }
            DeliveryStatus::Delayed | DeliveryStatus::Failed => {
                let noted = self.error.as_deref().map(|error| from_json::<StoredSendFailure>("error", error));
                let noted = noted.transpose()?;
                Ok(noted.map_or_else(DeliveryFailure::default, |noted| DeliveryFailure {
                    code: noted.code,
                    note: noted.meaning,
                }))
            }
            DeliveryStatus::Waiting
            | DeliveryStatus::Sending
            | DeliveryStatus::Unknown
            | DeliveryStatus::Shown
            | DeliveryStatus::Sent
            | DeliveryStatus::Delivered
            | DeliveryStatus::Read
            | DeliveryStatus::Suppressed => Ok(DeliveryFailure::default()),
        }
    }
}

fn status_from_carrier(word: OutboundStatus) -> DeliveryStatus {
    match word {
        OutboundStatus::Delivered => DeliveryStatus::Delivered,
        OutboundStatus::Read => DeliveryStatus::Read,
        OutboundStatus::Undelivered | OutboundStatus::Failed | OutboundStatus::Canceled => {
            DeliveryStatus::Failed
        }
        OutboundStatus::Queued
        | OutboundStatus::Attempting
        | OutboundStatus::Unknown
        | OutboundStatus::Accepted
        | OutboundStatus::Scheduled
        | OutboundStatus::Sending
        | OutboundStatus::Sent
        | OutboundStatus::Suppressed => DeliveryStatus::Sent,
    }
}

/// Loads the error code with which the carrier reported that a message did not arrive.
fn load_reported_error_code(conn: &mut Conn, sid: &str) -> QueryResult<Option<u32>> {
    let codes: Vec<i64> = delivery_events::table
        .filter(delivery_events::provider_sid.eq(sid).and(delivery_events::error_code.is_not_null()))
        .select(delivery_events::error_code.assume_not_null())
        .load(conn)?;
    codes.first().map(|code| convert_integer(*code)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, state: &str, delivery: Option<&str>, expected: DeliveryStatus) {
        let row = DeliveryStatusRow {
            state: state.to_owned(),
            delivery: delivery.map(str::to_owned),
            error: None,
            from_addr: from.to_owned(),
            provider_sid: None,
        };
        assert_eq!(row.delivery_status().unwrap(), expected);
    }

    #[test]
    fn carrier_status_counts_after_acceptance() {
        check("+15550100001", "queued", None, DeliveryStatus::Waiting);
        check("+15550100001", "accepted", None, DeliveryStatus::Sent);
        check("+15550100001", "accepted", Some("queued"), DeliveryStatus::Sent);
        check("+15550100001", "accepted", Some("undelivered"), DeliveryStatus::Failed);
        check("+15550100001", "accepted", Some("delivered"), DeliveryStatus::Delivered);
        check("console", "accepted", None, DeliveryStatus::Shown);
    }
}
