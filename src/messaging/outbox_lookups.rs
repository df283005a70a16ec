//! Lookups of the relay: whether a carrier has accepted a message whose delivery status is unknown.

use std::time::Duration;

use super::outbox_relay::OutboxRelay;
use super::{CarrierReceipt, LookupError};
use crate::conversation::transcript::OutboxId;
use crate::store::database::db::DbError;
use crate::store::queue::lookups::{self, LookupCount, UnresolvedMessage};
use crate::store::queue::outbox;

/// Delay before a failed lookup is retried.
const LOOKUP_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Time limit of the lookup before a message from before the start is sent.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Failure to look up a message in the carrier's list.
#[derive(Debug, thiserror::Error)]
enum RecordLookupError {
    #[error(transparent)]
    Carrier(#[from] LookupError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl OutboxRelay {
    /// Looks up a message from before this start, which may have been sent without a record in our database, e.g. after a
    /// restore from a backup.
    pub(super) async fn look_up_before_sending(&self, id: OutboxId) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        let [pause, _] = self.parts.settings.current().lookup_delays;
        let start = move |conn: &mut _| lookups::start_lookup_before_sending(conn, id, pause, now);
        let Some(unresolved) = self.parts.db.write(start).await? else { return Ok(()) };
        match tokio::time::timeout(LOOKUP_TIMEOUT, self.find_in_carrier_list(&unresolved)).await {
            Ok(Ok(Some(receipt))) => {
                tracing::info!(outbox = %id, "found a message from before the start in the carrier's list");
                self.record_attempt(&unresolved.due, Ok(receipt)).await
            }
            Ok(Ok(None)) => {
                // The clock may have been set during the lookup.
                let now = self.parts.clock.now();
                self.parts.db.write(move |conn| lookups::allow_sending(conn, id, now)).await
            }
            Ok(Err(RecordLookupError::Db(error))) => Err(error),
            Ok(Err(RecordLookupError::Carrier(error))) => {
                tracing::warn!(outbox = %id, %error, "failed to look up a message from before the start");
                Ok(())
            }
            Err(_) => {
                tracing::warn!(outbox = %id, "timed out looking up a message from before the start");
                Ok(())
            }
        }
    }

    /// Returns the receipt of the message from the carrier's list, unless it belongs to another row.
    async fn find_in_carrier_list(
        &self,
        unresolved: &UnresolvedMessage,
    ) -> Result<Option<CarrierReceipt>, RecordLookupError> {
        let channel = self.channel_for(&unresolved.due.from);
        let channel = channel.ok_or_else(|| LookupError("no account is configured".to_owned()))?;
        let candidates =
            channel.find_accepted(&self.outbound_message(&unresolved.due), unresolved.since).await?;
        let sids: Vec<String> = candidates.iter().map(|candidate| candidate.sid.clone()).collect();
        let index = self.parts.db.read(move |conn| outbox::find_first_unclaimed(conn, &sids)).await?;
        Ok(index.and_then(|index| candidates.into_iter().nth(index)))
    }

    /// Looks up whether a message with unknown delivery status was accepted. It is not sent again before that.
    pub(super) async fn look_up_message(&self, id: OutboxId) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        let load = move |conn: &mut _| lookups::load_unresolved_message(conn, id, now);
        let Some(unresolved) = self.parts.db.read(load).await? else {
            return Ok(());
        };
        if !unresolved.due.from.channel().keeps_records() {
            let now = self.parts.clock.now();
            let resolve = move |conn: &mut _| lookups::resolve_unrecorded_message(conn, id, now);
            let outcome = self.parts.db.write(resolve).await?;
            tracing::warn!(outbox = %id, ?outcome, "message may have arrived, and cannot be looked up");
            return Ok(());
        }
        let lookups_before = unresolved.unsuccessful_lookups;
        match self.find_in_carrier_list(&unresolved).await {
            Ok(Some(receipt)) => self.record_attempt(&unresolved.due, Ok(receipt)).await,
            Ok(None) => {
                let now = self.parts.clock.now();
                let [first_delay, last_delay] = self.parts.settings.current().lookup_delays;
                let count = LookupCount {
                    earlier: lookups_before,
                    required: 2,
                    pause: last_delay.saturating_sub(first_delay),
                };
                let record = move |conn: &mut _| lookups::record_unsuccessful_lookup(conn, id, count, now);
                self.parts.db.write(record).await.map(|outcome| {
                    tracing::info!(outbox = %id, ?outcome, "message is not in the carrier's list");
                })
            }
            Err(RecordLookupError::Db(error)) => Err(error),
            Err(RecordLookupError::Carrier(error)) => {
                tracing::warn!(outbox = %id, %error, "failed to look up the delivery status of a message");
                let now = self.parts.clock.now();
                let at = now + LOOKUP_RETRY_DELAY;
                self.parts.db.write(move |conn| lookups::postpone_lookup(conn, id, at, now)).await
            }
        }
    }
}
