//! The page in place of one that could not be made.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::frame::page;

#[derive(Template)]
#[template(path = "trouble.html")]
struct Trouble;

/// The log gets the reason, the browser that there is one.
pub(in crate::web) fn trouble(error: impl Into<anyhow::Error>) -> Response {
    tracing::error!(error = format!("{:#}", error.into()), "a page of the console could not be made");
    (StatusCode::SERVICE_UNAVAILABLE, page(&Trouble)).into_response()
}
