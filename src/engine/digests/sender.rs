//! Worker that sends digests: it reads the news of the libraries with the caps of each reader, and queues the digest in one
//! transaction.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::digest_queue::{DigestOccasion, DigestQueue, DigestReader, PreparedDigest, QueueOutcome};
use super::library_news::{IMPORT_PERIOD, NewsReader};
use crate::clock::Clock;
use crate::conversation::digest::schedule::DigestTiming;
use crate::conversation::transcript::UserId;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::work_signal::WorkSignal;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::{Db, DbError};
use crate::store::digests::{self, DigestSetting};
use crate::store::library::{arr_events, title_requests};
use crate::store::{Conn, QueryResult};
use crate::telemetry;

/// Maximum time between two checks, because a shell command can change a digest.
const CHECK_INTERVAL: Duration = Duration::from_mins(30);
/// Delay before a digest is tried again.
const RETRY_DELAY: SignedDuration = SignedDuration::from_mins(5);
/// Delay before a digest is read again, after the caps of its reader changed.
const CHANGE_DELAY: SignedDuration = SignedDuration::from_secs(10);
/// Time for which a digest waits for a server that does not answer.
const MAX_SERVER_WAIT: SignedDuration = SignedDuration::from_hours(1);

/// Worker that sends the digests that are due.
pub struct DigestSender {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
    changed: WorkSignal,
}

impl DigestSender {
    pub(crate) fn new(parts: &EngineParts, changed: WorkSignal) -> Self {
        let EngineParts { db, clock, live, outbox, .. } = parts.clone();
        Self { db, clock, live, outbox, changed }
    }

    /// Sends digests until the task is dropped.
    pub(crate) async fn run(&self) {
        loop {
            let wait = match self.send_due_digests().await {
                Ok(next) => next.map_or(CHECK_INTERVAL, |at| self.time_until(at).min(CHECK_INTERVAL)),
                Err(error) => {
                    tracing::error!(%error, "failed to load the digests");
                    CHECK_INTERVAL
                }
            };
            tokio::select! {
                () = self.changed.wait() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Lets the worker check the digests at once.
    pub(crate) fn wake_worker(&self) {
        self.changed.notify();
    }

    fn time_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.clock.now())).unwrap_or_default()
    }

    /// Sends the digests that are due or asked for, and returns the time of the next check. A digest that fails does not
    /// delay the others.
    pub(crate) async fn send_due_digests(&self) -> Result<Option<Timestamp>, DbError> {
        let now = self.clock.now();
        let mut next: Option<Timestamp> = None;
        for (setting, timing) in self.load_timings().await? {
            let mut at = None;
            if let Some(text) = setting.preview {
                at = self.try_digest(setting.reader, (DigestOccasion::Asked(text), now)).await;
            }
            let due_at = match timing {
                DigestTiming::NotBefore(at) => at,
                DigestTiming::Missed(due) => {
                    self.leave_out(setting.reader, DigestOccasion::Due(due)).await?;
                    Some(now)
                }
                DigestTiming::Due { due, arrival } => {
                    self.try_digest(setting.reader, (DigestOccasion::Due(due), arrival)).await
                }
            };
            next = next.into_iter().chain(at).chain(due_at).min();
        }
        Ok(next)
    }

    async fn load_timings(&self) -> Result<Vec<(DigestSetting, DigestTiming)>, DbError> {
        let settings = self.db.read_without_snapshot(digests::load_settings).await?;
        if settings.is_empty() {
            return Ok(Vec::new());
        }
        let load = |queue: &mut DigestQueue<'_>| {
            let with_timing = |setting| Ok((setting, queue.check_timing(&setting)?));
            settings.into_iter().map(with_timing).collect()
        };
        self.read(load).await
    }

    /// Tries to send a digest, and returns the time of the next try.
    async fn try_digest(
        &self,
        reader: UserId,
        (occasion, arrival): (DigestOccasion, Timestamp),
    ) -> Option<Timestamp> {
        match self.send_digest(reader, (occasion, arrival)).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(error = telemetry::error_chain(&error), "failed to send a digest");
                Some(self.clock.now() + RETRY_DELAY)
            }
        }
    }

    async fn send_digest(
        &self,
        reader: UserId,
        (occasion, arrival): (DigestOccasion, Timestamp),
    ) -> Result<Option<Timestamp>, DbError> {
        let now = self.clock.now();
        let Some(loaded) = self.read(move |queue| queue.load_reader(reader, occasion)).await? else {
            self.leave_out(reader, occasion).await?;
            return Ok(Some(now));
        };
        let digest = self.prepare(loaded).await?;
        let may_wait = matches!(occasion, DigestOccasion::Due(_)) && now < arrival + MAX_SERVER_WAIT;
        if digest.news.is_incomplete && may_wait {
            return Ok(Some(now + RETRY_DELAY));
        }
        let queue = move |queue: &mut DigestQueue<'_>| queue.queue_digest(&digest, occasion);
        let outcome = self.write(queue).await?;
        self.outbox.notify();
        Ok(match outcome {
            // The next digest is due in a week.
            QueueOutcome::Done => None,
            QueueOutcome::Changed => Some(now + CHANGE_DELAY),
        })
    }

    /// Reads the news and the requested titles that a reader may learn about.
    async fn prepare(&self, reader: DigestReader) -> Result<PreparedDigest, DbError> {
        let (now, parts) = (self.clock.now(), self.live.current());
        let since = now - IMPORT_PERIOD;
        let id = reader.user.id;
        let load = move |queue: &mut DigestQueue<'_>| {
            Ok((
                arr_events::load_events_since(queue.conn, since)?,
                title_requests::load_additions_of(queue.conn, id)?,
            ))
        };
        let (events, additions) = self.read(load).await?;
        let limit = &reader.limit.limit;
        let library = parts.library.limited_to(limit).await;
        let news_reader = NewsReader { library: &library, limit, zone: &parts.settings.zone, now };
        let news = news_reader.fetch_news(&events).await;
        let allowed = if limit.is_unlimited() {
            None
        } else {
            let mut allowed = BTreeSet::new();
            for addition in additions {
                let title = (addition.title.kind, addition.title.catalog_id);
                if library.may_show(title.0, title.1).await {
                    allowed.insert(title);
                }
            }
            Some(allowed)
        };
        Ok(PreparedDigest { reader, news, allowed })
    }

    /// Records that a digest is left out.
    async fn leave_out(&self, reader: UserId, occasion: DigestOccasion) -> Result<(), DbError> {
        self.write(move |queue| queue.record_outcome(reader, occasion)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut DigestQueue<'_>) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        self.db.read(move |conn: &mut Conn| work(&mut DigestQueue { conn, settings: &settings, now })).await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut DigestQueue<'_>) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        self.db.write(move |conn: &mut Conn| work(&mut DigestQueue { conn, settings: &settings, now })).await
    }
}
