//! Outbox relay: claims waiting messages of the outbox, one per user concurrently, and sends them. The response is
//! recorded before the next message of that user.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Accepted, Channel, LookError, Outgoing, SendError};
use crate::clock::Clock;
use crate::conversation::transcript::{Address, OutboxId};
use crate::conversation::trouble::Pace;
use crate::conversation::way::Way;
use crate::failpoint;
use crate::metrics::Metrics;
use crate::store::agenda::{self, Agenda, Todo};
use crate::store::db::{Db, DbError};
use crate::store::deliveries::Terms;
use crate::store::lookups::{self, Looks, Sought};
use crate::store::outbox::{self, Claim, Due, Failed, Taken};

/// Messages that are sent concurrently.
const PARALLEL: usize = 16;
/// Delays between attempts for a message that was certainly not accepted.
const SEND_PACE: Pace = Pace { first: Duration::from_secs(2), factor: 2, longest: Duration::from_secs(300) };
/// Delay before the carrier's list is read again after it did not respond.
const LOOK_PAUSE: Duration = Duration::from_secs(30);
/// Time limit of the carrier's list for a message from before the start.
const LIST_TIME: Duration = Duration::from_secs(10);
/// Interval at which the relay checks the outbox without a signal, should one be lost.
const SWEEP: Duration = Duration::from_secs(30);

/// Delay between two checks for messages that are still being sent.
const GLANCE: Duration = Duration::from_millis(2);

/// Signal that the outbox has something to send. It has no content and may be repeated.
#[derive(Debug, Clone, Default)]
pub struct Doorbell(Arc<Notify>);

impl Doorbell {
    pub fn ring(&self) {
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
pub struct Channels {
    /// Carrier channel; `None` without an account: messages to phones wait.
    pub carrier: Option<Arc<dyn Channel>>,
    pub terminal: Arc<dyn Channel>,
    /// Channel for messages that only the console shows.
    pub console: Arc<dyn Channel>,
}

/// Wait times of the relay.
#[derive(Debug, Clone)]
pub struct Waits {
    pub terms: Terms,
    /// Delays from the time when a message's delivery status became unknown to the checks of the carrier's list.
    pub looks: [Duration; 2],
}

/// Dependencies of a relay.
#[derive(Clone)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub channels: Channels,
    pub doorbell: Doorbell,
    pub waits: Waits,
    pub metrics: Metrics,
}

#[derive(Clone)]
pub struct Relay {
    parts: Parts,
    places: Arc<Semaphore>,
    sending: TaskTracker,
    aborting: CancellationToken,
}

impl Relay {
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            places: Arc::new(Semaphore::new(PARALLEL)),
            sending: TaskTracker::new(),
            aborting: CancellationToken::new(),
        }
    }

    /// Sends until `stop`; then waits for messages that are being sent.
    pub async fn run(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let wait = match self.look().await {
                Ok(next) => next.map_or(SWEEP, |at| self.until(at).min(SWEEP)),
                Err(error) => {
                    tracing::error!(%error, "the outbox could not be read");
                    SEND_PACE.first
                }
            };
            tokio::select! {
                () = self.parts.doorbell.0.notified() => {}
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
            let Agenda { due, .. } = self.agenda(now).await?;
            if due.is_empty() {
                return Ok(());
            }
            for (id, todo) in due {
                self.see_to(id, todo).await?;
            }
        }
    }

    /// Waits until nothing can be sent at this moment and nothing is being sent.
    pub async fn settled(&self) -> Result<(), DbError> {
        loop {
            self.flush().await?;
            let now = self.parts.clock.now();
            // One snapshot is read: a message accepted between two checks would let the next one through undetected.
            let looks = self.parts.waits.looks;
            let open = move |conn: &mut _| Ok((agenda::of(conn, &looks, now)?, outbox::on_the_way(conn)?));
            let (agenda, on_the_way) = self.parts.db.read(open).await?;
            if agenda.due.is_empty() && on_the_way == 0 {
                return Ok(());
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Aborts the messages that are being sent.
    pub async fn abort(&self) {
        self.aborting.cancel();
        self.sending.close();
        self.sending.wait().await;
    }

    async fn look(&self) -> Result<Option<Timestamp>, DbError> {
        let now = self.parts.clock.now();
        let Agenda { due, next_ms } = self.agenda(now).await?;
        for (id, todo) in due {
            let Ok(place) = self.places.clone().acquire_owned().await else { break };
            let relay = self.clone();
            self.sending.spawn(async move {
                tokio::select! {
                    sent = relay.see_to(id, todo) => if let Err(error) = sent {
                        tracing::error!(outbox = %id, %error, "a text's fate could not be recorded");
                    },
                    () = relay.aborting.cancelled() => {}
                }
                drop(place);
                relay.parts.doorbell.ring();
            });
        }
        Ok(next_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()))
    }

    async fn agenda(&self, now: Timestamp) -> Result<Agenda, DbError> {
        let looks = self.parts.waits.looks;
        self.parts.db.read(move |conn| agenda::of(conn, &looks, now)).await
    }

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.parts.clock.now())).unwrap_or_default()
    }

    async fn see_to(&self, id: OutboxId, todo: Todo) -> Result<(), DbError> {
        match todo {
            Todo::Send => self.send(id).await,
            Todo::LookFirst => self.look_before_sending(id).await,
            Todo::Look => self.look_for(id).await,
        }
    }

    async fn send(&self, id: OutboxId) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        let terms = self.parts.waits.terms.clone();
        let due = match self.parts.db.write(move |conn| outbox::claim(conn, id, &terms, now)).await? {
            Claim::Send(due) => due,
            Claim::Dropped | Claim::Taken => return Ok(()),
        };
        failpoint::reached("outbox.claimed");
        let attempt = due.attempt;
        if attempt > 1 {
            self.parts.metrics.text_tried_again();
        }
        let outcome = self.hand_over(&due).await;
        failpoint::reached("outbox.sent");
        self.record(id, attempt, outcome).await?;
        failpoint::reached("outbox.recorded");
        Ok(())
    }

    /// Checks whether a message from before this start was sent by a run that is not in the database.
    async fn look_before_sending(&self, id: OutboxId) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        let begin = move |conn: &mut _| lookups::begin_before_sending(conn, id, now);
        let Some(sought) = self.parts.db.write(begin).await? else { return Ok(()) };
        match tokio::time::timeout(LIST_TIME, self.listed(&sought)).await {
            Ok(Ok(Some(listed))) => {
                tracing::info!(outbox = %id, "a text from before the start had been sent");
                self.record(id, sought.due.attempt, Ok(listed)).await
            }
            Ok(Ok(None)) => {
                // The clock may have been set while the list was read.
                let now = self.parts.clock.now();
                self.parts.db.write(move |conn| lookups::allow_sending(conn, id, now)).await
            }
            Ok(Err(ListError::Db(error))) => Err(error),
            Ok(Err(ListError::Look(error))) => {
                tracing::warn!(outbox = %id, %error, "failed to look up a text from before the start");
                Ok(())
            }
            Err(_) => {
                tracing::warn!(outbox = %id, "timed out looking up a text from before the start");
                Ok(())
            }
        }
    }

    /// Returns the entry of the carrier's list that is this message and no other known one.
    async fn listed(&self, sought: &Sought) -> Result<Option<Accepted>, ListError> {
        let channel = self.channel(&sought.due.from);
        let channel = channel.ok_or_else(|| LookError("no account is configured".to_owned()))?;
        let candidates = channel.find(&outgoing(&sought.due), sought.since).await?;
        let sids: Vec<String> = candidates.iter().map(|candidate| candidate.sid.clone()).collect();
        let first = self.parts.db.read(move |conn| outbox::unclaimed(conn, &sids)).await?;
        Ok(first.and_then(|first| candidates.into_iter().nth(first)))
    }

    /// Finds out whether a message was accepted, before anything is sent again.
    async fn look_for(&self, id: OutboxId) -> Result<(), DbError> {
        let Some(sought) = self.parts.db.read(move |conn| lookups::sought(conn, id)).await? else {
            return Ok(());
        };
        let (attempt, looks) = (sought.due.attempt, sought.looks);
        if let Some(sid) = sought.reported {
            return self.record(id, attempt, Ok(Accepted { sid, created_at: None })).await;
        }
        match self.listed(&sought).await {
            Ok(Some(listed)) => self.record(id, attempt, Ok(listed)).await,
            Ok(None) => {
                let now = self.parts.clock.now();
                let looks = Looks { before: looks, enough: self.parts.waits.looks.len() };
                let count = move |conn: &mut _| lookups::not_found(conn, id, looks, now);
                self.parts.db.write(count).await.map(|missing| {
                    tracing::info!(outbox = %id, ?missing, "a text is not in the carrier's list");
                })
            }
            Err(ListError::Db(error)) => Err(error),
            Err(ListError::Look(error)) => {
                tracing::warn!(outbox = %id, %error, "a text's fate could not be looked up");
                let now = self.parts.clock.now();
                let at = now + LOOK_PAUSE;
                self.parts.db.write(move |conn| lookups::look_later(conn, id, at, now)).await
            }
        }
    }

    fn channel(&self, from: &Address) -> Option<Arc<dyn Channel>> {
        match from.way() {
            Way::Carrier => self.parts.channels.carrier.clone(),
            Way::Terminal => Some(self.parts.channels.terminal.clone()),
            Way::Console => Some(self.parts.channels.console.clone()),
        }
    }

    async fn hand_over(&self, due: &Due) -> Result<Accepted, SendError> {
        let Some(channel) = self.channel(&due.from) else {
            let reason = "no account is configured".to_owned();
            return Err(SendError::Later { retry_after: Some(SEND_PACE.longest), reason });
        };
        channel.send(&outgoing(due)).await
    }

    async fn record(
        &self,
        id: OutboxId,
        attempt: u32,
        outcome: Result<Accepted, SendError>,
    ) -> Result<(), DbError> {
        let now = self.parts.clock.now();
        if let Err(error) = &outcome {
            tracing::warn!(outbox = %id, attempt, %error, "a text was not handed over");
        }
        match outcome {
            Ok(accepted) => {
                let terms = self.parts.waits.terms.clone();
                let take = move |conn: &mut _| {
                    let taken = Taken { sid: &accepted.sid, created_at: accepted.created_at };
                    outbox::accepted(conn, id, &taken, &terms, now)
                };
                let acceptance = self.parts.db.write(take).await?;
                self.parts.metrics.text_accepted(acceptance);
                Ok(())
            }
            Err(error @ (SendError::Later { .. } | SendError::Misconfigured { .. })) => {
                let at = now + SEND_PACE.pause(attempt, error.trouble().retry_after);
                let reason = error.to_string();
                self.parts.db.write(move |conn| outbox::later(conn, id, at, &reason, now)).await
            }
            Err(SendError::Unknown(reason)) => {
                self.parts.db.write(move |conn| outbox::unknown(conn, id, &reason, now)).await
            }
            Err(SendError::OptedOut) => {
                self.parts.db.write(move |conn| outbox::opted_out(conn, id, now).map(drop)).await
            }
            Err(SendError::Permanent { code, meaning }) => {
                self.parts
                    .db
                    .write(move |conn| outbox::fail(conn, id, &Failed { code, meaning: &meaning }, now))
                    .await?;
                self.parts.metrics.text_refused();
                Ok(())
            }
        }
    }
}

fn outgoing(due: &Due) -> Outgoing {
    let Due { id, attempt, to, from, body, media, word } = due.clone();
    Outgoing { id, attempt, to, from, body, media: media.into_iter().collect(), word }
}
