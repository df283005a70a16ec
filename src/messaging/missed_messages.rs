//! Recovery of missed messages: finds inbound messages that never reached our webhook in the carrier's list.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::LookupError;
use super::twilio::Twilio;
use crate::clock::Clock;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::{Address, ChannelKind};
use crate::store::database::db::{Db, DbError};
use crate::store::queue::{carrier_cursors, inbound_messages};

/// Period before the cursor that is read again, because the carrier may list a message late.
const OVERLAP: SignedDuration = SignedDuration::from_hours(1);

/// Carrier's list of messages to one of our numbers.
#[derive(Clone)]
pub struct InboundLog {
    pub twilio: Arc<Twilio>,
    pub number: Address,
    pub db: Db,
    pub clock: Clock,
    /// Age from which a message counts as missed. The webhook of a newer message may still arrive.
    pub min_age: SignedDuration,
    /// Ids of the messages that were too recent at the last poll. At the next poll they count as missed, regardless of
    /// our clock.
    pub deferred_ids: Arc<Mutex<HashSet<String>>>,
}

/// Result of one poll of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundPage {
    /// Listed messages that were never admitted, oldest first.
    pub messages: Vec<ReceivedMessage>,
    pub next: PollDelay,
    cursor: Timestamp,
}

/// Delay until the next poll of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollDelay {
    Later,
    /// A message was too recent, so the next poll is early.
    Soon,
}

/// Failure to find the missed messages.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl InboundLog {
    /// Polls the list for messages that were never admitted. The first poll of a number only returns a cursor.
    pub async fn read_page(&self) -> Result<InboundPage, FetchError> {
        let source = self.cursor_name();
        let now = self.clock.now();
        let Some(cursor) =
            self.db.read(move |conn| carrier_cursors::load_carrier_cursor(conn, &source)).await?
        else {
            // Messages from before the first start were not meant for this program.
            return Ok(InboundPage { messages: Vec::new(), next: PollDelay::Later, cursor: now });
        };
        // A cursor in the future was stored before the clock was set back.
        let cursor = cursor.min(now);
        let listed = self.twilio.fetch_received_since(&self.number, cursor - OVERLAP, now).await?;
        let (messages, recent) = self.split_off_recent(listed, now);
        let cursor = messages.iter().map(|message| message.provider_at).fold(cursor, Ord::max).min(now);
        // Most listed messages arrived by webhook long ago. One read filters them out, instead of one write for each.
        let filter =
            move |conn: &mut _| inbound_messages::filter_unadmitted(conn, ChannelKind::Twilio, messages);
        let messages = self.db.read(filter).await?;
        Ok(InboundPage {
            messages,
            next: if recent.is_empty() { PollDelay::Later } else { PollDelay::Soon },
            cursor,
        })
    }

    /// Splits the listed messages into missed ones, and ones that are too recent and are deferred.
    fn split_off_recent(
        &self,
        listed: Vec<ReceivedMessage>,
        now: Timestamp,
    ) -> (Vec<ReceivedMessage>, Vec<ReceivedMessage>) {
        let mut deferred = self.deferred_ids.lock().unwrap_or_else(PoisonError::into_inner);
        let (missed, recent): (Vec<_>, Vec<_>) = listed.into_iter().partition(|message| {
            message.provider_at <= now - self.min_age || deferred.contains(&message.external_id)
        });
        *deferred = recent.iter().map(|message| message.external_id.clone()).collect();
        (missed, recent)
    }

    /// Advances the cursor past a poll, after all of its messages were admitted.
    pub async fn record_admitted(&self, page: &InboundPage) -> Result<(), DbError> {
        let (source, cursor, now) = (self.cursor_name(), page.cursor, self.clock.now());
        let store = move |conn: &mut _| carrier_cursors::store_carrier_cursor(conn, &source, cursor, now);
        self.db.write_unsynced(store).await
    }

    fn cursor_name(&self) -> String {
        format!("twilio:{}", self.number.as_str())
    }
}
