//! Fake Sonarr: server identity, additions, queue and calendar.

use axum::Router;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{get, post, put};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::activity::parse_title_episodes;
use super::fake_server::{CalendarFixture, FakeLibraryState, FakeServer, ServerIdentity};
use super::library_api::LibraryKind;
use super::media_fixtures::{FakeSeries, SeriesDetails};
use super::responses::{
    RequestQuery, ValidationFailure, malformed_body_response, merge_json, ok_response, page_response,
    query_flag, query_window, unknown_catalog_id, validation_response, wire_time,
};
use super::series_json::{
    catalog_series_json, episode_id, episode_json, episode_numbers, library_fields_json, library_series_json,
    series_outside_library,
};
use super::{activity_api, episode_api, series_api};

pub(super) const SERIES_TYPES: [&str; 3] = ["standard", "daily", "anime"];
const MONITOR_OPTIONS: [&str; 14] = [
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
    /// Adds an air time for an episode such as `The Bear S04E03`. Its series need not be in the library.
    pub fn add_calendar_entry(&self, title: &str, airs_at: Timestamp) {
        self.lock_state().calendar.push(CalendarFixture { title: title.to_owned(), at: airs_at });
    }
}

impl LibraryKind for SeriesDetails {
    const SERVER: ServerIdentity = ServerIdentity {
        name: "Sonarr",
        version: "4.0.19.2979",
        api_key: "facade00facade00facade00facade02",
        root: "/tv",
        path: "series",
        catalog_id: "tvdbId",
        library_id: "seriesId",
        catalog_service: "SkyHook",
        file_deleted: "episodeFileDeleted",
        events: &["onImportComplete", "onSeriesAdd", "onSeriesDelete", "onEpisodeFileDelete"],
    };

    fn kind_routes(sonarr: FakeSonarr) -> Router {
        Router::new()
            .route("/series", post(post_series))
            .route("/series/{id}", put(series_api::replace_series))
            .route("/queue", get(list_queue))
            .route("/calendar", get(list_calendar))
            .with_state(sonarr.clone())
            .merge(series_api::routes(sonarr.clone()))
            .merge(episode_api::routes(sonarr))
    }

    fn library_title_json(state: &FakeLibraryState<Self>, series: &FakeSeries) -> Value {
        library_series_json(state, series)
    }

    /// Returns no statistics, like the real Sonarr even for a series in its library.
    fn library_hit_json(state: &FakeLibraryState<Self>, series: &FakeSeries) -> Value {
        let mut body = catalog_series_json(series);
        merge_json(&mut body, library_fields_json(state, series));
        body
    }

    fn catalog_title_json(series: &FakeSeries) -> Value {
        catalog_series_json(series)
    }

    fn history_records(state: &FakeLibraryState<Self>, query: &RequestQuery) -> Vec<(&'static str, Value)> {
        episode_api::history_records(state, query)
    }

    /// Builds the response of the real Sonarr, which is a server error.
    fn unknown_title(_id: i64) -> Response {
        activity_api::unknown_ids_response()
    }
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
    let requested_type = addition.series_type.as_deref().unwrap_or("standard");
    let Some(series_type) = SERIES_TYPES.into_iter().find(|known| *known == requested_type) else {
        return malformed_body_response("$.seriesType");
    };
    if addition.add_options.monitor.as_deref().is_some_and(|option| !MONITOR_OPTIONS.contains(&option)) {
        return malformed_body_response("$.addOptions.monitor");
    }
    let mut state = sonarr.lock_state();
    let failures = validate_addition(&state, &addition);
    if !failures.is_empty() {
        return validation_response(&failures);
    }
    let root = addition.root_folder_path.clone().unwrap_or_default();
    let Some(mut series) = state.catalog.iter().find(|series| series.catalog_id == addition.tvdb_id).cloned()
    else {
        return validation_response(&[unknown_catalog_id("TvdbId", "series", &root, addition.tvdb_id)]);
    };
    series.monitored = addition.monitored;
    series.details.series_type = series_type;
    series.details.new_seasons = addition.monitor_new_items.as_deref() != Some("none");
    monitor_seasons(&mut series, &addition, state.clock.now());
    let id = state.add_by_request(series, addition.quality_profile_id, &root);
    if addition.add_options.search_for_missing_episodes {
        state.search_missing(id);
    }
    state.addition_response(id)
}

fn validate_addition(
    state: &FakeLibraryState<SeriesDetails>,
    addition: &SeriesAdditionBody,
) -> Vec<ValidationFailure> {
    let mut failures =
        state.validate_addition(addition.quality_profile_id, addition.root_folder_path.as_deref());
    if addition.title.is_empty() {
        failures.push(ValidationFailure {
            property: "Title",
            message: "'Title' must not be empty.".to_owned(),
            attempted: json!(addition.title),
            code: "NotEmptyValidator",
        });
    }
    if state.find_by_catalog_id(addition.tvdb_id).is_some() {
        failures.push(ValidationFailure {
            property: "TvdbId",
            message: "This series has already been added".to_owned(),
            attempted: json!(addition.tvdb_id),
            code: "SeriesExistsValidator",
        });
    }
    failures
}

/// Sets the monitored seasons: those of the request for the preset `skip`, or those that another preset selects.
fn monitor_seasons(series: &mut FakeSeries, addition: &SeriesAdditionBody, now: Timestamp) {
    let is_requested = |number: u32| {
        addition.seasons.iter().any(|choice| choice.season_number == number && choice.monitored)
    };
    series.details.specials_monitored = is_requested(0);
    match addition.add_options.monitor.as_deref() {
        None | Some("skip") => {
            for season in &mut series.details.seasons {
                season.monitored = is_requested(season.number);
            }
        }
        Some(preset) => series_api::apply_preset(series, preset, now),
    }
}

async fn list_queue(State(sonarr): State<FakeSonarr>, Query(query): Query<RequestQuery>) -> Response {
    let state = sonarr.lock_state();
    let mut rows = Vec::new();
    for download in state.sorted_downloads(&query) {
        let episodes = parse_title_episodes(&download.title);
        let Some((series, episodes)) =
            episodes.and_then(|parsed| Some((state.find_title(parsed.series)?, parsed)))
        else {
            if query_flag(&query, "includeUnknownSeriesItems") {
                rows.push(download.queue_row_json(0));
            }
            continue;
        };
        for number in episode_numbers(series, &episodes) {
            let mut row = download.queue_row_json(number);
            row["seriesId"] = json!(series.id);
            row["seasonNumber"] = json!(episodes.season);
            row["episodeId"] = json!(episode_id(series, episodes.season, number));
            let listed = episode_json(&state, series, episodes.season, number);
            row["episodeHasFile"] = listed["hasFile"].clone();
            if query_flag(&query, "includeSeries") {
                row["series"] = library_series_json(&state, series);
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
    let state = sonarr.lock_state();
    let (start, end) = query_window(&query, state.clock.now());
    let mut entries: Vec<_> = state.calendar.iter().enumerate().collect();
    entries.sort_by_key(|(_, entry)| entry.at);
    let mut episodes_json = Vec::new();
    for (index, entry) in entries.into_iter().filter(|(_, entry)| (start..=end).contains(&entry.at)) {
        let Some(episodes) = parse_title_episodes(&entry.title) else { continue };
        let series = state
            .find_title(episodes.series)
            .cloned()
            .unwrap_or_else(|| series_outside_library(episodes.series, index));
        if !series.monitored && !query_flag(&query, "unmonitored") {
            continue;
        }
        for number in episode_numbers(&series, &episodes) {
            let mut body = episode_json(&state, &series, episodes.season, number);
            body["airDate"] = json!(entry.at.strftime("%Y-%m-%d").to_string());
            body["airDateUtc"] = json!(wire_time(entry.at));
            if entry.at > state.clock.now() {
                // An episode that has not aired is not on disk, even if its season appears complete.
                merge_json(&mut body, json!({ "hasFile": false, "episodeFileId": 0 }));
            }
            if query_flag(&query, "includeSeries") {
                body["series"] = library_series_json(&state, &series);
            }
            episodes_json.push(body);
        }
    }
    ok_response(episodes_json.into())
}
