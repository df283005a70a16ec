//! Messages that never reached our webhook: found in the carrier's list and admitted like any other.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::LookError;
use super::twilio::Twilio;
use crate::clock::Clock;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::Address;
use crate::store::database::db::{Db, DbError};
use crate::store::queue::{carrier_cursors, inbound_messages};

/// Period before the cursor that is read again: the list may show a message later than its listed time.
const OVERLAP: SignedDuration = SignedDuration::from_hours(1);

/// List of messages to one of our numbers.
#[derive(Clone)]
pub struct InboundLog {
    pub twilio: Arc<Twilio>,
    pub number: Address,
    pub db: Db,
    pub clock: Clock,
    /// Age below which the webhook of a message may still arrive.
    pub too_young: SignedDuration,
    /// Ids of the messages that the last reading found too recent. By the next one they are old enough, regardless of
    /// their age on our clock.
    pub left_waiting: Arc<Mutex<HashSet<String>>>,
}

/// Result of a reading of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundPage {
    /// Messages in the list that were never admitted, oldest first.
    pub texts: Vec<ReceivedMessage>,
    pub next: PollDelay,
    cursor: Timestamp,
}

/// Time of the next reading of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollDelay {
    Later,
    /// Early reading, since a message was too recent to be processed.
    Soon,
}

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl InboundLog {
    pub async fn read_page(&self) -> Result<InboundPage, FetchError> {
        let source = self.cursor_name();
        let now = self.clock.now();
        let Some(cursor) =
            self.db.read(move |conn| carrier_cursors::load_carrier_cursor(conn, &source)).await?
        else {
            // Messages sent before the first start were not sent to this program.
            return Ok(InboundPage { texts: Vec::new(), next: PollDelay::Later, cursor: now });
        };
        // A cursor ahead of the present was stored before the clock was set back.
        let cursor = cursor.min(now);
        let listed = self.twilio.received_since(&self.number, cursor - OVERLAP, now).await?;
        let (texts, young) = self.split_off_young(listed, now);
        let cursor = texts.iter().map(|text| text.provider_at).fold(cursor, Ord::max).min(now);
        // Most listed messages came by the webhook long ago: one read of the ledger avoids a write for each.
        let texts = self.db.read(move |conn| inbound_messages::filter_unadmitted(conn, texts)).await?;
        Ok(InboundPage {
            texts,
            next: if young.is_empty() { PollDelay::Later } else { PollDelay::Soon },
            cursor,
        })
    }

    fn split_off_young(
        &self,
        listed: Vec<ReceivedMessage>,
        now: Timestamp,
    ) -> (Vec<ReceivedMessage>, Vec<ReceivedMessage>) {
        let mut waiting = self.left_waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (texts, young): (Vec<_>, Vec<_>) = listed.into_iter().partition(|text| {
            text.provider_at <= now - self.too_young || waiting.contains(&text.external_id)
        });
        *waiting = young.iter().map(|text| text.external_id.clone()).collect();
        (texts, young)
    }

    /// Moves the cursor past a reading; only once every message of it is admitted.
    pub async fn record_admitted(&self, reading: &InboundPage) -> Result<(), DbError> {
        let (source, cursor, now) = (self.cursor_name(), reading.cursor, self.clock.now());
        self.db.write(move |conn| carrier_cursors::store_carrier_cursor(conn, &source, cursor, now)).await
    }

    fn cursor_name(&self) -> String {
        format!("twilio:{}", self.number.as_str())
    }
}
