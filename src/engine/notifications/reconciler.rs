//! Import of events that Sonarr and Radarr failed to report. They do not retry, so their history is read every few
//! minutes. The history yields the same event keys as the reports, and known events are not stored a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};

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
use crate::engine::parts::EngineParts;
use crate::engine::work_signal::WorkSignal;
use crate::store::database::db::Db;
use crate::store::library::arr_events;
use crate::telemetry;
use crate::tools::library::{ArrInstances, Instance};

/// Delay before the first reading of the history, so that reports on their way arrive first.
const START_DELAY: Duration = Duration::from_secs(30);
const RECONCILE_INTERVAL: Duration = Duration::from_secs(300);
/// Number of readings between two checks of the followed seasons: six hours.
const READINGS_PER_CHECK: u32 = 72;
/// Overlap of two readings of the history. A reading begins this long before the end of the last one, since rows may be
/// stored late and clocks differ.
const OVERLAP: SignedDuration = SignedDuration::from_mins(15);
/// Age beyond which users are no longer notified of an event.
const MAX_EVENT_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Reader of the libraries' history.
pub struct Reconciler {
    db: Db,
    clock: Clock,
    library: Arc<ArrInstances>,
    event_stored: WorkSignal,
    season_checker: Arc<SeasonChecker>,
}

impl Reconciler {
    pub(crate) fn new(
        parts: &EngineParts,
        event_stored: WorkSignal,
        season_checker: Arc<SeasonChecker>,
    ) -> Self {
        let EngineParts { db, clock, library, .. } = parts.clone();
        Self { db, clock, library, event_stored, season_checker }
    }

    /// Reads the history every few minutes, for as long as the future is polled.
    pub(crate) async fn run(&self) {
        tokio::time::sleep(START_DELAY).await;
        for reading in (0..READINGS_PER_CHECK).cycle() {
            self.reconcile_instances().await;
            // The check follows a reading, so that imports that were not reported are known.
            if reading == 0 {
                self.season_checker.check_seasons().await;
            }
            tokio::time::sleep(RECONCILE_INTERVAL).await;
        }
    }

    /// Reads the history of every library once. After a failed reading, the next one begins at the same cursor.
    pub(crate) async fn reconcile_instances(&self) {
        for instance in &self.library.movies {
            if let Err(error) = self.reconcile_movies(instance).await {
                tracing::warn!(instance = instance.name, error = format!("{error:#}"), "history read failed");
            }
        }
        for instance in &self.library.series {
            if let Err(error) = self.reconcile_series(instance).await {
                tracing::warn!(instance = instance.name, error = format!("{error:#}"), "history read failed");
            }
        }
    }

    async fn reconcile_movies(&self, instance: &Instance<Radarr>) -> anyhow::Result<()> {
        let Some(since) = self.load_history_start(instance.name).await? else { return Ok(()) };
        let entries = instance.client.fetch_history_since(since).await.context("read the history")?;
        let found =
            self.keep_unknown_events(instance.name, find_missed_events(MediaKind::Movie, &entries)).await?;
        let mut titles = BTreeMap::new();
        for id in title_ids(&found) {
            let Some(movie) =
                none_if_unreadable(instance.client.fetch_movie(id).await).context("read a movie")?
            else {
                continue;
            };
            titles.insert(id, ArrTitle { id, catalog_id: movie.tmdb, title: movie.title, year: movie.year });
        }
        let found = add_titles(found, &titles);
        self.store_missed_events((instance.name, instance.client.common_api()), &entries, found).await
    }

    async fn reconcile_series(&self, instance: &Instance<Sonarr>) -> anyhow::Result<()> {
        let Some(since) = self.load_history_start(instance.name).await? else { return Ok(()) };
        let entries = instance.client.fetch_history_since(since).await.context("read the history")?;
        let found =
            self.keep_unknown_events(instance.name, find_missed_events(MediaKind::Series, &entries)).await?;
        let mut titles = BTreeMap::new();
        for id in title_ids(&found) {
            let Some(show) =
                none_if_unreadable(instance.client.fetch_series(id).await).context("read a show")?
            else {
                continue;
            };
            titles.insert(id, ArrTitle { id, catalog_id: show.tvdb, title: show.title, year: show.year });
        }
        let found = add_titles(found, &titles);
        self.store_missed_events((instance.name, instance.client.common_api()), &entries, found).await
    }

    /// Returns the start time of the next reading. Returns `None` for the first reading ever, which only stores the
    /// cursor, because past events cause no notifications.
    async fn load_history_start(&self, instance: &'static str) -> anyhow::Result<Option<Timestamp>> {
        let now = self.clock.now();
        let until = self
            .db
            .write(move |conn| {
                let until = arr_events::load_history_cursor(conn, instance)?;
                if until.is_none() {
                    // The next reading begins here, and not before.
                    arr_events::store_history_cursor(conn, instance, now + OVERLAP)?;
                }
                Ok(until)
            })
            .await?;
        // A cursor farther ahead than the overlap was stored by a clock that was set back since. The cursor of the
        // first reading is not that far ahead.
        let place = |until: Timestamp| if until > now + OVERLAP { now } else { until };
        Ok(until.map(|until| (place(until) - OVERLAP).max(now - MAX_EVENT_AGE)))
    }

    /// Returns the found events that are not stored yet.
    async fn keep_unknown_events(
        &self,
        instance: &'static str,
        found: Vec<MissedArrEvent>,
    ) -> anyhow::Result<Vec<MissedArrEvent>> {
        let pick = move |conn: &mut _| {
            let mut unknown = Vec::new();
            for one in found {
                if !arr_events::is_event_known(conn, instance, &one.event.matter)? {
                    unknown.push(one);
                }
            }
            Ok(unknown)
        };
        Ok(self.db.read(pick).await?)
    }

    async fn store_missed_events(
        &self,
        (instance, server): (&'static str, CommonApi<'_>),
        entries: &[HistoryEntry],
        mut reported: Vec<KeyedArrEvent>,
    ) -> anyhow::Result<()> {
        let is_failure = |one: &KeyedArrEvent| matches!(one.event, ArrEvent::DownloadFailed(_));
        // An instance that automatically searches for another copy needs no help.
        if reported.iter().any(is_failure)
            && server.fetch_replaces_failed().await.context("read the settings")?
        {
            reported.retain(|one| !is_failure(one));
        }
        let now = self.clock.now();
        // An event with a date in the future must not suspend the reading until that date.
        let last = entries.iter().map(|entry| entry.at.min(now)).max();
        let store = move |conn: &mut _| {
            let new = arr_events::store_arr_events(conn, instance, &reported, now)?;
            let until = arr_events::load_history_cursor(conn, instance)?;
            let moves = |last: &Timestamp| until.is_none_or(|until| *last > until || until > now + OVERLAP);
            if let Some(last) = last.filter(moves) {
                arr_events::store_history_cursor(conn, instance, last)?;
            }
            Ok(new)
        };
        let new = self.db.write(store).await?;
        if new > 0 {
            tracing::info!(instance, new, "found unreported events in the history");
            self.event_stored.notify();
        }
        Ok(())
    }
}

/// Event found in the history, before its title is known.
struct MissedArrEvent {
    title_id: i64,
    /// Episodes of a failed download, by season and number.
    episodes: Vec<(u32, u32)>,
    event: KeyedArrEvent,
}

fn find_missed_events(kind: MediaKind, entries: &[HistoryEntry]) -> Vec<MissedArrEvent> {
    let mut all: Vec<MissedArrEvent> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.title_id > 0) {
        let title = ArrTitle { id: entry.title_id, catalog_id: 0, title: String::new(), year: 0 };
        let copy = if history::is_upgrade(entries, entry) { ImportKind::Upgrade } else { ImportKind::First };
        let number = entry.episode.map(|(_, season, number)| (season, number));
        let report = match (entry.event, kind, number) {
            (HistoryEvent::Imported, MediaKind::Movie, _) => ArrEvent::MovieImported(title, copy),
            (HistoryEvent::Imported, MediaKind::Series, Some((season, number))) => {
                ArrEvent::EpisodeImported { show: title, season, number, copy }
            }
            (HistoryEvent::Failed, ..) if !entry.is_manually_failed() => {
                ArrEvent::DownloadFailed(entry.title_id.to_string())
            }
            _ => continue,
        };
        let reported = KeyedArrEvent::new(report, &entry.download, entry.at);
        match all.iter_mut().find(|known| known.event.matter == reported.matter) {
            // A failed pack has a row for each of its episodes.
            Some(known) => known.episodes.extend(number),
            None => all.push(MissedArrEvent {
                title_id: entry.title_id,
                episodes: number.into_iter().collect(),
                event: reported,
            }),
        }
    }
    all
}

/// Treats a title that its instance cannot return as missing, so that it does not block the notifications about other
/// titles.
fn none_if_unreadable<T>(answer: Result<Option<T>, ArrError>) -> Result<Option<T>, ArrError> {
    match answer {
        Err(error) if !error.affects_all_requests() => {
            tracing::warn!(
                error = telemetry::error_chain(&error),
                "failed to fetch a title from the history"
            );
            Ok(None)
        }
        Ok(_) | Err(_) => answer,
    }
}

fn title_ids(found: &[MissedArrEvent]) -> BTreeSet<i64> {
    found.iter().map(|one| one.title_id).collect()
}

/// Adds titles to the found events. Events of titles that are no longer in the library are dropped.
fn add_titles(found: Vec<MissedArrEvent>, titles: &BTreeMap<i64, ArrTitle>) -> Vec<KeyedArrEvent> {
    let name = |one: MissedArrEvent| {
        let known = titles.get(&one.title_id)?;
        let KeyedArrEvent { matter, event: report } = one.event;
        let report = match report {
            ArrEvent::MovieImported(_, copy) => ArrEvent::MovieImported(known.clone(), copy),
            ArrEvent::EpisodeImported { season, number, copy, .. } => {
                ArrEvent::EpisodeImported { show: known.clone(), season, number, copy }
            }
            ArrEvent::DownloadFailed(_) if one.episodes.is_empty() => {
                ArrEvent::DownloadFailed(format_arr_title(known))
            }
            ArrEvent::DownloadFailed(_) => {
                ArrEvent::DownloadFailed(format_episodes(&known.title, &one.episodes))
            }
            ArrEvent::ImportBlocked(_) | ArrEvent::HealthIssue { .. } | ArrEvent::HealthRestored { .. } => {
                return None;
            }
        };
        Some(KeyedArrEvent { matter, event: report })
    };
    found.into_iter().filter_map(name).collect()
}
