//! Libraries of a scenario file as fake servers.

use jiff::{SignedDuration, Timestamp};

use super::library_entries::{LibraryEntry, SeasonEntry, SeasonsEntry, ServerEntry, TitleEntry};
use crate::arr::fake::activity::{FakeServers, download};
use crate::arr::fake::media_fixtures::{FakeMovie, FakeSeason, FakeSeries, FakeTitle, movie, series};
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::clock::Clock;

pub(super) fn build_fake_servers(library: &LibraryEntry, clock: &Clock) -> FakeServers {
    let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
    let profiles: Vec<&str> = library.profiles.iter().map(String::as_str).collect();
    if !profiles.is_empty() {
        radarr.set_profiles(&profiles);
        sonarr.set_profiles(&profiles);
    }
    for entry in &library.movies {
        radarr.add(fake_movie(entry));
    }
    for entry in &library.catalog.movie {
        radarr.add_to_catalog(fake_movie(entry));
    }
    for entry in &library.suggested {
        radarr.add_suggestion(fake_movie(entry));
    }
    for entry in &library.series {
        sonarr.add(fake_series(entry));
    }
    for entry in &library.catalog.series {
        sonarr.add_to_catalog(fake_series(entry));
    }
    let fakes = FakeServers { radarr, sonarr };
    keep_busy(&fakes, library, clock.now());
    fakes
}

fn keep_busy(fakes: &FakeServers, library: &LibraryEntry, now: Timestamp) {
    for entry in &library.queue {
        let download = download(&entry.title);
        fakes.add_download(match (&entry.stuck, &entry.failed) {
            (Some(reason), _) => download.stuck(reason),
            (None, Some(reason)) => download.failed(reason),
            (None, None) if entry.paused => download.percent(entry.percent).paused(),
            (None, None) => download.percent(entry.percent).minutes_left(entry.eta_min),
        });
    }
    for entry in &library.calendar {
        fakes.add_calendar_entry(&entry.title, entry.date);
    }
    for entry in &library.imported {
        let at = now.saturating_sub(SignedDuration::from_hours(entry.hours_ago)).unwrap_or(now);
        fakes.add_import(&entry.title, at);
    }
    for title in &library.can_find {
        fakes.add_release(title);
    }
    for entry in &library.health {
        match entry.server {
            ServerEntry::Radarr => {
                fakes.radarr.add_health_problem(&entry.level, &entry.source, &entry.message)
            }
            ServerEntry::Sonarr => {
                fakes.sonarr.add_health_problem(&entry.level, &entry.source, &entry.message)
            }
        }
    }
}

fn fake_movie(entry: &TitleEntry) -> FakeMovie {
    let mut film = with_common_fields(movie(&entry.title), entry);
    film.catalog_id = entry.tmdb.unwrap_or_default();
    film.details.cinema = entry.cinema;
    film.details.digital = entry.digital;
    film.details.collection = entry.collection.as_ref().map(|it| (it.tmdb, it.title.clone()));
    film.details.available = !entry.unreleased;
    film
}

fn fake_series(entry: &TitleEntry) -> FakeSeries {
    let mut show = with_common_fields(series(&entry.title), entry);
    match &entry.seasons {
        None => show = show.seasons(1),
        Some(SeasonsEntry::Count(count)) => show = show.seasons(*count),
        Some(SeasonsEntry::Each(seasons)) => {
            let season = |entry: &SeasonEntry| FakeSeason {
                number: entry.number,
                episodes: entry.episodes,
                monitored: !entry.unmonitored,
            };
            show.details.seasons = seasons.iter().map(season).collect();
        }
    }
    if let Some(episodes) = entry.episodes {
        show = show.episodes(episodes);
    }
    show.catalog_id = entry.tvdb.unwrap_or_default();
    show.details.missing = entry.missing;
    show.details.ended = entry.ended;
    show.details.series_type = if entry.anime { "anime" } else { show.details.series_type };
    // Single episodes come last: the number of episodes and those on disk determine them.
    for it in &entry.off_disk {
        show = show.missing_episode(it.season, it.number);
    }
    for it in &entry.unmonitored_episodes {
        show = show.unmonitored_episode(it.season, it.number);
    }
    for (it, at) in &entry.airs {
        show = show.airs(it.season, it.number, *at);
    }
    show
}

/// Applies the fields that movies and series share.
fn with_common_fields<D>(item: FakeTitle<D>, entry: &TitleEntry) -> FakeTitle<D> {
    let mut item = item.size_gb(entry.size_gb);
    item.id = entry.id.unwrap_or_default();
    item.year = entry.year;
    item.overview.clone_from(&entry.overview);
    item.genres.clone_from(&entry.genres);
    item.popularity = entry.popularity.unwrap_or(item.popularity);
    item.rating = entry.rating.unwrap_or(item.rating);
    item.poster.clone_from(&entry.poster);
    item.added = entry.added.unwrap_or(item.added);
    item.monitored = !entry.unmonitored;
    item.file_quality = entry.file_quality.clone().unwrap_or(item.file_quality);
    item.profile = entry.quality.clone().unwrap_or(item.profile);
    item
}
