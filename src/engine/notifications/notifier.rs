//! Notifies users of arr events. Related events become one message for each user, which is sent once. The table is the
//! queue. The details of episodes are fetched from Sonarr before the transaction.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::fanout::{FanoutOutcome, NotificationFanout, SeriesNews, followed_season};
use super::playability_check::{ImportedTitle, PlayabilityCheck, ReadinessCheck};
use super::title_readers::TitleReaders;
use crate::arr::{ArrError, Series};
use crate::clock::Clock;
use crate::conversation::notifications::arr_events::{ArrEvent, EventGroup, EventSubject, group_events};
use crate::conversation::notifications::readiness::{
    DelayNotice, GIVE_UP_AFTER, Readiness, format_delay_notice, format_missing_title,
};
use crate::conversation::transcript::MediaKind;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::work_signal::WorkSignal;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::Db;
use crate::store::library::{arr_events, follows};
use crate::telemetry;
use crate::tools::library::Instance;

/// Interval at which the queue of arr events is checked in case a wake-up is lost.
const CHECK_INTERVAL: Duration = Duration::from_secs(300);
/// Maximum number of arr events that are processed together.
const EVENT_BATCH: i64 = 2_000;
/// Delay before a Sonarr instance that does not respond is queried again.
const SONARR_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(60);
/// Age after which Sonarr is no longer queried about an arr event.
const MAX_EVENT_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Worker that notifies users about arr events.
pub struct Notifier {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
    event_stored: WorkSignal,
}

impl Notifier {
    pub(crate) fn new(parts: &EngineParts, event_stored: WorkSignal) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox, event_stored }
    }

    /// Lets the worker check its queue at once.
    pub(crate) fn wake_worker(&self) {
        self.event_stored.notify();
    }

    /// Sends notifications for as long as the future is polled. Dropping it at any point loses nothing, because events
    /// are claimed in the same transaction that queues their notifications.
    pub(crate) async fn run(&self) {
        loop {
            let wait = match self.send_due_notifications().await {
                Ok(None) => CHECK_INTERVAL,
                Ok(Some(at)) => Duration::try_from(at.duration_since(self.clock.now()))
                    .unwrap_or_default()
                    .min(CHECK_INTERVAL),
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "failed to notify of arr events");
                    CHECK_INTERVAL
                }
            };
            tokio::select! {
                () = self.event_stored.wait() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Sends the notifications of all due events, and returns the time at which the next one is due.
    pub(crate) async fn send_due_notifications(&self) -> anyhow::Result<Option<Timestamp>> {
        // The time is taken before the read, so that a group that is due contains all of its events.
        let now = self.clock.now();
        let events = self.db.read(|conn| arr_events::load_pending_events(conn, EVENT_BATCH)).await?;
        let groups = group_events(events);
        // Groups that need no request come first, then those that need fewer, so that an unresponsive server does not delay
        // the others.
        let mut groups = groups;
        groups.sort_by_key(|group| match group.subject {
            EventSubject::Download(_) | EventSubject::Check(_) => 0,
            EventSubject::Movie(_) => 1,
            EventSubject::Series(_) => 2,
        });
        let (mut next, mut unresponsive): (Option<Timestamp>, Vec<String>) = (None, Vec::new());
        for group in groups {
            let (ready_at, instance) = (group.ready_at(), group.instance.clone());
            let retry_at = if ready_at > now {
                Some(ready_at)
            } else if unresponsive.contains(&instance) {
                Some(now + SONARR_RETRY_DELAY)
            } else {
                match self.notify_group(group).await? {
                    FanoutOutcome::Done => None,
                    FanoutOutcome::NotBefore(at) => Some(at),
                    FanoutOutcome::UnreadableSeries => Some(now + SONARR_RETRY_DELAY),
                    FanoutOutcome::NoResponse => {
                        unresponsive.push(instance);
                        Some(now + SONARR_RETRY_DELAY)
                    }
                }
            };
            next = next.into_iter().chain(retry_at).min();
        }
        self.outbox.notify();
        Ok(next)
    }

    async fn notify_group(&self, group: EventGroup) -> anyhow::Result<FanoutOutcome> {
        let group = match self.wait_until_playable(group).await? {
            PlayabilityOutcome::Proceed(group) => group,
            PlayabilityOutcome::Handled(outcome) => return Ok(outcome),
        };
        let readers = self.find_readers(&group).await?;
        let (settings, now) = (self.live.settings(), self.clock.now());
        match &group.subject {
            EventSubject::Series(_) => {
                let news = match self.fetch_series_news(&group).await? {
                    SeriesLookupOutcome::Found(news) => news,
                    SeriesLookupOutcome::NoResponse => return Ok(FanoutOutcome::NoResponse),
                    SeriesLookupOutcome::UnreadableSeries => return Ok(FanoutOutcome::UnreadableSeries),
                };
                // The clock may have been set during the request to Sonarr.
                let now = self.clock.now();
                let work = move |conn: &mut _| {
                    NotificationFanout { conn, settings: &settings, readers: &readers, now }
                        .notify_of_series(&news)
                };
                Ok(self.db.write(work).await?)
            }
            EventSubject::Movie(_) => {
                let work = move |conn: &mut _| {
                    NotificationFanout { conn, settings: &settings, readers: &readers, now }
                        .notify_of_movie(&group)
                };
                self.db.write(work).await?;
                Ok(FanoutOutcome::Done)
            }
            EventSubject::Download(_) | EventSubject::Check(_) => {
                let service = self.instance_label(&group.instance);
                let work = move |conn: &mut _| {
                    NotificationFanout { conn, settings: &settings, readers: &TitleReaders::default(), now }
                        .notify_of_problem(&group, &service)
                };
                self.db.write(work).await?;
                Ok(FanoutOutcome::Done)
            }
        }
    }

    /// Returns the users with caps who may learn about the title of a group.
    async fn find_readers(&self, group: &EventGroup) -> anyhow::Result<TitleReaders> {
        let title = group.events.iter().find_map(|event| match &event.event {
            ArrEvent::MovieImported(movie, _) => Some((MediaKind::Movie, movie.catalog_id)),
            ArrEvent::EpisodeImported { show, .. } => Some((MediaKind::Series, show.catalog_id)),
            // Only admins, who have no caps, are notified of these.
            ArrEvent::ImportBlocked(_)
            | ArrEvent::DownloadFailed(_)
            | ArrEvent::HealthIssue { .. }
            | ArrEvent::HealthRestored { .. } => None,
        });
        Ok(match title {
            Some(title) => TitleReaders::find(&self.db, &self.live.current().library, title).await?,
            None => TitleReaders::default(),
        })
    }

    /// Waits until imported titles can be played on a media server. Meanwhile the events stay pending, so that a start of
    /// the program continues the wait. Once some episodes have waited for long, those that can be played are announced.
    async fn wait_until_playable(&self, group: EventGroup) -> anyhow::Result<PlayabilityOutcome> {
        let Some(imported) = ImportedTitle::from_group(&group) else {
            return Ok(PlayabilityOutcome::Proceed(group));
        };
        let check = PlayabilityCheck { db: &self.db, live: &self.live, now: self.clock.now() };
        let Some(check) = check.check(&imported).await? else {
            return Ok(PlayabilityOutcome::Proceed(group));
        };
        let has_waited = !matches!(
            check.readiness,
            Readiness::Ready | Readiness::Wait { notice: DelayNotice::Nobody, .. }
        );
        if has_waited && let Some(playable) = check.playable_events(&group) {
            return Ok(PlayabilityOutcome::Proceed(playable));
        }
        match check.readiness {
            Readiness::Ready => Ok(PlayabilityOutcome::Proceed(group)),
            Readiness::Wait { until, notice } => {
                let readers = self.find_readers(&group).await?;
                self.notify_of_delay(imported, &check, (notice, readers)).await?;
                Ok(PlayabilityOutcome::Handled(FanoutOutcome::NotBefore(until)))
            }
            Readiness::GivenUp => {
                let (settings, now) = (self.live.settings(), self.clock.now());
                let mut given_up = group;
                given_up.events.retain(|event| now.duration_since(event.received_at) >= GIVE_UP_AFTER);
                let work = move |conn: &mut _| {
                    NotificationFanout { conn, settings: &settings, readers: &TitleReaders::default(), now }
                        .give_up(&given_up)
                };
                self.db.write(work).await?;
                Ok(PlayabilityOutcome::Handled(FanoutOutcome::Done))
            }
        }
    }

    async fn notify_of_delay(
        &self,
        imported: ImportedTitle,
        check: &ReadinessCheck,
        (notice, readers): (DelayNotice, TitleReaders),
    ) -> anyhow::Result<()> {
        if notice == DelayNotice::Nobody {
            return Ok(());
        }
        let (settings, now) = (self.live.settings(), self.clock.now());
        let library = self.live.current().library.clone();
        let labels = library.media_servers.labels().join(" or ");
        let delay = format_delay_notice(imported.content(), &labels, check.playability);
        let (waiting, delay_settings) = (imported.clone(), settings.clone());
        let notify_users = move |conn: &mut _| {
            NotificationFanout { conn, settings: &delay_settings, readers: &readers, now }
                .notify_of_delay(&waiting, &delay)
        };
        self.db.write(notify_users).await?;
        if notice == DelayNotice::WaitingUsers {
            return Ok(());
        }
        let (missing, read_settings) = (imported.clone(), settings.clone());
        let load_admins = move |conn: &mut _| {
            NotificationFanout { conn, settings: &read_settings, readers: &TitleReaders::default(), now }
                .load_uninformed_admins(&missing)
        };
        if self.db.read(load_admins).await?.is_empty() {
            return Ok(());
        }
        let (server, cause) = check.find_cause(&library.media_servers, &imported, now).await;
        tracing::warn!(instance = imported.instance, server, ?cause, "an imported title does not play");
        let text = format_missing_title(imported.content(), server, cause);
        let notify_admins = move |conn: &mut _| {
            NotificationFanout { conn, settings: &settings, readers: &TitleReaders::default(), now }
                .notify_of_missing_title(&imported, &text)
        };
        Ok(self.db.write(notify_admins).await?)
    }

    /// Returns the display name of an instance.
    fn instance_label(&self, instance: &str) -> String {
        let library = &self.live.current().library;
        let movies = library.movies.iter().find(|known| known.name == instance).map(Instance::display_name);
        let series =
            || library.series.iter().find(|known| known.name == instance).map(Instance::display_name);
        movies.or_else(series).unwrap_or_else(|| instance.to_owned())
    }

    /// Fetches the new episodes and the complete seasons of a series. If no user follows them, Sonarr is not queried.
    async fn fetch_series_news(&self, group: &EventGroup) -> anyhow::Result<SeriesLookupOutcome> {
        let mut news = SeriesNews::from_group(group);
        let (instance, seasons, title) = (group.instance.clone(), news.season_numbers(), news.title.clone());
        let has_followers = move |conn: &mut _| {
            for season in seasons {
                if !follows::load_followers(conn, &followed_season(&instance, &title, season))?.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let library = self.live.current().library.clone();
        let sonarr = library.series.iter().find(|known| known.name == group.instance);
        let (Some(sonarr), true) = (sonarr, self.db.read(has_followers).await?) else {
            news.episodes.clear();
            return Ok(SeriesLookupOutcome::Found(news));
        };
        let details = async {
            let (client, id) = (&sonarr.client, news.title.id);
            // An event of a Sonarr that was moved to another server has the id of another series there.
            let is_same = |series: &Series| series.tvdb == news.title.catalog_id;
            let Some(series) = client.fetch_series(id).await?.filter(is_same) else { return Ok(None) };
            let growing = client.fetch_growing_episodes(&series, Some(&news.season_numbers())).await?;
            Ok::<_, ArrError>(Some((series, client.fetch_history(id).await?, growing)))
        };
        match details.await {
            Ok(Some((series, history, growing))) => {
                news.add_series_details(&series, (&history, &growing), self.clock.now())
            }
            Ok(None) => news.episodes.clear(),
            Err(error) => {
                let (instance, error_chain) = (&group.instance, telemetry::error_chain(&error));
                tracing::warn!(instance, error = error_chain, "failed to query Sonarr about an arr event");
                // One event beyond the age limit ends the retries, because an airing series always has recent events.
                if group.events.iter().all(|event| self.clock.now() < event.received_at + MAX_EVENT_AGE) {
                    return Ok(if error.affects_all_requests() {
                        SeriesLookupOutcome::NoResponse
                    } else {
                        SeriesLookupOutcome::UnreadableSeries
                    });
                }
                news.episodes.clear();
            }
        }
        Ok(SeriesLookupOutcome::Found(news))
    }
}

/// Outcome of the wait until imported titles can be played.
enum PlayabilityOutcome {
    /// People are told that the titles of these events are ready.
    Proceed(EventGroup),
    /// The titles cannot be played yet, or not in time.
    Handled(FanoutOutcome),
}

/// Outcome of fetching the details of a series.
enum SeriesLookupOutcome {
    Found(SeriesNews),
    /// The instance did not respond.
    NoResponse,
    /// The instance responded, but not with usable details of this series.
    UnreadableSeries,
}
