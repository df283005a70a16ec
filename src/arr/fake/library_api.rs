//! Library API that both servers share, generic over the kind of title, and the creation of a server.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use super::fake_server::{FakeLibraryState, FakeServer, ServerIdentity};
use super::media_fixtures::FakeTitle;
use super::posters::FakePoster;
use super::release_search::ReleaseSearch;
use super::request_guard::in_process;
use super::responses::{
    RequestQuery, created_response, exception_response, history_response, not_found, ok_response,
};
use super::search::search_catalog;
use super::{activity_api, server_api};
use crate::clock::Clock;
use crate::http::InProcess;

/// Kind of titles that a server manages: movies or series.
pub trait LibraryKind: ReleaseSearch {
    const SERVER: ServerIdentity;

    /// Returns the routes that only this server has.
    fn kind_routes(server: FakeServer<Self>) -> Router;

    /// Returns the JSON of a title in the library.
    fn library_title_json(state: &FakeLibraryState<Self>, title: &FakeTitle<Self>) -> Value;

    /// Returns the JSON of a catalog search result that is in the library.
    fn library_hit_json(state: &FakeLibraryState<Self>, title: &FakeTitle<Self>) -> Value {
        Self::library_title_json(state, title)
    }

    /// Returns the JSON of a title that is in the catalog but not in the library.
    fn catalog_title_json(title: &FakeTitle<Self>) -> Value;

    /// Returns the event name and the JSON of each history row.
    fn history_records(state: &FakeLibraryState<Self>, query: &RequestQuery) -> Vec<(&'static str, Value)>;

    /// Builds the response to the deletion of a title that does not exist.
    fn unknown_title(id: i64) -> Response;
}

impl<D: LibraryKind> FakeServer<D> {
    pub fn new() -> Self {
        Self::with_clock(Clock::System)
    }

    /// Creates a server that uses this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self::empty(&D::SERVER, clock)
    }

    /// Returns the router of the server, for use with a socket.
    pub fn router(&self) -> Router {
        let titles = format!("/{}", D::SERVER.path);
        let api = Router::new()
            .route(&titles, get(list_titles::<D>))
            .route(&format!("{titles}/lookup"), get(look_up_titles::<D>))
            .route(&format!("{titles}/{{id}}"), get(get_title::<D>).delete(delete_title::<D>))
            .route(&format!("/history{titles}"), get(title_history::<D>))
            .route("/history/since", get(history_since::<D>))
            .route("/mediacover/{id}/{file}", get(get_poster::<D>))
            .with_state(self.clone())
            .merge(D::kind_routes(self.clone()))
            .merge(activity_api::routes(self.clone()))
            .merge(server_api::routes(self.clone()));
        self.guard.guard_router(api)
    }

    /// Returns a function that calls the server without a socket.
    pub fn in_process(&self) -> InProcess {
        in_process(self.router())
    }
}

impl<D: LibraryKind> Default for FakeServer<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: LibraryKind> FakeLibraryState<D> {
    /// Builds the response to an addition.
    pub(super) fn addition_response(&self, id: i64) -> Response {
        created_response(self.title(id).map_or(Value::Null, |title| D::library_title_json(self, title)))
    }
}

async fn list_titles<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Query(query): Query<RequestQuery>,
) -> Response {
    let catalog_id = query.get(D::SERVER.catalog_id).and_then(|id| id.parse::<i64>().ok());
    let state = fake.lock_state();
    let found = state.library.iter().filter(|title| catalog_id.is_none_or(|id| title.catalog_id == id));
    ok_response(found.map(|title| D::library_title_json(&state, title)).collect())
}

async fn get_poster<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Path((id, _file)): Path<(i64, String)>,
) -> Response {
    let state = fake.lock_state();
    if state.title(id).is_none() {
        return not_found();
    }
    let FakePoster { status, content_type, location, body } = state.poster.clone();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, [(CONTENT_TYPE, content_type)], body).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(LOCATION, HeaderValue::from_static(location));
    }
    response
}

async fn get_title<D: LibraryKind>(State(fake): State<FakeServer<D>>, Path(id): Path<String>) -> Response {
    let state = fake.lock_state();
    let found = id.parse().ok().and_then(|id| state.title(id));
    found.map_or_else(not_found, |title| ok_response(D::library_title_json(&state, title)))
}

async fn look_up_titles<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Query(query): Query<RequestQuery>,
) -> Response {
    let term = query.get("term").map_or("", |term| term.trim());
    if term.is_empty() {
        let service = D::SERVER.catalog_service;
        let message = format!("Search for '' failed. Unable to communicate with {service}.");
        return exception_response(StatusCode::SERVICE_UNAVAILABLE, &message);
    }
    let state = fake.lock_state();
    let to_json = |hit: &FakeTitle<D>| match state.find_by_catalog_id(hit.catalog_id) {
        Some(title) => D::library_hit_json(&state, title),
        None => D::catalog_title_json(hit),
    };
    ok_response(search_catalog(&state.catalog, term).into_iter().map(to_json).collect())
}

async fn delete_title<D: LibraryKind>(State(fake): State<FakeServer<D>>, Path(id): Path<i64>) -> Response {
    let mut state = fake.lock_state();
    if state.remove_title(id).is_none() {
        return D::unknown_title(id);
    }
    state.removed.push(id);
    StatusCode::OK.into_response()
}

async fn title_history<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Query(query): Query<RequestQuery>,
) -> Response {
    let mut records = D::history_records(&fake.lock_state(), &query);
    let field = D::SERVER.library_id;
    records.retain(|(_, record)| query.get(field) == Some(&record[field].to_string()));
    history_response(records, &query)
}

async fn history_since<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Query(query): Query<RequestQuery>,
) -> Response {
    history_response(D::history_records(&fake.lock_state(), &query), &query)
}
