//! Movie API of the fake Radarr: changes, file deletion, searches, history, collections and suggestions.

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
use super::activity_api::{queued_command_json, unknown_command_response, unknown_ids_response};
use super::fake_server::FakeLibraryState;
use super::media_fixtures::{FakeMovie, MovieDetails};
use super::movie_json::{catalog_movie_json, library_movie_json, movie_outside_library};
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
    pub fn add_suggestion(&self, movie: FakeMovie) -> i64 {
        let id = self.add_to_catalog(movie);
        self.lock_state().suggested.push(id);
        id
    }

    /// Adds a movie to the popular movies. Returns its catalog id.
    pub fn add_popular(&self, movie: FakeMovie) -> i64 {
        let id = self.add_to_catalog(movie);
        self.lock_state().popular.push(id);
        id
    }

    /// Excludes the movie with this catalog id from automatic addition by lists.
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
        Some(text) => match AVAILABILITIES.into_iter().find(|known| *known == text) {
            None => return malformed_body_response("$.minimumAvailability"),
            known => known,
        },
    };
    let mut state = radarr.lock_state();
    if edit.movie_ids.iter().any(|id| state.title(*id).is_none()) {
        return unknown_ids_response();
    }
    let profile = edit.quality_profile_id.and_then(|id| state.profile_name(id)).map(str::to_owned);
    for movie in state.library.iter_mut().filter(|movie| edit.movie_ids.contains(&movie.id)) {
        movie.monitored = edit.monitored.unwrap_or(movie.monitored);
        movie.details.availability = availability.unwrap_or(movie.details.availability);
        profile.as_ref().unwrap_or(&movie.profile).clone().clone_into(&mut movie.profile);
    }
    let edited: Value = edit
        .movie_ids
        .iter()
        .filter_map(|id| state.title(*id))
        .map(|movie| library_movie_json(&state, movie))
        .collect();
    (StatusCode::ACCEPTED, Json(edited)).into_response()
}

async fn delete_file(State(radarr): State<FakeRadarr>, Path(id): Path<i64>) -> Response {
    let mut state = radarr.lock_state();
    let Some(movie) = state.title_mut(id).filter(|movie| movie.size_bytes > 0) else { return not_found() };
    movie.size_bytes = 0;
    let title = movie.title.clone();
    state.record_deletion(&title, "movieFileDeleted", "Manual");
    state.record.deleted_files.push(title);
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
        return unknown_command_response();
    }
    let mut state = radarr.lock_state();
    for id in command.movie_ids {
        state.search_release(id, SearchReason::UserRequest);
    }
    created_response(queued_command_json(&mut state, "MoviesSearch"))
}

pub(super) fn history_records(
    state: &FakeLibraryState<MovieDetails>,
    query: &RequestQuery,
) -> Vec<(&'static str, Value)> {
    let to_row = |(index, event): (usize, &HistoryFixture)| {
        let movie = state.find_title(&event.title).cloned();
        let movie = movie.unwrap_or_else(|| movie_outside_library(&event.title, event.at, index));
        let mut record = event.history_row_json(index, 0);
        record["movieId"] = json!(movie.id);
        if query_flag(query, "includeMovie") {
            record["movie"] = library_movie_json(state, &movie);
        }
        (event.event, record)
    };
    state.history.iter().enumerate().map(to_row).collect()
}

async fn list_collections(State(radarr): State<FakeRadarr>, Query(query): Query<RequestQuery>) -> Response {
    let state = radarr.lock_state();
    let requested_id = query.get("tmdbId").and_then(|id| id.parse::<i64>().ok());
    let mut collections: Vec<(i64, String)> =
        state.library.iter().filter_map(|movie| movie.details.collection.clone()).collect();
    collections.sort();
    collections.dedup();
    let to_json = |(id, title): (i64, String)| {
        let belongs = |movie: &&FakeMovie| {
            movie.details.collection.as_ref().is_some_and(|(collection, _)| *collection == id)
        };
        let movies: Vec<Value> =
            state.catalog.iter().filter(belongs).map(|movie| suggestion_json(&state, movie)).collect();
        json!({ "id": id, "tmdbId": id, "title": title, "monitored": false, "movies": movies })
    };
    ok_response(
        collections
            .into_iter()
            .filter(|(id, _)| requested_id.is_none_or(|requested| requested == *id))
            .map(to_json)
            .collect(),
    )
}

async fn list_suggestions(State(radarr): State<FakeRadarr>, Query(query): Query<RequestQuery>) -> Response {
    let state = radarr.lock_state();
    let is_requested = |movie: &&FakeMovie| {
        let id = &movie.catalog_id;
        (query_flag(&query, "includeRecommendations") && state.suggested.contains(id))
            || (query_flag(&query, "includePopular") && state.popular.contains(id))
    };
    ok_response(
        state.catalog.iter().filter(is_requested).map(|movie| suggestion_json(&state, movie)).collect(),
    )
}

fn suggestion_json(state: &FakeLibraryState<MovieDetails>, movie: &FakeMovie) -> Value {
    let mut body = catalog_movie_json(movie);
    body["isExisting"] = json!(state.find_by_catalog_id(movie.catalog_id).is_some());
    body["isExcluded"] = json!(state.excluded.contains(&movie.catalog_id));
    body
}
