//! Fake Sonarr: the routes and their responses.

use axum::Router;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{get, post, put};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::activity::parse_title_episodes as meant_by;
use super::fake_server::{CalendarFixture, FakeLibraryState, FakeServer, ServerIdentity};
use super::library_api::LibraryKind;
use super::media_fixtures::{FakeSeries, SeriesDetails};
use super::responses::{
    RequestQuery, ValidationFailure, malformed_body_response, merge_json, ok_response, page_response,
    query_flag, query_window, unknown_id, validation_response, wire_time,
};
use super::series_json::{
    catalog_series_json, episode_id, episode_json, episode_numbers, owned_series_json, settings_of,
    stray_series,
};
use super::{activity_api, episode_api, series_api};

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
    /// Adds an air time for an episode such as `The Bear S04E03`. An episode whose series is not in the library appears
    /// in the calendar too.
    pub fn add_calendar_entry(&self, title: &str, airs: Timestamp) {
        self.lock_state().calendar.push(CalendarFixture { title: title.to_owned(), at: airs });
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

    fn own_routes(sonarr: FakeSonarr) -> Router {
        Router::new()
            .route("/series", post(post_series))
            .route("/series/{id}", put(series_api::replace_series))
            .route("/queue", get(list_queue))
            .route("/calendar", get(list_calendar))
            .with_state(sonarr.clone())
            .merge(series_api::routes(sonarr.clone()))
            .merge(episode_api::routes(sonarr))
    }

    fn owned_json(library: &FakeLibraryState<Self>, item: &FakeSeries) -> Value {
        owned_series_json(library, item)
    }

    /// Returns no sizes, as the real Sonarr does even for a series in its library.
    fn owned_hit_json(library: &FakeLibraryState<Self>, item: &FakeSeries) -> Value {
        let mut body = catalog_series_json(item);
        merge_json(&mut body, settings_of(library, item));
        body
    }

    fn catalog_json(item: &FakeSeries) -> Value {
        catalog_series_json(item)
    }

    fn history_records(library: &FakeLibraryState<Self>, query: &RequestQuery) -> Vec<(&'static str, Value)> {
        episode_api::history_records(library, query)
    }

    /// Builds the response of the real Sonarr, which has no better one.
    fn unknown_title(_id: i64) -> Response {
        activity_api::unknown_rows()
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
    let kind = TYPES.into_iter().find(|kind| *kind == addition.series_type.as_deref().unwrap_or("standard"));
    let Some(kind) = kind else { return malformed_body_response("$.seriesType") };
    if addition.add_options.monitor.as_deref().is_some_and(|given| !MONITORS.contains(&given)) {
        return malformed_body_response("$.addOptions.monitor");
    }
    let mut library = sonarr.lock_state();
    let failures = validate_addition(&library, &addition);
    if !failures.is_empty() {
        return validation_response(&failures);
    }
    let root = addition.root_folder_path.clone().unwrap_or_default();
    let Some(mut item) = library.catalog.iter().find(|item| item.catalog_id == addition.tvdb_id).cloned()
    else {
        return validation_response(&[unknown_id("TvdbId", "series", &root, addition.tvdb_id)]);
    };
    item.monitored = addition.monitored;
    item.details.kind = kind;
    item.details.new_seasons = addition.monitor_new_items.as_deref() != Some("none");
    choose_seasons(&mut item, &addition, library.clock.now());
    let id = library.add_by_request(item, addition.quality_profile_id, &root);
    if addition.add_options.search_for_missing_episodes {
        library.search_missing(id);
    }
    library.addition_response(id)
}

fn validate_addition(
    library: &FakeLibraryState<SeriesDetails>,
    addition: &SeriesAdditionBody,
) -> Vec<ValidationFailure> {
    let mut failures =
        library.validate_addition(addition.quality_profile_id, addition.root_folder_path.as_deref());
    if addition.title.is_empty() {
        failures.push(ValidationFailure {
            property: "Title",
            message: "'Title' must not be empty.".to_owned(),
            attempted: json!(addition.title),
            code: "NotEmptyValidator",
        });
    }
    if library.in_library(addition.tvdb_id).is_some() {
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

async fn list_queue(State(sonarr): State<FakeSonarr>, Query(query): Query<RequestQuery>) -> Response {
    let library = sonarr.lock_state();
    let mut rows = Vec::new();
    for download in library.in_queue_order(&query) {
        let meant = meant_by(&download.title);
        let Some((item, meant)) = meant.and_then(|meant| Some((library.title_named(meant.show)?, meant)))
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
            let listed = episode_json(&library, item, meant.season, number);
            row["episodeHasFile"] = listed["hasFile"].clone();
            if query_flag(&query, "includeSeries") {
                row["series"] = owned_series_json(&library, item);
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
    let library = sonarr.lock_state();
    let (start, end) = query_window(&query, library.clock.now());
    let mut entries: Vec<_> = library.calendar.iter().enumerate().collect();
    entries.sort_by_key(|(_, entry)| entry.at);
    let mut shown = Vec::new();
    for (index, entry) in entries.into_iter().filter(|(_, entry)| (start..=end).contains(&entry.at)) {
        let Some(meant) = meant_by(&entry.title) else { continue };
        let item =
            library.title_named(meant.show).cloned().unwrap_or_else(|| stray_series(meant.show, index));
        if !item.monitored && !query_flag(&query, "unmonitored") {
            continue;
        }
        for number in episode_numbers(&item, &meant) {
            let mut body = episode_json(&library, &item, meant.season, number);
            body["airDate"] = json!(entry.at.strftime("%Y-%m-%d").to_string());
            body["airDateUtc"] = json!(wire_time(entry.at));
            if entry.at > library.clock.now() {
                // An episode that has not aired cannot be on disk, even if the season appears complete.
                merge_json(&mut body, json!({ "hasFile": false, "episodeFileId": 0 }));
            }
            if query_flag(&query, "includeSeries") {
                body["series"] = owned_series_json(&library, &item);
            }
            shown.push(body);
        }
    }
    ok_response(shown.into())
}
