//! Import of events that Sonarr and Radarr failed to report: they do not retry, so their history is read every few
//! minutes. The history yields the same matters as the reports, and known ones are not stored a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};

use super::Engine;
use crate::arr::ArrError;
use crate::arr::history::{self, HistoryEntry, HistoryEvent};
use crate::arr::radarr::Radarr;
use crate::arr::server::Server;
use crate::arr::sonarr::Sonarr;
use crate::conversation::notices::{Copy, Report, Reported, Title, episodes_named, named};
use crate::conversation::transcript::MediaKind;
use crate::store::arr_events;
use crate::telemetry;
use crate::tools::library::Instance;

/// Delay before the history is read for the first time: reports under way come first.
const AFTER_START: Duration = Duration::from_secs(30);
const EVERY: Duration = Duration::from_secs(300);
/// Number of readings from one check of the followed seasons to the next: six hours.
const READINGS_PER_CHECK: u32 = 72;
/// Overlap of two readings of the history, since rows may be stored late and clocks differ: a reading begins this long
/// before the end of the last one.
const OVERLAP: SignedDuration = SignedDuration::from_mins(15);
/// Age beyond which users are no longer notified of an event.
const FARTHEST: SignedDuration = SignedDuration::from_hours(7 * 24);

impl Engine {
    pub(super) async fn keep_reconciling(&self) {
        tokio::time::sleep(AFTER_START).await;
        for reading in (0..READINGS_PER_CHECK).cycle() {
            self.reconcile().await;
            // After a reading: imports that were not reported are known by then.
            if reading == 0 {
                self.check_seasons().await;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Reads the history of every library once. A reading that fails begins at the same cursor the next time.
    pub(crate) async fn reconcile(&self) {
        for instance in &self.0.parts.library.movies {
            if let Err(error) = self.reconcile_movies(instance).await {
                tracing::warn!(instance = instance.name, error = format!("{error:#}"), "history not read");
            }
        }
        for instance in &self.0.parts.library.series {
            if let Err(error) = self.reconcile_series(instance).await {
                tracing::warn!(instance = instance.name, error = format!("{error:#}"), "history not read");
            }
        }
    }

    async fn reconcile_movies(&self, instance: &Instance<Radarr>) -> anyhow::Result<()> {
        let Some(since) = self.read_from(instance.name).await? else { return Ok(()) };
        let entries = instance.client.history_since(since).await.context("read the history")?;
        let found = self.unknown(instance.name, found(MediaKind::Movie, &entries)).await?;
        let mut titles = BTreeMap::new();
        for id in ids(&found) {
            let Some(movie) = if_told(instance.client.movie(id).await).context("read a movie")? else {
                continue;
            };
            titles.insert(id, Title { id, catalog_id: movie.tmdb, title: movie.title, year: movie.year });
        }
        let found = named_by(found, &titles);
        self.store_found((instance.name, instance.client.server()), &entries, found).await
    }

    async fn reconcile_series(&self, instance: &Instance<Sonarr>) -> anyhow::Result<()> {
        let Some(since) = self.read_from(instance.name).await? else { return Ok(()) };
        let entries = instance.client.history_since(since).await.context("read the history")?;
        let found = self.unknown(instance.name, found(MediaKind::Series, &entries)).await?;
        let mut titles = BTreeMap::new();
        for id in ids(&found) {
            let Some(show) = if_told(instance.client.series(id).await).context("read a show")? else {
                continue;
            };
            titles.insert(id, Title { id, catalog_id: show.tvdb, title: show.title, year: show.year });
        }
        let found = named_by(found, &titles);
        self.store_found((instance.name, instance.client.server()), &entries, found).await
    }

    /// Returns the start of the next reading. `None` for the first time ever, which only stores the cursor: past events
    /// cause no notifications.
    async fn read_from(&self, instance: &'static str) -> anyhow::Result<Option<Timestamp>> {
        let now = self.now();
        let until = self
            .0
            .parts
            .db
            .write(move |conn| {
                let until = arr_events::read_until(conn, instance)?;
                if until.is_none() {
                    // The next reading begins here, and not before.
                    arr_events::remember_read(conn, instance, now + OVERLAP)?;
                }
                Ok(until)
            })
            .await?;
        // A cursor farther ahead than the overlap was left by a clock that was set back since. The cursor of the first
        // reading is not that far ahead.
        let place = |until: Timestamp| if until > now + OVERLAP { now } else { until };
        Ok(until.map(|until| (place(until) - OVERLAP).max(now - FARTHEST)))
    }

    /// Returns the found events that are not stored yet.
    async fn unknown(&self, instance: &'static str, found: Vec<Found>) -> anyhow::Result<Vec<Found>> {
        let pick = move |conn: &mut _| {
            let mut unknown = Vec::new();
            for one in found {
                if !arr_events::is_known(conn, instance, &one.reported.matter)? {
                    unknown.push(one);
                }
            }
            Ok(unknown)
        };
        Ok(self.0.parts.db.read(pick).await?)
    }

    async fn store_found(
        &self,
        (instance, server): (&'static str, Server<'_>),
        entries: &[HistoryEntry],
        mut reported: Vec<Reported>,
    ) -> anyhow::Result<()> {
        let is_failure = |one: &Reported| matches!(one.report, Report::Failed(_));
        // A server that automatically searches for another copy needs no help.
        if reported.iter().any(is_failure) && server.replaces_failed().await.context("read the settings")? {
            reported.retain(|one| !is_failure(one));
        }
        let now = self.now();
        // An event that a server dates into the future must not suspend the reading until then.
        let last = entries.iter().map(|entry| entry.at.min(now)).max();
        let store = move |conn: &mut _| {
            let new = arr_events::store(conn, instance, &reported, now)?;
            let until = arr_events::read_until(conn, instance)?;
            let moves = |last: &Timestamp| until.is_none_or(|until| *last > until || until > now + OVERLAP);
            if let Some(last) = last.filter(moves) {
                arr_events::remember_read(conn, instance, last)?;
            }
            Ok(new)
        };
        let new = self.0.parts.db.write(store).await?;
        if new > 0 {
            tracing::info!(instance, new, "the history tells what was not reported");
            self.0.reported.notify_one();
        }
        Ok(())
    }
}

/// Event found in the history, before its title is known.
struct Found {
    of: i64,
    /// Episodes of a failed download, by season and number.
    episodes: Vec<(u32, u32)>,
    reported: Reported,
}

fn found(kind: MediaKind, entries: &[HistoryEntry]) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.of > 0) {
        let title = Title { id: entry.of, catalog_id: 0, title: String::new(), year: 0 };
        let copy = if history::is_upgrade(entries, entry) { Copy::Better } else { Copy::First };
        let number = entry.episode.map(|(_, season, number)| (season, number));
        let report = match (entry.event, kind, number) {
            (HistoryEvent::Imported, MediaKind::Movie, _) => Report::Movie(title, copy),
            (HistoryEvent::Imported, MediaKind::Series, Some((season, number))) => {
                Report::Episode { show: title, season, number, copy }
            }
            (HistoryEvent::Failed, ..) if !entry.is_by_hand() => Report::Failed(entry.of.to_string()),
            _ => continue,
        };
        let reported = Reported::new(report, &entry.download, entry.at);
        match all.iter_mut().find(|known| known.reported.matter == reported.matter) {
            // A failed pack has a row for each of its episodes.
            Some(known) => known.episodes.extend(number),
            None => all.push(Found { of: entry.of, episodes: number.into_iter().collect(), reported }),
        }
    }
    all
}

/// Treats a title that its server cannot return as missing, so that it does not block the notifications about the
/// others.
fn if_told<T>(answer: Result<Option<T>, ArrError>) -> Result<Option<T>, ArrError> {
    match answer {
        Err(error) if !error.is_of_the_server() => {
            tracing::warn!(error = telemetry::chain(&error), "a title of the history could not be read");
            Ok(None)
        }
        Ok(_) | Err(_) => answer,
    }
}

fn ids(found: &[Found]) -> BTreeSet<i64> {
    found.iter().map(|one| one.of).collect()
}

/// Adds titles to the found events. Events of titles that are no longer in the library are dropped.
fn named_by(found: Vec<Found>, titles: &BTreeMap<i64, Title>) -> Vec<Reported> {
    let name = |one: Found| {
        let known = titles.get(&one.of)?;
        let Reported { matter, report } = one.reported;
        let report = match report {
            Report::Movie(_, copy) => Report::Movie(known.clone(), copy),
            Report::Episode { season, number, copy, .. } => {
                Report::Episode { show: known.clone(), season, number, copy }
            }
            Report::Failed(_) if one.episodes.is_empty() => Report::Failed(named(known)),
            Report::Failed(_) => Report::Failed(episodes_named(&known.title, &one.episodes)),
            Report::Stuck(_) | Report::Ill { .. } | Report::Well { .. } => return None,
        };
        Some(Reported { matter, report })
    };
    found.into_iter().filter_map(name).collect()
}
