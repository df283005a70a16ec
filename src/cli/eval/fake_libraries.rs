//! Libraries of a scenario file as fake servers.

use jiff::{SignedDuration, Timestamp};

use super::library_entries::{LibraryEntry, SeasonEntry, SeasonsEntry, ServerEntry, TitleEntry};
use crate::arr::fake::activity::{FakeServers, download};
use crate::arr::fake::media_fixtures::{FakeMovie, FakeSeries, FakeTitle, ShowSeason, movie, series};
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
        fakes.queue(match (&entry.stuck, &entry.failed) {
            (Some(reason), _) => download.stuck(reason),
            (None, Some(reason)) => download.failed(reason),
            (None, None) if entry.paused => download.percent(entry.percent).paused(),
            (None, None) => download.percent(entry.percent).minutes_left(entry.eta_min),
        });
    }
    for entry in &library.calendar {
        fakes.calendar(&entry.title, entry.date);
    }
    for entry in &library.imported {
        let at = now.saturating_sub(SignedDuration::from_hours(entry.hours_ago)).unwrap_or(now);
        fakes.imported(&entry.title, at);
    }
    for title in &library.can_find {
        fakes.can_find(title);
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
    if let Some(tmdb) = entry.tmdb {
        film = film.tmdb(tmdb);
    }
    if let Some(date) = entry.cinema {
        film = film.cinema(date);
    }
    if let Some(date) = entry.digital {
        film = film.digital(date);
    }
    if let Some(collection) = &entry.collection {
        film = film.collection(collection.tmdb, &collection.title);
    }
    if entry.unreleased { film.unreleased() } else { film }
}

fn fake_series(entry: &TitleEntry) -> FakeSeries {
    let mut show = with_common_fields(series(&entry.title), entry);
    match &entry.seasons {
        None => show = show.seasons(1),
        Some(SeasonsEntry::Count(count)) => show = show.seasons(*count),
        Some(SeasonsEntry::Each(seasons)) => {
            let season = |entry: &SeasonEntry| ShowSeason {
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
    if let Some(tvdb) = entry.tvdb {
        show = show.tvdb(tvdb);
    }
    show = show.missing(entry.missing);
    if entry.ended {
        show = show.ended();
    }
    if entry.anime {
        show = show.anime();
    }
    // Single episodes come last: the number of episodes and those on disk determine them.
    for it in &entry.off_disk {
        show = show.off_disk(it.season, it.number);
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
    let genres: Vec<&str> = entry.genres.iter().map(String::as_str).collect();
    let mut item = item.year(entry.year).overview(&entry.overview).size_gb(entry.size_gb).genres(&genres);
    if let Some(id) = entry.id {
        item = item.id(id);
    }
    if let Some(popularity) = entry.popularity {
        item = item.popularity(popularity);
    }
    if let Some(rating) = entry.rating {
        item = item.rating(rating);
    }
    if let Some(url) = &entry.poster {
        item = item.poster(url);
    }
    if let Some(at) = entry.added {
        item = item.added(at);
    }
    if let Some(quality) = &entry.file_quality {
        item = item.file_quality(quality);
    }
    if entry.unmonitored {
        item = item.unmonitored();
    }
    match &entry.quality {
        Some(quality) => item.profile(quality),
        None => item,
    }
}
