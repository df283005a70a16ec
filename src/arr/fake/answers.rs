//! The shapes that both servers answer in: errors, pages, and JSON without nulls.

use std::collections::HashMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::world::App;

/// What a calendar shows when it is asked for no window.
const CALENDAR_WINDOW: SignedDuration = SignedDuration::from_hours(48);

/// The parameters of a request.
pub(super) type Asked = HashMap<String, String>;

/// JSON as the servers write it: a property without a value is left out.
pub(super) fn ok(body: Value) -> Response {
    Json(without_nulls(body)).into_response()
}

pub(super) fn created(body: Value) -> Response {
    (StatusCode::CREATED, Json(without_nulls(body))).into_response()
}

/// One reason of a refusal.
pub(super) struct Failure {
    pub property: &'static str,
    pub message: String,
    pub attempted: Value,
    /// Empty for the refusals that the servers write by hand.
    pub code: &'static str,
}

/// 400 with everything that is wrong with a request.
pub(super) fn refused(failures: &[Failure]) -> Response {
    let describe = |failure: &Failure| {
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
    let body: Vec<_> = failures.iter().map(describe).collect();
    (StatusCode::BAD_REQUEST, Json(json!(body))).into_response()
}

/// 400 for a body that is not of the expected shape.
pub(super) fn misshapen(field: &str) -> Response {
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

/// An error of the server's own, with the stack trace that it gives away.
pub(super) fn thrown(status: StatusCode, message: &str) -> Response {
    let description =
        format!("NzbDrone.Core.FakeException: {message}\n   at NzbDrone.Core in ./Core/Fake.cs:line 1");
    (status, Json(json!({ "message": message, "description": description }))).into_response()
}

pub(super) fn starting(app: App) -> Response {
    let message = format!("{} is starting up, please try again later", app.name());
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "errorMessage": message }))).into_response()
}

/// What a server says with a status that a test asks for.
pub(super) fn failure(status: u16) -> Response {
    match status {
        400 => refused(&[Failure {
            property: "",
            message: "The request is refused".to_owned(),
            attempted: Value::Null,
            code: "",
        }]),
        401 => StatusCode::UNAUTHORIZED.into_response(),
        404 => not_found(),
        _ => thrown(
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            "Something went wrong on the server",
        ),
    }
}

/// One page of `records`, which are sorted ascending; a page past the end is the last one.
pub(super) fn page(mut records: Vec<Value>, sort_key: &str, query: &Asked) -> Response {
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
    let shown: Vec<_> = records.into_iter().skip((page - 1) * size).take(size).collect();
    ok(json!({
        "page": page,
        "pageSize": size,
        "sortKey": sort_key,
        "sortDirection": if ascending { "ascending" } else { "descending" },
        "totalRecords": total,
        "records": shown,
    }))
}

pub(super) fn flag(query: &Asked, name: &str) -> bool {
    query.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// An instant or a day of the query.
pub(super) fn instant(query: &Asked, name: &str) -> Option<Timestamp> {
    let text = query.get(name)?;
    let day = || midnight(text.parse().ok()?);
    text.parse().ok().or_else(day)
}

pub(super) fn midnight(date: Date) -> Option<Timestamp> {
    date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|start| start.timestamp())
}

/// Whole seconds, as the servers write an instant.
pub(super) fn wire_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn wire_date(date: Option<Date>) -> Option<String> {
    date.map(|date| format!("{date}T00:00:00Z"))
}

/// From the first to the last instant that a calendar request asks for; by default two days.
pub(super) fn window(query: &Asked, now: Timestamp) -> (Timestamp, Timestamp) {
    let start = instant(query, "start").unwrap_or(now);
    let end = instant(query, "end");
    (start, end.unwrap_or_else(|| start.saturating_add(CALENDAR_WINDOW).unwrap_or(start)))
}

/// The records of a kind and since an instant, oldest first.
pub(super) fn since(records: Vec<(&'static str, Value)>, query: &Asked) -> Response {
    let earliest = instant(query, "date").unwrap_or(Timestamp::MIN);
    let wanted = query.get("eventType").map(|name| if name == "3" { "downloadFolderImported" } else { name });
    let mut kept: Vec<_> = records
        .into_iter()
        .filter(|(event, _)| wanted.is_none_or(|wanted| wanted == *event))
        .map(|(_, record)| record)
        .filter(|record| record["date"].as_str() >= Some(wire_time(earliest).as_str()))
        .collect();
    kept.sort_by(|left, right| left["date"].as_str().cmp(&right["date"].as_str()));
    ok(kept.into())
}

/// What the servers say of a catalogue id that their catalogue lacks.
pub(super) fn unknown_id(property: &'static str, kind: &str, root: &str, id: i64) -> Failure {
    Failure {
        property,
        message: format!("A {kind} with this ID was not found. Path: {root}"),
        attempted: json!(id),
        code: "",
    }
}

/// Adds properties to a JSON object.
pub(super) fn merge(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

/// History data is a dictionary, and dictionaries keep their nulls.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            let cleaned = kept.map(|(name, value)| {
                let value = if name == "data" { value } else { without_nulls(value) };
                (name, value)
            });
            Value::Object(cleaned.collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
