//! Series API of the fake Sonarr: edits of settings, seasons and monitoring presets.

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

use super::activity_api::unknown_ids_response;
use super::media_fixtures::FakeSeries;
use super::responses::{malformed_body_response, not_found};
use super::series_json::library_series_json;
use super::sonarr::{FakeSonarr, SERIES_TYPES};

pub(super) fn routes(sonarr: FakeSonarr) -> Router {
    Router::new()
        .route("/series/editor", put(edit_series))
        .route("/seasonpass", post(apply_season_pass))
        .with_state(sonarr)
}

/// Replaces the fields of a series with those of the body. Seasons that are missing from the body become unmonitored.
/// Only changed flags are copied to episodes.
pub(super) async fn replace_series(
    State(sonarr): State<FakeSonarr>,
    Path(id): Path<i64>,
    body: Bytes,
) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else { return malformed_body_response("$") };
    let series_type =
        SERIES_TYPES.into_iter().find(|known| body["seriesType"] == *known).unwrap_or("standard");
    let mut state = sonarr.lock_state();
    let profile = body["qualityProfileId"].as_i64().and_then(|id| state.profile_name(id)).map(str::to_owned);
    let Some(series) = state.title_mut(id) else { return not_found() };
    series.monitored = body["monitored"] == true;
    series.details.new_seasons = body["monitorNewItems"] == "all";
    series.details.series_type = series_type;
    series.profile = profile.unwrap_or_default();
    let seasons = body["seasons"].as_array().cloned().unwrap_or_default();
    let is_monitored = |number: u32| {
        seasons.iter().any(|season| season["seasonNumber"] == json!(number) && season["monitored"] == true)
    };
    series.episodes_mut();
    let details = &mut series.details;
    if details.specials_monitored != is_monitored(0) {
        details.specials_monitored = is_monitored(0);
        let specials = details.episodes.iter_mut().filter(|episode| episode.season == 0);
        specials.for_each(|episode| episode.monitored = is_monitored(0));
    }
    for season in &mut details.seasons {
        let monitored = is_monitored(season.number);
        if monitored != season.monitored {
            season.monitored = monitored;
            let episodes = details.episodes.iter_mut().filter(|episode| episode.season == season.number);
            episodes.for_each(|episode| episode.monitored = monitored);
        }
    }
    let replaced = state.title(id).map(|series| library_series_json(&state, series));
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

/// Edits settings of series, but not their seasons and episodes.
async fn edit_series(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(edit) = serde_json::from_slice::<SeriesEditBody>(&body) else {
        return malformed_body_response("$");
    };
    let mut state = sonarr.lock_state();
    if edit.series_ids.iter().any(|id| state.title(*id).is_none()) {
        return unknown_ids_response();
    }
    let profile = edit.quality_profile_id.and_then(|id| state.profile_name(id)).map(str::to_owned);
    let series_type = SERIES_TYPES.into_iter().find(|known| Some(*known) == edit.series_type.as_deref());
    for series in state.library.iter_mut().filter(|series| edit.series_ids.contains(&series.id)) {
        series.monitored = edit.monitored.unwrap_or(series.monitored);
        series.details.series_type = series_type.unwrap_or(series.details.series_type);
        if let Some(option) = &edit.monitor_new_items {
            series.details.new_seasons = option == "all";
        }
        if let Some(profile) = &profile {
            series.profile.clone_from(profile);
        }
    }
    (StatusCode::ACCEPTED, Json(json!([]))).into_response()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeasonPassBody {
    series: Vec<SeasonPassSeries>,
    monitoring_options: Option<MonitoringOptions>,
}

#[derive(Deserialize)]
struct SeasonPassSeries {
    id: i64,
    monitored: Option<bool>,
}

#[derive(Deserialize)]
struct MonitoringOptions {
    monitor: Option<String>,
}

async fn apply_season_pass(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(pass) = serde_json::from_slice::<SeasonPassBody>(&body) else {
        return malformed_body_response("$");
    };
    let mut state = sonarr.lock_state();
    let now = state.clock.now();
    let preset = pass.monitoring_options.and_then(|options| options.monitor);
    for entry in &pass.series {
        let Some(series) = state.title_mut(entry.id) else { return unknown_ids_response() };
        series.monitored = entry.monitored.unwrap_or(series.monitored);
        if let Some(preset) = &preset {
            apply_preset(series, preset, now);
        }
    }
    (StatusCode::ACCEPTED, Json(json!({}))).into_response()
}

/// Monitors exactly the episodes that the preset selects. A season is monitored if one of its episodes is. Some presets
/// also monitor the last season.
pub(super) fn apply_preset(series: &mut FakeSeries, preset: &str, now: Timestamp) {
    let numbers = || series.details.seasons.iter().map(|season| season.number);
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    for episode in series.episodes_mut() {
        episode.monitored = match preset {
            "all" => true,
            "missing" => !episode.on_disk,
            "existing" => episode.on_disk,
            "firstSeason" => episode.season == first,
            "lastSeason" | "latestSeason" => episode.season == last,
            "pilot" => (episode.season, episode.number) == (first, 1),
            "future" | "recent" => episode.airs_at.is_some_and(|at| at > now),
            "none" => false,
            _ => episode.monitored,
        };
    }
    let details = &mut series.details;
    for season in &mut details.seasons {
        let has_monitored =
            details.episodes.iter().any(|episode| episode.season == season.number && episode.monitored);
        season.monitored = match preset {
            "all" | "future" | "missing" | "recent" if season.number == last => true,
            "pilot" => false,
            _ => has_monitored,
        };
    }
    if preset == "none" {
        series.monitored = false;
    }
}
