//! Reconciliation with the history of Sonarr and Radarr, which do not retry failed webhooks. The history is polled every
//! few minutes and yields the same event keys as the webhooks, so known events are not stored twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};

use super::next_season_checker::NextSeasonChecker;
use super::season_checker::SeasonChecker;
use crate::arr::ArrError;
use crate::arr::common_api::CommonApi;
use crate::arr::history::{self, HistoryEntry, HistoryEvent};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::clock::Clock;
use crate::conversation::notifications::arr_events::{
    ArrEvent, ArrTitle, ImportKind, KeyedArrEvent, format_arr_title, format_episodes,
};
use crate::conversation::transcript::MediaKind;
use crate::engine::making_room::checker::SpaceChecker;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::work_signal::WorkSignal;
use crate::store::database::db::Db;
use crate::store::library::arr_events;
use crate::telemetry;
use crate::tools::library::Instance;

/// Delay before the first poll of the history, so that webhooks in flight arrive first.
const START_DELAY: Duration = Duration::from_secs(30);
const RECONCILE_INTERVAL: Duration = Duration::from_secs(300);
/// Number of polls per check of the followed and the watched seasons and of the free space, every six hours.
const POLLS_PER_CHECK: u32 = 72;
/// Overlap of two polls of the history, since entries may be stored late and clocks differ.
const OVERLAP: SignedDuration = SignedDuration::from_mins(15);
/// Age beyond which users are no longer notified of an event.
const MAX_EVENT_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Worker that polls the history of all instances.
pub struct Reconciler {
    db: Db,
    clock: Clock,
    live: LiveParts,
    event_stored: WorkSignal,
    checkers: PeriodicCheckers,
}

/// Checkers that run every six hours.
#[derive(Clone)]
pub struct PeriodicCheckers {
    seasons: Arc<SeasonChecker>,
    next_seasons: Arc<NextSeasonChecker>,
    pub(crate) room: Arc<SpaceChecker>,
}

impl PeriodicCheckers {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        Self {
            seasons: Arc::new(SeasonChecker::new(parts)),
            next_seasons: Arc::new(NextSeasonChecker::new(parts)),
            room: Arc::new(SpaceChecker::new(parts)),
        }
    }

    /// Checks the followed and the watched seasons, and opens a proposal to make room if one is due.
    pub(crate) async fn run_once(&self) {
        self.seasons.check_seasons().await;
        self.next_seasons.check_viewers().await;
        self.room.propose_if_due().await;
    }
}

impl Reconciler {
    pub(crate) fn new(parts: &EngineParts, event_stored: WorkSignal, checkers: PeriodicCheckers) -> Self {
        let EngineParts { db, clock, live, .. } = parts.clone();
        Self { db, clock, live, event_stored, checkers }
    }

    /// Polls the history every few minutes, for as long as the future is polled.
    pub(crate) async fn run(&self) {
        tokio::time::sleep(START_DELAY).await;
        for poll in (0..POLLS_PER_CHECK).cycle() {
            self.reconcile_instances().await;
            // The check follows a poll, so that missed imports are known.
            if poll == 0 {
                self.checkers.run_once().await;
            }
            tokio::time::sleep(RECONCILE_INTERVAL).await;
        }
    }

    /// Polls the history of every instance once. After a failed poll, the next one starts at the same cursor.
    pub(crate) async fn reconcile_instances(&self) {
        let library = self.live.current().library.clone();
        for instance in &library.movies {
            if let Err(error) = self.reconcile_movies(instance).await {
                tracing::warn!(
                    instance = instance.name,
                    error = format!("{error:#}"),
                    "failed to read the history"
                );
            }
        }
        for instance in &library.series {
            if let Err(error) = self.reconcile_series(instance).await {
                tracing::warn!(
                    instance = instance.name,
                    error = format!("{error:#}"),
                    "failed to read the history"
                );
            }
        }
    }

    async fn reconcile_movies(&self, instance: &Instance<Radarr>) -> anyhow::Result<()> {
        let Some(since) = self.load_history_start(instance.name).await? else { return Ok(()) };
        let entries = instance.client.fetch_history_since(since).await.context("read the history")?;
        let events =
            self.filter_unknown_events(instance.name, find_missed_events(MediaKind::Movie, &entries)).await?;
        let mut titles = BTreeMap::new();
        for id in title_ids(&events) {
            let Some(movie) =
                none_if_unreadable(instance.client.fetch_movie(id).await).context("read a movie")?
            else {
                continue;
            };
            titles.insert(id, ArrTitle { id, catalog_id: movie.tmdb, title: movie.title, year: movie.year });
        }
        let events = add_titles(events, &titles);
        self.store_missed_events((instance.name, instance.client.common_api()), &entries, events).await
    }

    async fn reconcile_series(&self, instance: &Instance<Sonarr>) -> anyhow::Result<()> {
        let Some(since) = self.load_history_start(instance.name).await? else { return Ok(()) };
        let entries = instance.client.fetch_history_since(since).await.context("read the history")?;
        let events = self
            .filter_unknown_events(instance.name, find_missed_events(MediaKind::Series, &entries))
            .await?;
        let mut titles = BTreeMap::new();
        for id in title_ids(&events) {
            let Some(series) =
                none_if_unreadable(instance.client.fetch_series(id).await).context("read a series")?
            else {
                continue;
            };
            titles
                .insert(id, ArrTitle { id, catalog_id: series.tvdb, title: series.title, year: series.year });
        }
        let events = add_titles(events, &titles);
        self.store_missed_events((instance.name, instance.client.common_api()), &entries, events).await
    }

    /// Returns the start time of the next poll. The first poll of an instance only stores the cursor and returns `None`,
    /// because past events cause no notifications.
    async fn load_history_start(&self, instance: &'static str) -> anyhow::Result<Option<Timestamp>> {
        let now = self.clock.now();
        let cursor = self
            .db
            .write(move |conn| {
                let cursor = arr_events::load_history_cursor(conn, instance)?;
                if cursor.is_none() {
                    // The next poll subtracts the overlap, and so starts exactly at `now`.
                    arr_events::store_history_cursor(conn, instance, now + OVERLAP)?;
                }
                Ok(cursor)
            })
            .await?;
        // A cursor ahead of the present by more than the overlap was stored before the clock was set back.
        let valid_cursor = |cursor: Timestamp| if cursor > now + OVERLAP { now } else { cursor };
        Ok(cursor.map(|cursor| (valid_cursor(cursor) - OVERLAP).max(now - MAX_EVENT_AGE)))
    }

    /// Returns the events that are not stored yet.
    async fn filter_unknown_events(
        &self,
        instance: &'static str,
        events: Vec<MissedArrEvent>,
    ) -> anyhow::Result<Vec<MissedArrEvent>> {
        let filter = move |conn: &mut _| {
            let mut unknown = Vec::new();
            for event in events {
                if !arr_events::is_event_known(conn, instance, &event.event.matter)? {
                    unknown.push(event);
                }
            }
            Ok(unknown)
        };
        Ok(self.db.read(filter).await?)
    }

    async fn store_missed_events(
        &self,
        (instance, client): (&'static str, CommonApi<'_>),
        entries: &[HistoryEntry],
        mut events: Vec<KeyedArrEvent>,
    ) -> anyhow::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let is_failure = |event: &KeyedArrEvent| matches!(event.event, ArrEvent::DownloadFailed(_));
        // An instance that automatically searches for another release needs no help.
        if events.iter().any(is_failure)
            && client.fetch_replaces_failed().await.context("read the settings")?
        {
            events.retain(|event| !is_failure(event));
        }
        let now = self.clock.now();
        // An entry with a future date must not move the cursor beyond the present.
        let last = entries.iter().map(|entry| entry.at.min(now)).max();
        let store = move |conn: &mut _| {
            let new = arr_events::store_arr_events(conn, instance, &events, now)?;
            let cursor = arr_events::load_history_cursor(conn, instance)?;
            let is_new_cursor =
                |last: &Timestamp| cursor.is_none_or(|cursor| *last > cursor || cursor > now + OVERLAP);
            if let Some(last) = last.filter(is_new_cursor) {
                arr_events::store_history_cursor(conn, instance, last)?;
            }
            Ok(new)
        };
        let new = self.db.write_unsynced(store).await?;
        if new > 0 {
            tracing::info!(instance, new, "found unreported events in the history");
            self.event_stored.notify();
        }
        Ok(())
    }
}

/// Event from the history, before its title is known.
struct MissedArrEvent {
    title_id: i64,
    /// Episodes of a failed download, by season and number.
    episodes: Vec<(u32, u32)>,
    event: KeyedArrEvent,
}

fn find_missed_events(kind: MediaKind, entries: &[HistoryEntry]) -> Vec<MissedArrEvent> {
    let mut events: Vec<MissedArrEvent> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.title_id > 0) {
        let title = ArrTitle { id: entry.title_id, catalog_id: 0, title: String::new(), year: 0 };
        let copy = if history::is_upgrade(entries, entry) { ImportKind::Upgrade } else { ImportKind::First };
        let number = entry.episode.map(|(_, season, number)| (season, number));
        let event = match (entry.event, kind, number) {
            (HistoryEvent::Imported, MediaKind::Movie, _) => ArrEvent::MovieImported(title, copy),
            (HistoryEvent::Imported, MediaKind::Series, Some((season, number))) => {
                ArrEvent::EpisodeImported { show: title, season, number, copy }
            }
            (HistoryEvent::Failed, ..) if !entry.is_manually_failed() => {
                ArrEvent::DownloadFailed(entry.title_id.to_string())
            }
            _ => continue,
        };
        let keyed = KeyedArrEvent::new(event, &entry.download, entry.at);
        match events.iter_mut().find(|known| known.event.matter == keyed.matter) {
            // A failed season pack has an entry for each of its episodes.
            Some(known) => known.episodes.extend(number),
            None => events.push(MissedArrEvent {
                title_id: entry.title_id,
                episodes: number.into_iter().collect(),
                event: keyed,
            }),
        }
    }
    events
}

/// Treats a title that its instance cannot return as missing, so that other titles are still processed.
fn none_if_unreadable<T>(result: Result<Option<T>, ArrError>) -> Result<Option<T>, ArrError> {
    match result {
        Err(error) if !error.affects_all_requests() => {
            tracing::warn!(
                error = telemetry::error_chain(&error),
                "failed to fetch a title from the history"
            );
            Ok(None)
        }
        Ok(_) | Err(_) => result,
    }
}

fn title_ids(events: &[MissedArrEvent]) -> BTreeSet<i64> {
    events.iter().map(|event| event.title_id).collect()
}

/// Adds the titles of events. Events of titles that are no longer in the library are dropped.
fn add_titles(events: Vec<MissedArrEvent>, titles: &BTreeMap<i64, ArrTitle>) -> Vec<KeyedArrEvent> {
    let add_title = |missed: MissedArrEvent| {
        let title = titles.get(&missed.title_id)?;
        let KeyedArrEvent { matter, event } = missed.event;
        let event = match event {
            ArrEvent::MovieImported(_, copy) => ArrEvent::MovieImported(title.clone(), copy),
            ArrEvent::EpisodeImported { season, number, copy, .. } => {
                ArrEvent::EpisodeImported { show: title.clone(), season, number, copy }
            }
            ArrEvent::DownloadFailed(_) if missed.episodes.is_empty() => {
                ArrEvent::DownloadFailed(format_arr_title(title))
            }
            ArrEvent::DownloadFailed(_) => {
                ArrEvent::DownloadFailed(format_episodes(&title.title, &missed.episodes))
            }
            ArrEvent::ImportBlocked(_) | ArrEvent::HealthIssue { .. } | ArrEvent::HealthRestored { .. } => {
                return None;
            }
        };
        Some(KeyedArrEvent { matter, event })
    };
    events.into_iter().filter_map(add_title).collect()
}
