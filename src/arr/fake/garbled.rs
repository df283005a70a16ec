//! Tests of the real clients against faulty responses of the fake servers. Each response is either read or refused, in
//! the guaranteed order and bounds, and the error message of a refusal is a single line.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::to_bytes;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, TryFutureExt};
use http::{Request, Response};
use jiff::civil::{Date, date};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::{ProptestConfig, proptest};
use proptest::sample::Index;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::activity::download;
use super::flaws::{Flaw, Slip, flaws, slip, spoil, status, written};
use super::library_api::LibraryKind;
use super::media_fixtures::{MovieDetails, SeriesDetails, movie, series};
use super::radarr::FakeRadarr;
use super::responses;
use super::sonarr::FakeSonarr;
use crate::arr::collections::SuggestionSource;
use crate::arr::common_api::HealthProblem;
use crate::arr::episodes::Episode;
use crate::arr::history::HistoryEntry;
use crate::arr::library_title::LibraryTitle;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{
    ArrError, CalendarEntry, Download, DownloadState, ImportedDownload, Movie, Series, UpcomingWhen,
};
use crate::clock::Clock;
use crate::conversation::text::title::clean_title;
use crate::http::{HttpClient, InProcess};

const NOW: &str = "2026-03-06T19:00:00Z";
const SINCE: Timestamp = Timestamp::UNIX_EPOCH;
const FIRST_DAY: Date = date(2026, 3, 1);
const LAST_DAY: Date = date(2026, 3, 31);
/// Maximum size in bytes: a petabyte, so that the sizes of thousands of files can be added up.
const MAX_BYTES: u64 = 1 << 50;
const CASES: u32 = 1_500;

struct Clients {
    radarr: Radarr,
    sonarr: Sonarr,
}

/// Request of a client, with a check of the data that is read from the response.
type Read = for<'a> fn(&'a Clients) -> BoxFuture<'a, Result<(), ArrError>>;

/// Reads of the library clients, and of the information that both servers share.
const READS: [(&str, Read); 29] = [
    ("movies found", |it| it.radarr.lookup_movies("alien").map_ok(each(check_movie)).boxed()),
    ("movie", |it| it.radarr.fetch_movie(7).map_ok(each(check_movie)).boxed()),
    ("movie by number", |it| it.radarr.movie_by_tmdb(348).map_ok(each(check_movie)).boxed()),
    ("movies held", |it| it.radarr.each_holding(|held| check_holding(&held)).boxed()),
    ("movie held", |it| it.radarr.fetch_library_title(7).map_ok(each(check_holding)).boxed()),
    ("movies to come", |it| {
        it.radarr.fetch_calendar(FIRST_DAY, LAST_DAY).map_ok(|them| check_releases(&them)).boxed()
    }),
    ("movies downloading", |it| it.radarr.fetch_downloads().map_ok(|them| check_downloads(&them)).boxed()),
    ("movies imported", |it| it.radarr.imported_since(SINCE).map_ok(|them| check_imports(&them)).boxed()),
    ("history of a movie", |it| it.radarr.fetch_history(7).map_ok(|them| check_history(&them)).boxed()),
    ("history of movies", |it| it.radarr.history_since(SINCE).map_ok(|them| check_history(&them)).boxed()),
    ("collection", |it| it.radarr.fetch_collection(8_091).map_ok(drop).boxed()),
    ("suggestions", |it| it.radarr.fetch_suggestions(SuggestionSource::Similar).map_ok(drop).boxed()),
    ("shows found", |it| it.sonarr.lookup_series("severance").map_ok(each(check_show)).boxed()),
    ("show", |it| it.sonarr.fetch_series(15).map_ok(each(check_show)).boxed()),
    ("show by number", |it| it.sonarr.series_by_tvdb(371_980).map_ok(each(check_show)).boxed()),
    ("shows held", |it| it.sonarr.each_holding(|held| check_holding(&held)).boxed()),
    ("show held", |it| it.sonarr.fetch_library_title(15).map_ok(each(check_holding)).boxed()),
    ("episodes to come", |it| {
        it.sonarr.fetch_calendar(SINCE, Timestamp::MAX).map_ok(|them| check_airings(&them)).boxed()
    }),
    ("episodes downloading", |it| it.sonarr.fetch_downloads().map_ok(|them| check_downloads(&them)).boxed()),
    ("episodes imported", |it| it.sonarr.imported_since(SINCE).map_ok(|them| check_imports(&them)).boxed()),
    ("history of a show", |it| it.sonarr.fetch_history(15).map_ok(|them| check_history(&them)).boxed()),
    ("history of shows", |it| it.sonarr.history_since(SINCE).map_ok(|them| check_history(&them)).boxed()),
    ("episodes", |it| it.sonarr.fetch_episodes(15).map_ok(|them| check_episodes(&them)).boxed()),
    ("health", |it| it.radarr.common_api().fetch_health().map_ok(each(check_problem)).boxed()),
    ("connections", |it| it.radarr.common_api().fetch_connect_entries().map_ok(drop).boxed()),
    ("folders", |it| it.sonarr.root_folders().map_ok(drop).boxed()),
    ("profiles", |it| it.sonarr.fetch_profiles().map_ok(drop).boxed()),
    ("status", |it| it.sonarr.common_api().fetch_status().map_ok(drop).boxed()),
    ("what follows a failure", |it| it.sonarr.common_api().replaces_failed().map_ok(drop).boxed()),
];

fn each<T, I: IntoIterator<Item = T>>(check: fn(&T)) -> impl FnOnce(I) {
    move |them| them.into_iter().for_each(|one| check(&one))
}

fn check_movie(movie: &Movie) {
    check_title(&movie.title);
    assert!(movie.size_bytes <= MAX_BYTES && movie.id.is_none_or(|id| id > 0));
}

fn check_show(show: &Series) {
    check_title(&show.title);
    assert!(show.size_bytes <= MAX_BYTES && show.id.is_none_or(|id| id > 0));
    assert!(show.seasons.iter().all(|season| season.number > 0 && season.size_bytes <= MAX_BYTES));
    let most = show.seasons.iter().map(|season| season.episodes_on_disk).max();
    assert!(show.episodes_on_disk >= most.unwrap_or_default());
}

fn check_holding(holding: &LibraryTitle) {
    check_title(&holding.title);
    assert!(holding.size_bytes <= MAX_BYTES);
}

fn check_releases(upcoming: &[CalendarEntry]) {
    let days = upcoming.iter().map(|entry| match entry.when {
        UpcomingWhen::Released(day, _) => day,
        UpcomingWhen::Airs(_) => panic!("a film that airs"),
    });
    assert!(
        days.clone().is_sorted() && days.clone().all(|day| (FIRST_DAY..=LAST_DAY).contains(&day)),
        "{upcoming:?}"
    );
    upcoming.iter().for_each(|entry| check_title(&entry.title));
}

fn check_airings(upcoming: &[CalendarEntry]) {
    let instants = upcoming.iter().map(|entry| match entry.when {
        UpcomingWhen::Airs(at) => at,
        UpcomingWhen::Released(..) => panic!("an episode that is released"),
    });
    assert!(instants.is_sorted(), "{upcoming:?}");
    upcoming.iter().for_each(|entry| check_title(&entry.title));
}

fn check_downloads(downloads: &[Download]) {
    let named = downloads.iter().map(|download| download.id.as_str()).filter(|id| !id.is_empty());
    assert_eq!(named.clone().collect::<HashSet<_>>().len(), named.count(), "one download told as two");
    for download in downloads {
        check_title(&download.title);
        if let DownloadState::Stuck(reason) | DownloadState::Failed(reason) = &download.state {
            check_reason(reason);
        }
    }
}

fn check_imports(imported: &[ImportedDownload]) {
    assert!(imported.is_sorted_by(|one, next| one.at >= next.at), "{imported:?}");
    imported.iter().for_each(|import| check_title(&import.title));
}

fn check_history(entries: &[HistoryEntry]) {
    assert!(entries.is_sorted_by(|one, next| one.at >= next.at), "{entries:?}");
    entries.iter().for_each(|entry| check_line(&entry.reason));
}

fn check_episodes(episodes: &[Episode]) {
    assert!(episodes.is_sorted_by_key(|episode| (episode.season, episode.number)), "{episodes:?}");
}

fn check_problem(problem: &HealthProblem) {
    check_line(&problem.message);
}

/// Checks a title as it appears in our confirmation prompts.
fn check_title(title: &str) {
    let clean = clean_title(title);
    assert!(!clean.is_empty() && !clean.contains(char::is_control), "{clean:?}");
}

fn check_reason(text: &str) {
    assert!(!text.is_empty());
    check_line(text);
}

fn check_line(text: &str) {
    assert!(!text.contains(['\n', '\r']), "{text:?}");
}

fn check_refusal(refusal: &ArrError) {
    match refusal {
        ArrError::Refused(complaints) => {
            assert!(!complaints.is_empty());
            complaints.iter().for_each(|complaint| check_reason(complaint));
        }
        ArrError::Unavailable(text) | ArrError::WrongUrl(text) => check_reason(text),
        ArrError::Server { message, .. } => check_reason(message),
        ArrError::Unauthorized | ArrError::NotFound | ArrError::Unreadable(_) => {}
        ArrError::Unreachable(_) | ArrError::NoAnswer(_) => panic!("it was answered"),
    }
}

fn clients(radarr: InProcess, sonarr: InProcess) -> Clients {
    let base = || "http://library.test".parse().unwrap();
    Clients {
        radarr: Radarr::new(HttpClient::in_process(radarr), base(), MovieDetails::SERVER.api_key.into()),
        sonarr: Sonarr::new(HttpClient::in_process(sonarr), base(), SeriesDetails::SERVER.api_key.into()),
    }
}

/// Creates servers with data of every kind.
fn furnished() -> (FakeRadarr, FakeSonarr) {
    let clock = Clock::stopped_at(NOW.parse().unwrap());
    let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock));
    let alien = movie("Alien").id(7).tmdb(348).year(1979).size_gb(9.0).genres(&["Horror"]).rating(8.1);
    let alien = alien.collection(8_091, "Alien Collection").cinema(date(1979, 5, 25));
    radarr.add(alien.digital(date(2026, 3, 20)));
    let dune = movie("Dune: Part Three").id(8).tmdb(1_170_608).year(2026).unreleased();
    radarr.add(dune.cinema(date(2026, 3, 12)));
    radarr.add_suggestion(
        movie("Aliens").tmdb(679).year(1986).collection(8_091, "Alien Collection").rating(7.9),
    );
    radarr.add_to_queue(download("Alien").stuck("/downloads/x"));
    radarr.add_to_queue(download("Dune: Part Three").failed("Unpacking failed"));
    radarr.add_to_queue(download("Alien").percent(5).minutes_left(3_000));
    radarr.add_health_problem("error", "RootFolderCheck", "Missing root folder: /films");
    radarr.add_connect_entry("Dialarr", "http://dialarr.test", &["onDownload"]);
    let severance = series("Severance").id(15).tvdb(371_980).year(2022).seasons(2).episodes(6);
    sonarr.add(severance.missing(2).size_gb(9.0));
    sonarr.add(series("The Bear").id(16).tvdb(403_294).year(2022).seasons(2).episodes(4));
    sonarr.add_to_queue(download("Severance S02").stuck("Sample"));
    sonarr.add_to_queue(download("The Bear S02E01").percent(50).minutes_left(9));
    for (title, episode, time) in [
        ("Dune: Part Three", "The Bear S02E01", "2026-02-01T01:00:00Z"),
        ("Alien", "Severance S01", "2026-02-03T01:00:00Z"),
        ("Alien", "Severance S02E01", "2026-02-05T01:00:00Z"),
    ] {
        let at: Timestamp = time.parse().unwrap();
        radarr.add_import(title, at);
        sonarr.add_import(episode, at);
        sonarr.add_calendar_entry(episode, at + SignedDuration::from_hours(24 * 40));
    }
    (radarr, sonarr)
}

/// Returns the responses of the furnished servers to each read.
fn well_formed(runtime: &Runtime) -> Vec<Value> {
    let (radarr, sonarr) = furnished();
    let last_response = Arc::new(Mutex::new(Value::Null));
    let recorded = |peer: InProcess| -> InProcess {
        let last_response = last_response.clone();
        Arc::new(move |request: Request<Bytes>| {
            let (answer, last_response) = (peer(request), last_response.clone());
            async move {
                let answer = answer.await;
                *last_response.lock().unwrap() = serde_json::from_slice(answer.body()).unwrap();
                answer
            }
            .boxed()
        })
    };
    let clients = clients(recorded(radarr.in_process()), recorded(sonarr.in_process()));
    let read_response = |(name, read): &(&str, Read)| {
        runtime.block_on(read(&clients)).unwrap_or_else(|error| panic!("{name}: {error}"));
        last_response.lock().unwrap().clone()
    };
    READS.iter().map(read_response).collect()
}

/// Returns error responses of a server, with an unsuccessful status.
fn complaints(runtime: &Runtime) -> Vec<Value> {
    let answers = [
        responses::failure_response(400),
        responses::malformed_body_response("$.year"),
        responses::failure_response(404),
        responses::failure_response(500),
        responses::starting_response(&MovieDetails::SERVER),
    ];
    let read = |response: axum::response::Response| {
        let body = runtime.block_on(to_bytes(response.into_body(), usize::MAX)).unwrap();
        serde_json::from_slice(&body).unwrap()
    };
    answers.into_iter().map(read).collect()
}

#[test]
fn garbled_response_is_parsed_or_refused_and_missing_fields_are_harmless() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let (well_formed, complaints) = (well_formed(&runtime), complaints(&runtime));
    proptest!(ProptestConfig::with_cases(CASES), |(
        which in 0..READS.len(),
        status in status(),
        complaint: Index,
        flaws in flaws(),
        slip in slip(),
    )| {
        let is_success = (200..300).contains(&status);
        let mut answer = if is_success { well_formed[which].clone() } else { complaint.get(&complaints).clone() };
        flaws.iter().for_each(|(place, flaw)| spoil(&mut answer, *place, flaw));
        let body = Bytes::from(written(&answer, &slip));
        let asked = Arc::new(AtomicUsize::new(0));
        let peer: InProcess = Arc::new({
            let asked = asked.clone();
            move |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                let response = Response::builder().status(status).body(body.clone()).unwrap();
                async move { response }.boxed()
            }
        });
        let (name, read) = READS[which];
        let outcome = runtime.block_on(read(&clients(peer.clone(), peer)));
        let asked = asked.load(Ordering::Relaxed);
        assert!(asked == 1 || asked == 2 && status == 503, "{name}: asked {asked} times");
        match outcome {
            Ok(()) => assert!(is_success || status == 404, "{name}: taken with status {status}"),
            Err(refusal) => {
                let harmless = |flaw: &Flaw| matches!(flaw, Flaw::Missing | Flaw::Twice | Flaw::Backwards);
                let has_no_oddity = slip == Slip::Nothing && flaws.iter().all(|(_, flaw)| harmless(flaw));
                assert!(!(is_success && has_no_oddity), "{name}: {refusal:?}");
                check_refusal(&refusal);
            }
        }
    });
}
