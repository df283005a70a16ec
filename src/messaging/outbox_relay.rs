//! Outbox relay: claims waiting messages of the outbox, one per user concurrently, and sends them. The response is
//! recorded before the next message of that user.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{CarrierReceipt, LookError, MessageChannel, OutboundMessage, SendError};
use crate::clock::Clock;
use crate::conversation::retry_policy::BackoffPolicy;
use crate::conversation::routing::transport::MessageTransport;
use crate::conversation::transcript::{Address, OutboxId};
use crate::failpoint;
use crate::metrics::Metrics;
use crate::store::database::db::{Db, DbError};
use crate::store::queue::delivery_reports::AcceptancePolicy;
use crate::store::queue::lookups::{self, LookupCount, UnresolvedMessage};
use crate::store::queue::outbox::{self, AcceptedMessage, DueMessage, SendClaim, SendFailure};
use crate::store::queue::outbox_schedule::{self, OutboxSchedule, OutboxTask};

/// Messages that are sent concurrently.
const MAX_PARALLEL_SENDS: usize = 16;
/// Delays between attempts for a message that was certainly not accepted.
const SEND_BACKOFF: BackoffPolicy =
    BackoffPolicy { first_pause: Duration::from_secs(2), factor: 2, max_pause: Duration::from_secs(300) };
/// Delay before the carrier's list is read again after it did not respond.
const LOOKUP_DELAY: Duration = Duration::from_secs(30);
/// Time limit of the carrier's list for a message from before the start.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the relay checks the outbox without a signal, should one be lost.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Delay between two checks for messages that are still being sent.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Signal that the outbox has something to send. It has no content and may be repeated.
#[derive(Debug, Clone, Default)]
pub struct OutboxSignal(Arc<Notify>);

impl OutboxSignal {
    pub fn notify(&self) {
        self.0.notify_one();
    }
}

/// Error: a message could not be compared with the carrier's list.
#[derive(Debug, thiserror::Error)]
enum ListError {
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Db(#[from] DbError),
}

/// Channels for outbound messages.
#[derive(Clone)]
pub struct OutboundChannels {
    /// Carrier channel; `None` without an account: messages to phones wait.
    pub carrier: Option<Arc<dyn MessageChannel>>,
    pub terminal: Arc<dyn MessageChannel>,
    /// Channel for messages that only the console shows.
    pub console: Arc<dyn MessageChannel>,
}

/// Wait times of the relay.
#[derive(Debug, Clone)]
pub struct RelayTimeouts {
    pub terms: AcceptancePolicy,
    /// Delays from the time when a message's delivery status became unknown to the checks of the carrier's list.
    pub looks: [Duration; 2],
}

/// Dependencies of a relay.
#[derive(Clone)]
pub struct RelayParts {
    pub db: Db,
    pub clock: Clock,
    pub channels: OutboundChannels,
    pub signal: OutboxSignal,
    pub waits: RelayTimeouts,
    pub metrics: Metrics,
}

#[derive(Clone)]
pub struct OutboxRelay {
    parts: RelayParts,
    places: Arc<Semaphore>,
    sending: TaskTracker,
    aborting: CancellationToken,
}

impl OutboxRelay {
    pub fn new(parts: RelayParts) -> Self {
        Self {
            parts,
            places: Arc::new(Semaphore::new(MAX_PARALLEL_SENDS)),
            sending: TaskTracker::new(),
            aborting: CancellationToken::new(),
        }
    }

    /// Sends until `stop`; then waits for messages that are being sent.
    pub async fn run(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let wait = match self.start_due_sends().await {
                Ok(next) => next.map_or(SWEEP_INTERVAL, |at| self.time_until(at).min(SWEEP_INTERVAL)),
                Err(error) => {
                    tracing::error!(%error, "failed to read the outbox");
                    SEND_BACKOFF.first_pause
                }
            };
            tokio::select! {
                () = self.parts.signal.0.notified() => {}
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => {}
            }
        }
        self.sending.close();
        self.sending.wait().await;
    }

    /// Sends everything that can be sent at this moment, and waits for it.
    pub async fn flush(&self) -> Result<(), DbError> {
        loop {
            let now = self.parts.clock.now();
            let OutboxSchedule { due, .. } = self.load_schedule(now).await?;
            if due.is_empty() {
                return Ok(());
            }
            for (id, todo) in due {
                self.see_to(id, todo).await?;
            }
        }
    }

    /// Waits until nothing can be sent at this moment and nothing is being sent.
    pub async fn wait_until_settled(&self) -> Result<(), DbError> {
        loop {
            self.flush().await?;
            let now = self.parts.clock.now();
            // One snapshot is read: a message accepted between two checks would let the next one through undetected.
            let looks = self.parts.waits.looks;
            let open = move |conn: &mut _| {
                Ok((
                    outbox_schedule::load_outbox_schedule(conn, &looks, now)?,
                    outbox::count_messages_in_flight(conn)?,
                ))
            };
            let (agenda, on_the_way) = self.parts.db.read(open).await?;
            if agenda.due.is_empty() && on_the_way == 0 {
                return Ok(());
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Aborts the messages that are being sent.
    pub async fn abort_sends(&self) {
        self.aborting.cancel();
        self.sending.close();
        self.sending.wait().await;
    }

    async fn start_due_sends(&self) -> Result<Option<Timestamp>, DbError> {
        let now = self.parts.clock.now();
        let OutboxSchedule { due, next } = self.load_schedule(now).await?;
        for (id, todo) in due {
            let Ok(place) = self.places.clone().acquire_owned().await else { break };
            let relay = self.clone();
            self.sending.spawn(async move {
                tokio::select! {
                    sent = relay.see_to(id, todo) => if let Err(error) = sent {
                        tracing::error!(outbox = %id, %error, "failed to record the delivery status of a message");
                    },
                    () = relay.aborting.cancelled() => {}
                }
                drop(place);
                relay.parts.signal.notify();
            });
        }
        Ok(next)
    }

    async fn load_schedule(&self, now: Timestamp) -> Result<OutboxSchedule, DbError> {
        let looks = self.parts.waits.looks;
        self.parts.db.read(move |conn| outbox_schedule::load_outbox_schedule(conn, &looks, now)).await
    }

    fn time_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.parts.clock.now())).unwrap_or_default()
    }

    async fn see_to(&self, id: OutboxId, todo: OutboxTask) -> Result<(), DbError> {
        match todo {
            OutboxTask::Send => self.send_message(id).await,
            OutboxTask::LookUpThenSend => self.look_before_sending(id).await,
            OutboxTask::LookUp => self.look_for(id).await,
        }
    }

    async fn send_message(&self, id: OutboxId) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        let terms = self.parts.waits.terms.clone();
        let due = match self.parts.db.write(move |conn| outbox::claim_message(conn, id, &terms, now)).await? {
            SendClaim::Send(due) => due,
            SendClaim::Dropped | SendClaim::AlreadyClaimed => return Ok(()),
        };
        failpoint::reached("outbox.claimed");
        let attempt = due.attempt;
        if attempt > 1 {
            self.parts.metrics.text_tried_again();
        }
        let outcome = self.hand_over(&due).await;
        failpoint::reached("outbox.sent");
        self.record_attempt(id, attempt, outcome).await?;
        failpoint::reached("outbox.recorded");
        Ok(())
    }

    /// Checks whether a message from before this start was sent by a run that is not in the database.
    async fn look_before_sending(&self, id: OutboxId) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        let begin = move |conn: &mut _| lookups::start_lookup_before_sending(conn, id, now);
        let Some(sought) = self.parts.db.write(begin).await? else { return Ok(()) };
        match tokio::time::timeout(LIST_TIMEOUT, self.find_in_log(&sought)).await {
            Ok(Ok(Some(listed))) => {
                tracing::info!(outbox = %id, "found a message from before the start in the carrier's list");
                self.record_attempt(id, sought.due.attempt, Ok(listed)).await
            }
            Ok(Ok(None)) => {
                // The clock may have been set while the list was read.
                let now = self.parts.clock.now();
                self.parts.db.write(move |conn| lookups::allow_sending(conn, id, now)).await
            }
            Ok(Err(ListError::Db(error))) => Err(error),
            Ok(Err(ListError::Look(error))) => {
                tracing::warn!(outbox = %id, %error, "failed to look up a message from before the start");
                Ok(())
            }
            Err(_) => {
                tracing::warn!(outbox = %id, "timed out looking up a message from before the start");
                Ok(())
            }
        }
    }

    /// Returns the entry of the carrier's list that is this message and no other known one.
    async fn find_in_log(&self, sought: &UnresolvedMessage) -> Result<Option<CarrierReceipt>, ListError> {
        let channel = self.channel_for(&sought.due.from);
        let channel = channel.ok_or_else(|| LookError("no account is configured".to_owned()))?;
        let candidates = channel.find_accepted(&outbound_message(&sought.due), sought.since).await?;
        let sids: Vec<String> = candidates.iter().map(|candidate| candidate.sid.clone()).collect();
        let first = self.parts.db.read(move |conn| outbox::find_first_unclaimed(conn, &sids)).await?;
        Ok(first.and_then(|first| candidates.into_iter().nth(first)))
    }

    /// Determines whether a message was accepted, before anything is sent again.
    async fn look_for(&self, id: OutboxId) -> Result<(), DbError> {
        let Some(sought) = self.parts.db.read(move |conn| lookups::load_unresolved_message(conn, id)).await?
        else {
            return Ok(());
        };
        let (attempt, looks) = (sought.due.attempt, sought.looks);
        if let Some(sid) = sought.reported {
            return self.record_attempt(id, attempt, Ok(CarrierReceipt { sid, created_at: None })).await;
        }
        match self.find_in_log(&sought).await {
            Ok(Some(listed)) => self.record_attempt(id, attempt, Ok(listed)).await,
            Ok(None) => {
                let now = self.parts.clock.now();
                let looks = LookupCount { before: looks, enough: self.parts.waits.looks.len() };
                let count = move |conn: &mut _| lookups::record_unsuccessful_lookup(conn, id, looks, now);
                self.parts.db.write(count).await.map(|missing| {
                    tracing::info!(outbox = %id, ?missing, "message is not in the carrier's list");
                })
            }
            Err(ListError::Db(error)) => Err(error),
            Err(ListError::Look(error)) => {
                tracing::warn!(outbox = %id, %error, "failed to look up the delivery status of a message");
                let now = self.parts.clock.now();
                let at = now + LOOKUP_DELAY;
                self.parts.db.write(move |conn| lookups::postpone_lookup(conn, id, at, now)).await
            }
        }
    }

    fn channel_for(&self, from: &Address) -> Option<Arc<dyn MessageChannel>> {
        match from.transport() {
            MessageTransport::Carrier => self.parts.channels.carrier.clone(),
            MessageTransport::Terminal => Some(self.parts.channels.terminal.clone()),
            MessageTransport::Console => Some(self.parts.channels.console.clone()),
        }
    }

    async fn hand_over(&self, due: &DueMessage) -> Result<CarrierReceipt, SendError> {
        let Some(channel) = self.channel_for(&due.from) else {
            let reason = "no account is configured".to_owned();
            return Err(SendError::Later { retry_after: Some(SEND_BACKOFF.max_pause), reason });
        };
        channel.send(&outbound_message(due)).await
    }

    async fn record_attempt(
        &self,
        id: OutboxId,
        attempt: u32,
        outcome: Result<CarrierReceipt, SendError>,
    ) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        if let Err(error) = &outcome {
            tracing::warn!(outbox = %id, attempt, %error, "failed to hand over a message");
        }
        match outcome {
            Ok(accepted) => {
                let terms = self.parts.waits.terms.clone();
                let take = move |conn: &mut _| {
                    let taken = AcceptedMessage { sid: &accepted.sid, created_at: accepted.created_at };
                    outbox::record_acceptance(conn, id, &taken, &terms, now)
                };
                let acceptance = self.parts.db.write(take).await?;
                self.parts.metrics.text_accepted(acceptance);
                Ok(())
            }
            Err(error @ (SendError::Later { .. } | SendError::Misconfigured { .. })) => {
                let at = now + SEND_BACKOFF.pause_after(attempt, error.failure_class().retry_after);
                let reason = error.to_string();
                self.parts.db.write(move |conn| outbox::postpone_message(conn, id, at, &reason, now)).await
            }
            Err(SendError::Unknown(reason)) => {
                self.parts.db.write(move |conn| outbox::mark_message_unknown(conn, id, &reason, now)).await
            }
            Err(SendError::OptedOut) => {
                self.parts.db.write(move |conn| outbox::record_carrier_opt_out(conn, id, now).map(drop)).await
            }
            Err(SendError::Permanent { code, meaning }) => {
                self.parts
                    .db
                    .write(move |conn| {
                        outbox::fail_message(conn, id, &SendFailure { code, meaning: &meaning }, now)
                    })
                    .await?;
                self.parts.metrics.text_refused();
                Ok(())
            }
        }
    }
}

fn outbound_message(due: &DueMessage) -> OutboundMessage {
    let DueMessage { id, attempt, to, from, body, media, word } = due.clone();
    OutboundMessage { id, attempt, to, from, body, media: media.into_iter().collect(), word }
}
