//! Outbox relay: claims due messages of the outbox and sends them, concurrently for different users. The response is
//! recorded before the next message of the same user is sent.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel_ports::ChannelPorts;
use super::message_assembly::{self, ChannelExtras};
use super::{CarrierReceipt, ChannelPort, OutboundMessage, SendError};
use crate::clock::Clock;
use crate::conversation::retry_policy::BackoffPolicy;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::{Address, OutboxId};
use crate::failpoint;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::store::database::db::{Db, DbError, Durability};
use crate::store::queue::delivery_reports::AcceptancePolicy;
use crate::store::queue::lookups;
use crate::store::queue::outbox::{self, AcceptedMessage, DueMessage, OutboundKind, SendClaim, SendFailure};
use crate::store::queue::outbox_schedule::{self, OutboxSchedule, OutboxTask};
use crate::store::queue::{queued_claim, suppression};
use crate::store::votes;

/// Maximum number of messages that are sent concurrently.
const MAX_CONCURRENT_SENDS: usize = 16;
/// Backoff between attempts for a message that was certainly not accepted.
const SEND_BACKOFF: BackoffPolicy =
    BackoffPolicy { first_pause: Duration::from_secs(2), factor: 2, max_pause: Duration::from_secs(300) };
/// Backoff between attempts to record the outcome of a send, which nothing else knows.
const RECORD_BACKOFF: BackoffPolicy =
    BackoffPolicy { first_pause: Duration::from_secs(1), factor: 2, max_pause: Duration::from_secs(30) };
/// Interval at which the relay checks the outbox in case a signal is lost.
const OUTBOX_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Interval at which [`OutboxRelay::wait_until_settled`] checks for messages in flight.
const SETTLED_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Signal that the outbox has something to send. It carries no data, so a repeated signal is harmless.
#[derive(Debug, Clone, Default)]
pub struct OutboxSignal(Arc<Notify>);

impl OutboxSignal {
    pub fn notify(&self) {
        self.0.notify_one();
    }
}

/// Settings of the relay, which a change of the configuration replaces.
pub struct RelaySettings {
    /// Messages of a channel without a port are sent from the default address, or wait.
    pub channels: ChannelPorts,
    pub senders: Senders,
    pub acceptance_policy: AcceptancePolicy,
    /// Delays from the time when a message's delivery status became unknown to the lookups in the carrier's list. The first
    /// is also the pause after an interrupted or failed lookup of a queued message.
    pub lookup_delays: [Duration; 2],
}

/// Dependencies of a relay.
#[derive(Clone)]
pub struct RelayParts {
    pub db: Db,
    pub clock: Clock,
    pub settings: Live<RelaySettings>,
    pub signal: OutboxSignal,
    pub metrics: Metrics,
}

/// Relay that sends the messages of the outbox. Clones share its permits and tasks.
#[derive(Clone)]
pub struct OutboxRelay {
    pub(super) parts: RelayParts,
    permits: Arc<Semaphore>,
    send_tasks: TaskTracker,
    /// Canceled when nothing more is to be sent. Messages that wait for their time are then given back.
    stopping: CancellationToken,
    aborting: CancellationToken,
}

impl OutboxRelay {
    pub fn new(parts: RelayParts) -> Self {
        parts.db.claimed_messages().open();
        Self {
            parts,
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_SENDS)),
            send_tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            aborting: CancellationToken::new(),
        }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.parts.metrics.clone()
    }

    /// Replaces the settings. Messages in flight end on the earlier channel.
    pub fn apply_settings(&self, settings: RelaySettings) {
        self.parts.settings.replace(settings);
        self.parts.signal.notify();
    }

    /// Sends due messages until `stop` is canceled, and then waits for messages in flight.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(self.send_claimed_messages(&stop), self.send_due_messages(&stop));
        self.stopping.cancel();
        self.parts.db.claimed_messages().close();
        self.send_tasks.close();
        self.send_tasks.wait().await;
    }

    /// Sends the messages that were claimed when they were queued.
    async fn send_claimed_messages(&self, stop: &CancellationToken) {
        let claimed = self.parts.db.claimed_messages();
        while !stop.is_cancelled() {
            while let Some(due) = claimed.take() {
                let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
                let relay = self.clone();
                self.spawn_send(permit, due.id, async move { relay.hand_over(&due).await });
            }
            tokio::select! {
                () = claimed.wait_for_arrival() => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn send_due_messages(&self, stop: &CancellationToken) {
        let mut is_timed = true;
        while !stop.is_cancelled() {
            let wait = match self.start_due_sends(is_timed).await {
                Ok(next) => {
                    next.map_or(OUTBOX_CHECK_INTERVAL, |at| self.time_until(at).min(OUTBOX_CHECK_INTERVAL))
                }
                Err(error) => {
                    tracing::error!(%error, "failed to read the outbox");
                    SEND_BACKOFF.first_pause
                }
            };
            is_timed = tokio::select! {
                () = self.parts.signal.0.notified() => false,
                () = tokio::time::sleep(wait) => true,
                () = stop.cancelled() => false,
            };
        }
    }

    /// Releases the claimed messages that were not handed over, to be claimed again. Call this after everything that
    /// queues messages has ended.
    pub async fn release_claimed_messages(&self) -> Result<(), DbError> {
        let (claimed, now) = (self.parts.db.claimed_messages(), self.parts.clock.now());
        claimed.close();
        while let Some(DueMessage { id, .. }) = claimed.take() {
            self.parts.db.write(move |conn| queued_claim::release_message(conn, id, now)).await?;
        }
        Ok(())
    }

    /// Sends all due messages, and waits for them.
    pub async fn flush(&self) -> Result<(), DbError> {
        loop {
            while let Some(due) = self.parts.db.claimed_messages().take() {
                self.hand_over(&due).await?;
            }
            let now = self.parts.clock.now();
            let OutboxSchedule { due, .. } = self.load_schedule(now).await?;
            if due.is_empty() {
                return Ok(());
            }
            for (id, task) in due {
                self.run_task(id, task).await?;
            }
        }
    }

    /// Waits until no message is due and none is in flight.
    pub async fn wait_until_settled(&self) -> Result<(), DbError> {
        loop {
            self.flush().await?;
            let now = self.parts.clock.now();
            // Both are read in one snapshot. Otherwise a message that is accepted between two reads could make the next
            // one due unnoticed.
            let delays = self.parts.settings.current().lookup_delays;
            let load = move |conn: &mut _| {
                Ok((
                    outbox_schedule::load_outbox_schedule(conn, &delays, now)?,
                    outbox::count_messages_in_flight(conn)?,
                ))
            };
            let (schedule, in_flight) = self.parts.db.read(load).await?;
            // A task counts its message after the record of it, which this snapshot may contain already.
            if schedule.due.is_empty() && in_flight == 0 && self.send_tasks.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(SETTLED_CHECK_INTERVAL).await;
        }
    }

    /// Aborts the sending of messages in flight.
    pub async fn abort_sends(&self) {
        self.aborting.cancel();
        self.send_tasks.close();
        self.send_tasks.wait().await;
    }

    /// Starts the tasks that are due, and returns the time of the next one. After a signal, the outbox is read only if a
    /// message may wait.
    async fn start_due_sends(&self, is_timed: bool) -> Result<Option<Timestamp>, DbError> {
        if !self.parts.db.claimed_messages().take_others_waiting() && !is_timed {
            return Ok(None);
        }
        let now = self.parts.clock.now();
        let schedule = self.load_schedule(now).await;
        let OutboxSchedule { due, next } =
            schedule.inspect_err(|_| self.parts.db.claimed_messages().mark_others_waiting())?;
        for (id, task) in due {
            let Ok(permit) = self.permits.clone().acquire_owned().await else { break };
            let relay = self.clone();
            self.spawn_send(permit, id, async move { relay.run_task(id, task).await });
        }
        Ok(next)
    }

    /// Runs one task of the relay, and then checks the outbox for the next one.
    fn spawn_send(
        &self,
        permit: OwnedSemaphorePermit,
        id: OutboxId,
        task: impl Future<Output = Result<(), DbError>> + Send + 'static,
    ) {
        let (aborting, signal) = (self.aborting.clone(), self.parts.signal.clone());
        self.send_tasks.spawn(async move {
            tokio::select! {
                sent = task => if let Err(error) = sent {
                    tracing::error!(outbox = %id, %error, "failed to record the delivery status of a message");
                },
                () = aborting.cancelled() => {}
            }
            drop(permit);
            signal.notify();
        });
    }

    async fn load_schedule(&self, now: Timestamp) -> Result<OutboxSchedule, DbError> {
        if !self.parts.db.read_without_snapshot(outbox_schedule::has_waiting_messages).await? {
            return Ok(OutboxSchedule::default());
        }
        self.parts.db.claimed_messages().mark_others_waiting();
        let delays = self.parts.settings.current().lookup_delays;
        self.parts.db.read(move |conn| outbox_schedule::load_outbox_schedule(conn, &delays, now)).await
    }

    fn time_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.parts.clock.now())).unwrap_or_default()
    }

    async fn run_task(&self, id: OutboxId, task: OutboxTask) -> Result<(), DbError> {
        match task {
            OutboxTask::Send => self.send_message(id).await,
            OutboxTask::LookUpThenSend => self.look_up_before_sending(id).await,
            OutboxTask::LookUp => self.look_up_message(id).await,
        }
    }

    async fn send_message(&self, id: OutboxId) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        let policy = self.parts.settings.current().acceptance_policy.clone();
        let due = match self.parts.db.write(move |conn| outbox::claim_message(conn, id, &policy, now)).await?
        {
            SendClaim::Send(due) => due,
            SendClaim::Dropped | SendClaim::NotReady => return Ok(()),
        };
        self.hand_over(&due).await
    }

    /// Hands a claimed message to its channel, and records the outcome.
    async fn hand_over(&self, due: &DueMessage) -> Result<(), DbError> {
        failpoint::reached("outbox.claimed");
        if due.attempt > 1 {
            self.parts.metrics.text_retried();
        }
        if self.channel_for(&due.from).is_none() && self.move_to_default(due).await? {
            return Ok(());
        }
        let outcome = self.send_through_channel(due).await;
        failpoint::reached("outbox.sent");
        self.record_attempt(due, outcome).await?;
        failpoint::reached("outbox.recorded");
        Ok(())
    }

    pub(super) fn channel_for(&self, from: &Address) -> Option<Arc<dyn ChannelPort>> {
        self.parts.settings.current().channels.get(from.channel())
    }

    /// Moves a message of a channel that is not configured to our default address. Returns whether there is one.
    async fn move_to_default(&self, due: &DueMessage) -> Result<bool, DbError> {
        let settings = self.parts.settings.current();
        // Only a phone number is known on more than one channel.
        let sender = match due.to.phone() {
            Ok(phone) => settings.senders.choose(None, &phone.into()),
            Err(_) => None,
        };
        let Some(sender) = sender.filter(|sender| self.channel_for(sender).is_some()) else {
            return Ok(false);
        };
        let (id, now) = (due.id, self.parts.clock.now());
        tracing::info!(outbox = %id, "moved a message to another channel");
        self.parts.db.write(move |conn| lookups::move_to_sender(conn, id, &sender, now)).await?;
        self.parts.signal.notify();
        Ok(true)
    }

    async fn send_through_channel(&self, due: &DueMessage) -> Result<CarrierReceipt, SendError> {
        let Some(channel) = self.channel_for(&due.from) else {
            let reason = "no account is configured".to_owned();
            return Err(SendError::Later { retry_after: Some(SEND_BACKOFF.max_pause), reason });
        };
        let ChannelExtras { buttons, poll } = message_assembly::load_extras(&self.parts.db, due).await;
        let message = OutboundMessage { buttons, poll, ..self.outbound_message(due) };
        self.wait_for_slot(channel.as_ref(), &message).await?;
        let outcome = channel.send(&message).await;
        let current_account = self.channel_for(&due.from).and_then(|channel| channel.account_identity());
        match outcome {
            // The list of another account cannot show the delivery status.
            Err(SendError::Unknown(meaning)) if channel.account_identity() != current_account => {
                Err(SendError::Permanent { code: None, meaning })
            }
            outcome => outcome,
        }
    }

    /// Waits until the channel may send a message, or until nothing more is to be sent.
    async fn wait_for_slot(
        &self,
        channel: &dyn ChannelPort,
        message: &OutboundMessage,
    ) -> Result<(), SendError> {
        let Some(slot) = channel.reserve_slot(message)? else { return Ok(()) };
        tokio::select! {
            () = tokio::time::sleep_until(slot) => Ok(()),
            () = self.stopping.cancelled() => {
                let reason = "the program ends".to_owned();
                Err(SendError::Later { retry_after: Some(Duration::ZERO), reason })
            }
        }
    }

    /// Records the outcome of an attempt, and repeats that until the database accepts the record, e.g. until the disk has
    /// space again. Without the record, the message would hold back later ones to the same user.
    pub(super) async fn record_attempt(
        &self,
        due: &DueMessage,
        outcome: Result<CarrierReceipt, SendError>,
    ) -> Result<(), DbError> {
        if let Err(error) = &outcome {
            tracing::warn!(outbox = %due.id, attempt = due.attempt, %error, "failed to send a message");
        }
        let mut failures = 0;
        loop {
            let error = match self.try_record_attempt(due, &outcome).await {
                Ok(()) => return Ok(()),
                Err(DbError::Closed) => return Err(DbError::Closed),
                Err(error) => error,
            };
            failures += 1;
            tracing::error!(outbox = %due.id, failures, %error, "failed to record the outcome of a send");
            tokio::time::sleep(RECORD_BACKOFF.pause_after(failures, None)).await;
        }
    }

    pub(super) fn outbound_message(&self, due: &DueMessage) -> OutboundMessage {
        message_assembly::assemble_message(due, self.parts.settings.current().acceptance_policy.confirm_for)
    }

    async fn try_record_attempt(
        &self,
        &DueMessage { id, kind, attempt, .. }: &DueMessage,
        outcome: &Result<CarrierReceipt, SendError>,
    ) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        match outcome {
            Ok(receipt) => {
                let (receipt, policy) =
                    (receipt.clone(), self.parts.settings.current().acceptance_policy.clone());
                let record = move |conn: &mut _| {
                    if let Some(poll) = &receipt.poll {
                        votes::record_sent_poll(conn, id, poll)?;
                    }
                    let accepted = AcceptedMessage { sid: &receipt.sid, created_at: receipt.created_at };
                    outbox::record_acceptance(conn, id, &accepted, &policy, now)
                };
                // Without the record, the message would be looked up. A prompt is open only once the disk holds it.
                let durability = match kind {
                    OutboundKind::ConfirmPrompt => Durability::Synced,
                    OutboundKind::Reply | OutboundKind::Notice => Durability::Unsynced,
                };
                let acceptance = self.parts.db.write_with(move |_| durability, record).await?;
                self.parts.metrics.text_accepted(acceptance);
                Ok(())
            }
            Err(error @ (SendError::Later { .. } | SendError::Misconfigured { .. })) => {
                let at = now + SEND_BACKOFF.pause_after(attempt, error.failure_class().retry_after);
                let reason = error.to_string();
                self.parts.db.write(move |conn| outbox::postpone_message(conn, id, at, &reason, now)).await
            }
            Err(SendError::Unknown(reason)) => {
                let reason = reason.clone();
                self.parts.db.write(move |conn| outbox::mark_message_unknown(conn, id, &reason, now)).await
            }
            Err(SendError::OptedOut) => {
                self.parts
                    .db
                    .write(move |conn| suppression::record_carrier_opt_out(conn, id, now).map(drop))
                    .await
            }
            Err(SendError::Permanent { code, meaning }) => {
                let (code, meaning) = (*code, meaning.clone());
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
