//! Libraries of `dialarr demo`: those of a household, with some activity in progress.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::activity::download;
use super::demo_movies::{self, FilmRow};
use super::demo_series::{self, ShowRow, ShowRun};
use super::media_fixtures::{FakeMovie, FakeSeries, movie, series};
use super::radarr::FakeRadarr;
use super::sonarr::FakeSonarr;
use crate::clock::Clock;

/// Creates the demo servers with their state at `now`. Their clock does not advance.
pub fn demo_library(now: Timestamp) -> (FakeRadarr, FakeSonarr) {
    let clock = Clock::stopped_at(now);
    let radarr = FakeRadarr::with_clock(clock.clone());
    let sonarr = FakeSonarr::with_clock(clock);
    fill_demo_libraries(&radarr, &sonarr);
    keep_busy(&radarr, &sonarr);
    look_ahead(&radarr, &sonarr, now);
    look_back(&radarr, &sonarr, now);
    (radarr, sonarr)
}

fn fill_demo_libraries(radarr: &FakeRadarr, sonarr: &FakeSonarr) {
    for row in demo_movies::LIBRARY {
        let film = demo_movie(row).size_gb(row.3);
        radarr.add(if demo_movies::ULTRA.contains(&row.0) { film.profile("Ultra-HD") } else { film });
    }
    for row in demo_movies::CATALOG {
        radarr.add_to_catalog(demo_movie(row));
    }
    for row in demo_movies::UNRELEASED {
        radarr.add_to_catalog(demo_movie(row).unreleased());
    }
    for row in &demo_series::LIBRARY {
        sonarr.add(demo_series(row).size_gb(row.gigabytes));
    }
    for row in &demo_series::CATALOG {
        sonarr.add_to_catalog(demo_series(row));
    }
}

fn keep_busy(radarr: &FakeRadarr, sonarr: &FakeSonarr) {
    radarr.add_to_queue(download("Oppenheimer").size_gb(58.2).percent(62).minutes_left(25));
    radarr.add_to_queue(download("The Wild Robot").size_gb(9.4).percent(8).minutes_left(140));
    radarr.add_to_queue(download("Chef").size_gb(8.1).queued());
    radarr.add_to_queue(download("Past Lives").size_gb(7.7).stuck("No video file was found in the download"));
    sonarr.add_to_queue(download("The Last of Us S01").size_gb(31.5).percent(41).minutes_left(52));
    sonarr.add_to_queue(download("Slow Horses S05E06").size_gb(2.3).percent(87).minutes_left(4));
}

/// Adds future titles, by the number of hours until an episode airs, or of days until a movie is released.
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
        sonarr.add_calendar_entry(title, hours_later(now, hours));
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    let film = |title: &str, year, tmdb| movie(title).year(year).tmdb(tmdb).popularity(30.0).unreleased();
    let this_year = u16::try_from(today.year()).unwrap_or_default();
    radarr.add(film("The Lighthouse Keeper", this_year, 9_100_001).digital(days_later(today, 3)));
    radarr.add(film("Cold Harbor", this_year, 9_100_002).cinema(days_later(today, 6)));
    radarr.add(
        film("A Winter in Lisbon", this_year, 9_100_003)
            .cinema(days_later(today, -60))
            .physical(days_later(today, 12)),
    );
}

fn look_back(radarr: &FakeRadarr, sonarr: &FakeSonarr, now: Timestamp) {
    radarr.add_import("Knives Out", hours_later(now, -20));
    radarr.add_import("Everything Everywhere All at Once", hours_later(now, -71));
    radarr.add_import("Heat", hours_later(now, -150));
    sonarr.add_import("Slow Horses S05E05", hours_later(now, -9));
    sonarr.add_import("Fleabag S02", hours_later(now, -50));
    sonarr.add_import("Severance S02E09", hours_later(now, -100));
}

fn demo_movie((title, year, tmdb, _, overview): FilmRow) -> FakeMovie {
    movie(title).year(year).tmdb(tmdb).overview(overview).popularity(f64::from(year) / 50.0)
}

fn demo_series(row: &ShowRow) -> FakeSeries {
    let show = series(row.title)
        .year(row.year)
        .tvdb(row.tvdb)
        .seasons(row.seasons)
        .episodes(row.episodes)
        .overview(row.overview)
        .popularity(f64::from(row.year) / 50.0);
    match row.run {
        ShowRun::Ended => show.ended(),
        ShowRun::Continuing => show,
        ShowRun::Daily => show.daily(),
        ShowRun::Anime => show.anime(),
    }
}

fn hours_later(now: Timestamp, hours: i64) -> Timestamp {
    now.saturating_add(SignedDuration::from_hours(hours)).unwrap_or(now)
}

fn days_later(today: Date, days: i64) -> Date {
    today.saturating_add(SignedDuration::from_hours(24 * days))
}
