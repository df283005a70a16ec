//! Fake Radarr's API for changes to its movies, searches, their history and collections.

use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::activity::Happened;
use super::activity_api::{begun, unknown_command, unknown_rows};
use super::answers::{Asked, created, flag, misshapen, not_found, ok, since};
use super::finds::Reason;
use super::item::{FakeMovie, Film};
use super::movie_json::{catalogued, owned, stray};
use super::radarr::{AVAILABILITIES, FakeRadarr};
use super::world::World;

pub(super) fn routes(radarr: FakeRadarr) -> Router {
    Router::new()
        .route("/movie/editor", put(edit))
        .route("/moviefile/{id}", delete(delete_file))
        .route("/command", post(command))
        .route("/history/movie", get(history_of_one))
        .route("/history/since", get(history_since))
        .route("/collection", get(collections))
        .route("/importlist/movie", get(suggestions))
        .with_state(radarr)
}

impl FakeRadarr {
    /// Adds a movie to the suggestions; returns its catalog id.
    pub fn suggest(&self, film: FakeMovie) -> i64 {
        let id = self.catalog(film);
        self.lock().suggested.push(id);
        id
    }

    /// Marks a movie as popular at present; returns its catalog id.
    pub fn popular(&self, film: FakeMovie) -> i64 {
        let id = self.catalog(film);
        self.lock().popular.push(id);
        id
    }

    /// Excludes the movie with this catalog id from addition by any list.
    pub fn exclude(&self, id: i64) {
        self.lock().excluded.push(id);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edit {
    movie_ids: Vec<i64>,
    monitored: Option<bool>,
    quality_profile_id: Option<i64>,
    minimum_availability: Option<String>,
}

async fn edit(State(radarr): State<FakeRadarr>, body: Bytes) -> Response {
    let Ok(edit) = serde_json::from_slice::<Edit>(&body) else { return misshapen("$") };
    let availability = match edit.minimum_availability.as_deref() {
        None => None,
        Some(word) => match AVAILABILITIES.into_iter().find(|known| *known == word) {
            None => return misshapen("$.minimumAvailability"),
            known => known,
        },
    };
    let mut world = radarr.lock();
    if edit.movie_ids.iter().any(|id| world.library.iter().all(|film| film.id != *id)) {
        return unknown_rows();
    }
    let profile = edit.quality_profile_id.and_then(|id| world.profile_name(id)).map(str::to_owned);
    for film in world.library.iter_mut().filter(|film| edit.movie_ids.contains(&film.id)) {
        film.monitored = edit.monitored.unwrap_or(film.monitored);
        film.details.availability = availability.unwrap_or(film.details.availability);
        profile.as_ref().unwrap_or(&film.profile).clone().clone_into(&mut film.profile);
    }
    let edited: Value = edit
        .movie_ids
        .iter()
        .filter_map(|id| world.library.iter().find(|film| film.id == *id))
        .map(|film| owned(&world, film))
        .collect();
    (StatusCode::ACCEPTED, Json(edited)).into_response()
}

async fn delete_file(State(radarr): State<FakeRadarr>, Path(id): Path<i64>) -> Response {
    let mut world = radarr.lock();
    let Some(film) = world.library.iter_mut().find(|film| film.id == id && film.size_bytes > 0) else {
        return not_found();
    };
    film.size_bytes = 0;
    let title = film.title.clone();
    world.record.deleted_files.push(title.clone());
    let at = world.clock.now();
    let event = "movieFileDeleted";
    let release = format!("{title}.mkv");
    world.history.push(Happened {
        title,
        release,
        event,
        at,
        download: 0,
        reason: Some("Manual".to_owned()),
    });
    ok(json!({}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Command {
    name: String,
    #[serde(default)]
    movie_ids: Vec<i64>,
}

async fn command(State(radarr): State<FakeRadarr>, body: Bytes) -> Response {
    let Ok(command) = serde_json::from_slice::<Command>(&body) else { return misshapen("$") };
    if command.name != "MoviesSearch" {
        return unknown_command();
    }
    let mut world = radarr.lock();
    let count = command.movie_ids.len();
    let grabbed: usize = command.movie_ids.iter().map(|id| world.search(*id, Reason::Asked)).sum();
    let message = format!("Completed search for {count} movies. {grabbed} reports downloaded.");
    created(begun(&mut world, "MoviesSearch", message))
}

async fn history_of_one(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    let world = radarr.lock();
    let mut records = records(&world, &query);
    records.retain(|(_, record)| query.get("movieId") == Some(&record["movieId"].to_string()));
    since(records, &query)
}

async fn history_since(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    since(records(&radarr.lock(), &query), &query)
}

fn records(world: &World<Film>, query: &Asked) -> Vec<(&'static str, Value)> {
    let describe = |(place, happened): (usize, &Happened)| {
        let film = world.named(&happened.title).cloned();
        let film = film.unwrap_or_else(|| stray(&happened.title, happened.at, place));
        let mut record = happened.row(place, 0);
        record["movieId"] = json!(film.id);
        if flag(query, "includeMovie") {
            record["movie"] = owned(world, &film);
        }
        (happened.event, record)
    };
    world.history.iter().enumerate().map(describe).collect()
}

async fn collections(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    let world = radarr.lock();
    let wanted = query.get("tmdbId").and_then(|id| id.parse::<i64>().ok());
    let mut named: Vec<(i64, String)> =
        world.library.iter().filter_map(|film| film.details.collection.clone()).collect();
    named.sort();
    named.dedup();
    let describe = |(id, title): (i64, String)| {
        let belongs = |film: &&FakeMovie| film.details.collection.as_ref().is_some_and(|(of, _)| *of == id);
        let films: Vec<Value> =
            world.catalog.iter().filter(belongs).map(|film| listed(&world, film)).collect();
        json!({ "id": id, "tmdbId": id, "title": title, "monitored": false, "movies": films })
    };
    ok(named.into_iter().filter(|(id, _)| wanted.is_none_or(|wanted| wanted == *id)).map(describe).collect())
}

async fn suggestions(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    let world = radarr.lock();
    let is_meant = |film: &&FakeMovie| {
        let id = &film.catalog_id;
        (flag(&query, "includeRecommendations") && world.suggested.contains(id))
            || (flag(&query, "includePopular") && world.popular.contains(id))
    };
    ok(world.catalog.iter().filter(is_meant).map(|film| listed(&world, film)).collect())
}

fn listed(world: &World<Film>, film: &FakeMovie) -> Value {
    let mut body = catalogued(film);
    body["isExisting"] = json!(world.in_library(film.catalog_id).is_some());
    body["isExcluded"] = json!(world.excluded.contains(&film.catalog_id));
    body
}
