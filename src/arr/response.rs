//! Classification of responses by status, headers and body, before their data is parsed.

use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::{Response, StatusCode};
use serde_json::Value;

use super::{ArrError, error_message};
use crate::http::{is_web_page, redirect_message};

/// Converts an unsuccessful response into an [`ArrError`].
pub(super) fn check_response(response: &Response<Bytes>) -> Result<(), ArrError> {
    let status = response.status();
    let error = match status.as_u16() {
        200..=299 if is_web_page(response) => ArrError::WrongUrl("the response is a web page".into()),
        200..=299 => return Ok(()),
        300..=399 => ArrError::WrongUrl(redirect_message(response)),
        // Only a sign-in page or proxy in front of the API sends this header. A rejected key gives a 401 without it.
        401 if response.headers().contains_key(WWW_AUTHENTICATE) => {
            ArrError::WrongUrl("the server requires a username and password".into())
        }
        401 | 403 => ArrError::Unauthorized,
        404 if is_web_page(response) => ArrError::WrongUrl("the response is a web page".into()),
        404 => ArrError::NotFound,
        405 => ArrError::WrongUrl("no such endpoint".into()),
        400..=499 => ArrError::Refused(error_messages(response)),
        503 => ArrError::Unavailable(error_messages(response).join("; ")),
        other => ArrError::Server { status: other, message: error_messages(response).join("; ") },
    };
    Err(error)
}

/// Returns the error without the API key, which a proxy may repeat in its message. A key as short as a placeholder may be
/// an ordinary part of the message.
pub(super) fn redact_key(error: ArrError, key: &str) -> ArrError {
    let redact = |text: String| if key.len() < 8 { text } else { text.replace(key, "(key)") };
    match error {
        ArrError::Refused(messages) => ArrError::Refused(messages.into_iter().map(redact).collect()),
        ArrError::Unavailable(message) => ArrError::Unavailable(redact(message)),
        ArrError::Server { status, message } => ArrError::Server { status, message: redact(message) },
        ArrError::WrongUrl(message) => ArrError::WrongUrl(redact(message)),
        ArrError::Unreachable(_)
        | ArrError::NoResponse(_)
        | ArrError::Unauthorized
        | ArrError::NotFound
        | ArrError::Unreadable(_) => error,
    }
}

/// Returns the error messages of the instance, in any of its formats. Never reads `description`, a stack trace.
fn error_messages(response: &Response<Bytes>) -> Vec<String> {
    let messages = match serde_json::from_slice(response.body()) {
        Ok(Value::Array(failures)) => {
            failures.iter().filter_map(|failure| message_field(failure, "errorMessage")).collect()
        }
        Ok(body @ Value::Object(_)) => object_messages(&body),
        // With a bare value or no JSON, the status is the only information.
        Ok(_) | Err(_) => Vec::new(),
    };
    if messages.is_empty() { vec![status_reason(response.status())] } else { messages }
}

fn object_messages(body: &Value) -> Vec<String> {
    if let Some(Value::Object(fields)) = body.get("errors") {
        return fields.values().filter_map(Value::as_array).flatten().filter_map(cleaned_message).collect();
    }
    ["message", "errorMessage", "title"].iter().find_map(|key| message_field(body, key)).into_iter().collect()
}

fn message_field(object: &Value, key: &str) -> Option<String> {
    cleaned_message(object.get(key)?)
}

fn cleaned_message(value: &Value) -> Option<String> {
    value.as_str().map(error_message::plain_message).filter(|text| !text.is_empty())
}

fn status_reason(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("no reason given").to_lowercase()
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_TYPE, LOCATION};

    use super::*;

    #[track_caller]
    fn check(response: http::response::Builder, body: &'static str, expected: &str) {
        let outcome = check_response(&response.body(Bytes::from(body)).unwrap());
        let result = outcome.map_or_else(|error| format!("{error:?}"), |()| "success".into());
        assert_eq!(result, expected);
    }

    fn status(code: u16) -> http::response::Builder {
        Response::builder().status(code)
    }

    #[test]
    fn success_needs_no_body() {
        check(status(200), "", "success");
    }

    #[test]
    fn every_failed_validation_is_listed() {
        check(
            status(400),
            r#"[{"propertyName":"A","errorMessage":"Quality Profile does not exist"},
                {"propertyName":"B","errorMessage":"Root folder '/films' does not exist"}]"#,
            r#"Refused(["Quality Profile does not exist", "Root folder does not exist"])"#,
        );
    }

    #[test]
    fn malformed_request_body_is_a_rejection() {
        check(
            status(400),
            r#"{"title":"One or more validation errors occurred.","errors":{"$.year":["not a number"]}}"#,
            r#"Refused(["not a number"])"#,
        );
    }

    #[test]
    fn conflict_is_a_rejection() {
        check(status(409), r#"{"message":"Folder is busy"}"#, r#"Refused(["Folder is busy"])"#);
    }

    #[test]
    fn rejection_without_a_message_names_its_status() {
        check(status(409), "", r#"Refused(["conflict"])"#);
        check(status(400), r#"{"errors":{"$.year":["","\nat x.cs"]}}"#, r#"Refused(["bad request"])"#);
    }

    #[test]
    fn empty_401_means_a_missing_or_wrong_key() {
        check(status(401), "", "Unauthorized");
    }

    #[test]
    fn browser_sign_in_means_a_wrong_url() {
        check(
            status(401).header(WWW_AUTHENTICATE, "Basic realm=x"),
            "",
            r#"WrongUrl("the server requires a username and password")"#,
        );
    }

    #[test]
    fn redirect_means_a_wrong_url_and_names_its_target() {
        check(
            status(302).header(LOCATION, "/login?returnUrl=%2Fapi"),
            "",
            r#"WrongUrl("the server redirects to /login")"#,
        );
    }

    #[test]
    fn html_in_place_of_json_means_a_wrong_url() {
        check(
            status(200).header(CONTENT_TYPE, "text/html; charset=utf-8"),
            "<!doctype html>",
            r#"WrongUrl("the response is a web page")"#,
        );
        check(status(404), "\n<html>", r#"WrongUrl("the response is a web page")"#);
        check(status(405), "", r#"WrongUrl("no such endpoint")"#);
    }

    #[test]
    fn missing_record_is_not_found() {
        check(status(404), r#"{"title":"Not Found","status":404}"#, "NotFound");
    }

    #[test]
    fn startup_and_catalog_outage_are_unavailable() {
        check(status(503), r#"{"errorMessage":"starting up"}"#, r#"Unavailable("starting up")"#);
        check(status(503), r#"{"message":"search failed"}"#, r#"Unavailable("search failed")"#);
    }

    #[test]
    fn stack_trace_is_not_in_the_error() {
        check(
            status(500),
            r#"{"message":"Value is null\n at C:\\x.cs","description":"System.Exception at /src/x.cs:12"}"#,
            r#"Server { status: 500, message: "Value is null" }"#,
        );
    }
}
