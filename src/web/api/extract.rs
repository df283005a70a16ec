//! Extractors of the API. If one fails, the response is a problem document with the reason.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::named_fields::{parse_object, parse_query};
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;

/// JSON body, which is an object.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<ConsoleState> for JsonBody<T> {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, console: &ConsoleState) -> Result<Self, ProblemDetails> {
        let axum::Json(value) = axum::Json::<Value>::from_request(request, console)
            .await
            .map_err(|rejection| unreadable_body(rejection.status()))?;
        let Value::Object(object) = value else {
            let detail = "the body must be a JSON object";
            return Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        };
        parse_object(object)
            .map(Self)
            .map_err(|detail| ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail))
    }
}

fn unreadable_body(status: StatusCode) -> ProblemDetails {
    let detail = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            "the body must be JSON, with the header Content-Type: application/json"
        }
        StatusCode::PAYLOAD_TOO_LARGE => "the body is over 64 KiB",
        StatusCode::BAD_REQUEST => "the body is not valid JSON",
        _ => "the body could not be read",
    };
    ProblemDetails::new(status, detail)
}

/// Query parameters, after the `?`.
pub(in crate::web) struct QueryParams<T>(pub(in crate::web) T);

impl<T: DeserializeOwned> FromRequestParts<ConsoleState> for QueryParams<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _console: &ConsoleState) -> Result<Self, ProblemDetails> {
        parse_query(parts.uri.query().unwrap_or_default())
            .map(Self)
            .map_err(|detail| ProblemDetails::new(StatusCode::BAD_REQUEST, detail))
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
