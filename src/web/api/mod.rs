//! API under `/api/v1`, one file per resource. The router and the OpenAPI document are generated from the same routes.

mod audit;
mod conversations;
mod deliveries;
pub(super) mod description;
pub(super) mod extract;
mod memory;
mod messages;
mod named_fields;
mod openapi;
mod paging;
mod requests;
mod scoped_routes;
mod settings;
mod spend;
mod titles;
mod turns;
mod user_changes;
mod users;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::routing::get;
use axum::{Extension, Router};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Caller;
use super::auth::route_scopes::{RequiredScope, RouteScopes};
use super::console_state::ConsoleState;
use super::problem::{METHOD_NOT_ALLOWED, NO_ROUTE, ProblemDetails};
use super::{metrics, sse};
use crate::store::database::db::DbError;
use description::ApiDescription;
use scoped_routes::ScopedRoutes;

/// Largest body. A message has 1,600 characters at most.
const MAX_BODY_BYTES: usize = 64 << 10;
const API_PREFIX: &str = "/api/v1";

/// Routes for programs, with their scopes and their description.
pub(super) struct Api {
    pub(super) router: Router<ConsoleState>,
    pub(super) scopes: RouteScopes,
    pub(super) description: Extension<Arc<ApiDescription>>,
}

pub(super) fn build_api() -> Api {
    use RequiredScope::{Admin, Read, Write};
    let routes = ScopedRoutes::default()
        .routes(Read, routes!(audit::list_audit_entries))
        .routes(Read, routes!(conversations::list_conversations))
        .routes(Read, routes!(conversations::show_conversation))
        .routes(Write, routes!(conversations::reopen_conversation))
        .routes(Read, routes!(sse::follow_conversation))
        .routes(Read, routes!(deliveries::list_deliveries))
        .routes(Write, routes!(deliveries::resend_delivery))
        .routes(Read, routes!(memory::show_memory_context))
        .routes(Read, routes!(memory::show_memory_stats))
        .routes(Write, routes!(memory::add_memory_response))
        .routes(Write, routes!(memory::forget_memory_response))
        .routes(Write, routes!(memory::process_pending_memory))
        .routes(Write, routes!(messages::send_message))
        .routes(Read, routes!(messages::show_message))
        .routes(Read, routes!(requests::list_requests))
        .routes(Write, routes!(requests::decline_request))
        .routes(Admin, routes!(settings::list_settings, settings::change_settings))
        .routes(Read, routes!(spend::show_spend))
        .routes(Read, routes!(titles::list_titles))
        .routes(Write, routes!(turns::resume_turn))
        .routes(Write, routes!(turns::cancel_turn))
        .routes(Read, routes!(users::list_users))
        .routes(Write, routes!(users::approve_user))
        .routes(Write, routes!(users::block_user))
        .routes(Write, routes!(users::clear_conversation))
        .routes(Admin, routes!(user_changes::change_user));
    let (router, mut scopes) = routes.into_parts();
    let router = router.fallback(async || ProblemDetails::new(StatusCode::NOT_FOUND, NO_ROUTE));
    let (router, document) =
        OpenApiRouter::with_openapi(openapi::base_document()).nest(API_PREFIX, router).split_for_parts();
    let document = openapi::complete_document(document);
    let description = Extension(Arc::new(ApiDescription::from_document(document.clone(), &scopes)));
    let show_document = move |_caller: Caller| std::future::ready(axum::Json(document.clone()));
    let router = router
        .route("/api/v1/openapi.json", get(show_document))
        .route("/metrics", get(metrics::show_metrics))
        .method_not_allowed_fallback(async || {
            ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED)
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    for path in ["/api/v1/openapi.json", "/metrics"] {
        scopes.declare(Method::GET, path.to_owned(), Read);
    }
    Api { router, scopes, description }
}

/// Builds the problem document for a failed database operation, which changed nothing.
pub(super) fn database_unavailable(error: DbError) -> ProblemDetails {
    tracing::error!(error = format!("{:#}", anyhow::Error::from(error)), "failed to serve an API request");
    ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "the database is unavailable, try again later")
}
