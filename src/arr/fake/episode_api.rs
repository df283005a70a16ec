//! Episode API of the fake Sonarr: listing, monitoring, file deletion, searches and history.

use axum::Json;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::activity::parse_title_episodes;
use super::activity_api::{queued_command_json, unknown_command_response};
use super::fake_server::FakeLibraryState;
use super::media_fixtures::SeriesDetails;
use super::release_search::SearchReason;
use super::responses::{
    RequestQuery, created_response, exception_response, malformed_body_response, ok_response, query_flag,
};
use super::series_json::{
    episode_file_bytes, episode_id, episode_json, episode_numbers, episodes_with_air_times,
    library_series_json, listed_episode_json, series_outside_library,
};
use super::sonarr::FakeSonarr;

pub(super) fn routes(sonarr: FakeSonarr) -> Router {
    Router::new()
        .route("/episode", get(list_episodes))
        .route("/episode/monitor", put(monitor_episodes))
        .route("/episodefile/bulk", delete(delete_files))
        .route("/command", post(post_command))
        .with_state(sonarr)
}

async fn list_episodes(State(sonarr): State<FakeSonarr>, Query(query): Query<RequestQuery>) -> Response {
    let state = sonarr.lock_state();
    let Some(id) = query.get("seriesId") else {
        return exception_response(StatusCode::BAD_REQUEST, "seriesId or episodeIds must be provided");
    };
    let season = query.get("seasonNumber").and_then(|number| number.parse::<u32>().ok());
    let Some(series) = id.parse().ok().and_then(|id| state.title(id)) else {
        return ok_response(json!([]));
    };
    let all = episodes_with_air_times(&state, series);
    let size = episode_file_bytes(series, &all);
    let to_json = |episode| {
        let mut body = listed_episode_json(series, episode);
        if query_flag(&query, "includeEpisodeFile") && body["hasFile"] == true {
            body["episodeFile"] = json!({
                "id": body["episodeFileId"],
                "seriesId": series.id,
                "seasonNumber": body["seasonNumber"],
                "size": size,
                "quality": { "quality": { "id": 3, "name": series.file_quality } },
            });
        }
        body
    };
    ok_response(
        all.iter()
            .filter(|episode| season.is_none_or(|season| episode.season == season))
            .map(to_json)
            .collect(),
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MonitorBody {
    episode_ids: Vec<i64>,
    monitored: bool,
}

async fn monitor_episodes(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(MonitorBody { episode_ids, monitored }) = serde_json::from_slice(&body) else {
        return malformed_body_response("$");
    };
    for series in &mut sonarr.lock_state().library {
        let before = series.clone();
        let is_selected = |season, number| episode_ids.contains(&episode_id(&before, season, number));
        if before.all_episodes().iter().any(|episode| is_selected(episode.season, episode.number)) {
            let selected = series
                .episodes_mut()
                .iter_mut()
                .filter(|episode| is_selected(episode.season, episode.number));
            selected.for_each(|episode| episode.monitored = monitored);
        }
    }
    (StatusCode::ACCEPTED, Json(json!([]))).into_response()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EpisodeFilesBody {
    episode_file_ids: Vec<i64>,
}

async fn delete_files(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(EpisodeFilesBody { episode_file_ids }) = serde_json::from_slice(&body) else {
        return malformed_body_response("$");
    };
    if episode_file_ids.is_empty() {
        return exception_response(StatusCode::INTERNAL_SERVER_ERROR, "Sequence contains no elements");
    }
    let mut state = sonarr.lock_state();
    let mut deleted = Vec::new();
    for index in 0..state.library.len() {
        let all = episodes_with_air_times(&state, &state.library[index]);
        let series = &mut state.library[index];
        let size = episode_file_bytes(series, &all);
        let before = series.clone();
        let is_selected = |season, number| episode_file_ids.contains(&episode_id(&before, season, number));
        if !all.iter().any(|episode| episode.on_disk && is_selected(episode.season, episode.number)) {
            continue;
        }
        for episode in series.episodes_mut() {
            if episode.on_disk && is_selected(episode.season, episode.number) {
                episode.on_disk = false;
                deleted.push(format!("{} S{:02}E{:02}", before.title, episode.season, episode.number));
            }
        }
        let remaining = series.episodes_on_disk().len() as u64;
        series.size_bytes = remaining * size;
    }
    for title in deleted {
        state.record_deletion(&title, "episodeFileDeleted", "Manual");
        state.record.deleted_files.push(title);
    }
    ok_response(json!({}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EpisodeSearchBody {
    name: String,
    series_id: Option<i64>,
    season_number: Option<u32>,
    #[serde(default)]
    episode_ids: Vec<i64>,
}

async fn post_command(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(command) = serde_json::from_slice::<EpisodeSearchBody>(&body) else {
        return malformed_body_response("$");
    };
    let mut state = sonarr.lock_state();
    let series_id = command.series_id.unwrap_or_default();
    let name = match (command.name.as_str(), command.season_number) {
        ("SeasonSearch", Some(season)) => {
            search_season(&mut state, series_id, season);
            "SeasonSearch"
        }
        ("EpisodeSearch", _) => {
            search_selected_episodes(&mut state, &command.episode_ids);
            "EpisodeSearch"
        }
        ("MissingEpisodeSearch", _) => {
            state.search_missing(series_id);
            "MissingEpisodeSearch"
        }
        _ => return unknown_command_response(),
    };
    created_response(queued_command_json(&mut state, name))
}

/// Searches for the monitored episodes of a season, as Sonarr does even if a user requested the search.
fn search_season(state: &mut FakeLibraryState<SeriesDetails>, id: i64, season: u32) {
    let description = format!("{} S{season:02}", state.title(id).map_or("", |series| series.title.as_str()));
    state.search_episodes(id, description, SearchReason::UserRequest, |episode| {
        episode.season == season && episode.monitored
    });
}

fn search_selected_episodes(state: &mut FakeLibraryState<SeriesDetails>, ids: &[i64]) {
    let mut selected = Vec::new();
    for series in &state.library {
        for episode in series.all_episodes() {
            if ids.contains(&episode_id(series, episode.season, episode.number)) {
                selected.push((series.id, series.title.clone(), (episode.season, episode.number)));
            }
        }
    }
    for (id, title, numbers) in selected {
        let description = format!("{title} S{:02}E{:02}", numbers.0, numbers.1);
        state.search_episodes(id, description, SearchReason::UserRequest, |episode| {
            (episode.season, episode.number) == numbers
        });
    }
}

pub(super) fn history_records(
    state: &FakeLibraryState<SeriesDetails>,
    query: &RequestQuery,
) -> Vec<(&'static str, Value)> {
    let mut records = Vec::new();
    for (index, event) in state.history.iter().enumerate() {
        let Some(episodes) = parse_title_episodes(&event.title) else { continue };
        let series = state
            .find_title(episodes.series)
            .cloned()
            .unwrap_or_else(|| series_outside_library(episodes.series, index));
        for number in episode_numbers(&series, &episodes) {
            let mut record = event.history_row_json(index, number);
            record["seriesId"] = json!(series.id);
            record["episodeId"] = json!(episode_id(&series, episodes.season, number));
            if query_flag(query, "includeSeries") {
                record["series"] = library_series_json(state, &series);
            }
            if query_flag(query, "includeEpisode") {
                record["episode"] = episode_json(state, &series, episodes.season, number);
            }
            records.push((event.event, record));
        }
    }
    records
}
