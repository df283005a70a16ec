//! Verification of an ambiguous message against the carrier's record, before the message may act.

use std::time::Duration;

use crate::clock::Clock;
use crate::conversation::channel::Channel;
use crate::conversation::grammar::keyword_grammar;
use crate::conversation::routing::verification::{MessageFields, VerificationOutcome};
use crate::conversation::transcript::EventId;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::messaging::{ChannelPort, LookupError};
use crate::metrics::Metrics;
use crate::store::database::db::{Db, DbError};
use crate::store::queue::message_verification::{self, ClaimedFields};

/// Delays in seconds before the retries of a failed verification of an opt-out or opt-in, which must not get lost.
const RETRY_DELAYS_SECONDS: [u64; 3] = [10, 30, 120];
/// Delay before a missing record is fetched once more. The carrier may store the record after its request to us.
const MISSING_RECORD_RETRY_DELAY: Duration = Duration::from_secs(2);

/// Verifier of ambiguous messages.
pub(super) struct MessageVerifier {
    db: Db,
    clock: Clock,
    metrics: Metrics,
    live: LiveParts,
}

impl MessageVerifier {
    pub(super) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, metrics, live, .. } = parts.clone();
        Self { db, clock, metrics, live }
    }

    /// Compares a message with the carrier's record and commits the outcome. The message has no effect before that.
    pub(super) async fn verify_message(&self, event: EventId) -> Result<(), DbError> {
        let message =
            self.db.read(move |conn| message_verification::load_claimed_fields(conn, event)).await?;
        let Some(ClaimedFields { channel, id, fields }) = message else { return Ok(()) };
        let delays = if keyword_grammar::parse_opt_keyword(&fields.body).is_some() {
            &RETRY_DELAYS_SECONDS[..]
        } else {
            &[]
        };
        let mut outcome = self.compare_with_record(channel, &id, &fields).await;
        for delay in delays {
            if outcome != VerificationOutcome::Failed {
                break;
            }
            self.clock.sleep(Duration::from_secs(*delay)).await;
            outcome = self.compare_with_record(channel, &id, &fields).await;
        }
        let now = self.clock.now();
        self.db
            .write(move |conn| message_verification::record_verification(conn, event, outcome, now))
            .await?;
        self.metrics.text_verified(outcome);
        tracing::info!(%event, ?outcome, "compared an ambiguous message with the carrier's record");
        Ok(())
    }

    async fn compare_with_record(
        &self,
        channel: Channel,
        id: &str,
        fields: &MessageFields,
    ) -> VerificationOutcome {
        let Some(carrier) = self.live.current().channels.get(channel) else {
            return VerificationOutcome::Failed;
        };
        match self.fetch_record(carrier.as_ref(), id).await {
            Ok(Some(record)) if fields.matches_fields(&record) => VerificationOutcome::Agreed,
            Ok(Some(_)) => VerificationOutcome::Differed,
            Ok(None) => VerificationOutcome::NotFound,
            Err(error) => {
                tracing::warn!(%error, "failed to fetch the carrier's record of a message");
                VerificationOutcome::Failed
            }
        }
    }

    async fn fetch_record(
        &self,
        carrier: &dyn ChannelPort,
        id: &str,
    ) -> Result<Option<MessageFields>, LookupError> {
        let record = carrier.fetch_received(id).await?;
        if record.is_some() {
            return Ok(record);
        }
        self.clock.sleep(MISSING_RECORD_RETRY_DELAY).await;
        carrier.fetch_received(id).await
    }
}
