//! Task that fetches the messages whose webhook was missed from the carrier's list, at the start and every few minutes.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::Address;
use crate::engine::Engine;
use crate::failpoint;
use crate::live::Live;
use crate::messaging::missed_messages::{InboundLog, PollDelay};
use crate::messaging::twilio::Twilio;
use crate::store::database::db::Db;

/// Time limit for fetching the carrier's list of messages once.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay before unfinished work is resumed again after a database error.
const RECOVERY_RETRY_DELAY: Duration = Duration::from_secs(10);

/// Carrier's list of the messages sent to one of the service's numbers.
#[derive(Clone)]
pub struct MissedMessageSource {
    pub twilio: Arc<Twilio>,
    pub number: Address,
}

impl PartialEq for MissedMessageSource {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.twilio, &other.twilio) && self.number == other.number
    }
}

/// Poller of the carrier's list. It starts again when another account or number is configured.
pub(crate) struct MissedMessagePoller {
    /// `None` without an account.
    pub(crate) source: Live<Option<MissedMessageSource>>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) db: Db,
    pub(crate) clock: Clock,
}

impl MissedMessagePoller {
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut replaced = self.source.subscribe();
        loop {
            let source = replaced.borrow_and_update().clone();
            tokio::select! {
                () = self.poll_source(source.as_ref().as_ref()) => {}
                _ = replaced.changed() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Fetches missed messages for as long as the future is polled. Dropping it loses nothing: admitted messages are
    /// stored, and the next poll fetches the others.
    async fn poll_source(&self, source: Option<&MissedMessageSource>) {
        let Some(MissedMessageSource { twilio, number }) = source.cloned() else {
            self.recover_work().await;
            return std::future::pending().await;
        };
        let delays = self.engine.settings().recovery_delays;
        let inbound_log = InboundLog {
            twilio,
            number,
            db: self.db.clone(),
            clock: self.clock.clone(),
            min_age: delays.min_message_age,
            deferred_ids: Arc::default(),
        };
        let mut next = self.poll_once(&inbound_log).await;
        // Work starts after the first poll, so that old messages are processed before new ones.
        self.recover_work().await;
        loop {
            tokio::time::sleep(match next {
                PollDelay::Later => delays.poll_interval,
                PollDelay::Soon => delays.short_poll_interval,
            })
            .await;
            next = self.poll_once(&inbound_log).await;
        }
    }

    /// Resumes unfinished work, and the work of messages that a dropped poll has admitted.
    async fn recover_work(&self) {
        while let Err(error) = self.engine.scheduler.recover_work().await {
            tracing::error!(%error, "failed to resume unfinished work");
            tokio::time::sleep(RECOVERY_RETRY_DELAY).await;
        }
    }

    /// Polls the list once. A carrier that does not respond delays the caller by at most [`FETCH_TIMEOUT`].
    async fn poll_once(&self, inbound_log: &InboundLog) -> PollDelay {
        match tokio::time::timeout(FETCH_TIMEOUT, self.fetch_missed_messages(inbound_log)).await {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                tracing::warn!(error = format!("{error:#}"), "failed to fetch missed messages");
                PollDelay::Soon
            }
            Err(_) => {
                tracing::warn!("timed out fetching missed messages");
                inbound_log.twilio.record_timeout();
                PollDelay::Soon
            }
        }
    }

    /// Admits the messages of the carrier's list that are not in the database.
    async fn fetch_missed_messages(&self, inbound_log: &InboundLog) -> anyhow::Result<PollDelay> {
        let page = inbound_log.read_page().await?;
        failpoint::reached("missed.read");
        for message in &page.messages {
            // The message is received now, not when the list was requested: replies may have been sent in the meantime.
            let received_at = self.clock.now();
            self.engine.admission.admit_message(ReceivedMessage { received_at, ..message.clone() }).await?;
            failpoint::reached("missed.admitted");
        }
        inbound_log.record_admitted(&page).await?;
        Ok(page.next)
    }
}
