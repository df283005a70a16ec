//! API under `/api/v1`, one file per resource. The router and the OpenAPI document are generated from the same routes.

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
const API_PREFIX: &str = "/api/v1";

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
        .fallback(async || ProblemDetails::new(StatusCode::NOT_FOUND, "no API route has this path"));
    let (router, document) =
        OpenApiRouter::with_openapi(openapi::base_document()).nest(API_PREFIX, api).split_for_parts();
    let document = openapi::complete_document(document);
    let show_document = move |_caller: Caller| std::future::ready(axum::Json(document.clone()));
    router
        .route("/api/v1/openapi.json", get(show_document))
        .method_not_allowed_fallback(async || {
            ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not allow this method")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Builds the problem document for a failed database operation, which changed nothing.
pub(super) fn database_unavailable(error: DbError) -> ProblemDetails {
    tracing::error!(error = format!("{:#}", anyhow::Error::from(error)), "failed to serve an API request");
    ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "the database is unavailable, try again later")
}
