//! Fake Radarr: server identity, additions, queue and calendar.

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fake_server::{CalendarFixture, FakeLibraryState, FakeServer, ServerIdentity};
use super::library_api::LibraryKind;
use super::media_fixtures::{FakeMovie, MovieDetails};
use super::movie_api;
use super::movie_json::{catalog_movie_json, library_movie_json, movie_outside_library};
use super::release_search::SearchReason;
use super::responses::{
    RequestQuery, ValidationFailure, exception_response, malformed_body_response, ok_response, page_response,
    query_flag, query_window, unknown_catalog_id, utc_midnight, validation_response,
};

pub(super) const AVAILABILITIES: [&str; 5] = ["tba", "announced", "inCinemas", "released", "deleted"];
const MONITOR_OPTIONS: [&str; 3] = ["movieOnly", "movieAndCollection", "none"];

pub type FakeRadarr = FakeServer<MovieDetails>;

impl FakeRadarr {
    /// Adds a digital release on this day. The movie need not be in the library.
    pub fn add_calendar_entry(&self, title: &str, date: Date) {
        let mut state = self.lock_state();
        match state.find_title(title).map(|movie| movie.id) {
            Some(id) => {
                for movie in state.library.iter_mut().filter(|movie| movie.id == id) {
                    movie.details.digital = Some(date);
                }
            }
            None => {
                if let Some(at) = utc_midnight(date) {
                    state.calendar.push(CalendarFixture { title: title.to_owned(), at });
                }
            }
        }
    }
}

impl LibraryKind for MovieDetails {
    const SERVER: ServerIdentity = ServerIdentity {
        name: "Radarr",
        version: "6.3.0.10514",
        api_key: "facade00facade00facade00facade01",
        root: "/movies",
        path: "movie",
        catalog_id: "tmdbId",
        library_id: "movieId",
        catalog_service: "RadarrAPI",
        file_deleted: "movieFileDeleted",
        events: &["onMovieAdded", "onMovieDelete", "onMovieFileDelete"],
    };

    fn kind_routes(radarr: FakeRadarr) -> Router {
        Router::new()
            .route("/movie", post(post_movie))
            .route("/queue", get(list_queue))
            .route("/calendar", get(list_calendar))
            .with_state(radarr.clone())
            .merge(movie_api::routes(radarr))
    }

    fn library_title_json(state: &FakeLibraryState<Self>, movie: &FakeMovie) -> Value {
        library_movie_json(state, movie)
    }

    fn catalog_title_json(movie: &FakeMovie) -> Value {
        catalog_movie_json(movie)
    }

    fn history_records(state: &FakeLibraryState<Self>, query: &RequestQuery) -> Vec<(&'static str, Value)> {
        movie_api::history_records(state, query)
    }

    fn unknown_title(id: i64) -> Response {
        exception_response(StatusCode::NOT_FOUND, &format!("Movie with ID {id} does not exist"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MovieAdditionBody {
    #[serde(default)]
    tmdb_id: i64,
    #[serde(default)]
    quality_profile_id: i64,
    root_folder_path: Option<String>,
    monitored: Option<bool>,
    minimum_availability: Option<String>,
    #[serde(default)]
    add_options: MovieAddOptions,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MovieAddOptions {
    monitor: Option<String>,
    #[serde(default)]
    search_for_movie: bool,
}

async fn post_movie(State(radarr): State<FakeRadarr>, body: Bytes) -> Response {
    let Ok(addition) = serde_json::from_slice::<MovieAdditionBody>(&body) else {
        return malformed_body_response("$");
    };
    let MovieAdditionBody { minimum_availability: availability, add_options, .. } = &addition;
    let availability = availability.as_deref().unwrap_or("released");
    let Some(availability) = AVAILABILITIES.into_iter().find(|known| *known == availability) else {
        return malformed_body_response("$.minimumAvailability");
    };
    if add_options.monitor.as_deref().is_some_and(|option| !MONITOR_OPTIONS.contains(&option)) {
        return malformed_body_response("$.addOptions.monitor");
    }
    let mut state = radarr.lock_state();
    let mut failures =
        state.validate_addition(addition.quality_profile_id, addition.root_folder_path.as_deref());
    if state.find_by_catalog_id(addition.tmdb_id).is_some() {
        failures.push(ValidationFailure {
            property: "TmdbId",
            message: "This movie has already been added".to_owned(),
            attempted: json!(addition.tmdb_id),
            code: "MovieExistsValidator",
        });
    }
    if !failures.is_empty() {
        return validation_response(&failures);
    }
    let search = add_options.search_for_movie;
    let root = addition.root_folder_path.unwrap_or_default();
    let Some(mut movie) = state.catalog.iter().find(|movie| movie.catalog_id == addition.tmdb_id).cloned()
    else {
        return validation_response(&[unknown_catalog_id("TmdbId", "movie", &root, addition.tmdb_id)]);
    };
    movie.monitored = addition.monitored.unwrap_or(true);
    movie.details.availability = availability;
    let id = state.add_by_request(movie, addition.quality_profile_id, &root);
    if search {
        state.search_release(id, SearchReason::Automatic);
    }
    state.addition_response(id)
}

async fn list_queue(State(radarr): State<FakeRadarr>, Query(query): Query<RequestQuery>) -> Response {
    let state = radarr.lock_state();
    let mut rows = Vec::new();
    for download in state.sorted_downloads(&query) {
        let mut row = download.queue_row_json(0);
        match state.find_title(&download.title) {
            Some(movie) => {
                row["movieId"] = json!(movie.id);
                if query_flag(&query, "includeMovie") {
                    row["movie"] = library_movie_json(&state, movie);
                }
            }
            None if !query_flag(&query, "includeUnknownMovieItems") => continue,
            None => {}
        }
        rows.push(row);
    }
    page_response(rows, "timeleft", &query)
}

async fn list_calendar(State(radarr): State<FakeRadarr>, Query(query): Query<RequestQuery>) -> Response {
    let state = radarr.lock_state();
    let (start, end) = query_window(&query, state.clock.now());
    let is_in_window =
        |date: Option<Date>| date.and_then(utc_midnight).is_some_and(|at| (start..=end).contains(&at));
    let outside_library = state
        .calendar
        .iter()
        .enumerate()
        .map(|(index, entry)| movie_outside_library(&entry.title, entry.at, index));
    let movies = state.library.iter().cloned().chain(outside_library).filter(|movie| {
        let MovieDetails { cinema, digital, physical, .. } = movie.details;
        (movie.monitored || query_flag(&query, "unmonitored"))
            && [cinema, digital, physical].into_iter().any(is_in_window)
    });
    ok_response(movies.map(|movie| library_movie_json(&state, &movie)).collect())
}
