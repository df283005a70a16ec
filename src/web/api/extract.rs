//! Extractors of the API. If one fails, the response is a problem document with the reason.

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;

/// JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<ConsoleState> for JsonBody<T> {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, console: &ConsoleState) -> Result<Self, ProblemDetails> {
        let extracted = axum::Json::<T>::from_request(request, console).await;
        extracted
            .map(|axum::Json(body)| Self(body))
            .map_err(|rejection| ProblemDetails::new(rejection.status(), rejection.body_text()))
    }
}

/// Query parameters, after the `?`.
pub(in crate::web) struct QueryParams<T>(pub(in crate::web) T);

impl<T: DeserializeOwned> FromRequestParts<ConsoleState> for QueryParams<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, console: &ConsoleState) -> Result<Self, ProblemDetails> {
        let extracted = Query::<T>::from_request_parts(parts, console).await;
        extracted
            .map(|Query(params)| Self(params))
            .map_err(|rejection| ProblemDetails::new(StatusCode::BAD_REQUEST, rejection.body_text()))
    }
}

/// Integer id in the path. Any other value is answered with 404.
#[derive(Debug, Clone, Copy)]
pub(in crate::web) struct PathId(pub(in crate::web) i64);

impl FromRequestParts<ConsoleState> for PathId {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, console: &ConsoleState) -> Result<Self, ProblemDetails> {
        match Path::<i64>::from_request_parts(parts, console).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(_) => Err(ProblemDetails::new(StatusCode::NOT_FOUND, "id must be an integer")),
        }
    }
}
