//! Task that polls the lists of received messages of the channels, at the start and repeatedly. It finds the messages
//! whose webhook was missed, and all messages of a channel without webhooks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::conversation::channel::DeliveryKnowledge;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::engine::Engine;
use crate::failpoint;
use crate::live::Live;
use crate::messaging::{ChannelPort, InboundPage, Poll, PollDelay};
use crate::metrics::Metrics;
use crate::store::database::db::{Db, Durability};
use crate::store::queue::delivery_reports::{self, DeliveryReport, ReportOutcome};
use crate::store::queue::{inbound_messages, source_cursors};

/// Delay before unfinished work is resumed again after a database error.
const RECOVERY_RETRY_DELAY: Duration = Duration::from_secs(10);

/// Channels whose lists are polled.
#[derive(Clone, Default)]
pub(crate) struct PolledChannels(pub(crate) Vec<Arc<dyn ChannelPort>>);

impl PartialEq for PolledChannels {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Arc<dyn ChannelPort>, &Arc<dyn ChannelPort>)| Arc::ptr_eq(a, b);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(is_same)
    }
}

/// Poller of the lists. It starts again when other channels are configured.
pub(crate) struct ChannelPoller {
    pub(crate) channels: Live<PolledChannels>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl ChannelPoller {
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut replaced = self.channels.subscribe();
        loop {
            let channels = replaced.borrow_and_update().clone();
            tokio::select! {
                () = self.poll_channels(&channels.0) => {}
                _ = replaced.changed() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Polls the channels for as long as the future is polled. Dropping it loses nothing: admitted messages are stored,
    /// and the next poll fetches the others.
    async fn poll_channels(&self, channels: &[Arc<dyn ChannelPort>]) {
        let first_polls = join_all(channels.iter().map(|port| self.poll_once(port.as_ref()))).await;
        // Work starts after the first poll, so that old messages are processed before new ones.
        self.recover_work().await;
        if channels.is_empty() {
            return std::future::pending().await;
        }
        join_all(channels.iter().zip(first_polls).map(|(port, next)| self.keep_polling(port.as_ref(), next)))
            .await;
    }

    async fn keep_polling(&self, port: &dyn ChannelPort, mut next: PollDelay) {
        let delays = self.engine.settings().recovery_delays;
        loop {
            tokio::time::sleep(match next {
                PollDelay::Later => delays.poll_interval,
                PollDelay::Soon => delays.short_poll_interval,
                PollDelay::After(interval) => interval,
            })
            .await;
            next = self.poll_once(port).await;
        }
    }

    /// Resumes unfinished work, and the work of messages that a dropped poll has admitted.
    async fn recover_work(&self) {
        while let Err(error) = self.engine.scheduler.recover_work().await {
            tracing::error!(%error, "failed to resume unfinished work");
            tokio::time::sleep(RECOVERY_RETRY_DELAY).await;
        }
    }

    /// Polls a list once. A carrier that does not respond delays the caller by at most the time limit of the
    /// channel.
    async fn poll_once(&self, port: &dyn ChannelPort) -> PollDelay {
        match tokio::time::timeout(port.poll_timeout(), self.admit_received(port)).await {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                let channel = port.channel();
                tracing::warn!(?channel, error = format!("{error:#}"), "failed to fetch missed messages");
                PollDelay::Soon
            }
            Err(_) => {
                tracing::warn!(channel = ?port.channel(), "timed out fetching missed messages");
                port.record_timeout();
                PollDelay::Soon
            }
        }
    }

    /// Admits the messages of a list that are not in the database, then stores the cursor.
    async fn admit_received(&self, port: &dyn ChannelPort) -> anyhow::Result<PollDelay> {
        let Some(source) = port.source() else { return Ok(PollDelay::Later) };
        let name = source.clone();
        let cursor = self.db.read(move |conn| source_cursors::load_source_cursor(conn, &name)).await?;
        let min_age = self.engine.settings().recovery_delays.min_message_age;
        let (channel, now) = (port.channel(), self.clock.now());
        let unfinished = match channel.profile().delivery {
            DeliveryKnowledge::Polled => {
                let load = move |conn: &mut _| delivery_reports::load_unfinished_messages(conn, channel, now);
                self.db.read(load).await?
            }
            DeliveryKnowledge::Reported | DeliveryKnowledge::AcceptedOnly | DeliveryKnowledge::Shown => {
                Vec::new()
            }
        };
        let poll = Poll { cursor, min_age, unfinished, now };
        let InboundPage { messages, reports, gestures, cursor, next } = port.poll_received(&poll).await?;
        // Most listed messages are known. One read filters them out, instead of one write for each.
        let filter = move |conn: &mut _| inbound_messages::filter_unadmitted(conn, channel, messages);
        let messages = self.db.read(filter).await?;
        failpoint::reached("missed.read");
        let mut batch = self.engine.admission.open_batch();
        for message in messages {
            // The message is received now, not when the list was requested: replies may have been sent in the meantime.
            let received_at = self.clock.now();
            batch.admit_message(ReceivedMessage { received_at, ..message }).await?;
            failpoint::reached("missed.admitted");
        }
        for gesture in gestures {
            self.engine.gestures.record(gesture).await?;
        }
        drop(batch);
        self.record_reports(reports).await?;
        if poll.cursor.as_ref() != Some(&cursor) {
            let now = self.clock.now();
            // The first poll of a list decides what counts as received before. A later position that is lost only lets the
            // same messages be read again.
            let durability = if poll.cursor.is_none() { Durability::Synced } else { Durability::Unsynced };
            let store = move |conn: &mut _| source_cursors::store_source_cursor(conn, &source, &cursor, now);
            self.db.write_with(move |_| durability, store).await?;
        }
        if channel.opens_prompts_when_sent() {
            self.engine.expiry.withdraw_unsent_prompts().await?;
        }
        Ok(next)
    }

    /// Records changed states. A prompt opens here if it was sent, after everything that had arrived before it.
    async fn record_reports(&self, reports: Vec<DeliveryReport>) -> anyhow::Result<()> {
        let policy = self.engine.settings().acceptance_policy();
        for report in reports {
            let (policy, now) = (policy.clone(), self.clock.now());
            let record =
                move |conn: &mut _| delivery_reports::record_delivery_report(conn, &report, &policy, now);
            if let ReportOutcome::Recorded(acceptance, delivery) = self.db.write(record).await? {
                self.metrics.text_accepted(acceptance);
                if let Some(delivery) = delivery {
                    self.metrics.text_delivery_ended(delivery);
                }
            }
        }
        Ok(())
    }
}
