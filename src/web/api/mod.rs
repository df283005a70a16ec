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
use super::problem::ProblemDetails;
use super::sse;
use crate::store::database::db::DbError;

/// Largest body. A message has 1,600 characters at most.
const MAX_BODY_BYTES: usize = 64 << 10;
const PREFIX: &str = "/api/v1";

pub(super) fn api_router() -> Router<ConsoleState> {
    let api = OpenApiRouter::new()
        .routes(routes!(conversations::list_conversations))
        .routes(routes!(conversations::show_conversation))
        .routes(routes!(conversations::reopen_conversation))
        .routes(routes!(sse::follow_conversation))
        .routes(routes!(memory::show_memory_context))
        .routes(routes!(memory::show_memory_stats))
        .routes(routes!(memory::add_memory_response))
        .routes(routes!(memory::forget_memory_response))
        .routes(routes!(memory::process_pending_memory))
        .routes(routes!(messages::send_message))
        .routes(routes!(messages::show_message))
        .routes(routes!(turns::resume_turn))
        .routes(routes!(turns::cancel_turn))
        .routes(routes!(users::list_users))
        .routes(routes!(users::approve_user))
        .routes(routes!(users::block_user))
        .routes(routes!(users::clear_conversation))
        .fallback(async || ProblemDetails::new(StatusCode::NOT_FOUND, "the API has no such address"));
    let (router, described) =
        OpenApiRouter::with_openapi(openapi::base_document()).nest(PREFIX, api).split_for_parts();
    let document = openapi::complete_document(described);
    let show = move |_caller: Caller| std::future::ready(axum::Json(document.clone()));
    router
        .route("/api/v1/openapi.json", get(show))
        .method_not_allowed_fallback(async || {
            ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, "this address is used with another method")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Problem for a failed database operation; nothing was changed.
pub(super) fn database_unavailable(error: DbError) -> ProblemDetails {
    tracing::error!(error = format!("{:#}", anyhow::Error::from(error)), "failed to serve an API request");
    ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer, try again later")
}
