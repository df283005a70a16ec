//! Connect API of both servers: webhook entries with masked secrets, and their connection test.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};

use super::fake_server::{FakeServer, ServerIdentity};
use super::responses::{
    ValidationFailure, created_response, malformed_body_response, not_found, ok_response, validation_response,
};

const MASK: &str = "********";
const PASSWORD: &str = "password";
const COMMON_EVENTS: [&str; 8] = [
    "onGrab",
    "onDownload",
    "onUpgrade",
    "onRename",
    "onHealthIssue",
    "onHealthRestored",
    "onApplicationUpdate",
    "onManualInteractionRequired",
];

/// Stored Connect entries, with secrets in clear text.
#[derive(Debug, Default)]
pub(super) struct ConnectEntries {
    stored: Vec<Value>,
    last_id: i64,
    /// Error of connection tests. `None` while they pass.
    test_error: Option<String>,
}

impl<D: Clone> FakeServer<D> {
    /// Adds a webhook for the given events without using the API. Returns its id.
    pub fn add_connect_entry(&self, name: &str, url: &str, events: &[&str]) -> i64 {
        let mut entry = webhook_template(self.identity);
        entry["name"] = json!(name);
        for event in events {
            entry[*event] = json!(true);
        }
        set_field(&mut entry, "url", &json!(url));
        self.lock_state().connect_entries.store_entry(entry)
    }

    /// Edits a field of a stored entry without using the API.
    pub fn edit_connect_entry(&self, id: i64, field: &str, value: &Value) {
        let mut state = self.lock_state();
        for stored in state.connect_entries.stored.iter_mut().filter(|stored| stored["id"] == id) {
            set_field(stored, field, value);
        }
    }

    /// Makes all further connection tests fail with the given error.
    pub fn fail_connection_tests(&self, reason: &str) {
        self.lock_state().connect_entries.test_error = Some(reason.to_owned());
    }

    /// Formats the stored entries as `name url username:password events`.
    pub fn format_connect_entries(&self) -> Vec<String> {
        let format = |stored: &Value| {
            let events = stored.as_object().into_iter().flatten().filter(|(name, value)| {
                name.starts_with("on") && !name.starts_with("only") && **value == json!(true)
            });
            let events: Vec<&str> = events.map(|(name, _)| name.as_str()).collect();
            let field = |name| get_field(stored, name).and_then(Value::as_str).unwrap_or_default();
            let name = stored["name"].as_str().unwrap_or_default();
            let (url, username, password) = (field("url"), field("username"), field(PASSWORD));
            format!("{name} {url} {username}:{password} {}", events.join(","))
        };
        self.lock_state().connect_entries.stored.iter().map(format).collect()
    }
}

impl ConnectEntries {
    fn store_entry(&mut self, mut entry: Value) -> i64 {
        self.last_id += 1;
        entry["id"] = json!(self.last_id);
        self.stored.push(entry);
        self.last_id
    }

    /// Returns the error response for an entry that is invalid or fails its connection test.
    fn validate_entry(&self, body: &Value) -> Option<Response> {
        let failure = |property, message| {
            validation_response(&[ValidationFailure { property, message, attempted: Value::Null, code: "" }])
        };
        if body["name"].as_str().is_none_or(str::is_empty) {
            return Some(failure("Name", "'Name' must not be empty.".to_owned()));
        }
        let has_same_name = |stored: &Value| stored["name"] == body["name"] && stored["id"] != body["id"];
        if self.stored.iter().any(has_same_name) {
            return Some(failure("Name", "Should be unique".to_owned()));
        }
        let reason = self.test_error.as_ref()?;
        Some(failure("Url", format!("Unable to send test message. Error: {reason}")))
    }
}

pub(super) fn routes<D: Clone + Send + 'static>(fake: FakeServer<D>) -> Router {
    Router::new()
        .route("/notification", get(list_entries::<D>).post(create_entry::<D>))
        .route("/notification/schema", get(list_entry_templates::<D>))
        .route("/notification/test", post(check_entry::<D>))
        .route("/notification/{id}", get(get_entry::<D>).put(replace_entry::<D>))
        .with_state(fake)
}

async fn list_entries<D: Clone>(State(fake): State<FakeServer<D>>) -> Response {
    ok_response(fake.lock_state().connect_entries.stored.iter().map(masked_entry).collect())
}

async fn get_entry<D: Clone>(State(fake): State<FakeServer<D>>, Path(id): Path<i64>) -> Response {
    let state = fake.lock_state();
    let found = state.connect_entries.stored.iter().find(|stored| stored["id"] == id);
    found.map_or_else(not_found, |stored| ok_response(masked_entry(stored)))
}

async fn list_entry_templates<D: Clone>(State(fake): State<FakeServer<D>>) -> Response {
    let mail = json!({ "implementation": "Email", "configContract": "EmailSettings", "fields": [] });
    ok_response(json!([mail, webhook_template(fake.identity)]))
}

async fn check_entry<D: Clone>(State(fake): State<FakeServer<D>>, body: Bytes) -> Response {
    let Ok(entry) = serde_json::from_slice::<Value>(&body) else { return malformed_body_response("$") };
    fake.lock_state().connect_entries.validate_entry(&entry).unwrap_or_else(|| ok_response(json!({})))
}

async fn create_entry<D: Clone>(State(fake): State<FakeServer<D>>, body: Bytes) -> Response {
    let Ok(entry) = serde_json::from_slice::<Value>(&body) else { return malformed_body_response("$") };
    let mut state = fake.lock_state();
    if let Some(failure) = state.connect_entries.validate_entry(&entry) {
        return failure;
    }
    state.connect_entries.store_entry(entry);
    created_response(state.connect_entries.stored.last().map(masked_entry).unwrap_or_default())
}

async fn replace_entry<D: Clone>(
    State(fake): State<FakeServer<D>>,
    Path(id): Path<i64>,
    body: Bytes,
) -> Response {
    let Ok(mut entry) = serde_json::from_slice::<Value>(&body) else {
        return malformed_body_response("$");
    };
    let mut state = fake.lock_state();
    if let Some(failure) = state.connect_entries.validate_entry(&entry) {
        return failure;
    }
    let Some(stored) = state.connect_entries.stored.iter_mut().find(|stored| stored["id"] == id) else {
        return not_found();
    };
    if get_field(&entry, PASSWORD) == Some(&json!(MASK)) {
        let password = get_field(stored, PASSWORD).cloned().unwrap_or_default();
        set_field(&mut entry, PASSWORD, &password);
    }
    *stored = entry;
    (StatusCode::ACCEPTED, ok_response(masked_entry(stored))).into_response()
}

fn masked_entry(stored: &Value) -> Value {
    let mut masked = stored.clone();
    if get_field(stored, PASSWORD).and_then(Value::as_str).is_some_and(|password| !password.is_empty()) {
        set_field(&mut masked, PASSWORD, &json!(MASK));
    }
    masked
}

fn webhook_template(identity: &'static ServerIdentity) -> Value {
    let field = |name: &str, privacy: &str| json!({ "name": name, "label": name, "privacy": privacy });
    let mut method = field("method", "normal");
    method["value"] = json!(1);
    let mut webhook = json!({
        "implementation": "Webhook",
        "implementationName": "Webhook",
        "configContract": "WebhookSettings",
        "includeHealthWarnings": false,
        "tags": [],
        "fields": [
            field("url", "normal"),
            method,
            field("username", "userName"),
            field(PASSWORD, PASSWORD),
            field("headers", "normal"),
        ],
    });
    for event in COMMON_EVENTS.iter().chain(identity.events) {
        webhook[*event] = json!(false);
        webhook[event.replacen("on", "supportsOn", 1)] = json!(true);
    }
    webhook
}

fn get_field<'a>(entry: &'a Value, name: &str) -> Option<&'a Value> {
    entry["fields"].as_array()?.iter().find(|field| field["name"] == name)?.get("value")
}

fn set_field(entry: &mut Value, name: &str, value: &Value) {
    let fields = entry["fields"].as_array_mut();
    for field in fields.into_iter().flatten().filter(|field| field["name"] == name) {
        field["value"] = value.clone();
    }
}
