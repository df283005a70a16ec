//! Response and query formats of both servers: JSON without nulls, errors, pages, and times.

use std::collections::HashMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::fake_server::ServerIdentity;

/// Window of a calendar request without a start and end.
const CALENDAR_WINDOW: SignedDuration = SignedDuration::from_hours(48);

/// Query parameters of a request.
pub(super) type RequestQuery = HashMap<String, String>;

/// Builds a 200 response. Null properties are omitted, as by the real servers.
pub(super) fn ok_response(body: Value) -> Response {
    Json(without_nulls(body)).into_response()
}

pub(super) fn created_response(body: Value) -> Response {
    (StatusCode::CREATED, Json(without_nulls(body))).into_response()
}

/// Validation error in a 400 response.
pub(super) struct ValidationFailure {
    pub property: &'static str,
    pub message: String,
    pub attempted: Value,
    /// Error code. Empty for errors that do not come from a validator.
    pub code: &'static str,
}

/// Builds a 400 response with the validation errors of a request.
pub(super) fn validation_response(failures: &[ValidationFailure]) -> Response {
    let to_json = |failure: &ValidationFailure| {
        let mut body = json!({
            "propertyName": failure.property,
            "errorMessage": failure.message,
            "attemptedValue": failure.attempted,
            "severity": "error",
        });
        if !failure.code.is_empty() {
            body["errorCode"] = json!(failure.code);
            body["formattedMessageArguments"] = json!([]);
            body["formattedMessagePlaceholderValues"] =
                json!({ "propertyName": failure.property, "propertyValue": failure.attempted });
        }
        body
    };
    let body: Vec<_> = failures.iter().map(to_json).collect();
    (StatusCode::BAD_REQUEST, Json(json!(body))).into_response()
}

/// Builds a 400 response for a body with a wrong shape.
pub(super) fn malformed_body_response(field: &str) -> Response {
    let body = json!({
        "type": "https://tools.ietf.org/html/rfc9110#section-15.5.1",
        "title": "One or more validation errors occurred.",
        "status": 400,
        "traceId": "00-00000000000000000000000000000001-0000000000000001-00",
        "errors": { (field): ["The JSON value could not be converted."] },
    });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

pub(super) fn not_found() -> Response {
    let body = json!({
        "type": "https://tools.ietf.org/html/rfc9110#section-15.5.5",
        "title": "Not Found",
        "status": 404,
        "traceId": "00-00000000000000000000000000000001-0000000000000001-00",
    });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

/// Builds the response to an exception in the server, including a stack trace.
pub(super) fn exception_response(status: StatusCode, message: &str) -> Response {
    let description =
        format!("NzbDrone.Core.FakeException: {message}\n   at NzbDrone.Core in ./Core/Fake.cs:line 1");
    (status, Json(json!({ "message": message, "description": description }))).into_response()
}

pub(super) fn starting_response(identity: &'static ServerIdentity) -> Response {
    let message = format!("{} is starting up, please try again later", identity.name);
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "errorMessage": message }))).into_response()
}

/// Builds an error response with the given status, in the format of the servers.
pub(super) fn failure_response(status: u16) -> Response {
    match status {
        400 => validation_response(&[ValidationFailure {
            property: "",
            message: "The request is refused".to_owned(),
            attempted: Value::Null,
            code: "",
        }]),
        401 => StatusCode::UNAUTHORIZED.into_response(),
        404 => not_found(),
        _ => exception_response(
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            "Something went wrong on the server",
        ),
    }
}

/// Builds a response with one page of `records`, which are sorted ascending. A page number past the end gives the last
/// page.
pub(super) fn page_response(mut records: Vec<Value>, sort_key: &str, query: &RequestQuery) -> Response {
    let number = |name: &str, default: usize| {
        query.get(name).and_then(|value| value.parse().ok()).filter(|value| *value > 0).unwrap_or(default)
    };
    let size = number("pageSize", 10);
    let page = number("page", 1).min(records.len().div_ceil(size).max(1));
    let ascending = query.get("sortDirection").is_some_and(|direction| direction.starts_with("asc"));
    if !ascending {
        records.reverse();
    }
    let total = records.len();
    let page_records: Vec<_> = records.into_iter().skip((page - 1) * size).take(size).collect();
    ok_response(json!({
        "page": page,
        "pageSize": size,
        "sortKey": sort_key,
        "sortDirection": if ascending { "ascending" } else { "descending" },
        "totalRecords": total,
        "records": page_records,
    }))
}

pub(super) fn query_flag(query: &RequestQuery, name: &str) -> bool {
    query.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Parses an instant or a day from the query.
pub(super) fn query_instant(query: &RequestQuery, name: &str) -> Option<Timestamp> {
    let text = query.get(name)?;
    let day = || utc_midnight(text.parse().ok()?);
    text.parse().ok().or_else(day)
}

pub(super) fn utc_midnight(date: Date) -> Option<Timestamp> {
    date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|start| start.timestamp())
}

/// Formats an instant in whole seconds, as the servers do.
pub(super) fn wire_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn wire_date(date: Option<Date>) -> Option<String> {
    date.map(|date| format!("{date}T00:00:00Z"))
}

/// Returns the start and end of a calendar request, by default a window of two days.
pub(super) fn query_window(query: &RequestQuery, now: Timestamp) -> (Timestamp, Timestamp) {
    let start = query_instant(query, "start").unwrap_or(now);
    let end = query_instant(query, "end");
    (start, end.unwrap_or_else(|| start.saturating_add(CALENDAR_WINDOW).unwrap_or(start)))
}

/// Builds the response to a history request, oldest records first, filtered by the event type and date of the query.
pub(super) fn history_response(records: Vec<(&'static str, Value)>, query: &RequestQuery) -> Response {
    let earliest = query_instant(query, "date").unwrap_or(Timestamp::MIN);
    let event_type =
        query.get("eventType").map(|name| if name == "3" { "downloadFolderImported" } else { name });
    let mut matching: Vec<_> = records
        .into_iter()
        .filter(|(event, _)| event_type.is_none_or(|event_type| event_type == *event))
        .map(|(_, record)| record)
        .filter(|record| record["date"].as_str() >= Some(wire_time(earliest).as_str()))
        .collect();
    matching.sort_by(|left, right| left["date"].as_str().cmp(&right["date"].as_str()));
    ok_response(matching.into())
}

/// Creates the validation error for an id that is not in the catalog.
pub(super) fn unknown_catalog_id(
    property: &'static str,
    kind: &str,
    root: &str,
    id: i64,
) -> ValidationFailure {
    ValidationFailure {
        property,
        message: format!("A {kind} with this ID was not found. Path: {root}"),
        attempted: json!(id),
        code: "",
    }
}

/// Adds properties to a JSON object.
pub(super) fn merge_json(body: &mut Value, fields: Value) {
    if let (Value::Object(body), Value::Object(fields)) = (body, fields) {
        body.extend(fields);
    }
}

/// Removes null properties, except in `data` of the history, where the servers return nulls.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.into_iter().filter(|(_, value)| !value.is_null());
            let cleaned = present.map(|(name, value)| {
                let value = if name == "data" { value } else { without_nulls(value) };
                (name, value)
            });
            Value::Object(cleaned.collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
