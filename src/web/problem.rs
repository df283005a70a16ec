//! Error responses of the API: `application/problem+json`, RFC 9457.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// Reason for the status 404 of a path without a route.
pub(super) const NO_ROUTE: &str = "no API route has this path";
/// Reason for the status 405.
pub(super) const METHOD_NOT_ALLOWED: &str = "this path does not allow this method";

/// Problem document of a failed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemDetails {
    #[schema(value_type = u16, example = 404)]
    #[serde(serialize_with = "serialize_status")]
    status: StatusCode,
    /// Meaning of the status.
    title: &'static str,
    /// Reason why this request failed.
    detail: String,
}

impl ProblemDetails {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, title: status.canonical_reason().unwrap_or("Unknown"), detail: detail.into() }
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self)).into_response();
        let content_type = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn serialize_status<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}
