//! Notifications about arr events. Related events become one message for each user, which is sent only once. The table
//! is the queue. Sonarr is queried for the meaning of an event before anything is committed.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::fanout::{FanoutOutcome, NotificationFanout, SeriesNews, followed_season};
use crate::arr::ArrError;
use crate::clock::Clock;
use crate::conversation::notifications::arr_events::{EventGroup, EventSubject, group_events};
use crate::engine::parts::EngineParts;
use crate::engine::settings::HouseholdSettings;
use crate::engine::work_signal::WorkSignal;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::Db;
use crate::store::library::{arr_events, follows};
use crate::telemetry;
use crate::tools::library::{ArrInstances, Instance};

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
    settings: Arc<HouseholdSettings>,
    library: Arc<ArrInstances>,
    outbox: OutboxSignal,
    event_stored: WorkSignal,
}

impl Notifier {
    pub(crate) fn new(parts: &EngineParts, event_stored: WorkSignal) -> Self {
        let EngineParts { db, clock, settings, library, outbox, .. } = parts.clone();
        Self { db, clock, settings, library, outbox, event_stored }
    }

    /// Lets the worker check its queue at once.
    pub(crate) fn wake_worker(&self) {
        self.event_stored.notify();
    }

    /// Sends notifications for as long as the future is polled. Dropping it at any point loses nothing, because sent
    /// notifications are committed.
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
        // The time is taken before the read: an event that arrives after the read is not missing from a due group.
        let now = self.clock.now();
        let untold = self.db.read(|conn| arr_events::load_unreported_events(conn, EVENT_BATCH)).await?;
        let groups = group_events(untold);
        // Groups that need no request come first, so that a Sonarr instance that hangs delays no movie.
        let (shows, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| matches!(group.subject, EventSubject::Series(_)));
        let (mut next, mut silent): (Option<Timestamp>, Vec<String>) = (None, Vec::new());
        for group in others.into_iter().chain(shows) {
            let (ready_at, instance) = (group.ready_at(), group.instance.clone());
            let again = if ready_at > now {
                Some(ready_at)
            } else if silent.contains(&instance) {
                Some(now + SONARR_RETRY_DELAY)
            } else {
                match self.notify_group(group).await? {
                    FanoutOutcome::Done => None,
                    FanoutOutcome::NotBefore(at) => Some(at),
                    FanoutOutcome::Unclear => Some(now + SONARR_RETRY_DELAY),
                    FanoutOutcome::NoAnswer => {
                        silent.push(instance);
                        Some(now + SONARR_RETRY_DELAY)
                    }
                }
            };
            next = next.into_iter().chain(again).min();
        }
        self.outbox.notify();
        Ok(next)
    }

    async fn notify_group(&self, group: EventGroup) -> anyhow::Result<FanoutOutcome> {
        let (settings, now) = (self.settings.clone(), self.clock.now());
        match &group.subject {
            EventSubject::Series(_) => {
                let news = match self.fetch_show_news(&group).await? {
                    SeriesLookupOutcome::Found(news) => news,
                    SeriesLookupOutcome::NoAnswer => return Ok(FanoutOutcome::NoAnswer),
                    SeriesLookupOutcome::Unclear => return Ok(FanoutOutcome::Unclear),
                };
                // The clock may have been set during the request to Sonarr.
                let now = self.clock.now();
                let work = move |conn: &mut _| {
                    NotificationFanout { conn, settings: &settings, now }.notify_of_show(&news)
                };
                Ok(self.db.write(work).await?)
            }
            EventSubject::Movie(_) => {
                let work = move |conn: &mut _| {
                    NotificationFanout { conn, settings: &settings, now }.notify_of_movie(&group)
                };
                self.db.write(work).await?;
                Ok(FanoutOutcome::Done)
            }
            EventSubject::Download(_) | EventSubject::Check(_) => {
                let service = self.instance_label(&group.instance);
                let work = move |conn: &mut _| {
                    NotificationFanout { conn, settings: &settings, now }.notify_of_trouble(&group, &service)
                };
                self.db.write(work).await?;
                Ok(FanoutOutcome::Done)
            }
        }
    }

    /// Returns the instance name that users know.
    fn instance_label(&self, instance: &str) -> String {
        let movies = self.library.movies.iter().find(|one| one.name == instance).map(Instance::display_name);
        let series =
            || self.library.series.iter().find(|one| one.name == instance).map(Instance::display_name);
        movies.or_else(series).unwrap_or_else(|| instance.to_owned())
    }

    /// Queries Sonarr for the new episodes and the complete seasons. If no user follows the show, Sonarr is not
    /// queried.
    async fn fetch_show_news(&self, group: &EventGroup) -> anyhow::Result<SeriesLookupOutcome> {
        let mut news = SeriesNews::from_group(group);
        let (instance, seasons, show) = (group.instance.clone(), news.season_numbers(), news.show.clone());
        let somebody_waits = move |conn: &mut _| {
            for season in seasons {
                if !follows::load_followers(conn, &followed_season(&instance, &show, season))?.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let sonarr = self.library.series.iter().find(|one| one.name == group.instance);
        let (Some(sonarr), true) = (sonarr, self.db.read(somebody_waits).await?) else {
            news.episodes.clear();
            return Ok(SeriesLookupOutcome::Found(news));
        };
        let state = async {
            let (client, id) = (&sonarr.client, news.show.id);
            let Some(series) = client.fetch_series(id).await? else { return Ok(None) };
            let growing = client.fetch_growing_episodes(&series, Some(&news.season_numbers())).await?;
            Ok::<_, ArrError>(Some((series, client.fetch_history(id).await?, growing)))
        };
        match state.await {
            Ok(Some((series, history, growing))) => {
                news.add_series_details(&series, (&history, &growing), self.clock.now())
            }
            Ok(None) => news.episodes.clear(),
            Err(error) => {
                let (instance, why) = (&group.instance, telemetry::error_chain(&error));
                tracing::warn!(instance, error = why, "failed to query Sonarr about an arr event");
                // All events must have this age, because a show that continues always has a recent event.
                if group.events.iter().all(|report| self.clock.now() < report.received_at + MAX_EVENT_AGE) {
                    return Ok(if error.affects_all_requests() {
                        SeriesLookupOutcome::NoAnswer
                    } else {
                        SeriesLookupOutcome::Unclear
                    });
                }
                news.episodes.clear();
            }
        }
        Ok(SeriesLookupOutcome::Found(news))
    }
}

enum SeriesLookupOutcome {
    Found(SeriesNews),
    NoAnswer,
    Unclear,
}
