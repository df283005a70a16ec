//! Error page for a failed request.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::layout::render_page;

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage;

/// Logs the error and returns the error page, which does not contain it.
pub(in crate::web) fn error_response(error: impl Into<anyhow::Error>) -> Response {
    tracing::error!(error = format!("{:#}", error.into()), "failed to build a console page");
    (StatusCode::SERVICE_UNAVAILABLE, render_page(&ErrorPage)).into_response()
}
