//! Libraries of `dialarr demo`: those of a household, with some activity in progress.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::activity::download;
use super::demo_movies::{self, FilmRow};
use super::demo_series::{self, Run, ShowRow};
use super::item::{FakeMovie, FakeSeries, movie, series};
use super::radarr::FakeRadarr;
use super::sonarr::FakeSonarr;
use crate::clock::Clock;

/// Creates the demo servers with their state at `now`; their clock does not advance.
pub fn demo_library(now: Timestamp) -> (FakeRadarr, FakeSonarr) {
    let clock = Clock::manual(now);
    let radarr = FakeRadarr::at(clock.clone());
    let sonarr = FakeSonarr::at(clock);
    stock(&radarr, &sonarr);
    keep_busy(&radarr, &sonarr);
    look_ahead(&radarr, &sonarr, now);
    look_back(&radarr, &sonarr, now);
    (radarr, sonarr)
}

fn stock(radarr: &FakeRadarr, sonarr: &FakeSonarr) {
    for row in demo_movies::LIBRARY {
        let film = film(row).size_gb(row.3);
        radarr.add(if demo_movies::ULTRA.contains(&row.0) { film.profile("Ultra-HD") } else { film });
    }
    for row in demo_movies::CATALOG {
        radarr.catalog(film(row));
    }
    for row in demo_movies::UNRELEASED {
        radarr.catalog(film(row).unreleased());
    }
    for row in &demo_series::LIBRARY {
        sonarr.add(show(row).size_gb(row.gigabytes));
    }
    for row in &demo_series::CATALOG {
        sonarr.catalog(show(row));
    }
}

fn keep_busy(radarr: &FakeRadarr, sonarr: &FakeSonarr) {
    radarr.queue(download("Oppenheimer").size_gb(58.2).percent(62).minutes_left(25));
    radarr.queue(download("The Wild Robot").size_gb(9.4).percent(8).minutes_left(140));
    radarr.queue(download("Chef").size_gb(8.1).queued());
    radarr.queue(download("Past Lives").size_gb(7.7).stuck("No video file was found in the download"));
    sonarr.queue(download("The Last of Us S01").size_gb(31.5).percent(41).minutes_left(52));
    sonarr.queue(download("Slow Horses S05E06").size_gb(2.3).percent(87).minutes_left(4));
}

/// Adds future titles: the number of hours until an episode airs, or of days until a movie is released.
fn look_ahead(radarr: &FakeRadarr, sonarr: &FakeSonarr, now: Timestamp) {
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
        sonarr.calendar(title, later(now, hours));
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    let film = |title: &str, year, tmdb| movie(title).year(year).tmdb(tmdb).popularity(30.0).unreleased();
    let this_year = u16::try_from(today.year()).unwrap_or_default();
    radarr.add(film("The Lighthouse Keeper", this_year, 9_100_001).digital(day(today, 3)));
    radarr.add(film("Cold Harbor", this_year, 9_100_002).cinema(day(today, 6)));
    radarr.add(
        film("A Winter in Lisbon", this_year, 9_100_003).cinema(day(today, -60)).physical(day(today, 12)),
    );
}

fn look_back(radarr: &FakeRadarr, sonarr: &FakeSonarr, now: Timestamp) {
    radarr.imported("Knives Out", later(now, -20));
    radarr.imported("Everything Everywhere All at Once", later(now, -71));
    radarr.imported("Heat", later(now, -150));
    sonarr.imported("Slow Horses S05E05", later(now, -9));
    sonarr.imported("Fleabag S02", later(now, -50));
    sonarr.imported("Severance S02E09", later(now, -100));
}

fn film((title, year, tmdb, _, overview): FilmRow) -> FakeMovie {
    movie(title).year(year).tmdb(tmdb).overview(overview).popularity(f64::from(year) / 50.0)
}

fn show(row: &ShowRow) -> FakeSeries {
    let show = series(row.title)
        .year(row.year)
        .tvdb(row.tvdb)
        .seasons(row.seasons)
        .episodes(row.episodes)
        .overview(row.overview)
        .popularity(f64::from(row.year) / 50.0);
    match row.run {
        Run::Ended => show.ended(),
        Run::Continuing => show,
        Run::Daily => show.daily(),
        Run::Anime => show.anime(),
    }
}

fn later(now: Timestamp, hours: i64) -> Timestamp {
    now.saturating_add(SignedDuration::from_hours(hours)).unwrap_or(now)
}

fn day(today: Date, days: i64) -> Date {
    today.saturating_add(SignedDuration::from_hours(24 * days))
}
