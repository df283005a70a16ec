//! Reads of the Sonarr and Radarr clients, each with a check of what is read: order, bounds and one-line messages. The
//! fuzz target `arr_answers` and the tests in `tests/it/arr_faulty_responses.rs` share them.

use std::collections::HashSet;

use dialarr::arr::collections::SuggestionSource;
use dialarr::arr::common_api::HealthProblem;
use dialarr::arr::episodes::Episode;
use dialarr::arr::history::HistoryEntry;
use dialarr::arr::library_title::LibraryTitle;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::arr::{
    ArrError, CalendarDate, CalendarEntry, Download, DownloadState, ImportedDownload, Movie, Series,
};
use dialarr::conversation::text::title::clean_title;
use futures_util::future::{BoxFuture, FutureExt, TryFutureExt};
use jiff::Timestamp;
use jiff::civil::{Date, date};

const SINCE: Timestamp = Timestamp::UNIX_EPOCH;
const FIRST_DAY: Date = date(2026, 3, 1);
const LAST_DAY: Date = date(2026, 3, 31);
/// Maximum size in bytes: a petabyte, so that the sizes of thousands of files can be added up.
const MAX_BYTES: u64 = 1 << 50;

/// Clients of the servers whose responses are checked.
pub struct Clients {
    pub radarr: Radarr,
    pub sonarr: Sonarr,
}

/// Request of a client, with a check of the data that is read from the response.
pub type Read = for<'a> fn(&'a Clients) -> BoxFuture<'a, Result<(), ArrError>>;

/// Reads of the library clients, and of the information that both servers share.
pub const READS: [(&str, Read); 29] = [
    ("movies found", |it| it.radarr.lookup_movies("alien").map_ok(each(check_movie)).boxed()),
    ("movie", |it| it.radarr.fetch_movie(7).map_ok(each(check_movie)).boxed()),
    ("movie by number", |it| it.radarr.fetch_movie_by_tmdb(348).map_ok(each(check_movie)).boxed()),
    ("movies held", |it| it.radarr.for_each_title(|held| check_holding(&held)).boxed()),
    ("movie held", |it| it.radarr.fetch_library_title(7).map_ok(each(check_holding)).boxed()),
    ("movies to come", |it| {
        it.radarr.fetch_calendar(FIRST_DAY, LAST_DAY).map_ok(|them| check_releases(&them)).boxed()
    }),
    ("movies downloading", |it| it.radarr.fetch_downloads().map_ok(|them| check_downloads(&them)).boxed()),
    ("movies imported", |it| {
        it.radarr.fetch_imports_since(SINCE).map_ok(|them| check_imports(&them)).boxed()
    }),
    ("history of a movie", |it| it.radarr.fetch_history(7).map_ok(|them| check_history(&them)).boxed()),
    ("history of movies", |it| {
        it.radarr.fetch_history_since(SINCE).map_ok(|them| check_history(&them)).boxed()
    }),
    ("collection", |it| it.radarr.fetch_collection(8_091).map_ok(drop).boxed()),
    ("suggestions", |it| it.radarr.fetch_suggestions(SuggestionSource::Similar).map_ok(drop).boxed()),
    ("shows found", |it| it.sonarr.lookup_series("severance").map_ok(each(check_show)).boxed()),
    ("show", |it| it.sonarr.fetch_series(15).map_ok(each(check_show)).boxed()),
    ("show by number", |it| it.sonarr.fetch_series_by_tvdb(371_980).map_ok(each(check_show)).boxed()),
    ("shows held", |it| it.sonarr.for_each_title(|held| check_holding(&held)).boxed()),
    ("show held", |it| it.sonarr.fetch_library_title(15).map_ok(each(check_holding)).boxed()),
    ("episodes to come", |it| {
        it.sonarr.fetch_calendar(SINCE, Timestamp::MAX).map_ok(|them| check_airings(&them)).boxed()
    }),
    ("episodes downloading", |it| it.sonarr.fetch_downloads().map_ok(|them| check_downloads(&them)).boxed()),
    ("episodes imported", |it| {
        it.sonarr.fetch_imports_since(SINCE).map_ok(|them| check_imports(&them)).boxed()
    }),
    ("history of a show", |it| it.sonarr.fetch_history(15).map_ok(|them| check_history(&them)).boxed()),
    ("history of shows", |it| {
        it.sonarr.fetch_history_since(SINCE).map_ok(|them| check_history(&them)).boxed()
    }),
    ("episodes", |it| it.sonarr.fetch_episodes(15).map_ok(|them| check_episodes(&them)).boxed()),
    ("health", |it| it.radarr.common_api().fetch_health().map_ok(each(check_problem)).boxed()),
    ("connections", |it| it.radarr.common_api().fetch_connect_entries().map_ok(drop).boxed()),
    ("folders", |it| it.sonarr.fetch_root_folders().map_ok(drop).boxed()),
    ("profiles", |it| it.sonarr.fetch_profiles().map_ok(drop).boxed()),
    ("status", |it| it.sonarr.common_api().fetch_status().map_ok(drop).boxed()),
    ("what follows a failure", |it| it.sonarr.common_api().fetch_replaces_failed().map_ok(drop).boxed()),
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
    let days = upcoming.iter().map(|entry| match entry.date {
        CalendarDate::Released(day, _) => day,
        CalendarDate::Airs(_) => panic!("a film that airs"),
    });
    assert!(
        days.clone().is_sorted() && days.clone().all(|day| (FIRST_DAY..=LAST_DAY).contains(&day)),
        "{upcoming:?}"
    );
    upcoming.iter().for_each(|entry| check_title(&entry.title));
}

fn check_airings(upcoming: &[CalendarEntry]) {
    let instants = upcoming.iter().map(|entry| match entry.date {
        CalendarDate::Airs(at) => at,
        CalendarDate::Released(..) => panic!("an episode that is released"),
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

/// Checks the error messages of a refused response.
pub fn check_refusal(refusal: &ArrError) {
    match refusal {
        ArrError::Refused(complaints) => {
            assert!(!complaints.is_empty());
            complaints.iter().for_each(|complaint| check_reason(complaint));
        }
        ArrError::Unavailable(text) | ArrError::WrongUrl(text) => check_reason(text),
        ArrError::Server { message, .. } => check_reason(message),
        ArrError::Unauthorized | ArrError::NotFound | ArrError::Unreadable(_) => {}
        ArrError::Unreachable(_) | ArrError::NoResponse(_) => panic!("it was answered"),
    }
}
