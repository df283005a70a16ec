//! Fake Sonarr's API for changes to its series: seasons, presets and settings.

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::activity_api::unknown_rows;
use super::media_fixtures::FakeSeries;
use super::responses::{malformed_body_response, not_found};
use super::series_json::owned_series_json;
use super::sonarr::{FakeSonarr, TYPES};

pub(super) fn routes(sonarr: FakeSonarr) -> Router {
    Router::new()
        .route("/series/editor", put(edit_series))
        .route("/seasonpass", post(season_pass))
        .with_state(sonarr)
}

/// Replaces a series with the one in the body. A season that is missing from the body becomes unmonitored, and only a
/// flag that changes affects episodes.
pub(super) async fn replace_series(
    State(sonarr): State<FakeSonarr>,
    Path(id): Path<i64>,
    body: Bytes,
) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else { return malformed_body_response("$") };
    let kind = TYPES.into_iter().find(|kind| body["seriesType"] == *kind).unwrap_or("standard");
    let mut library = sonarr.lock_state();
    let profile =
        body["qualityProfileId"].as_i64().and_then(|id| library.profile_name(id)).map(str::to_owned);
    let Some(show) = library.title_mut(id) else { return not_found() };
    show.monitored = body["monitored"] == true;
    show.details.new_seasons = body["monitorNewItems"] == "all";
    show.details.kind = kind;
    show.profile = profile.unwrap_or_default();
    let seasons = body["seasons"].as_array().cloned().unwrap_or_default();
    let wanted = |number: u32| {
        seasons.iter().any(|season| season["seasonNumber"] == json!(number) && season["monitored"] == true)
    };
    show.separate_episodes();
    let details = &mut show.details;
    if details.specials_monitored != wanted(0) {
        details.specials_monitored = wanted(0);
        let specials = details.episodes.iter_mut().filter(|one| one.season == 0);
        specials.for_each(|one| one.monitored = wanted(0));
    }
    for season in &mut details.seasons {
        let flag = wanted(season.number);
        if flag != season.monitored {
            season.monitored = flag;
            let of_it = details.episodes.iter_mut().filter(|one| one.season == season.number);
            of_it.for_each(|one| one.monitored = flag);
        }
    }
    let replaced = library.title(id).map(|show| owned_series_json(&library, show));
    (StatusCode::ACCEPTED, Json(replaced)).into_response()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeriesEditBody {
    series_ids: Vec<i64>,
    monitored: Option<bool>,
    monitor_new_items: Option<String>,
    quality_profile_id: Option<i64>,
    series_type: Option<String>,
}

/// Edits settings of a series, never its seasons or episodes.
async fn edit_series(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(edit) = serde_json::from_slice::<SeriesEditBody>(&body) else {
        return malformed_body_response("$");
    };
    let mut library = sonarr.lock_state();
    if edit.series_ids.iter().any(|id| library.title(*id).is_none()) {
        return unknown_rows();
    }
    let profile = edit.quality_profile_id.and_then(|id| library.profile_name(id)).map(str::to_owned);
    let kind = TYPES.into_iter().find(|kind| Some(*kind) == edit.series_type.as_deref());
    for show in library.library.iter_mut().filter(|show| edit.series_ids.contains(&show.id)) {
        show.monitored = edit.monitored.unwrap_or(show.monitored);
        show.details.kind = kind.unwrap_or(show.details.kind);
        if let Some(word) = &edit.monitor_new_items {
            show.details.new_seasons = word == "all";
        }
        if let Some(profile) = &profile {
            show.profile.clone_from(profile);
        }
    }
    (StatusCode::ACCEPTED, Json(json!([]))).into_response()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeasonPass {
    series: Vec<PassedSeries>,
    monitoring_options: Option<MonitoringOptions>,
}

#[derive(Deserialize)]
struct PassedSeries {
    id: i64,
    monitored: Option<bool>,
}

#[derive(Deserialize)]
struct MonitoringOptions {
    monitor: Option<String>,
}

async fn season_pass(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(pass) = serde_json::from_slice::<SeasonPass>(&body) else { return malformed_body_response("$") };
    let mut library = sonarr.lock_state();
    let now = library.clock.now();
    let word = pass.monitoring_options.and_then(|options| options.monitor);
    for passed in &pass.series {
        let Some(show) = library.title_mut(passed.id) else { return unknown_rows() };
        show.monitored = passed.monitored.unwrap_or(show.monitored);
        if let Some(word) = &word {
            apply_preset(show, word, now);
        }
    }
    (StatusCode::ACCEPTED, Json(json!({}))).into_response()
}

/// Monitors the episodes that the preset selects and no others. A season is monitored because of its episodes, and the
/// last season because of its future episodes.
pub(super) fn apply_preset(show: &mut FakeSeries, word: &str, now: Timestamp) {
    let numbers = || show.details.seasons.iter().map(|season| season.number);
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    for one in show.separate_episodes() {
        one.monitored = match word {
            "all" => true,
            "missing" => !one.on_disk,
            "existing" => one.on_disk,
            "firstSeason" => one.season == first,
            "lastSeason" | "latestSeason" => one.season == last,
            "pilot" => (one.season, one.number) == (first, 1),
            "future" | "recent" => one.airs.is_some_and(|at| at > now),
            "none" => false,
            _ => one.monitored,
        };
    }
    let details = &mut show.details;
    for season in &mut details.seasons {
        let wanted = details.episodes.iter().any(|one| one.season == season.number && one.monitored);
        season.monitored = match word {
            "all" | "future" | "missing" | "recent" if season.number == last => true,
            "pilot" => false,
            _ => wanted,
        };
    }
    if word == "none" {
        show.monitored = false;
    }
}
