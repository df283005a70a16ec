//! Libraries of both servers: their creation, and the routes that differ in the kind of title only.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use super::fake_server::{FakeLibraryState, FakeServer, ServerIdentity};
use super::media_fixtures::FakeTitle;
use super::release_search::ReleaseSearch;
use super::request_guard::in_process;
use super::responses::{
    RequestQuery, created_response, exception_response, not_found, ok_response, records_since,
};
use super::search::search_catalog;
use super::{activity_api, server_api};
use crate::clock::Clock;
use crate::http::InProcess;

/// Kind of library that a server holds: movies or series.
pub trait LibraryKind: ReleaseSearch {
    const SERVER: ServerIdentity;

    /// Returns the routes that only this server has.
    fn own_routes(server: FakeServer<Self>) -> Router;

    /// Returns the JSON of a title in the library.
    fn owned_json(library: &FakeLibraryState<Self>, item: &FakeTitle<Self>) -> Value;

    /// Returns the JSON of a search result that is in the library.
    fn owned_hit_json(library: &FakeLibraryState<Self>, item: &FakeTitle<Self>) -> Value {
        Self::owned_json(library, item)
    }

    /// Returns the JSON of a title that is in the catalog but not in the library.
    fn catalog_json(item: &FakeTitle<Self>) -> Value;

    /// Returns the rows of the history, each with its event name.
    fn history_records(library: &FakeLibraryState<Self>, query: &RequestQuery) -> Vec<(&'static str, Value)>;

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

    /// Returns the router of the server, for a socket.
    pub fn router(&self) -> Router {
        let titles = format!("/{}", D::SERVER.path);
        let api = Router::new()
            .route(&titles, get(list_titles::<D>))
            .route(&format!("{titles}/lookup"), get(look_up_titles::<D>))
            .route(&format!("{titles}/{{id}}"), get(show_title::<D>).delete(delete_title::<D>))
            .route(&format!("/history{titles}"), get(title_history::<D>))
            .route("/history/since", get(history_since::<D>))
            .with_state(self.clone())
            .merge(D::own_routes(self.clone()))
            .merge(activity_api::routes(self.clone()))
            .merge(server_api::routes(self.clone()));
        self.gate.guard_router(api)
    }

    /// Returns the handler of the server, for calls without a socket.
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
        created_response(self.title(id).map_or(Value::Null, |item| D::owned_json(self, item)))
    }
}

async fn list_titles<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Query(query): Query<RequestQuery>,
) -> Response {
    let wanted = query.get(D::SERVER.catalog_id).and_then(|id| id.parse::<i64>().ok());
    let library = fake.lock_state();
    let found = library.library.iter().filter(|item| wanted.is_none_or(|id| item.catalog_id == id));
    ok_response(found.map(|item| D::owned_json(&library, item)).collect())
}

async fn show_title<D: LibraryKind>(State(fake): State<FakeServer<D>>, Path(id): Path<String>) -> Response {
    let library = fake.lock_state();
    let found = id.parse().ok().and_then(|id| library.title(id));
    found.map_or_else(not_found, |item| ok_response(D::owned_json(&library, item)))
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
    let library = fake.lock_state();
    let describe = |found: &FakeTitle<D>| match library.in_library(found.catalog_id) {
        Some(item) => D::owned_hit_json(&library, item),
        None => D::catalog_json(found),
    };
    ok_response(search_catalog(&library.catalog, term).into_iter().map(describe).collect())
}

async fn delete_title<D: LibraryKind>(State(fake): State<FakeServer<D>>, Path(id): Path<i64>) -> Response {
    let mut library = fake.lock_state();
    if library.remove_title(id).is_none() {
        return D::unknown_title(id);
    }
    library.removed.push(id);
    StatusCode::OK.into_response()
}

async fn title_history<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Query(query): Query<RequestQuery>,
) -> Response {
    let mut records = D::history_records(&fake.lock_state(), &query);
    let field = D::SERVER.library_id;
    records.retain(|(_, record)| query.get(field) == Some(&record[field].to_string()));
    records_since(records, &query)
}

async fn history_since<D: LibraryKind>(
    State(fake): State<FakeServer<D>>,
    Query(query): Query<RequestQuery>,
) -> Response {
    records_since(D::history_records(&fake.lock_state(), &query), &query)
}
