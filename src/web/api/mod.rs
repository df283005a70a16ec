//! API under `/api/v1`, one file per noun. The document and the router get each route from the same line, so neither
//! has a route that the other lacks.

mod conversations;
pub(super) mod extract;
mod memory;
mod messages;
mod openapi;
mod paging;
mod turns;
mod users;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Caller;
use super::console_state::ConsoleState;
use super::problem::Problem;
use super::sse;
use crate::store::db::DbError;

/// Largest body. A message has 1,600 characters at most.
const MAX_BODY_BYTES: usize = 64 << 10;
const PREFIX: &str = "/api/v1";

pub(super) fn router() -> Router<ConsoleState> {
    let api = OpenApiRouter::new()
        .routes(routes!(conversations::list))
        .routes(routes!(conversations::show))
        .routes(routes!(conversations::reopen))
        .routes(routes!(sse::events))
        .routes(routes!(memory::context))
        .routes(routes!(memory::count))
        .routes(routes!(memory::add))
        .routes(routes!(memory::forget))
        .routes(routes!(memory::process_pending))
        .routes(routes!(messages::send))
        .routes(routes!(messages::show))
        .routes(routes!(turns::resume))
        .routes(routes!(turns::cancel))
        .routes(routes!(users::list))
        .routes(routes!(users::approve))
        .routes(routes!(users::block))
        .routes(routes!(users::clear))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "the API has no such address"));
    let (router, described) =
        OpenApiRouter::with_openapi(openapi::head()).nest(PREFIX, api).split_for_parts();
    let document = openapi::completed(described);
    let show = move |_caller: Caller| std::future::ready(axum::Json(document.clone()));
    router
        .route("/api/v1/openapi.json", get(show))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address is used with another method")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Problem for a failed database operation; nothing was changed.
pub(super) fn unavailable(error: DbError) -> Problem {
    tracing::error!(error = format!("{:#}", anyhow::Error::from(error)), "the API could not serve");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer, try again later")
}
