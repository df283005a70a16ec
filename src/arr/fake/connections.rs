//! Connect API of both servers: the list of entries that are notified of events, with masked secrets, and its test.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};

use super::answers::{Failure, created, misshapen, not_found, ok, refused};
use super::world::{App, Fake};

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
const SONARR_EVENTS: [&str; 4] = ["onImportComplete", "onSeriesAdd", "onSeriesDelete", "onEpisodeFileDelete"];
const RADARR_EVENTS: [&str; 3] = ["onMovieAdded", "onMovieDelete", "onMovieFileDelete"];

/// Stored Connect entries, with secrets in clear text.
#[derive(Debug, Default)]
pub(super) struct Connections {
    stored: Vec<Value>,
    last_id: i64,
    /// Error with which the test of a webhook fails; `None` while it passes.
    fault: Option<String>,
}

impl<D: Clone> Fake<D> {
    /// Creates a webhook for these events as a user would in the web interface; returns its id.
    pub fn connect(&self, name: &str, url: &str, events: &[&str]) -> i64 {
        let mut connection = blank_webhook(self.app);
        connection["name"] = json!(name);
        for event in events {
            connection[*event] = json!(true);
        }
        set(&mut connection, "url", &json!(url));
        self.lock().connections.keep(connection)
    }

    /// Changes a field of a stored connection without using the API.
    pub fn change_connection(&self, id: i64, field: &str, value: &Value) {
        let mut world = self.lock();
        for stored in world.connections.stored.iter_mut().filter(|stored| stored["id"] == id) {
            set(stored, field, value);
        }
    }

    /// From now on, the test of a webhook fails for this reason.
    pub fn refuse_webhooks(&self, reason: &str) {
        self.lock().connections.fault = Some(reason.to_owned());
    }

    /// Formats the stored connections as `name url username:password events`.
    pub fn connections(&self) -> Vec<String> {
        let describe = |stored: &Value| {
            let events = stored.as_object().into_iter().flatten().filter(|(name, value)| {
                name.starts_with("on") && !name.starts_with("only") && **value == json!(true)
            });
            let events: Vec<&str> = events.map(|(name, _)| name.as_str()).collect();
            let field = |name| get_field(stored, name).and_then(Value::as_str).unwrap_or_default();
            let name = stored["name"].as_str().unwrap_or_default();
            let (url, username, password) = (field("url"), field("username"), field(PASSWORD));
            format!("{name} {url} {username}:{password} {}", events.join(","))
        };
        self.lock().connections.stored.iter().map(describe).collect()
    }
}

impl Connections {
    fn keep(&mut self, mut connection: Value) -> i64 {
        self.last_id += 1;
        connection["id"] = json!(self.last_id);
        self.stored.push(connection);
        self.last_id
    }

    fn failure(&self, body: &Value) -> Option<Response> {
        let failure =
            |property, message| refused(&[Failure { property, message, attempted: Value::Null, code: "" }]);
        if body["name"].as_str().is_none_or(str::is_empty) {
            return Some(failure("Name", "'Name' must not be empty.".to_owned()));
        }
        let shares_name = |stored: &Value| stored["name"] == body["name"] && stored["id"] != body["id"];
        if self.stored.iter().any(shares_name) {
            return Some(failure("Name", "Should be unique".to_owned()));
        }
        let reason = self.fault.as_ref()?;
        Some(failure("Url", format!("Unable to send test message. Error: {reason}")))
    }
}

pub(super) fn routes<D: Clone + Send + 'static>(fake: Fake<D>) -> Router {
    Router::new()
        .route("/notification", get(list::<D>).post(create::<D>))
        .route("/notification/schema", get(schema::<D>))
        .route("/notification/test", post(test::<D>))
        .route("/notification/{id}", get(one::<D>).put(replace::<D>))
        .with_state(fake)
}

async fn list<D: Clone>(State(fake): State<Fake<D>>) -> Response {
    ok(fake.lock().connections.stored.iter().map(masked).collect())
}

async fn one<D: Clone>(State(fake): State<Fake<D>>, Path(id): Path<i64>) -> Response {
    let world = fake.lock();
    let found = world.connections.stored.iter().find(|stored| stored["id"] == id);
    found.map_or_else(not_found, |stored| ok(masked(stored)))
}

async fn schema<D: Clone>(State(fake): State<Fake<D>>) -> Response {
    let mail = json!({ "implementation": "Email", "configContract": "EmailSettings", "fields": [] });
    ok(json!([mail, blank_webhook(fake.app)]))
}

async fn test<D: Clone>(State(fake): State<Fake<D>>, body: Bytes) -> Response {
    let Ok(connection) = serde_json::from_slice::<Value>(&body) else { return misshapen("$") };
    fake.lock().connections.failure(&connection).unwrap_or_else(|| ok(json!({})))
}

async fn create<D: Clone>(State(fake): State<Fake<D>>, body: Bytes) -> Response {
    let Ok(connection) = serde_json::from_slice::<Value>(&body) else { return misshapen("$") };
    let mut world = fake.lock();
    if let Some(failure) = world.connections.failure(&connection) {
        return failure;
    }
    world.connections.keep(connection);
    created(world.connections.stored.last().map(masked).unwrap_or_default())
}

async fn replace<D: Clone>(State(fake): State<Fake<D>>, Path(id): Path<i64>, body: Bytes) -> Response {
    let Ok(mut connection) = serde_json::from_slice::<Value>(&body) else { return misshapen("$") };
    let mut world = fake.lock();
    if let Some(failure) = world.connections.failure(&connection) {
        return failure;
    }
    let Some(stored) = world.connections.stored.iter_mut().find(|stored| stored["id"] == id) else {
        return not_found();
    };
    if get_field(&connection, PASSWORD) == Some(&json!(MASK)) {
        let kept = get_field(stored, PASSWORD).cloned().unwrap_or_default();
        set(&mut connection, PASSWORD, &kept);
    }
    *stored = connection;
    (StatusCode::ACCEPTED, ok(masked(stored))).into_response()
}

fn masked(stored: &Value) -> Value {
    let mut shown = stored.clone();
    if get_field(stored, PASSWORD).and_then(Value::as_str).is_some_and(|password| !password.is_empty()) {
        set(&mut shown, PASSWORD, &json!(MASK));
    }
    shown
}

fn blank_webhook(app: App) -> Value {
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
    let own: &[&str] = match app {
        App::Radarr => &RADARR_EVENTS,
        App::Sonarr => &SONARR_EVENTS,
    };
    for event in COMMON_EVENTS.iter().chain(own) {
        webhook[*event] = json!(false);
        webhook[event.replacen("on", "supportsOn", 1)] = json!(true);
    }
    webhook
}

fn get_field<'a>(connection: &'a Value, name: &str) -> Option<&'a Value> {
    connection["fields"].as_array()?.iter().find(|field| field["name"] == name)?.get("value")
}

fn set(connection: &mut Value, name: &str, value: &Value) {
    let fields = connection["fields"].as_array_mut();
    for field in fields.into_iter().flatten().filter(|field| field["name"] == name) {
        field["value"] = value.clone();
    }
}
