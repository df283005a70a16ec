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

use super::activity::{Happened, episodes as meant_by};
use super::activity_api::{begun, unknown_command};
use super::answers::{Asked, created, flag, misshapen, ok, page, since, thrown};
use super::finds::Reason;
use super::item::Show;
use super::series_json::{dated, described, episode, episode_id, file_bytes, numbers, owned, stray};
use super::sonarr::FakeSonarr;
use super::world::World;

pub(super) fn routes(sonarr: FakeSonarr) -> Router {
    Router::new()
        .route("/episode", get(list))
        .route("/episode/monitor", put(monitor))
        .route("/episodefile/bulk", delete(delete_files))
        .route("/wanted/missing", get(missing))
        .route("/command", post(command))
        .route("/history/series", get(history_of_one))
        .route("/history/since", get(history_since))
        .with_state(sonarr)
}

async fn list(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    let world = sonarr.lock();
    let Some(id) = query.get("seriesId") else {
        return thrown(StatusCode::BAD_REQUEST, "seriesId or episodeIds must be provided");
    };
    let season = query.get("seasonNumber").and_then(|number| number.parse::<u32>().ok());
    let Some(show) = world.library.iter().find(|show| show.id.to_string() == *id) else {
        return ok(json!([]));
    };
    let all = dated(&world, show);
    let size = file_bytes(show, &all);
    let describe = |one| {
        let mut body = described(show, one);
        if flag(&query, "includeEpisodeFile") && body["hasFile"] == true {
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
    ok(all.iter().filter(|one| season.is_none_or(|season| one.season == season)).map(describe).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Monitor {
    episode_ids: Vec<i64>,
    monitored: bool,
}

async fn monitor(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(Monitor { episode_ids, monitored }) = serde_json::from_slice(&body) else { return misshapen("$") };
    for show in &mut sonarr.lock().library {
        let of_show = show.clone();
        let named = |season, number| episode_ids.contains(&episode_id(&of_show, season, number));
        if of_show.all_episodes().iter().any(|one| named(one.season, one.number)) {
            let named = show.told_apart().iter_mut().filter(|one| named(one.season, one.number));
            named.for_each(|one| one.monitored = monitored);
        }
    }
    (StatusCode::ACCEPTED, Json(json!([]))).into_response()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    episode_file_ids: Vec<i64>,
}

async fn delete_files(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(Files { episode_file_ids }) = serde_json::from_slice(&body) else { return misshapen("$") };
    if episode_file_ids.is_empty() {
        return thrown(StatusCode::INTERNAL_SERVER_ERROR, "Sequence contains no elements");
    }
    let mut world = sonarr.lock();
    let mut deleted = Vec::new();
    for place in 0..world.library.len() {
        let all = dated(&world, &world.library[place]);
        let show = &mut world.library[place];
        let size = file_bytes(show, &all);
        let of_show = show.clone();
        let meant = |season, number| episode_file_ids.contains(&episode_id(&of_show, season, number));
        if !all.iter().any(|one| one.on_disk && meant(one.season, one.number)) {
            continue;
        }
        for one in show.told_apart() {
            if one.on_disk && meant(one.season, one.number) {
                one.on_disk = false;
                deleted.push(format!("{} S{:02}E{:02}", of_show.title, one.season, one.number));
            }
        }
        let left = show.episodes_on_disk().len() as u64;
        show.size_bytes = left * size;
    }
    for title in deleted {
        let (event, at) = ("episodeFileDeleted", world.clock.now());
        let reason = Some("Manual".to_owned());
        world.record.deleted_files.push(title.clone());
        let release = format!("{title}.mkv");
        world.history.push(Happened { title, release, event, at, download: 0, reason });
    }
    ok(json!({}))
}

async fn missing(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    let world = sonarr.lock();
    let now = world.clock.now();
    let mut records = Vec::new();
    for show in world.library.iter().filter(|show| show.monitored) {
        let wanted = dated(&world, show).into_iter().filter(|one| one.monitored && !one.on_disk);
        for one in wanted.filter(|one| one.airs.is_some_and(|at| at <= now)) {
            let mut record = described(show, &one);
            if flag(&query, "includeSeries") {
                record["series"] = owned(&world, show);
            }
            records.push((one.airs, record));
        }
    }
    records.sort_by_key(|(airs, _)| *airs);
    page(records.into_iter().map(|(_, record)| record).collect(), "episodes.airDateUtc", &query)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Command {
    name: String,
    series_id: Option<i64>,
    season_number: Option<u32>,
    #[serde(default)]
    episode_ids: Vec<i64>,
}

async fn command(State(sonarr): State<FakeSonarr>, body: Bytes) -> Response {
    let Ok(command) = serde_json::from_slice::<Command>(&body) else { return misshapen("$") };
    let mut world = sonarr.lock();
    let show = command.series_id.unwrap_or_default();
    let (name, grabbed) = match (command.name.as_str(), command.season_number) {
        ("SeasonSearch", Some(season)) => ("SeasonSearch", search_season(&mut world, show, season)),
        ("EpisodeSearch", _) => ("EpisodeSearch", search_single(&mut world, &command.episode_ids)),
        ("MissingEpisodeSearch", _) => ("MissingEpisodeSearch", world.search_missing(show)),
        _ => return unknown_command(),
    };
    created(begun(&mut world, name, format!("Search completed. {grabbed} reports downloaded.")))
}

/// Searches for the monitored episodes only, even though a user requested the search.
fn search_season(world: &mut World<Show>, id: i64, season: u32) -> usize {
    let title = world.library.iter().find(|show| show.id == id).map(|show| show.title.clone());
    let words = format!("{} S{season:02}", title.unwrap_or_default());
    world.search_episodes(id, words, Reason::Asked, |one| one.season == season && one.monitored)
}

fn search_single(world: &mut World<Show>, ids: &[i64]) -> usize {
    let mut meant = Vec::new();
    for show in &world.library {
        let named = |season, number| ids.contains(&episode_id(show, season, number));
        let numbers = show.all_episodes().into_iter().map(|one| (one.season, one.number));
        meant.extend(numbers.filter(|one| named(one.0, one.1)).map(|one| (show.id, show.title.clone(), one)));
    }
    let search = |(id, title, (season, number)): (i64, String, (u32, u32))| {
        let words = format!("{title} S{season:02}E{number:02}");
        world.search_episodes(id, words, Reason::Asked, |one| (one.season, one.number) == (season, number))
    };
    meant.into_iter().map(search).sum()
}

async fn history_of_one(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    let world = sonarr.lock();
    let mut records = records(&world, &query);
    records.retain(|(_, record)| query.get("seriesId") == Some(&record["seriesId"].to_string()));
    since(records, &query)
}

async fn history_since(State(sonarr): State<FakeSonarr>, Query(query): Query<Asked>) -> Response {
    since(records(&sonarr.lock(), &query), &query)
}

fn records(world: &World<Show>, query: &Asked) -> Vec<(&'static str, Value)> {
    let mut records = Vec::new();
    for (place, happened) in world.history.iter().enumerate() {
        let Some(meant) = meant_by(&happened.title) else { continue };
        let item = world.named(meant.show).cloned().unwrap_or_else(|| stray(meant.show, place));
        for number in numbers(&item, &meant) {
            let mut record = happened.row(place, number);
            record["seriesId"] = json!(item.id);
            record["episodeId"] = json!(episode_id(&item, meant.season, number));
            if flag(query, "includeSeries") {
                record["series"] = owned(world, &item);
            }
            if flag(query, "includeEpisode") {
                record["episode"] = episode(world, &item, meant.season, number);
            }
            records.push((happened.event, record));
        }
    }
    records
}
