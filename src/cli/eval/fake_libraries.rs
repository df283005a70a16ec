//! Fake servers built from the libraries of a scenario file.

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
    add_activity(&fakes, library, clock.now());
    fakes
}

fn add_activity(fakes: &FakeServers, library: &LibraryEntry, now: Timestamp) {
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
    for title in &library.releases {
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
    let mut movie = with_common_fields(movie(&entry.title), entry);
    movie.catalog_id = entry.tmdb.unwrap_or_default();
    movie.details.cinema = entry.cinema;
    movie.details.digital = entry.digital;
    movie.details.collection =
        entry.collection.as_ref().map(|collection| (collection.tmdb, collection.title.clone()));
    movie.details.available = !entry.unreleased;
    movie
}

fn fake_series(entry: &TitleEntry) -> FakeSeries {
    let mut series = with_common_fields(series(&entry.title), entry);
    match &entry.seasons {
        None => series = series.seasons(1),
        Some(SeasonsEntry::Count(count)) => series = series.seasons(*count),
        Some(SeasonsEntry::Each(seasons)) => {
            let season = |entry: &SeasonEntry| FakeSeason {
                number: entry.number,
                episodes: entry.episodes,
                monitored: !entry.unmonitored,
            };
            series.details.seasons = seasons.iter().map(season).collect();
        }
    }
    if let Some(episodes) = entry.episodes {
        series = series.episodes(episodes);
    }
    series.catalog_id = entry.tvdb.unwrap_or_default();
    series.details.missing = entry.missing;
    series.details.ended = entry.ended;
    series.details.series_type = if entry.anime { "anime" } else { series.details.series_type };
    // Changes to individual episodes require the final number of episodes, so they come last.
    for episode in &entry.missing_episodes {
        series = series.missing_episode(episode.season, episode.number);
    }
    for episode in &entry.unmonitored_episodes {
        series = series.unmonitored_episode(episode.season, episode.number);
    }
    for (episode, at) in &entry.air_times {
        series = series.airs(episode.season, episode.number, *at);
    }
    series
}

/// Applies the fields that movies and series share.
fn with_common_fields<D>(title: FakeTitle<D>, entry: &TitleEntry) -> FakeTitle<D> {
    let mut title = title.size_gb(entry.size_gb);
    title.id = entry.id.unwrap_or_default();
    title.year = entry.year;
    title.overview.clone_from(&entry.overview);
    title.genres.clone_from(&entry.genres);
    title.popularity = entry.popularity.unwrap_or(title.popularity);
    title.rating = entry.rating.unwrap_or(title.rating);
    title.minutes = entry.minutes.unwrap_or(title.minutes);
    title.certification.clone_from(&entry.certification);
    title.poster.clone_from(&entry.poster);
    title.added = entry.added.unwrap_or(title.added);
    title.monitored = !entry.unmonitored;
    title.file_quality = entry.file_quality.clone().unwrap_or(title.file_quality);
    title.profile = entry.quality.clone().unwrap_or(title.profile);
    title
}
