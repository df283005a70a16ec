//! Prometheus endpoint, and the middleware that counts webhook responses.

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::auth::Caller;
use super::console_state::ConsoleState;
use super::problem::ProblemDetails;
use crate::metrics::Metrics;
use crate::store::queue::backlog::load_backlog;

const OPENMETRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn show_metrics(State(console): State<ConsoleState>, _caller: Caller) -> Response {
    let now = console.clock.now();
    let text = match console.db.read(move |conn| load_backlog(conn, now)).await {
        Ok(backlog) => console.metrics.render(&backlog, now).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match text {
        Ok(text) => ([(CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(error, "failed to render metrics");
            ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "the metrics are unavailable")
                .into_response()
        }
    }
}

/// Counts the responses of a listener by route; all unknown routes count as one.
pub(super) async fn count_response(
    State(metrics): State<Metrics>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let webhook = route.map_or_else(|| "other".to_owned(), |route| route.as_str().to_owned());
    metrics.webhook_answered(webhook, response.status().as_u16());
    response
}
