//! Fake Sonarr's API for individual episodes: their files, flags, searches and history.

use axum::Json;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::activity::parse_title_episodes as meant_by;
use super::activity_api::{begun_command_json, unknown_command};
use super::fake_server::FakeLibraryState;
use super::media_fixtures::SeriesDetails;
use super::release_search::SearchReason;
use super::responses::{
    RequestQuery, created_response, exception_response, malformed_body_response, ok_response, query_flag,
};
use super::series_json::{
    dated_episodes, described_episode_json, episode_id, episode_json, episode_numbers, file_bytes,
    owned_series_json, stray_series,
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
    let library = sonarr.lock_state();
    let Some(id) = query.get("seriesId") else {
        return exception_response(StatusCode::BAD_REQUEST, "seriesId or episodeIds must be provided");
    };
    let season = query.get("seasonNumber").and_then(|number| number.parse::<u32>().ok());
    let Some(show) = id.parse().ok().and_then(|id| library.title(id)) else { return ok_response(json!([])) };
    let all = dated_episodes(&library, show);
    let size = file_bytes(show, &all);
    let describe = |one| {
        let mut body = described_episode_json(show, one);
        if query_flag(&query, "includeEpisodeFile") && body["hasFile"] == true {
            body["episodeFile"] = json!({
                "id": body["episodeFileId"],
                "seriesId": show.id,
                "seasonNumber": body["seasonNumber"],
                "size": size,
                "quality": { "quality": { "id": 3, "name": show.file_quality } },
            });
        }
        body
    };
    ok_response(
        all.iter().filter(|one| season.is_none_or(|season| one.season == season)).map(describe).collect(),
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
    for show in &mut sonarr.lock_state().library {
        let of_show = show.clone();
        let named = |season, number| episode_ids.contains(&episode_id(&of_show, season, number));
        if of_show.all_episodes().iter().any(|one| named(one.season, one.number)) {
            let named = show.separate_episodes().iter_mut().filter(|one| named(one.season, one.number));
            named.for_each(|one| one.monitored = monitored);
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
    let mut library = sonarr.lock_state();
    let mut deleted = Vec::new();
    for index in 0..library.library.len() {
        let all = dated_episodes(&library, &library.library[index]);
        let show = &mut library.library[index];
        let size = file_bytes(show, &all);
        let of_show = show.clone();
        let meant = |season, number| episode_file_ids.contains(&episode_id(&of_show, season, number));
        if !all.iter().any(|one| one.on_disk && meant(one.season, one.number)) {
            continue;
        }
        for one in show.separate_episodes() {
            if one.on_disk && meant(one.season, one.number) {
                one.on_disk = false;
                deleted.push(format!("{} S{:02}E{:02}", of_show.title, one.season, one.number));
            }
        }
        let left = show.episodes_on_disk().len() as u64;
        show.size_bytes = left * size;
    }
    for title in deleted {
        library.record_loss(&title, "episodeFileDeleted", "Manual");
        library.record.deleted_files.push(title);
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
    let mut library = sonarr.lock_state();
    let show = command.series_id.unwrap_or_default();
    let name = match (command.name.as_str(), command.season_number) {
        ("SeasonSearch", Some(season)) => {
            search_season(&mut library, show, season);
            "SeasonSearch"
        }
        ("EpisodeSearch", _) => {
            search_single(&mut library, &command.episode_ids);
            "EpisodeSearch"
        }
        ("MissingEpisodeSearch", _) => {
            library.search_missing(show);
            "MissingEpisodeSearch"
        }
        _ => return unknown_command(),
    };
    created_response(begun_command_json(&mut library, name))
}

/// Searches for the monitored episodes only, even though a user requested the search.
fn search_season(library: &mut FakeLibraryState<SeriesDetails>, id: i64, season: u32) {
    let words = format!("{} S{season:02}", library.title(id).map_or("", |show| show.title.as_str()));
    library.search_episodes(id, words, SearchReason::Asked, |one| one.season == season && one.monitored);
}

fn search_single(library: &mut FakeLibraryState<SeriesDetails>, ids: &[i64]) {
    let mut meant = Vec::new();
    for show in &library.library {
        let named = |season, number| ids.contains(&episode_id(show, season, number));
        let numbers = show.all_episodes().into_iter().map(|one| (one.season, one.number));
        meant.extend(numbers.filter(|one| named(one.0, one.1)).map(|one| (show.id, show.title.clone(), one)));
    }
    for (id, title, number) in meant {
        let words = format!("{title} S{:02}E{:02}", number.0, number.1);
        library.search_episodes(id, words, SearchReason::Asked, |one| (one.season, one.number) == number);
    }
}

pub(super) fn history_records(
    library: &FakeLibraryState<SeriesDetails>,
    query: &RequestQuery,
) -> Vec<(&'static str, Value)> {
    let mut records = Vec::new();
    for (index, happened) in library.history.iter().enumerate() {
        let Some(meant) = meant_by(&happened.title) else { continue };
        let item =
            library.title_named(meant.show).cloned().unwrap_or_else(|| stray_series(meant.show, index));
        for number in episode_numbers(&item, &meant) {
            let mut record = happened.history_row_json(index, number);
            record["seriesId"] = json!(item.id);
            record["episodeId"] = json!(episode_id(&item, meant.season, number));
            if query_flag(query, "includeSeries") {
                record["series"] = owned_series_json(library, &item);
            }
            if query_flag(query, "includeEpisode") {
                record["episode"] = episode_json(library, &item, meant.season, number);
            }
            records.push((happened.event, record));
        }
    }
    records
}
