//! Interpretation of the status, the headers and the body of a response, before any data is read from it.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde_json::Value;

use super::{ArrError, error_message};

/// Converts an unsuccessful response into the error of its kind of failure.
pub(super) fn check_response(response: &Response<Bytes>) -> Result<(), ArrError> {
    let status = response.status();
    let error = match status.as_u16() {
        200..=299 if is_page(response) => ArrError::WrongUrl("it answers with a web page".into()),
        200..=299 => return Ok(()),
        300..=399 => ArrError::WrongUrl(redirect_target(response)),
        // The response to a refused key has no such header. This response comes from the browser sign-in, outside the
        // API.
        401 if response.headers().contains_key(WWW_AUTHENTICATE) => {
            ArrError::WrongUrl("it asks for a sign-in with name and password".into())
        }
        401 | 403 => ArrError::Unauthorized,
        404 if is_page(response) => ArrError::WrongUrl("it answers with a web page".into()),
        404 => ArrError::NotFound,
        405 => ArrError::WrongUrl("it knows no such API".into()),
        400..=499 => ArrError::Refused(validation_messages(response)),
        503 => ArrError::Unavailable(validation_messages(response).join("; ")),
        other => ArrError::Server { status: other, message: validation_messages(response).join("; ") },
    };
    Err(error)
}

fn is_page(response: &Response<Bytes>) -> bool {
    let html = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|content_type| content_type.as_bytes().starts_with(b"text/html"));
    html || response.body().trim_ascii_start().starts_with(b"<")
}

fn redirect_target(response: &Response<Bytes>) -> String {
    // A target that is not text is of no use to a reader.
    let target = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    match target {
        // The query of the target may repeat the query of the request.
        Some(target) => format!("it redirects to {}", target.split('?').next().unwrap_or(target)),
        None => "it redirects".into(),
    }
}

/// Returns the error messages of the instance, in every form that it uses. Its `description` is a stack trace and is
/// not read.
fn validation_messages(response: &Response<Bytes>) -> Vec<String> {
    let message = match serde_json::from_slice(response.body()) {
        Ok(Value::Array(failures)) => {
            failures.iter().filter_map(|it| text_field(it, "errorMessage")).collect()
        }
        Ok(body @ Value::Object(_)) => object_complaints(&body),
        // With a bare value or no JSON, the status is the only information.
        Ok(_) | Err(_) => Vec::new(),
    };
    if message.is_empty() { vec![status_reason(response.status())] } else { message }
}

fn object_complaints(body: &Value) -> Vec<String> {
    if let Some(Value::Object(fields)) = body.get("errors") {
        return fields.values().filter_map(Value::as_array).flatten().filter_map(error_sentence).collect();
    }
    ["message", "errorMessage", "title"].iter().find_map(|key| text_field(body, key)).into_iter().collect()
}

fn text_field(object: &Value, key: &str) -> Option<String> {
    error_sentence(object.get(key)?)
}

fn error_sentence(text: &Value) -> Option<String> {
    text.as_str().map(error_message::plain_message).filter(|text| !text.is_empty())
}

fn status_reason(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("no reason given").to_lowercase()
}

#[cfg(test)]
mod tests {
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
    fn deletion_succeeds_without_a_body() {
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
    fn wrong_type_is_a_refusal() {
        check(
            status(400),
            r#"{"title":"One or more validation errors occurred.","errors":{"$.year":["not a number"]}}"#,
            r#"Refused(["not a number"])"#,
        );
    }

    #[test]
    fn conflict_is_a_refusal() {
        check(status(409), r#"{"message":"Folder is busy"}"#, r#"Refused(["Folder is busy"])"#);
    }

    #[test]
    fn refusal_without_a_message_names_its_status() {
        check(status(409), "", r#"Refused(["conflict"])"#);
        check(status(400), r#"{"errors":{"$.year":["","\nat x.cs"]}}"#, r#"Refused(["bad request"])"#);
    }

    #[test]
    fn missing_or_wrong_key_is_an_empty_401() {
        check(status(401), "", "Unauthorized");
    }

    #[test]
    fn browser_sign_in_means_a_wrong_url() {
        check(
            status(401).header(WWW_AUTHENTICATE, "Basic realm=x"),
            "",
            r#"WrongUrl("it asks for a sign-in with name and password")"#,
        );
    }

    #[test]
    fn redirect_means_a_wrong_url_and_names_its_target() {
        check(
            status(302).header(LOCATION, "/login?returnUrl=%2Fapi"),
            "",
            r#"WrongUrl("it redirects to /login")"#,
        );
    }

    #[test]
    fn html_in_place_of_json_means_a_wrong_url() {
        check(
            status(200).header(CONTENT_TYPE, "text/html; charset=utf-8"),
            "<!doctype html>",
            r#"WrongUrl("it answers with a web page")"#,
        );
        check(status(404), "\n<html>", r#"WrongUrl("it answers with a web page")"#);
        check(status(405), "", r#"WrongUrl("it knows no such API")"#);
    }

    #[test]
    fn missing_entry_is_not_found() {
        check(status(404), r#"{"title":"Not Found","status":404}"#, "NotFound");
    }

    #[test]
    fn startup_and_catalog_outage_are_unavailable() {
        check(status(503), r#"{"errorMessage":"starting up"}"#, r#"Unavailable("starting up")"#);
        check(status(503), r#"{"message":"search failed"}"#, r#"Unavailable("search failed")"#);
    }

    #[test]
    fn stack_trace_is_never_passed_on() {
        check(
            status(500),
            r#"{"message":"Value is null\n at C:\\x.cs","description":"System.Exception at /src/x.cs:12"}"#,
            r#"Server { status: 500, message: "Value is null" }"#,
        );
    }
}
