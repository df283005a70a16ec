//! Tests of the fakes' responses as raw JSON. Other tests cover the clients.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use jiff::civil::date;
use serde_json::{Value, json};

use dialarr::arr::fake::activity::{FakeServers, download};
use dialarr::arr::fake::demo_library::create_demo_servers;
use dialarr::arr::fake::fake_server::FakeServer;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::http::{HttpClient, HttpError, InProcess};

const NOW: &str = "2026-03-06T19:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn radarr() -> FakeRadarr {
    FakeRadarr::with_clock(Clock::stopped_at(now()))
}

fn sonarr() -> FakeSonarr {
    FakeSonarr::with_clock(Clock::stopped_at(now()))
}

fn request(method: Method, path: &str, key: &str, body: &Value) -> Request<Bytes> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    Request::builder().method(method).uri(path).header("x-api-key", key).body(body).unwrap()
}

async fn send(peer: InProcess, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    HttpClient::in_process(peer).send(request, Duration::from_secs(5)).await
}

/// Sends one request and returns the status and the JSON, or null, of the response.
async fn answer(peer: InProcess, request: Request<Bytes>) -> (u16, Value) {
    let response = send(peer, request).await.unwrap();
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or(Value::Null))
}

async fn movies(radarr: &FakeRadarr, method: Method, path: &str, body: Value) -> (u16, Value) {
    let path = format!("/api/v3/{path}");
    answer(radarr.in_process(), request(method, &path, radarr.api_key(), &body)).await
}

async fn shows(sonarr: &FakeSonarr, method: Method, path: &str, body: Value) -> (u16, Value) {
    let path = format!("/api/v3/{path}");
    answer(sonarr.in_process(), request(method, &path, sonarr.api_key(), &body)).await
}

async fn see_movies(radarr: &FakeRadarr, path: &str) -> Value {
    movies(radarr, Method::GET, path, Value::Null).await.1
}

async fn see_shows(sonarr: &FakeSonarr, path: &str) -> Value {
    shows(sonarr, Method::GET, path, Value::Null).await.1
}

/// Returns the values of one property of every record, from a page or a list.
fn column(body: &Value, pointer: &str) -> Vec<Value> {
    let records = body.get("records").unwrap_or(body).as_array().unwrap();
    records.iter().map(|record| record.pointer(pointer).cloned().unwrap_or(Value::Null)).collect()
}

async fn check_search(term: &str, expected: &[&str]) {
    let radarr = radarr();
    radarr.add_to_catalog(movie("Dune").year(1984).popularity(20.0));
    radarr.add_to_catalog(movie("Dune").year(2021).popularity(90.0).tmdb(438_631));
    radarr.add_to_catalog(movie("Dune: Part Two").year(2024));
    radarr.add_to_catalog(movie("Blade Runner").year(1982).popularity(50.0));
    radarr.add_to_catalog(movie("Blade Runner 2049").year(2017));
    radarr.add_to_catalog(movie("Spider-Man: No Way Home").year(2021));
    radarr.add_to_catalog(movie("Amélie").year(2001));
    radarr.add_to_catalog(movie("The Atonement").year(2007));
    let path = format!("movie/lookup?{}", serde_urlencoded::to_string([("term", term)]).unwrap());
    let found = see_movies(&radarr, &path).await;
    let names: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| format!("{} {}", text(hit, "title"), hit["year"]))
        .collect();
    assert_eq!(names, expected, "{term}");
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

#[tokio::test]
async fn search_ranks_the_intended_title_first() {
    check_search("dune", &["Dune 2021", "Dune 1984", "Dune: Part Two 2024"]).await;
    check_search("Dune (1984)", &["Dune 1984", "Dune 2021", "Dune: Part Two 2024"]).await;
    check_search("dune part two", &["Dune: Part Two 2024"]).await;
    check_search("blade runner 2049", &["Blade Runner 2049 2017", "Blade Runner 1982"]).await;
    check_search("spiderman", &["Spider-Man: No Way Home 2021"]).await;
    check_search("home spider man", &["Spider-Man: No Way Home 2021"]).await;
    check_search("AMELIE", &["Amélie 2001"]).await;
    check_search("tmdb:438631", &["Dune 2021"]).await;
    check_search("heat", &[]).await;
    check_search("...", &[]).await;
}

#[tokio::test]
async fn only_owned_hits_have_an_id() {
    let radarr = radarr();
    radarr.add(movie("Heat").year(1995).tmdb(949).id(8).size_gb(18.2));
    radarr.add_to_catalog(movie("Heat Wave").year(2022));
    let found = see_movies(&radarr, "movie/lookup?term=heat").await;
    assert_eq!(column(&found, "/id"), [json!(8), Value::Null]);
    assert_eq!(column(&found, "/sizeOnDisk"), [json!(18_200_000_000_u64), Value::Null]);
}

#[tokio::test]
async fn repeated_addition_is_refused() {
    let radarr = radarr();
    radarr.add_to_catalog(movie("Dune").year(2021).tmdb(438_631));
    let body = json!({ "tmdbId": 438_631, "title": "x", "qualityProfileId": 5, "rootFolderPath": "/movies", "tags": [] });
    let (status, made) = movies(&radarr, Method::POST, "movie", body.clone()).await;
    assert_eq!((status, text(&made, "title"), text(&made, "path")), (201, "Dune", "/movies/Dune (2021)"));
    assert_eq!((&made["hasFile"], &made["monitored"]), (&json!(false), &json!(true)));
    assert_eq!(radarr.added_ids(), [438_631]);
    assert_eq!(radarr.added_profile(438_631), Some("Ultra-HD".to_owned()));

    let (status, refusal) = movies(&radarr, Method::POST, "movie", body).await;
    assert_eq!((status, column(&refusal, "/errorCode")), (400, vec![json!("MovieExistsValidator")]));
    assert_eq!((radarr.added_ids(), radarr.post_count()), (vec![438_631], 2));
}

#[tokio::test]
async fn all_errors_of_an_addition_are_returned_together() {
    let body = json!({ "tmdbId": 1, "qualityProfileId": 99, "rootFolderPath": "/nope" });
    let (status, refusal) = movies(&radarr(), Method::POST, "movie", body).await;
    let reasons = ["Quality Profile does not exist", "Root folder '/nope' does not exist"];
    assert_eq!(
        (status, column(&refusal, "/errorMessage")),
        (400, reasons.map(|reason| json!(reason)).to_vec())
    );
}

#[tokio::test]
async fn unknown_catalog_id_and_value_are_refused() {
    let body = json!({ "tvdbId": 1, "title": "X", "qualityProfileId": 4, "rootFolderPath": "/tv" });
    let (_, refusal) = shows(&sonarr(), Method::POST, "series", body).await;
    assert_eq!(refusal[0]["errorMessage"], "A series with this ID was not found. Path: /tv");
    let (status, refusal) =
        movies(&radarr(), Method::POST, "movie", json!({ "minimumAvailability": "soon" })).await;
    assert_eq!((status, refusal["errors"].as_object().unwrap().len()), (400, 1));
}

#[tokio::test]
async fn skip_keeps_the_selected_seasons() {
    let sonarr = sonarr();
    sonarr.add_to_catalog(series("Severance").year(2022).tvdb(371_980).seasons(2));
    let seasons = [(0, false), (1, false), (2, true)]
        .map(|(number, wanted)| json!({ "seasonNumber": number, "monitored": wanted }));
    let body = json!({
        "tvdbId": 371_980, "title": "Severance", "qualityProfileId": 4, "rootFolderPath": "/tv", "monitored": true,
        "seasons": seasons, "addOptions": { "monitor": "skip" },
    });
    let (status, made) = shows(&sonarr, Method::POST, "series", body).await;
    assert_eq!(
        (status, column(&made["seasons"], "/monitored")),
        (201, vec![json!(false), json!(false), json!(true)])
    );
    assert_eq!(made["monitored"], true);
    assert_eq!(sonarr.added_ids(), [371_980]);
}

#[tokio::test]
async fn added_series_is_unmonitored_by_default() {
    let sonarr = sonarr();
    sonarr.add_to_catalog(series("Severance").tvdb(371_980));
    let body =
        json!({ "tvdbId": 371_980, "title": "Severance", "qualityProfileId": 4, "rootFolderPath": "/tv" });
    let (_, made) = shows(&sonarr, Method::POST, "series", body).await;
    assert_eq!(made["monitored"], false);
}

#[tokio::test]
async fn missing_titles_get_the_response_of_each_server() {
    let (radarr, sonarr) = (radarr(), sonarr());
    let heat = radarr.add(movie("Heat"));
    let path = format!("movie/{heat}?deleteFiles=true&addImportExclusion=false");
    assert_eq!(movies(&radarr, Method::DELETE, &path, Value::Null).await, (200, Value::Null));
    assert_eq!(movies(&radarr, Method::DELETE, &path, Value::Null).await.0, 404);
    assert_eq!(movies(&radarr, Method::GET, &path, Value::Null).await.0, 404);
    assert_eq!(shows(&sonarr, Method::DELETE, "series/3", Value::Null).await.0, 500);
    assert_eq!((radarr.removed_ids(), sonarr.removed_ids()), (vec![heat], vec![]));
    assert_eq!(column(&see_movies(&radarr, "movie/lookup?term=heat").await, "/id"), [Value::Null]);
    assert_ne!(radarr.add(movie("Heat")), heat);
}

#[tokio::test]
async fn library_is_filtered_by_catalog_id() {
    let sonarr = sonarr();
    sonarr.add(series("Severance").tvdb(371_980).seasons(2).episodes(19).size_gb(41.0).missing(1).id(3));
    sonarr.add(series("The Bear").tvdb(403_294));
    let found = see_shows(&sonarr, "series?tvdbId=371980").await;
    assert_eq!(column(&found, "/id"), [json!(3)]);
    assert_eq!(column(&found[0]["seasons"], "/statistics/episodeFileCount"), [json!(0), json!(10), json!(8)]);
    assert_eq!(
        column(&found[0]["seasons"], "/statistics/totalEpisodeCount"),
        [json!(2), json!(10), json!(9)]
    );
    assert_eq!(found[0]["statistics"]["episodeFileCount"], 18);
    assert_eq!(found[0]["statistics"]["episodeCount"], 19);
    assert_eq!(found[0]["statistics"]["totalEpisodeCount"], 21);
    assert_eq!(found[0].get("nextAiring"), None);
}

#[tokio::test]
async fn season_pack_has_a_row_per_episode() {
    let sonarr = sonarr();
    sonarr.add(series("The Bear").seasons(2).episodes(18).id(4));
    sonarr.add_to_queue(download("The Bear S02").percent(30).minutes_left(95).size_gb(20.0));
    let path = "queue?page=1&pageSize=200&includeSeries=true&includeEpisode=true&sortKey=timeleft&sortDirection=ascending";
    let queue = see_shows(&sonarr, path).await;
    let numbers: Vec<_> = (1..=9).map(|number| json!(number)).collect();
    assert_eq!(column(&queue, "/episode/episodeNumber"), numbers);
    let first = &queue["records"][0];
    assert!(queue["records"].as_array().unwrap().iter().all(|row| row["downloadId"] == first["downloadId"]));
    assert_eq!(first["size"], json!(20e9));
    assert_eq!(first["sizeleft"], json!(14e9));
    assert_eq!(first["timeleft"], "01:35:00");
    assert_eq!(first["series"]["title"], "The Bear");
}

#[tokio::test]
async fn queue_hides_unknown_items_and_is_paged() {
    let radarr = radarr();
    (1..=12).for_each(|minutes| {
        radarr.add(movie(&format!("Film {minutes}")).id(minutes));
        radarr.add_download(&format!("Film {minutes}"), 10, u32::try_from(minutes).unwrap());
    });
    radarr.add_download("Nobody Knows", 5, 99);
    let first = see_movies(&radarr, "queue").await;
    assert_eq!((&first["totalRecords"], column(&first, "/movieId").len()), (&json!(12), 10));
    assert_eq!(first["records"][0]["timeleft"], "00:12:00");
    let past =
        see_movies(&radarr, "queue?page=9&sortDirection=ascending&includeUnknownMovieItems=true").await;
    assert_eq!(
        (&past["page"], column(&past, "/movieId")),
        (&json!(2), vec![json!(11), json!(12), Value::Null])
    );
}

#[tokio::test]
async fn download_has_the_reason_it_is_stuck_or_failed() {
    let radarr = radarr();
    radarr.add(movie("Heat"));
    radarr.add_stuck_download("Heat", "No files found");
    radarr.add_failed_download("Heat", "Unpacking failed");
    let queue = see_movies(&radarr, "queue?sortDirection=ascending").await;
    assert_eq!(column(&queue, "/trackedDownloadState"), [json!("importPending"), json!("failedPending")]);
    assert_eq!(column(&queue, "/statusMessages/0/messages/0"), [json!("No files found"), Value::Null]);
    assert_eq!(column(&queue, "/errorMessage"), [Value::Null, json!("Unpacking failed")]);
}

#[tokio::test]
async fn plain_titles_select_their_server_and_day() {
    let fakes = FakeServers { radarr: radarr(), sonarr: sonarr() };
    fakes.radarr.add(movie("Paddington"));
    fakes.sonarr.add(series("The Bear").id(4).seasons(4).size_gb(44.0));
    fakes.add_calendar_entry("The Bear S04E02", date(2026, 3, 4));
    fakes.add_download(download("Paddington").percent(62).minutes_left(12));
    fakes.add_calendar_entry("The Bear S04E03", date(2026, 3, 11));
    fakes.add_calendar_entry("Slow Horses S05E02", date(2026, 3, 13));
    fakes.add_calendar_entry("Dune: Part Three (2026)", date(2026, 3, 12));

    let window = "calendar?start=2026-03-06T00:00:00Z&end=2026-03-14&includeSeries=true";
    let episodes = see_shows(&fakes.sonarr, window).await;
    assert_eq!(column(&episodes, "/series/title"), [json!("The Bear"), json!("Slow Horses")]);
    assert_eq!(
        column(&episodes, "/airDateUtc"),
        [json!("2026-03-11T20:00:00Z"), json!("2026-03-13T20:00:00Z")]
    );
    let films = see_movies(&fakes.radarr, window).await;
    assert_eq!(column(&films, "/digitalRelease"), [json!("2026-03-12T00:00:00Z")]);
    assert_eq!(
        (column(&films, "/title"), column(&films, "/year")),
        (vec![json!("Dune: Part Three")], vec![json!(2026)])
    );
    assert_eq!(column(&see_movies(&fakes.radarr, "queue").await, "/timeleft"), [json!("00:12:00")]);
    let aired = see_shows(&fakes.sonarr, "calendar?start=2026-03-04&end=2026-03-05").await;
    assert_eq!(column(&aired, "/hasFile"), [json!(true)]);
    let bear = see_shows(&fakes.sonarr, "series/4").await;
    assert_eq!(bear["nextAiring"], "2026-03-11T20:00:00Z");
}

#[tokio::test]
async fn calendar_without_a_window_covers_two_days() {
    let radarr = radarr();
    radarr.add(movie("Soon").cinema(date(2026, 3, 7)));
    radarr.add(movie("Later").physical(date(2026, 3, 20)));
    radarr.add(movie("Unwanted").digital(date(2026, 3, 7)).unmonitored());
    assert_eq!(column(&see_movies(&radarr, "calendar").await, "/title"), [json!("Soon")]);
    let wide = "calendar?start=2026-03-01&end=2026-03-31&unmonitored=true";
    assert_eq!(column(&see_movies(&radarr, wide).await, "/title").len(), 3);
}

#[tokio::test]
async fn history_is_filtered_by_date_and_event() {
    let sonarr = sonarr();
    sonarr.add(series("The Bear").seasons(2).episodes(6));
    sonarr.add_import("The Bear S01E01", "2026-01-01T10:00:00Z".parse().unwrap());
    sonarr.add_import("The Bear S02", "2026-03-05T10:00:00Z".parse().unwrap());
    let path = "history/since?date=2026-03-01T00:00:00Z&includeSeries=true&includeEpisode=true";
    let imports = see_shows(&sonarr, &format!("{path}&eventType=downloadFolderImported")).await;
    assert_eq!(column(&imports, "/episode/episodeNumber"), [json!(1), json!(2), json!(3)]);
    assert_eq!(column(&imports, "/data/releaseGroup"), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(column(&see_shows(&sonarr, path).await, "/eventType").len(), 6);
}

#[tokio::test]
async fn wrong_key_gets_an_empty_401_and_changes_nothing() {
    let radarr = radarr();
    radarr.add(movie("Heat").id(8));
    let response =
        send(radarr.in_process(), request(Method::DELETE, "/api/v3/movie/8", "wrong", &Value::Null))
            .await
            .unwrap();
    assert_eq!((response.status(), response.body().len()), (StatusCode::UNAUTHORIZED, 0));
    assert!(response.headers().get("x-application-version").is_none());
    assert!(radarr.title(8).is_some());
}

#[tokio::test]
async fn other_paths_are_not_part_of_the_api() {
    let radarr = radarr();
    let login = send(radarr.in_process(), request(Method::GET, "/movies/api/v3/movie", "", &Value::Null))
        .await
        .unwrap();
    assert_eq!(
        (login.status(), login.headers()["location"].as_bytes()),
        (StatusCode::FOUND, &b"/login?returnUrl=/movies/api/v3/movie"[..])
    );
    assert_eq!(
        answer(radarr.in_process(), request(Method::GET, "/ping", "", &Value::Null)).await,
        (200, json!({ "status": "OK" }))
    );
    assert_eq!(movies(&radarr, Method::GET, "nothing", Value::Null).await, (404, Value::Null));
}

#[tokio::test]
async fn empty_search_term_is_answered_as_an_outage() {
    assert_eq!(movies(&radarr(), Method::GET, "movie/lookup?term=", Value::Null).await.0, 503);
    assert_eq!(shows(&sonarr(), Method::GET, "series/lookup", Value::Null).await.0, 503);
}

#[tokio::test]
async fn each_server_has_its_name_profiles_and_folders() {
    let sonarr = sonarr();
    sonarr.add_root_folder("/offline", None);
    assert_eq!(see_shows(&sonarr, "system/status").await["appName"], "Sonarr");
    assert_eq!(
        column(&see_shows(&sonarr, "qualityprofile").await, "/name"),
        [json!("HD-1080p"), json!("Ultra-HD")]
    );
    let folders = see_shows(&sonarr, "rootfolder").await;
    assert_eq!(column(&folders, "/path"), [json!("/tv"), json!("/offline")]);
    assert_eq!(column(&folders, "/freeSpace"), [json!(1_200_000_000_000_u64), Value::Null]);
    assert_eq!(see_shows(&sonarr, "health").await, json!([]));
}

#[tokio::test]
async fn faults_occur_once_in_order() {
    let radarr = radarr();
    radarr.fail_next_n(2, 500);
    radarr.fail_next(503);
    radarr.return_html_next();
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(movies(&radarr, Method::GET, "movie", Value::Null).await);
    }
    let statuses: Vec<_> = seen.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [500, 500, 503, 200, 200]);
    assert_eq!((&seen[3].1, &seen[4].1), (&Value::Null, &json!([])));
}

#[tokio::test]
async fn server_that_is_down_refuses_until_it_is_up() {
    let sonarr = sonarr();
    sonarr.set_down(true);
    let starting = json!({ "errorMessage": "Sonarr is starting up, please try again later" });
    assert_eq!(shows(&sonarr, Method::GET, "series", Value::Null).await, (503, starting));
    sonarr.set_down(false);
    assert_eq!(shows(&sonarr, Method::GET, "series", Value::Null).await, (200, json!([])));
}

async fn expect_silence<D: Clone>(fake: &FakeServer<D>, peer: InProcess, path: &str) {
    let outcome = send(peer, request(Method::DELETE, path, fake.api_key(), &Value::Null)).await;
    assert!(matches!(outcome, Err(HttpError::TimedOut(_))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn lost_response_is_executed_and_a_hang_is_not() {
    let sonarr = sonarr();
    sonarr.add(series("Severance").id(3));
    sonarr.hang_next();
    expect_silence(&sonarr, sonarr.in_process(), "/api/v3/series/3").await;
    assert_eq!(sonarr.removed_ids(), Vec::<i64>::new());
    sonarr.drop_next_response();
    expect_silence(&sonarr, sonarr.in_process(), "/api/v3/series/3").await;
    assert_eq!(sonarr.removed_ids(), [3]);
}

#[tokio::test]
async fn library_can_change_outside_the_api() {
    let radarr = radarr();
    let dune = radarr.add(movie("Dune").size_gb(21.4));
    radarr.edit(dune, |item| item.size_bytes = 1);
    assert_eq!(see_movies(&radarr, &format!("movie/{dune}")).await["sizeOnDisk"], 1);
    radarr.remove(dune);
    assert_eq!((radarr.title(dune), radarr.removed_ids()), (None, vec![]));
}

#[tokio::test]
async fn demo_library_has_data_for_every_question() {
    let (radarr, sonarr) = create_demo_servers(now());
    assert_eq!(column(&see_movies(&radarr, "movie").await, "/id").len(), 156);
    assert_eq!(column(&see_shows(&sonarr, "series").await, "/id").len(), 74);
    let queue = see_movies(&radarr, "queue?sortDirection=ascending&includeMovie=true").await;
    let titles = ["Oppenheimer", "The Wild Robot", "Chef", "Past Lives"].map(|title| json!(title));
    assert_eq!(column(&queue, "/movie/title"), titles);
    let queue = see_shows(&sonarr, "queue?sortDirection=ascending&pageSize=200").await;
    assert_eq!(column(&queue, "/seasonNumber"), [[5].as_slice(), &[1; 8]].concat());
    let week = "start=2026-03-06&end=2026-03-13&includeSeries=true";
    assert_eq!(column(&see_movies(&radarr, &format!("calendar?{week}")).await, "/title").len(), 2);
    let shows = ["Slow Horses", "Last Week Tonight", "Only Murders in the Building", "Silo", "The Bear"];
    let episodes = see_shows(&sonarr, &format!("calendar?{week}")).await;
    assert_eq!(column(&episodes, "/series/title"), shows.map(|title| json!(title)));
    let since = "history/since?date=2026-02-27&eventType=downloadFolderImported";
    assert_eq!(column(&see_movies(&radarr, since).await, "/movieId").len(), 3);
    assert_eq!(column(&see_shows(&sonarr, since).await, "/seriesId").len(), 8);
    let twins = see_movies(&radarr, "movie/lookup?term=the+lion+king").await;
    assert_eq!(column(&twins, "/year"), [json!(2019), json!(1994)]);
    let seinfeld = see_shows(&sonarr, "series/lookup?term=seinfeld").await;
    assert_eq!(seinfeld[0]["statistics"]["seasonCount"], 9);
}
