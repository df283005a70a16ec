//! News of the libraries for a digest: what was imported within the last week, and what comes out within the next one. All
//! of it is read with the caps of the reader.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, CalendarDate, CalendarEntry, ReleaseKind};
use crate::conversation::digest::content::{CameTitle, ComingTitle};
use crate::conversation::notifications::arr_events::{ArrEvent, ArrTitle, ImportKind, PendingArrEvent};
use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::text::title::{clean_title, format_title};
use crate::conversation::transcript::MediaKind;
use crate::telemetry;
use crate::tools::library::{ArrInstances, INSTANCE_READ_TIMEOUT, query_all};

/// Period of the imports in a digest.
pub(super) const IMPORT_PERIOD: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Days of the calendar in a digest, with today. No day of the week occurs twice.
const CALENDAR_DAYS: i64 = 7;
/// Maximum number of imported titles, the newest ones, that are looked up in the libraries.
const MAX_IMPORTED_TITLES: usize = 25;

/// News of the libraries, as one reader may see them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LibraryNews {
    pub(super) came: Vec<CameTitle>,
    pub(super) coming: Vec<ComingTitle>,
    /// Whether a server did not answer, so that something may be missing.
    pub(super) is_incomplete: bool,
}

/// Title with its imports.
struct ImportedTitle {
    catalog_id: i64,
    title: CameTitle,
}

/// Reader of the news for one person or room.
pub(super) struct NewsReader<'a> {
    /// Libraries, limited to the caps of the reader.
    pub(super) library: &'a ArrInstances,
    pub(super) limit: &'a AgeLimit,
    pub(super) zone: &'a TimeZone,
    pub(super) now: Timestamp,
}

impl NewsReader<'_> {
    /// Fetches the news. `events` are the arr events of the last week, oldest first.
    pub(super) async fn fetch_news(&self, events: &[PendingArrEvent]) -> LibraryNews {
        let mut news = LibraryNews::default();
        let mut unread_kinds = Vec::new();
        for ImportedTitle { catalog_id, title } in collect_imports(events) {
            let is_shown = if unread_kinds.contains(&title.kind) {
                None
            } else {
                match self.is_in_library(title.kind, catalog_id).await {
                    Ok(is_shown) => Some(is_shown),
                    Err(error) => {
                        let chain = telemetry::error_chain(&error);
                        tracing::warn!(error = chain, "failed to read a title for a digest");
                        // The other titles would only wait for the same server.
                        unread_kinds.extend(error.affects_all_requests().then_some(title.kind));
                        None
                    }
                }
            };
            news.is_incomplete |= is_shown.is_none();
            // A title whose rating cannot be read is hidden from everybody with a cap.
            if is_shown.unwrap_or(self.limit.is_unlimited()) {
                news.came.push(title);
            }
        }
        self.fetch_calendar(&mut news).await;
        news
    }

    /// Returns whether a library shows the reader a title, by its TMDB or TheTVDB id.
    pub(super) async fn is_in_library(&self, kind: MediaKind, catalog_id: i64) -> Result<bool, ArrError> {
        for instance in self.library.radarr_instances(Some(kind)) {
            if instance.client.fetch_movie_by_tmdb(catalog_id).await?.is_some() {
                return Ok(true);
            }
        }
        for instance in self.library.sonarr_instances(Some(kind)) {
            if instance.client.fetch_series_by_tvdb(catalog_id).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn fetch_calendar(&self, news: &mut LibraryNews) {
        let today = self.now.to_zoned(self.zone.clone()).date();
        let last = today.saturating_add((CALENDAR_DAYS - 1).days());
        let end = last.saturating_add(1.day()).to_zoned(self.zone.clone());
        let end = end.map_or(self.now + IMPORT_PERIOD, |end| end.timestamp());
        let (movies, series) = tokio::join!(
            query_all(&self.library.movies, INSTANCE_READ_TIMEOUT, |radarr: &Radarr| radarr
                .fetch_calendar(today, last)),
            query_all(&self.library.series, INSTANCE_READ_TIMEOUT, |sonarr: &Sonarr| sonarr
                .fetch_calendar(self.now, end)),
        );
        let calendars = movies.map(|(_, entries)| entries).merge(series.map(|(_, entries)| entries));
        news.is_incomplete |= !calendars.failures.is_empty();
        let entries: Vec<CalendarEntry> = calendars.responses.into_iter().flatten().collect();
        news.coming = collect_calendar(&entries, (self.now, last), self.zone);
    }
}

/// Collects the first imports by title, the last imported title first.
fn collect_imports(events: &[PendingArrEvent]) -> Vec<ImportedTitle> {
    let mut titles: Vec<ImportedTitle> = Vec::new();
    for event in events.iter().rev() {
        let (kind, title, episode) = match &event.event {
            ArrEvent::MovieImported(movie, ImportKind::First) => (MediaKind::Movie, movie, None),
            ArrEvent::EpisodeImported { show, season, number, copy: ImportKind::First } => {
                (MediaKind::Series, show, Some((*season, *number)))
            }
            _ => continue,
        };
        let is_same =
            |known: &ImportedTitle| known.title.kind == kind && known.catalog_id == title.catalog_id;
        if let Some(known) = titles.iter_mut().find(|known| is_same(known)) {
            known.title.episodes.extend(episode);
        } else if titles.len() < MAX_IMPORTED_TITLES {
            let (name, episodes) = (format_name(kind, title), episode.into_iter().collect());
            titles.push(ImportedTitle {
                catalog_id: title.catalog_id,
                title: CameTitle { kind, name, episodes },
            });
        }
    }
    titles
}

fn format_name(kind: MediaKind, title: &ArrTitle) -> String {
    match kind {
        MediaKind::Movie => format_title(&title.title, title.year),
        MediaKind::Series => clean_title(&title.title),
    }
}

/// Collects what comes out from `now` to the last day, by title, the first day first. What runs only in theaters does not
/// come to the library.
fn collect_calendar(
    entries: &[CalendarEntry],
    (now, last): (Timestamp, Date),
    zone: &TimeZone,
) -> Vec<ComingTitle> {
    let today = now.to_zoned(zone.clone()).date();
    let mut titles: Vec<ComingTitle> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.on_disk) {
        let (kind, name, day) = match entry.date {
            CalendarDate::Released(_, ReleaseKind::Cinema) => continue,
            CalendarDate::Released(day, _) => (MediaKind::Movie, &entry.title, day),
            CalendarDate::Airs(at) if at < now => continue,
            CalendarDate::Airs(at) => {
                let name = if entry.series.is_empty() { &entry.title } else { &entry.series };
                (MediaKind::Series, name, at.to_zoned(zone.clone()).date())
            }
        };
        if day < today || day > last {
            continue;
        }
        let name = clean_title(name);
        match titles.iter_mut().find(|known| known.kind == kind && known.name == name) {
            Some(known) => {
                known.days.insert(day);
            }
            None => titles.push(ComingTitle { kind, name, days: BTreeSet::from([day]) }),
        }
    }
    titles.sort_by(|left, right| (left.days.first(), &left.name).cmp(&(right.days.first(), &right.name)));
    titles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn arr_title(catalog_id: i64, title: &str, year: u16) -> ArrTitle {
        ArrTitle { id: 1, catalog_id, title: title.to_owned(), year }
    }

    fn pending(event: ArrEvent) -> PendingArrEvent {
        PendingArrEvent { id: 1, instance: "radarr".to_owned(), event, received_at: Timestamp::UNIX_EPOCH }
    }

    fn episode(number: u32, copy: ImportKind) -> PendingArrEvent {
        pending(ArrEvent::EpisodeImported { show: arr_title(7, "The Bear", 2022), season: 2, number, copy })
    }

    #[test]
    fn imports_are_collected_by_title_without_upgrades() {
        let events = [
            episode(1, ImportKind::First),
            pending(ArrEvent::MovieImported(arr_title(7, "Heat", 1995), ImportKind::First)),
            pending(ArrEvent::MovieImported(arr_title(8, "Alien", 1979), ImportKind::Upgrade)),
            episode(2, ImportKind::First),
            episode(3, ImportKind::Upgrade),
        ];
        let titles: Vec<(String, usize)> =
            collect_imports(&events).into_iter().map(|t| (t.title.name, t.title.episodes.len())).collect();
        assert_eq!(titles, [("The Bear".to_owned(), 2), ("Heat (1995)".to_owned(), 0)]);
    }

    #[test]
    fn calendar_is_grouped_by_series_and_omits_theaters() {
        let entry = |title: &str, series: &str, date| CalendarEntry {
            title: title.to_owned(),
            series: series.to_owned(),
            date,
            on_disk: false,
        };
        let airs = |at: &str| CalendarDate::Airs(time(at));
        let released = |day, kind| CalendarDate::Released(jiff::civil::date(2026, 11, day), kind);
        let entries = [
            entry("Severance S02E01", "Severance", airs("2026-11-20T17:00:00Z")),
            entry("Severance S02E02", "Severance", airs("2026-11-24T20:00:00Z")),
            entry("Severance S02E03", "Severance", airs("2026-11-25T20:00:00Z")),
            entry("Dune (2026)", "", released(23, ReleaseKind::Digital)),
            entry("Alien (2026)", "", released(23, ReleaseKind::Cinema)),
            entry("Heat (2026)", "", released(27, ReleaseKind::Digital)),
            CalendarEntry { on_disk: true, ..entry("Up (2026)", "", released(23, ReleaseKind::Digital)) },
        ];
        let now = time("2026-11-20T18:00:00Z");
        let titles = collect_calendar(&entries, (now, jiff::civil::date(2026, 11, 26)), &TimeZone::UTC);
        let named: Vec<(&str, usize)> =
            titles.iter().map(|title| (title.name.as_str(), title.days.len())).collect();
        assert_eq!(named, [("Dune (2026)", 1), ("Severance", 2)]);
    }
}
