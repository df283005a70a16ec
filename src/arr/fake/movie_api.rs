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

use super::activity::HistoryFixture;
use super::activity_api::{begun_command_json, unknown_command, unknown_rows};
use super::fake_server::FakeLibraryState;
use super::media_fixtures::{FakeMovie, MovieDetails};
use super::movie_json::{catalog_movie_json, owned_movie_json, stray_movie};
use super::radarr::{AVAILABILITIES, FakeRadarr};
use super::release_search::SearchReason;
use super::responses::{
    RequestQuery, created_response, malformed_body_response, not_found, ok_response, query_flag,
};

pub(super) fn routes(radarr: FakeRadarr) -> Router {
    Router::new()
        .route("/movie/editor", put(edit_movies))
        .route("/moviefile/{id}", delete(delete_file))
        .route("/command", post(post_command))
        .route("/collection", get(list_collections))
        .route("/importlist/movie", get(list_suggestions))
        .with_state(radarr)
}

impl FakeRadarr {
    /// Adds a movie to the suggestions. Returns its catalog id.
    pub fn add_suggestion(&self, film: FakeMovie) -> i64 {
        let id = self.add_to_catalog(film);
        self.lock_state().suggested.push(id);
        id
    }

    /// Marks a movie as popular at present. Returns its catalog id.
    pub fn add_popular(&self, film: FakeMovie) -> i64 {
        let id = self.add_to_catalog(film);
        self.lock_state().popular.push(id);
        id
    }

    /// Excludes the movie with this catalog id from addition by any list.
    pub fn exclude_movie(&self, id: i64) {
        self.lock_state().excluded.push(id);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MovieEditBody {
    movie_ids: Vec<i64>,
    monitored: Option<bool>,
    quality_profile_id: Option<i64>,
    minimum_availability: Option<String>,
}

async fn edit_movies(State(radarr): State<FakeRadarr>, body: Bytes) -> Response {
    let Ok(edit) = serde_json::from_slice::<MovieEditBody>(&body) else {
        return malformed_body_response("$");
    };
    let availability = match edit.minimum_availability.as_deref() {
        None => None,
        Some(word) => match AVAILABILITIES.into_iter().find(|known| *known == word) {
            None => return malformed_body_response("$.minimumAvailability"),
            known => known,
        },
    };
    let mut library = radarr.lock_state();
    if edit.movie_ids.iter().any(|id| library.title(*id).is_none()) {
        return unknown_rows();
    }
    let profile = edit.quality_profile_id.and_then(|id| library.profile_name(id)).map(str::to_owned);
    for film in library.library.iter_mut().filter(|film| edit.movie_ids.contains(&film.id)) {
        film.monitored = edit.monitored.unwrap_or(film.monitored);
        film.details.availability = availability.unwrap_or(film.details.availability);
        profile.as_ref().unwrap_or(&film.profile).clone().clone_into(&mut film.profile);
    }
    let edited: Value = edit
        .movie_ids
        .iter()
        .filter_map(|id| library.title(*id))
        .map(|film| owned_movie_json(&library, film))
        .collect();
    (StatusCode::ACCEPTED, Json(edited)).into_response()
}

async fn delete_file(State(radarr): State<FakeRadarr>, Path(id): Path<i64>) -> Response {
    let mut library = radarr.lock_state();
    let Some(film) = library.title_mut(id).filter(|film| film.size_bytes > 0) else { return not_found() };
    film.size_bytes = 0;
    let title = film.title.clone();
    library.record_loss(&title, "movieFileDeleted", "Manual");
    library.record.deleted_files.push(title);
    ok_response(json!({}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MovieSearchBody {
    name: String,
    #[serde(default)]
    movie_ids: Vec<i64>,
}

async fn post_command(State(radarr): State<FakeRadarr>, body: Bytes) -> Response {
    let Ok(command) = serde_json::from_slice::<MovieSearchBody>(&body) else {
        return malformed_body_response("$");
    };
    if command.name != "MoviesSearch" {
        return unknown_command();
    }
    let mut library = radarr.lock_state();
    for id in command.movie_ids {
        library.search_release(id, SearchReason::Asked);
    }
    created_response(begun_command_json(&mut library, "MoviesSearch"))
}

pub(super) fn history_records(
    library: &FakeLibraryState<MovieDetails>,
    query: &RequestQuery,
) -> Vec<(&'static str, Value)> {
    let describe = |(index, happened): (usize, &HistoryFixture)| {
        let film = library.title_named(&happened.title).cloned();
        let film = film.unwrap_or_else(|| stray_movie(&happened.title, happened.at, index));
        let mut record = happened.history_row_json(index, 0);
        record["movieId"] = json!(film.id);
        if query_flag(query, "includeMovie") {
            record["movie"] = owned_movie_json(library, &film);
        }
        (happened.event, record)
    };
    library.history.iter().enumerate().map(describe).collect()
}

async fn list_collections(State(radarr): State<FakeRadarr>, Query(query): Query<RequestQuery>) -> Response {
    let library = radarr.lock_state();
    let wanted = query.get("tmdbId").and_then(|id| id.parse::<i64>().ok());
    let mut named: Vec<(i64, String)> =
        library.library.iter().filter_map(|film| film.details.collection.clone()).collect();
    named.sort();
    named.dedup();
    let describe = |(id, title): (i64, String)| {
        let belongs = |film: &&FakeMovie| film.details.collection.as_ref().is_some_and(|(of, _)| *of == id);
        let films: Vec<Value> =
            library.catalog.iter().filter(belongs).map(|film| suggestion_json(&library, film)).collect();
        json!({ "id": id, "tmdbId": id, "title": title, "monitored": false, "movies": films })
    };
    ok_response(
        named.into_iter().filter(|(id, _)| wanted.is_none_or(|wanted| wanted == *id)).map(describe).collect(),
    )
}

async fn list_suggestions(State(radarr): State<FakeRadarr>, Query(query): Query<RequestQuery>) -> Response {
    let library = radarr.lock_state();
    let is_meant = |film: &&FakeMovie| {
        let id = &film.catalog_id;
        (query_flag(&query, "includeRecommendations") && library.suggested.contains(id))
            || (query_flag(&query, "includePopular") && library.popular.contains(id))
    };
    ok_response(library.catalog.iter().filter(is_meant).map(|film| suggestion_json(&library, film)).collect())
}

fn suggestion_json(library: &FakeLibraryState<MovieDetails>, film: &FakeMovie) -> Value {
    let mut body = catalog_movie_json(film);
    body["isExisting"] = json!(library.in_library(film.catalog_id).is_some());
    body["isExcluded"] = json!(library.excluded.contains(&film.catalog_id));
    body
}
