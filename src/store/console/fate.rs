//! Delivery status of an outbound message, as every page shows it.

use diesel::prelude::*;
use serde::Deserialize;

use crate::conversation::stream::Delivery;
use crate::conversation::transcript::Address;
use crate::conversation::way::Way;
use crate::store::codec::{from_json, number, unreadable};
use crate::store::schema::{delivery_events, outbox};
use crate::store::stream::reading::delivery;
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
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
    PutAside,
}

/// Reason why a message has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Why {
    /// Error code from the carrier.
    pub code: Option<u32>,
    /// Cause recorded when the message could not be sent.
    pub noted: Option<String>,
}

/// Columns of a message from which its delivery status is derived.
#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
pub(super) struct Row {
    state: String,
    delivery: Option<String>,
    error: Option<String>,
    from_addr: String,
    provider_sid: Option<String>,
}

/// Error recorded for a message that was not accepted.
#[derive(Deserialize)]
struct Noted {
    code: Option<u32>,
    meaning: Option<String>,
}

impl Row {
    pub(super) fn way(&self) -> Way {
        Address::new(self.from_addr.clone()).way()
    }

    pub(super) fn fate(&self) -> QueryResult<Fate> {
        match self.state.as_str() {
            "queued" if self.error.is_some() => Ok(Fate::Delayed),
            "queued" => Ok(Fate::Waiting),
            "attempting" => Ok(Fate::Sending),
            "unknown" => Ok(Fate::Unknown),
            "failed" => Ok(Fate::Failed),
            "suppressed" => Ok(Fate::PutAside),
            "accepted" => match (self.way(), &self.delivery) {
                (Way::Console | Way::Terminal, _) => Ok(Fate::Shown),
                (Way::Carrier, None) => Ok(Fate::Sent),
                (Way::Carrier, Some(word)) => delivery(word).map(with_the_carrier),
            },
            _ => Err(unreadable("state of a text")),
        }
    }

    pub(super) fn why(&self, conn: &mut Conn) -> QueryResult<Why> {
        match self.fate()? {
            Fate::Failed if self.state == "accepted" => {
                let code = self.provider_sid.as_deref().map(|sid| reported(conn, sid)).transpose()?;
                Ok(Why { code: code.flatten(), noted: None })
            }
            Fate::Delayed | Fate::Failed => {
                let noted = self.error.as_deref().map(|error| from_json::<Noted>("error", error));
                let noted = noted.transpose()?;
                Ok(noted.map_or_else(Why::default, |noted| Why { code: noted.code, noted: noted.meaning }))
            }
            Fate::Waiting
            | Fate::Sending
            | Fate::Unknown
            | Fate::Shown
            | Fate::Sent
            | Fate::Delivered
            | Fate::Read
            | Fate::PutAside => Ok(Why::default()),
        }
    }
}

fn with_the_carrier(word: Delivery) -> Fate {
    match word {
        Delivery::Delivered => Fate::Delivered,
        Delivery::Read => Fate::Read,
        Delivery::Undelivered | Delivery::Failed | Delivery::Canceled => Fate::Failed,
        Delivery::Queued
        | Delivery::Attempting
        | Delivery::Unknown
        | Delivery::Accepted
        | Delivery::Scheduled
        | Delivery::Sending
        | Delivery::Sent
        | Delivery::Suppressed => Fate::Sent,
    }
}

/// Loads the error code with which the carrier reported that a message did not arrive.
fn reported(conn: &mut Conn, sid: &str) -> QueryResult<Option<u32>> {
    let codes: Vec<i64> = delivery_events::table
        .filter(delivery_events::provider_sid.eq(sid).and(delivery_events::error_code.is_not_null()))
        .select(delivery_events::error_code.assume_not_null())
        .load(conn)?;
    codes.first().map(|code| number(*code)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, state: &str, delivery: Option<&str>, expected: Fate) {
        let row = Row {
            state: state.to_owned(),
            delivery: delivery.map(str::to_owned),
            error: None,
            from_addr: from.to_owned(),
            provider_sid: None,
        };
        assert_eq!(row.fate().unwrap(), expected);
    }

    #[test]
    fn once_the_carrier_has_a_text_its_word_counts() {
        check("+15550100001", "queued", None, Fate::Waiting);
        check("+15550100001", "accepted", None, Fate::Sent);
        check("+15550100001", "accepted", Some("queued"), Fate::Sent);
        check("+15550100001", "accepted", Some("undelivered"), Fate::Failed);
        check("+15550100001", "accepted", Some("delivered"), Fate::Delivered);
        check("console", "accepted", None, Fate::Shown);
    }
}
