//! Fake Sonarr: the routes and their responses.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::activity::parse_title_episodes as meant_by;
use super::fake_server::{CalendarFixture, FakeLibraryState, FakeServer, ServerFlavor};
use super::media_fixtures::{FakeSeries, SeriesDetails};
use super::request_guard::in_process;
use super::responses::{
    RequestQuery, ValidationFailure, created_response, exception_response, malformed_body_response,
    merge_json, not_found, ok_response, page_response, query_flag, query_window, unknown_id,
    validation_response, wire_time,
};
use super::search::search_catalog;
use super::series_json::{
    catalog_series_json, episode_id, episode_json, episode_numbers, owned_series_json, settings_of,
    stray_series,
};
use super::{activity_api, episode_api, series_api, server_api};
use crate::clock::Clock;
use crate::http::InProcess;

pub(super) const TYPES: [&str; 3] = ["standard", "daily", "anime"];
const MONITORS: [&str; 14] = [
    "unknown",
    "all",
    "future",
    "missing",
    "existing",
    "firstSeason",
    "lastSeason",
    "latestSeason",
    "pilot",
    "recent",
    "monitorSpecials",
    "unmonitorSpecials",
    "none",
    "skip",
];

pub type FakeSonarr = FakeServer<SeriesDetails>;

impl FakeSonarr {
    pub fn new() -> Self {
        Self::with_clock(Clock::System)
    }

    /// Creates a server that uses this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self::empty(ServerFlavor::Sonarr, clock)
    }

    /// Returns the router of the server, for a socket.
    pub fn router(&self) -> Router {
        let api = Router::new()
            .route("/series", get(list_series).post(post_series))
            .route("/series/lookup", get(lookup_series))
            .route("/series/{id}", get(get_series).put(series_api::replace_series).delete(delete_series))
            .route("/queue", get(list_queue))
            .route("/calendar", get(list_calendar))
            .with_state(self.clone())
            .merge(series_api::routes(self.clone()))
            .merge(episode_api::routes(self.clone()))
            .merge(activity_api::routes(self.clone()))
            .merge(server_api::routes(self.clone()));
        self.gate.guard_router(api)
    }

    /// Returns the handler of the server, for calls without a socket.
    pub fn in_process(&self) -> InProcess {
        in_process(self.router())
    }

    /// Adds an air time for an episode such as `The Bear S04E03`. An episode whose series is not in the library appears
    /// in the calendar too.
    pub fn add_calendar_entry(&self, title: &str, airs: Timestamp) {
        self.lock_state().calendar.push(CalendarFixture { title: title.to_owned(), at: airs });
    }
}

impl Default for FakeSonarr {
    fn default() -> Self {
        Self::new()
    }
}

async fn list_series(State(sonarr): State<FakeSonarr>, Query(query): Query<RequestQuery>) -> Response {
    let wanted = query.get("tvdbId").and_then(|id| id.parse::<i64>().ok());
    let world = sonarr.lock_state();
    let found = world.library.iter().filter(|item| wanted.is_none_or(|id| item.catalog_id == id));
    ok_response(found.map(|item| owned_series_json(&world, item)).collect())
}

async fn get_series(State(sonarr): State<FakeSonarr>, Path(id): Path<String>) -> Response {
    let world = sonarr.lock_state();
    let found = world.library.iter().find(|item| item.id.to_string() == id);
    found.map_or_else(not_found, |item| ok_response(owned_series_json(&world, item)))
}

async fn lookup_series(State(sonarr): State<FakeSonarr>, Query(query): Query<RequestQuery>) -> Response {
    let term = query.get("term").map_or("", |term| term.trim());
    if term.is_empty() {
        let message = "Search for '' failed. Unable to communicate with SkyHook.";
        return exception_response(StatusCode::SERVICE_UNAVAILABLE, message);
    }
    let world = sonarr.lock_state();
    let describe = |found: &FakeSeries| match world.in_library(found.catalog_id) {
        // The real Sonarr returns no sizes here, not even for a series in its library.
        Some(item) => {
            let mut body = catalog_series_json(item);
            merge_json(&mut body, settings_of(&world, item));
            body
        }
        None => catalog_series_json(found),
    };
    ok_response(search_catalog(&world.catalog, term).into_iter().map(describe).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeriesAdditionBody {
    #[serde(default)]
    tvdb_id: i64,
    #[serde(default)]
    title: String,
    #[serde(default)]
    quality_profile_id: i64,
    root_folder_path: Option<String>,
    #[serde(default)]
    monitored: bool,
    series_type: Option<String>,
    monitor_new_items: Option<String>,
    #[serde(default)]
    seasons: Vec<SeasonChoice>,
    #[serde(default)]
    add_options: SeriesAddOptions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeasonChoice {
    season_number: u32,
    #[serde(default)]
    monitored: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeriesAddOptions {
    monitor: Option<String>,
    #[serde(default)]
    search_for_missing_episodes: bool,
}

async fn post_series(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(addition) = serde_json::from_slice::<SeriesAdditionBody>(&body) else {
        return malformed_body_response("$");
    };
    let kind = TYPES.into_iter().find(|kind| *kind == addition.series_type.as_deref().unwrap_or("standard"));
    let Some(kind) = kind else { return malformed_body_response("$.seriesType") };
    if addition.add_options.monitor.as_deref().is_some_and(|given| !MONITORS.contains(&given)) {
        return malformed_body_response("$.addOptions.monitor");
    }
    let mut world = sonarr.lock_state();
    let failures = validate_addition(&world, &addition);
    if !failures.is_empty() {
        return validation_response(&failures);
    }
    let root = addition.root_folder_path.clone().unwrap_or_default();
    let Some(mut item) = world.catalog.iter().find(|item| item.catalog_id == addition.tvdb_id).cloned()
    else {
        return validation_response(&[unknown_id("TvdbId", "series", &root, addition.tvdb_id)]);
    };
    item.monitored = addition.monitored;
    item.details.kind = kind;
    item.details.new_seasons = addition.monitor_new_items.as_deref() != Some("none");
    choose_seasons(&mut item, &addition, world.clock.now());
    let id = world.add_by_request(item, addition.quality_profile_id, &root);
    if addition.add_options.search_for_missing_episodes {
        world.search_missing(id);
    }
    created_response(
        world
            .library
            .iter()
            .find(|item| item.id == id)
            .map_or(Value::Null, |item| owned_series_json(&world, item)),
    )
}

fn validate_addition(
    world: &FakeLibraryState<SeriesDetails>,
    addition: &SeriesAdditionBody,
) -> Vec<ValidationFailure> {
    let mut failures =
        world.validate_addition(addition.quality_profile_id, addition.root_folder_path.as_deref());
    if addition.title.is_empty() {
        failures.push(ValidationFailure {
            property: "Title",
            message: "'Title' must not be empty.".to_owned(),
            attempted: json!(addition.title),
            code: "NotEmptyValidator",
        });
    }
    if world.in_library(addition.tvdb_id).is_some() {
        failures.push(ValidationFailure {
            property: "TvdbId",
            message: "This series has already been added".to_owned(),
            attempted: json!(addition.tvdb_id),
            code: "SeriesExistsValidator",
        });
    }
    failures
}

/// Sets the monitored seasons. With `skip`, the request lists the seasons. Any other preset chooses them by its own
/// rule.
fn choose_seasons(item: &mut FakeSeries, addition: &SeriesAdditionBody, now: Timestamp) {
    let chosen = |number: u32| {
        addition.seasons.iter().any(|choice| choice.season_number == number && choice.monitored)
    };
    item.details.specials_monitored = chosen(0);
    match addition.add_options.monitor.as_deref() {
        None | Some("skip") => {
            for season in &mut item.details.seasons {
                season.monitored = chosen(season.number);
            }
        }
        Some(preset) => series_api::apply_preset(item, preset, now),
    }
}

async fn delete_series(State(sonarr): State<FakeSonarr>, Path(id): Path<i64>) -> Response {
    let mut world = sonarr.lock_state();
    match world.remove_title(id) {
        Some(_) => {
            world.removed.push(id);
            StatusCode::OK.into_response()
        }
        // The real Sonarr has no better response for a series that does not exist.
        None => activity_api::unknown_rows(),
    }
}

async fn list_queue(State(sonarr): State<FakeSonarr>, Query(query): Query<RequestQuery>) -> Response {
    let world = sonarr.lock_state();
    let mut rows = Vec::new();
    for download in world.in_queue_order(&query) {
        let meant = meant_by(&download.title);
        let Some((item, meant)) = meant.and_then(|meant| Some((world.title_named(meant.show)?, meant)))
        else {
            if query_flag(&query, "includeUnknownSeriesItems") {
                rows.push(download.queue_row_json(0));
            }
            continue;
        };
        for number in episode_numbers(item, &meant) {
            let mut row = download.queue_row_json(number);
            row["seriesId"] = json!(item.id);
            row["seasonNumber"] = json!(meant.season);
            row["episodeId"] = json!(episode_id(item, meant.season, number));
            let listed = episode_json(&world, item, meant.season, number);
            row["episodeHasFile"] = listed["hasFile"].clone();
            if query_flag(&query, "includeSeries") {
                row["series"] = owned_series_json(&world, item);
            }
            if query_flag(&query, "includeEpisode") {
                row["episode"] = listed;
            }
            rows.push(row);
        }
    }
    page_response(rows, "timeleft", &query)
}

async fn list_calendar(State(sonarr): State<FakeSonarr>, Query(query): Query<RequestQuery>) -> Response {
    let world = sonarr.lock_state();
    let (start, end) = query_window(&query, world.clock.now());
    let mut entries: Vec<_> = world.calendar.iter().enumerate().collect();
    entries.sort_by_key(|(_, entry)| entry.at);
    let mut shown = Vec::new();
    for (place, entry) in entries.into_iter().filter(|(_, entry)| (start..=end).contains(&entry.at)) {
        let Some(meant) = meant_by(&entry.title) else { continue };
        let item = world.title_named(meant.show).cloned().unwrap_or_else(|| stray_series(meant.show, place));
        if !item.monitored && !query_flag(&query, "unmonitored") {
            continue;
        }
        for number in episode_numbers(&item, &meant) {
            let mut body = episode_json(&world, &item, meant.season, number);
            body["airDate"] = json!(entry.at.strftime("%Y-%m-%d").to_string());
            body["airDateUtc"] = json!(wire_time(entry.at));
            if entry.at > world.clock.now() {
                // An episode that has not aired cannot be on disk, even if the season appears complete.
                merge_json(&mut body, json!({ "hasFile": false, "episodeFileId": 0 }));
            }
            if query_flag(&query, "includeSeries") {
                body["series"] = owned_series_json(&world, &item);
            }
            shown.push(body);
        }
    }
    ok_response(shown.into())
}
