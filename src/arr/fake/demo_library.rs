//! Demo libraries for `dialarr demo`, with downloads in progress, upcoming releases and past imports.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::activity::download;
use super::demo_movies::{self, DemoMovie};
use super::demo_series::{self, DemoSeries, DemoSeriesKind};
use super::media_fixtures::{FakeMovie, FakeSeries, movie, series};
use super::radarr::FakeRadarr;
use super::sonarr::FakeSonarr;
use super::well_known_titles::{well_known_movies, well_known_shows};
use crate::clock::Clock;

/// Creates the demo servers with their state at `now`. Their clock does not advance.
pub fn create_demo_servers(now: Timestamp) -> (FakeRadarr, FakeSonarr) {
    let clock = Clock::stopped_at(now);
    let radarr = FakeRadarr::with_clock(clock.clone());
    let sonarr = FakeSonarr::with_clock(clock);
    fill_demo_libraries(&radarr, &sonarr);
    add_current_downloads(&radarr, &sonarr);
    add_upcoming_releases(&radarr, &sonarr, now);
    add_past_imports(&radarr, &sonarr, now);
    (radarr, sonarr)
}

fn fill_demo_libraries(radarr: &FakeRadarr, sonarr: &FakeSonarr) {
    for row in demo_movies::LIBRARY {
        let movie = movie_from_row(row).size_gb(row.3);
        radarr.add(if demo_movies::ULTRA_HD_TITLES.contains(&row.0) {
            movie.profile("Ultra-HD")
        } else {
            movie
        });
    }
    for row in demo_movies::CATALOG {
        radarr.add_to_catalog(movie_from_row(row));
    }
    for row in demo_movies::UNRELEASED {
        radarr.add_to_catalog(movie_from_row(row).unreleased());
    }
    for row in &demo_series::LIBRARY {
        sonarr.add(series_from_row(row).size_gb(row.gigabytes));
    }
    for row in &demo_series::CATALOG {
        sonarr.add_to_catalog(series_from_row(row));
    }
    add_well_known_titles(radarr, sonarr);
}

/// Adds the well-known titles: three in four to the library, with made-up sizes, and the others to the catalog only.
/// Radarr suggests the movies that are only in the catalog.
fn add_well_known_titles(radarr: &FakeRadarr, sonarr: &FakeSonarr) {
    for (index, movie) in (0u32..).zip(well_known_movies()) {
        if index % 4 == 3 {
            radarr.add_suggestion(movie);
        } else {
            radarr.add(movie.size_gb(4.1 + f64::from(index * 37 % 120) / 10.0));
        }
    }
    for (index, show) in (0u32..).zip(well_known_shows()) {
        if index % 4 == 3 {
            sonarr.add_to_catalog(show);
        } else {
            let episodes: u32 = show.details.seasons.iter().map(|season| season.episodes).sum();
            sonarr.add(show.size_gb(f64::from(episodes) * f64::from(6 + index % 10) / 10.0));
        }
    }
}

fn add_current_downloads(radarr: &FakeRadarr, sonarr: &FakeSonarr) {
    radarr.add_to_queue(download("Oppenheimer").size_gb(58.2).percent(62).minutes_left(25));
    radarr.add_to_queue(download("The Wild Robot").size_gb(9.4).percent(8).minutes_left(140));
    radarr.add_to_queue(download("Chef").size_gb(8.1).queued());
    radarr.add_to_queue(download("Past Lives").size_gb(7.7).stuck("No video file was found in the download"));
    sonarr.add_to_queue(download("The Last of Us S01").size_gb(31.5).percent(41).minutes_left(52));
    sonarr.add_to_queue(download("Slow Horses S05E06").size_gb(2.3).percent(87).minutes_left(4));
}

/// Adds episodes and movies of the next two weeks.
fn add_upcoming_releases(radarr: &FakeRadarr, sonarr: &FakeSonarr, now: Timestamp) {
    let episodes = [
        ("Slow Horses S06E01", 20),
        ("Last Week Tonight S13E01", 45),
        ("Only Murders in the Building S06E01", 70),
        ("Silo S03E01", 96),
        ("The Bear S05E01", 122),
        ("Slow Horses S06E02", 188),
        ("Severance S03E01", 290),
    ];
    for (title, hours) in episodes {
        sonarr.add_calendar_entry(title, add_hours(now, hours));
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    let unreleased =
        |title: &str, year, tmdb| movie(title).year(year).tmdb(tmdb).popularity(30.0).unreleased();
    let this_year = u16::try_from(today.year()).unwrap_or_default();
    radarr.add(unreleased("The Lighthouse Keeper", this_year, 9_100_001).digital(add_days(today, 3)));
    radarr.add(unreleased("Cold Harbor", this_year, 9_100_002).cinema(add_days(today, 6)));
    radarr.add(
        unreleased("A Winter in Lisbon", this_year, 9_100_003)
            .cinema(add_days(today, -60))
            .physical(add_days(today, 12)),
    );
}

fn add_past_imports(radarr: &FakeRadarr, sonarr: &FakeSonarr, now: Timestamp) {
    radarr.add_import("Knives Out", add_hours(now, -20));
    radarr.add_import("Everything Everywhere All at Once", add_hours(now, -71));
    radarr.add_import("Heat", add_hours(now, -150));
    sonarr.add_import("Slow Horses S05E05", add_hours(now, -9));
    sonarr.add_import("Fleabag S02", add_hours(now, -50));
    sonarr.add_import("Severance S02E09", add_hours(now, -100));
}

fn movie_from_row((title, year, tmdb, _, overview): DemoMovie) -> FakeMovie {
    movie(title).year(year).tmdb(tmdb).overview(overview).popularity(f64::from(year) / 50.0)
}

fn series_from_row(row: &DemoSeries) -> FakeSeries {
    let series = series(row.title)
        .year(row.year)
        .tvdb(row.tvdb)
        .seasons(row.seasons)
        .episodes(row.episodes)
        .overview(row.overview)
        .popularity(f64::from(row.year) / 50.0);
    match row.kind {
        DemoSeriesKind::Ended => series.ended(),
        DemoSeriesKind::Continuing => series,
        DemoSeriesKind::Daily => series.daily(),
        DemoSeriesKind::Anime => series.anime(),
    }
}

fn add_hours(now: Timestamp, hours: i64) -> Timestamp {
    now.saturating_add(SignedDuration::from_hours(hours)).unwrap_or(now)
}

fn add_days(today: Date, days: i64) -> Date {
    today.saturating_add(SignedDuration::from_hours(24 * days))
}
