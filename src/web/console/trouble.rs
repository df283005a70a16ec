//! Page that replaces one that could not be rendered.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::frame::page;

#[derive(Template)]
#[template(path = "trouble.html")]
struct Trouble;

/// Logs the cause; the browser only learns that an error occurred.
pub(in crate::web) fn trouble(error: impl Into<anyhow::Error>) -> Response {
    tracing::error!(error = format!("{:#}", error.into()), "a page of the console could not be made");
    (StatusCode::SERVICE_UNAVAILABLE, page(&Trouble)).into_response()
}
