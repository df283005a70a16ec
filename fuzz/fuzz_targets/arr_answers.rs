//! Responses of Sonarr and Radarr with any status: every list is parsed or refused, in order and within its limits, and
//! each refusal message is one line.
#![no_main]

use bytes::Bytes;
use dialarr::arr::collections::SuggestionSource;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::arr::{ArrError, CalendarEntry, Download, DownloadState, UpcomingWhen};
use dialarr::conversation::text::title::clean_title;
use dialarr_fuzz::peer::{answering, run};
use jiff::Timestamp;
use jiff::civil::{Date, date};
use libfuzzer_sys::fuzz_target;
use url::Url;

const STATUSES: [u16; 11] = [200, 200, 200, 200, 302, 400, 401, 404, 409, 500, 503];
const MAX_REQUESTS: usize = 2;

fuzz_target!(|data: &[u8]| {
    let [which, status, body @ ..] = data else { return };
    let status = STATUSES[usize::from(*status) % STATUSES.len()];
    let (http, asked) = answering(status, vec![Bytes::copy_from_slice(body)]);
    let base = Url::parse("http://library.invalid/base").expect("a URL");
    let outcome = if which % 2 == 0 {
        run(radarr(&Radarr::new(http, base, "key".into()), which / 2))
    } else {
        run(sonarr(&Sonarr::new(http, base, "key".into()), which / 2))
    };
    assert!((1..=MAX_REQUESTS).contains(&asked.take().len()));
    match outcome {
        Ok(()) => assert!(status == 200 || status == 404, "an answer of status {status} was taken"),
        Err(ArrError::Refused(complaints)) => {
            assert!(!complaints.is_empty());
            complaints.iter().for_each(|complaint| check_line(complaint));
        }
        Err(ArrError::Unavailable(said) | ArrError::WrongUrl(said)) => check_line(&said),
        Err(ArrError::Server { message, .. }) => check_line(&message),
        Err(
            ArrError::Unreachable(_)
            | ArrError::NoAnswer(_)
            | ArrError::Unauthorized
            | ArrError::NotFound
            | ArrError::Unreadable(_),
        ) => {}
    }
});

async fn radarr(client: &Radarr, which: u8) -> Result<(), ArrError> {
    let (first, last): (Date, Date) = (date(2000, 1, 1), date(2100, 1, 1));
    match which % 12 {
        0 => drop(client.movie_by_tmdb(1).await?),
        1 => client.lookup_movies("x").await?.iter().for_each(|movie| check_title(&movie.title)),
        2 => client.each_holding(|holding| check_title(&holding.title)).await?,
        3 => check_downloads(&client.fetch_downloads().await?),
        4 => {
            let upcoming = client.fetch_calendar(first, last).await?;
            check_upcoming(&upcoming);
        }
        5 => assert!(client.imported_since(Timestamp::UNIX_EPOCH).await?.is_sorted_by(|a, b| a.at >= b.at)),
        6 => assert!(client.fetch_history(1).await?.is_sorted_by(|a, b| a.at >= b.at)),
        7 => drop(client.fetch_collection(1).await?),
        8 => drop(client.fetch_suggestions(SuggestionSource::Similar).await?),
        9 => drop((client.fetch_movie(1).await?, client.fetch_library_title(1).await?)),
        10 => drop(client.common_api().fetch_health().await?),
        _ => drop(client.root_folders().await?),
    }
    Ok(())
}

async fn sonarr(client: &Sonarr, which: u8) -> Result<(), ArrError> {
    match which % 12 {
        0 => {
            for series in client.lookup_series("x").await? {
                check_title(&series.title);
                assert!(series.seasons.iter().all(|season| season.number > 0), "a season of specials");
                let most = series.seasons.iter().map(|season| season.episodes_on_disk).max();
                assert!(series.episodes_on_disk >= most.unwrap_or_default());
            }
        }
        1 => drop(client.series_by_tvdb(1).await?),
        2 => client.each_holding(|holding| check_title(&holding.title)).await?,
        3 => check_downloads(&client.fetch_downloads().await?),
        4 => {
            let upcoming = client.fetch_calendar(Timestamp::UNIX_EPOCH, Timestamp::MAX).await?;
            check_upcoming(&upcoming);
        }
        5 => assert!(client.imported_since(Timestamp::UNIX_EPOCH).await?.is_sorted_by(|a, b| a.at >= b.at)),
        6 => assert!(client.fetch_history(1).await?.is_sorted_by(|a, b| a.at >= b.at)),
        7 => {
            let now = Timestamp::UNIX_EPOCH;
            let episodes = client.fetch_episodes(1).await?;
            assert!(episodes.is_sorted_by_key(|episode| (episode.season, episode.number)));
            for episode in episodes {
                let _ = (episode.on_disk(), episode.has_aired(now));
            }
        }
        8 => drop(client.common_api().fetch_status().await?),
        9 => drop(client.fetch_series(1).await?),
        10 => drop(client.common_api().replaces_failed().await?),
        _ => drop(client.fetch_profiles().await?),
    }
    Ok(())
}

/// Checks the order, soonest first; the entries of one server are either days or instants.
fn check_upcoming(upcoming: &[CalendarEntry]) {
    upcoming.iter().for_each(|entry| check_title(&entry.title));
    assert!(upcoming.is_sorted_by(|one, next| match (one.when, next.when) {
        (UpcomingWhen::Airs(one), UpcomingWhen::Airs(next)) => one <= next,
        (UpcomingWhen::Released(one, _), UpcomingWhen::Released(next, _)) => one <= next,
        (UpcomingWhen::Airs(_), UpcomingWhen::Released(..))
        | (UpcomingWhen::Released(..), UpcomingWhen::Airs(_)) => false,
    }));
}

fn check_downloads(downloads: &[Download]) {
    for download in downloads {
        check_title(&download.title);
        if let DownloadState::Stuck(reason) | DownloadState::Failed(reason) = &download.state {
            check_line(reason);
        }
    }
}

/// Checks a title as it appears in confirmation prompts.
fn check_title(title: &str) {
    let clean = clean_title(title);
    assert!(!clean.is_empty() && !clean.contains(char::is_control), "{clean:?}");
}

fn check_line(said: &str) {
    assert!(!said.is_empty() && !said.contains(['\n', '\r']), "{said:?}");
}
