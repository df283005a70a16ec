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

use super::activity::episodes as meant_by;
use super::answers::{
    Asked, Failure, created, flag, merge, misshapen, not_found, ok, page, refused, thrown, unknown_id,
    window, wire_time,
};
use super::gate::in_process;
use super::item::{FakeSeries, Show};
use super::search::search;
use super::series_json::{catalogued, episode, episode_id, numbers, owned, settings_of, stray};
use super::world::{App, Dated, Fake, World};
use super::{activity_api, episodes, settings, shows};
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

pub type FakeSonarr = Fake<Show>;

impl FakeSonarr {
    pub fn new() -> Self {
        Self::at(Clock::System)
    }

    /// Creates a server that uses this clock.
    pub fn at(clock: Clock) -> Self {
        Self::empty(App::Sonarr, clock)
    }

    /// Router of the server, for a socket.
    pub fn router(&self) -> Router {
        let api = Router::new()
            .route("/series", get(list).post(add))
            .route("/series/lookup", get(lookup))
            .route("/series/{id}", get(one).put(shows::replace).delete(delete))
            .route("/queue", get(queue))
            .route("/calendar", get(calendar))
            .with_state(self.clone())
            .merge(shows::routes(self.clone()))
            .merge(episodes::routes(self.clone()))
            .merge(activity_api::routes(self.clone()))
            .merge(settings::routes(self.clone()));
        self.gate.guard(api)
    }

    /// Handler of the server, for calls without a socket.
    pub fn in_process(&self) -> InProcess {
        in_process(self.router())
    }

    /// Adds an air time for an episode such as `The Bear S04E03`; an episode whose series is not in the library appears
    /// in the calendar too.
    pub fn calendar(&self, title: &str, airs: Timestamp) {
        self.lock().calendar.push(Dated { title: title.to_owned(), at: airs });
    }
}

impl Default for FakeSonarr {
    fn default() -> Self {
        Self::new()
    }
}

async fn list(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    let wanted = query.get("tvdbId").and_then(|id| id.parse::<i64>().ok());
    let world = sonarr.lock();
    let found = world.library.iter().filter(|item| wanted.is_none_or(|id| item.catalog_id == id));
    ok(found.map(|item| owned(&world, item)).collect())
}

async fn one(State(sonarr): State<FakeSonarr>, Path(id): Path<String>) -> Response {
    let world = sonarr.lock();
    let found = world.library.iter().find(|item| item.id.to_string() == id);
    found.map_or_else(not_found, |item| ok(owned(&world, item)))
}

async fn lookup(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    let term = query.get("term").map_or("", |term| term.trim());
    if term.is_empty() {
        let message = "Search for '' failed. Unable to communicate with SkyHook.";
        return thrown(StatusCode::SERVICE_UNAVAILABLE, message);
    }
    let world = sonarr.lock();
    let describe = |found: &FakeSeries| match world.in_library(found.catalog_id) {
        // The real Sonarr returns no sizes here, not even for a series in its library.
        Some(item) => {
            let mut body = catalogued(item);
            merge(&mut body, settings_of(&world, item));
            body
        }
        None => catalogued(found),
    };
    ok(search(&world.catalog, term).into_iter().map(describe).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Addition {
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
    add_options: AddOptions,
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
struct AddOptions {
    monitor: Option<String>,
    #[serde(default)]
    search_for_missing_episodes: bool,
}

async fn add(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(addition) = serde_json::from_slice::<Addition>(&body) else { return misshapen("$") };
    let kind = TYPES.into_iter().find(|kind| *kind == addition.series_type.as_deref().unwrap_or("standard"));
    let Some(kind) = kind else { return misshapen("$.seriesType") };
    if addition.add_options.monitor.as_deref().is_some_and(|given| !MONITORS.contains(&given)) {
        return misshapen("$.addOptions.monitor");
    }
    let mut world = sonarr.lock();
    let failures = check(&world, &addition);
    if !failures.is_empty() {
        return refused(&failures);
    }
    let root = addition.root_folder_path.clone().unwrap_or_default();
    let Some(mut item) = world.catalog.iter().find(|item| item.catalog_id == addition.tvdb_id).cloned()
    else {
        return refused(&[unknown_id("TvdbId", "series", &root, addition.tvdb_id)]);
    };
    item.monitored = addition.monitored;
    item.details.kind = kind;
    item.details.new_seasons = addition.monitor_new_items.as_deref() != Some("none");
    choose_seasons(&mut item, &addition, world.clock.now());
    let id = world.add_by_request(item, addition.quality_profile_id, &root);
    if addition.add_options.search_for_missing_episodes {
        world.search_missing(id);
    }
    created(world.library.iter().find(|item| item.id == id).map_or(Value::Null, |item| owned(&world, item)))
}

fn check(world: &World<Show>, addition: &Addition) -> Vec<Failure> {
    let mut failures = world.check(addition.quality_profile_id, addition.root_folder_path.as_deref());
    if addition.title.is_empty() {
        failures.push(Failure {
            property: "Title",
            message: "'Title' must not be empty.".to_owned(),
            attempted: json!(addition.title),
            code: "NotEmptyValidator",
        });
    }
    if world.in_library(addition.tvdb_id).is_some() {
        failures.push(Failure {
            property: "TvdbId",
            message: "This series has already been added".to_owned(),
            attempted: json!(addition.tvdb_id),
            code: "SeriesExistsValidator",
        });
    }
    failures
}

/// Sets the monitored seasons. With `skip`, the request lists the seasons; any other preset chooses them by its own
/// rule.
fn choose_seasons(item: &mut FakeSeries, addition: &Addition, now: Timestamp) {
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
        Some(preset) => shows::preset(item, preset, now),
    }
}

async fn delete(State(sonarr): State<FakeSonarr>, Path(id): Path<i64>) -> Response {
    let mut world = sonarr.lock();
    match world.take(id) {
        Some(_) => {
            world.removed.push(id);
            StatusCode::OK.into_response()
        }
        // The real Sonarr has no better response for a series that is gone.
        None => thrown(StatusCode::INTERNAL_SERVER_ERROR, "Expected query to return 1 rows but returned 0"),
    }
}

async fn queue(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    let world = sonarr.lock();
    let mut rows = Vec::new();
    for download in world.in_queue_order(&query) {
        let meant = meant_by(&download.title);
        let Some((item, meant)) = meant.and_then(|meant| Some((world.named(meant.show)?, meant))) else {
            if flag(&query, "includeUnknownSeriesItems") {
                rows.push(download.row(0));
            }
            continue;
        };
        for number in numbers(item, &meant) {
            let mut row = download.row(number);
            row["seriesId"] = json!(item.id);
            row["seasonNumber"] = json!(meant.season);
            row["episodeId"] = json!(episode_id(item, meant.season, number));
            let listed = episode(&world, item, meant.season, number);
            row["episodeHasFile"] = listed["hasFile"].clone();
            if flag(&query, "includeSeries") {
                row["series"] = owned(&world, item);
            }
            if flag(&query, "includeEpisode") {
                row["episode"] = listed;
            }
            rows.push(row);
        }
    }
    page(rows, "timeleft", &query)
}

async fn calendar(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    let world = sonarr.lock();
    let (start, end) = window(&query, world.clock.now());
    let mut entries: Vec<_> = world.calendar.iter().enumerate().collect();
    entries.sort_by_key(|(_, entry)| entry.at);
    let mut shown = Vec::new();
    for (place, entry) in entries.into_iter().filter(|(_, entry)| (start..=end).contains(&entry.at)) {
        let Some(meant) = meant_by(&entry.title) else { continue };
        let item = world.named(meant.show).cloned().unwrap_or_else(|| stray(meant.show, place));
        if !item.monitored && !flag(&query, "unmonitored") {
            continue;
        }
        for number in numbers(&item, &meant) {
            let mut body = episode(&world, &item, meant.season, number);
            body["airDate"] = json!(entry.at.strftime("%Y-%m-%d").to_string());
            body["airDateUtc"] = json!(wire_time(entry.at));
            if entry.at > world.clock.now() {
                // An episode that has not aired cannot be on disk, even if the season appears complete.
                merge(&mut body, json!({ "hasFile": false, "episodeFileId": 0 }));
            }
            if flag(&query, "includeSeries") {
                body["series"] = owned(&world, &item);
            }
            shown.push(body);
        }
    }
    ok(shown.into())
}
