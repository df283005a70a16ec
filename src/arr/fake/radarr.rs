//! Fake Radarr: the routes and their responses.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{
    Asked, Failure, created, flag, midnight, misshapen, not_found, ok, page, refused, thrown, unknown_id,
    window,
};
use super::finds::Reason;
use super::gate::in_process;
use super::item::{FakeMovie, Film};
use super::movie_json::{catalogued, owned, stray};
use super::search::search;
use super::world::{App, Dated, Fake};
use super::{activity_api, films, settings};
use crate::clock::Clock;
use crate::http::InProcess;

pub(super) const AVAILABILITIES: [&str; 5] = ["tba", "announced", "inCinemas", "released", "deleted"];
const MONITORS: [&str; 3] = ["movieOnly", "movieAndCollection", "none"];

pub type FakeRadarr = Fake<Film>;

impl FakeRadarr {
    pub fn new() -> Self {
        Self::at(Clock::System)
    }

    /// Creates a server that uses this clock.
    pub fn at(clock: Clock) -> Self {
        Self::empty(App::Radarr, clock)
    }

    /// Router of the server, for a socket.
    pub fn router(&self) -> Router {
        let api = Router::new()
            .route("/movie", get(list).post(add))
            .route("/movie/lookup", get(lookup))
            .route("/movie/{id}", get(one).delete(delete))
            .route("/queue", get(queue))
            .route("/calendar", get(calendar))
            .with_state(self.clone())
            .merge(films::routes(self.clone()))
            .merge(activity_api::routes(self.clone()))
            .merge(settings::routes(self.clone()));
        self.gate.guard(api)
    }

    /// Handler of the server, for calls without a socket.
    pub fn in_process(&self) -> InProcess {
        in_process(self.router())
    }

    /// Adds a digital release on this day; a movie that is not in the library appears in the calendar too.
    pub fn calendar(&self, title: &str, date: Date) {
        let mut world = self.lock();
        match world.named(title).map(|item| item.id) {
            Some(id) => {
                for item in world.library.iter_mut().filter(|item| item.id == id) {
                    item.details.digital = Some(date);
                }
            }
            None => {
                if let Some(at) = midnight(date) {
                    world.calendar.push(Dated { title: title.to_owned(), at });
                }
            }
        }
    }
}

impl Default for FakeRadarr {
    fn default() -> Self {
        Self::new()
    }
}

async fn list(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    let wanted = query.get("tmdbId").and_then(|id| id.parse::<i64>().ok());
    let world = radarr.lock();
    let found = world.library.iter().filter(|item| wanted.is_none_or(|id| item.catalog_id == id));
    ok(found.map(|item| owned(&world, item)).collect())
}

async fn one(State(radarr): State<FakeRadarr>, Path(id): Path<String>) -> Response {
    let world = radarr.lock();
    let found = world.library.iter().find(|item| item.id.to_string() == id);
    found.map_or_else(not_found, |item| ok(owned(&world, item)))
}

async fn lookup(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    let term = query.get("term").map_or("", |term| term.trim());
    if term.is_empty() {
        let message = "Search for '' failed. Unable to communicate with RadarrAPI.";
        return thrown(StatusCode::SERVICE_UNAVAILABLE, message);
    }
    let world = radarr.lock();
    let describe = |found: &FakeMovie| match world.in_library(found.catalog_id) {
        Some(item) => owned(&world, item),
        None => catalogued(found),
    };
    ok(search(&world.catalog, term).into_iter().map(describe).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Addition {
    #[serde(default)]
    tmdb_id: i64,
    #[serde(default)]
    quality_profile_id: i64,
    root_folder_path: Option<String>,
    monitored: Option<bool>,
    minimum_availability: Option<String>,
    #[serde(default)]
    add_options: AddOptions,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AddOptions {
    monitor: Option<String>,
    #[serde(default)]
    search_for_movie: bool,
}

async fn add(State(radarr): State<FakeRadarr>, body: Bytes) -> Response {
    let Ok(addition) = serde_json::from_slice::<Addition>(&body) else { return misshapen("$") };
    let Addition { minimum_availability: availability, add_options, .. } = &addition;
    let availability = availability.as_deref().unwrap_or("released");
    let Some(availability) = AVAILABILITIES.into_iter().find(|known| *known == availability) else {
        return misshapen("$.minimumAvailability");
    };
    if add_options.monitor.as_deref().is_some_and(|given| !MONITORS.contains(&given)) {
        return misshapen("$.addOptions.monitor");
    }
    let mut world = radarr.lock();
    let mut failures = world.check(addition.quality_profile_id, addition.root_folder_path.as_deref());
    if world.in_library(addition.tmdb_id).is_some() {
        failures.push(Failure {
            property: "TmdbId",
            message: "This movie has already been added".to_owned(),
            attempted: json!(addition.tmdb_id),
            code: "MovieExistsValidator",
        });
    }
    if !failures.is_empty() {
        return refused(&failures);
    }
    let search = add_options.search_for_movie;
    let root = addition.root_folder_path.unwrap_or_default();
    let Some(mut item) = world.catalog.iter().find(|item| item.catalog_id == addition.tmdb_id).cloned()
    else {
        return refused(&[unknown_id("TmdbId", "movie", &root, addition.tmdb_id)]);
    };
    item.monitored = addition.monitored.unwrap_or(true);
    item.details.availability = availability;
    let id = world.add_by_request(item, addition.quality_profile_id, &root);
    if search {
        world.search(id, Reason::ByItself);
    }
    created(world.library.iter().find(|item| item.id == id).map_or(Value::Null, |item| owned(&world, item)))
}

async fn delete(State(radarr): State<FakeRadarr>, Path(id): Path<i64>) -> Response {
    let mut world = radarr.lock();
    match world.take(id) {
        Some(_) => {
            world.removed.push(id);
            StatusCode::OK.into_response()
        }
        None => thrown(StatusCode::NOT_FOUND, &format!("Movie with ID {id} does not exist")),
    }
}

async fn queue(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    let world = radarr.lock();
    let mut rows = Vec::new();
    for download in world.in_queue_order(&query) {
        let mut row = download.row(0);
        match world.named(&download.title) {
            Some(item) => {
                row["movieId"] = json!(item.id);
                if flag(&query, "includeMovie") {
                    row["movie"] = owned(&world, item);
                }
            }
            None if !flag(&query, "includeUnknownMovieItems") => continue,
            None => {}
        }
        rows.push(row);
    }
    page(rows, "timeleft", &query)
}

async fn calendar(State(radarr): State<FakeRadarr>, Query(query): Query<Asked>) -> Response {
    let world = radarr.lock();
    let (start, end) = window(&query, world.clock.now());
    let inside = |date: Option<Date>| date.and_then(midnight).is_some_and(|at| (start..=end).contains(&at));
    let strays = world.calendar.iter().enumerate().map(|(place, entry)| stray(&entry.title, entry.at, place));
    let films = world.library.iter().cloned().chain(strays).filter(|item| {
        let Film { cinema, digital, physical, .. } = item.details;
        (item.monitored || flag(&query, "unmonitored")) && [cinema, digital, physical].into_iter().any(inside)
    });
    ok(films.map(|item| owned(&world, &item)).collect())
}
