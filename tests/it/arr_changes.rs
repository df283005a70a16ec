//! Tests of the real clients against the fake servers, for requests that change data.

use jiff::Timestamp;

use dialarr::arr::changes::{MovieChange, SeasonMonitoringOutcome, SeriesChange, SeriesSearch};
use dialarr::arr::collections::SuggestionSource;
use dialarr::arr::common_api::{DiscardMode, HealthLevel};
use dialarr::arr::fake::activity::download;
use dialarr::arr::fake::fake_server::ActionRecord;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::arr::history::HistoryEvent;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::arr::{ArrError, Availability, RemovalOutcome};
use dialarr::clock::Clock;
use dialarr::http::HttpClient;

const GB: u64 = 1_000_000_000;

fn now() -> Timestamp {
    "2026-03-06T19:00:00Z".parse().unwrap()
}

fn films() -> (FakeRadarr, Radarr) {
    let fake = FakeRadarr::with_clock(Clock::stopped_at(now()));
    let base = "http://radarr.test/".parse().unwrap();
    let client = Radarr::new(HttpClient::in_process(fake.in_process()), base, fake.api_key().into());
    (fake, client)
}

fn shows() -> (FakeSonarr, Sonarr) {
    let fake = FakeSonarr::with_clock(Clock::stopped_at(now()));
    let base = "http://sonarr.test/".parse().unwrap();
    let client = Sonarr::new(HttpClient::in_process(fake.in_process()), base, fake.api_key().into());
    (fake, client)
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

#[tokio::test]
async fn edit_changes_only_the_named_fields() {
    let (fake, client) = films();
    let id = fake.add(movie("Heat").year(1995).size_gb(8.0));
    let change =
        MovieChange { profile: Some(5), availability: Some(Availability::Announced), monitored: None };
    client.edit_movie(id, change).await.unwrap();
    let film = client.fetch_movie(id).await.unwrap().unwrap();
    assert_eq!((film.monitored, film.profile, film.availability), (true, 5, Availability::Announced));
    let unwanted = MovieChange { monitored: Some(false), ..MovieChange::default() };
    client.edit_movie(id, unwanted).await.unwrap();
    let film = client.fetch_movie(id).await.unwrap().unwrap();
    assert_eq!((film.monitored, film.profile), (false, 5));
    assert!(matches!(client.edit_movie(99, unwanted).await, Err(ArrError::Server { status: 500, .. })));
}

#[tokio::test]
async fn series_is_edited_without_its_episodes() {
    let (fake, client) = shows();
    let id = fake.add(series("Bleach").seasons(2).unmonitored_season(1));
    let change =
        SeriesChange { series_type: Some("anime"), new_seasons: Some(false), ..SeriesChange::default() };
    client.edit_series(id, change).await.unwrap();
    let show = client.fetch_series(id).await.unwrap().unwrap();
    assert_eq!((show.series_type.as_str(), show.new_seasons, show.monitored), ("anime", false, true));
    assert_eq!(show.seasons.iter().map(|season| season.monitored).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn monitored_season_monitors_its_episodes_only() {
    let (fake, client) = shows();
    let show = series("The Bear").seasons(3).episodes(6).unmonitored_season(2).unmonitored_episode(1, 2);
    let id = fake.add(show);
    assert_eq!(
        client.monitor_seasons(id, &[(1, true), (2, true)]).await.unwrap(),
        SeasonMonitoringOutcome::Updated
    );
    let wanted = fake.title(id).unwrap().monitored_episodes();
    assert_eq!(wanted, [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)], "a flag that stays changes nothing");
    assert_eq!(
        client.monitor_seasons(99, &[(1, true)]).await.unwrap(),
        SeasonMonitoringOutcome::SeriesNotFound
    );
}

#[tokio::test]
async fn episodes_are_monitored_and_their_files_deleted() {
    let (fake, client) = shows();
    let id = fake.add(series("The Bear").seasons(2).episodes(4).size_gb(4.0));
    let season = client.fetch_season_episodes(id, 2).await.unwrap();
    assert_eq!(season.iter().map(|one| (one.season, one.number)).collect::<Vec<_>>(), [(2, 1), (2, 2)]);
    let file = season[0].file.clone().unwrap();
    assert_eq!((file.size_bytes, file.quality.as_str()), (GB, "WEBDL-1080p"));
    client.monitor_episodes(&[season[0].id], false).await.unwrap();
    client.delete_episode_files(&[file.id]).await.unwrap();
    let show = fake.title(id).unwrap();
    assert_eq!(show.episodes_on_disk(), [(1, 1), (1, 2), (2, 2)]);
    assert_eq!(show.monitored_episodes(), [(1, 1), (1, 2), (2, 2)]);
    assert_eq!(fake.action_record().deleted_files, ["The Bear S02E01"]);
    // An empty list has no effect, and sends no request that the server would reject.
    client.delete_episode_files(&[]).await.unwrap();
    client.monitor_episodes(&[], true).await.unwrap();
}

#[tokio::test]
async fn movie_file_is_deleted_once_and_the_movie_stays() {
    let (fake, client) = films();
    let id = fake.add(movie("Heat").year(1995).size_gb(8.0));
    let file = client.fetch_movie(id).await.unwrap().unwrap().file.unwrap();
    assert_eq!(client.delete_file(file.id).await.unwrap(), RemovalOutcome::Removed);
    assert_eq!(client.delete_file(file.id).await.unwrap(), RemovalOutcome::AlreadyGone);
    let film = client.fetch_movie(id).await.unwrap().unwrap();
    assert_eq!((film.has_file, film.file, film.size_bytes), (false, None, 0));
    let history: Vec<_> =
        client.fetch_history(id).await.unwrap().into_iter().map(|entry| entry.event).collect();
    assert_eq!(history, [HistoryEvent::FileDeleted]);
}

#[tokio::test]
async fn search_grabs_available_releases() {
    let (fake, client) = films();
    let heat = fake.add(movie("Heat").year(1995));
    let ronin = fake.add(movie("Ronin").year(1998));
    fake.add_release("Heat");
    client.search_movie(heat).await.unwrap();
    client.search_movie(ronin).await.unwrap();
    let titles: Vec<_> = client.fetch_downloads().await.unwrap().into_iter().map(|it| it.title).collect();
    assert_eq!(titles, ["Heat (1995)"]);
    assert_eq!(fake.action_record().searches, ["Heat", "Ronin"]);
}

#[tokio::test]
async fn season_search_skips_unmonitored_episodes() {
    let (fake, client) = shows();
    let id = fake.add(series("The Bear").seasons(2).unmonitored_season(2));
    fake.add_release("The Bear S02E01");
    client.search_series(&SeriesSearch::Season { series: id, season: 2 }).await.unwrap();
    assert_eq!(client.fetch_downloads().await.unwrap(), []);
    let first = client.fetch_season_episodes(id, 2).await.unwrap()[0].id;
    client.search_series(&SeriesSearch::Episodes(vec![first])).await.unwrap();
    let titles: Vec<_> = client.fetch_downloads().await.unwrap().into_iter().map(|it| it.title).collect();
    assert_eq!(titles, ["The Bear S02E01"]);
    assert_eq!(fake.action_record().searches, ["The Bear S02", "The Bear S02E01"]);
}

#[tokio::test]
async fn monitoring_the_future_leaves_the_past_unmonitored() {
    let (fake, client) = shows();
    let next = "2026-04-01T20:00:00Z".parse().unwrap();
    let id = fake.add(series("The Bear").seasons(2).episodes(4).airs(2, 2, next));
    client.monitor_future_episodes(id).await.unwrap();
    assert_eq!(fake.title(id).unwrap().monitored_episodes(), [(2, 2)]);
}

#[tokio::test]
async fn discarded_download_is_replaced_only_on_request() {
    for (how, replaced) in [(DiscardMode::Block, 0), (DiscardMode::BlockAndReplace, 1)] {
        let (fake, client) = films();
        fake.add(movie("Heat").year(1995));
        fake.add_to_queue(download("Heat").percent(10));
        fake.add_release("Heat");
        let row = client.fetch_downloads().await.unwrap()[0].rows[0];
        assert_eq!(client.common_api().discard_download(row, how).await.unwrap(), RemovalOutcome::Removed);
        assert_eq!(
            client.common_api().discard_download(row, how).await.unwrap(),
            RemovalOutcome::AlreadyGone
        );
        let ActionRecord { discarded, blocklist, .. } = fake.action_record();
        let left = client.fetch_downloads().await.unwrap().len();
        assert_eq!((discarded, blocklist.len(), left), (words(&["Heat"]), 1, replaced), "{how:?}");
    }
}

#[tokio::test]
async fn failed_grab_is_blocklisted_and_replaced_per_setting() {
    for replaces in [true, false] {
        let (fake, client) = films();
        let id = fake.add(movie("Heat").year(1995).size_gb(8.0));
        fake.add_import("Heat", "2026-03-05T10:00:00Z".parse().unwrap());
        fake.add_release("Heat");
        fake.set_replaces_failed(replaces);
        fake.edit(id, |film| film.size_bytes = 0);
        let history = client.fetch_history(id).await.unwrap();
        let events: Vec<_> = history.iter().map(|entry| entry.event).collect();
        assert_eq!(events, [HistoryEvent::Imported, HistoryEvent::Grabbed]);
        assert_eq!(client.common_api().fetch_replaces_failed().await.unwrap(), replaces);
        client.common_api().fail_grab(history[1].id).await.unwrap();
        assert_eq!(fake.action_record().blocklist, [history[1].release.clone()]);
        assert_eq!(client.fetch_downloads().await.unwrap().len(), usize::from(replaces));
        assert!(matches!(client.common_api().fail_grab(999_999).await, Err(ArrError::NotFound)));
    }
}

#[tokio::test]
async fn health_problems_are_listed() {
    let (fake, client) = films();
    assert_eq!(client.common_api().fetch_health().await.unwrap(), []);
    fake.add_health_problem("error", "RootFolderCheck", "Missing root folder: /mnt/movies");
    let ailments = client.common_api().fetch_health().await.unwrap();
    let problems: Vec<_> =
        ailments.iter().map(|it| (it.level, it.source.as_str(), it.message.as_str())).collect();
    assert_eq!(problems, [(HealthLevel::Error, "RootFolderCheck", "Missing root folder")]);
}

#[tokio::test]
async fn collections_and_suggestions_mark_owned_titles() {
    let (fake, client) = films();
    fake.add(movie("Dune").year(2021).tmdb(438_631).collection(726_871, "Dune Collection"));
    fake.add_to_catalog(
        movie("Dune: Part Two").year(2024).tmdb(693_134).collection(726_871, "Dune Collection"),
    );
    fake.add_suggestion(movie("Arrival").year(2016).tmdb(329_865).genres(&["Science Fiction"]).rating(7.6));
    let ownership = |films: Vec<dialarr::arr::collections::SuggestedMovie>| -> Vec<(i64, bool)> {
        films.into_iter().map(|film| (film.tmdb, film.in_library)).collect()
    };
    assert_eq!(
        ownership(client.fetch_collection(726_871).await.unwrap()),
        [(438_631, true), (693_134, false)]
    );
    assert_eq!(ownership(client.fetch_collection(1).await.unwrap()), []);
    assert_eq!(
        ownership(client.fetch_suggestions(SuggestionSource::Similar).await.unwrap()),
        [(329_865, false)]
    );
}
