//! Scopes of API keys on every route. The scopes are read from the source, and each route is requested with a key of each
//! scope.

use std::collections::BTreeMap;

use axum::body::Body;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::harness::TestApp;
use crate::harness::program::Program;
use crate::routes::{Route, console, console_routes, head, source};

/// Scopes, each of which includes the ones before it.
const SCOPES: [&str; 3] = ["read", "write", "admin"];

/// Returns the value of `key = "..."` in the attributes of a handler.
fn attribute<'a>(attributes: &'a str, key: &str) -> &'a str {
    let (_, rest) = attributes.split_once(&format!("{key} = \"")).unwrap();
    rest.split_once('"').unwrap().0
}

/// Returns the name of each described handler, as `users::list_users`, with its route.
fn handlers() -> BTreeMap<String, String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/web/api");
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<(String, String)> =
        names.map(|name| (name.trim_end_matches(".rs").to_owned(), source(&format!("api/{name}")))).collect();
    files.push(("sse".to_owned(), source("sse.rs")));
    let mut found = BTreeMap::new();
    for (module, text) in files {
        for described in text.split("#[utoipa::path(").skip(1) {
            let (attributes, code) = described.split_once(")]\n").unwrap();
            let method = attributes.trim_start().split(',').next().unwrap().to_uppercase();
            let handler = code.split_once("async fn ").unwrap().1.split('(').next().unwrap();
            let route = format!("{method} /api/v1{}", attribute(attributes, "path"));
            found.insert(format!("{module}::{handler}"), route);
        }
    }
    found
}

/// Returns the scope that the source declares for each route.
fn declared_scopes() -> BTreeMap<String, String> {
    let text = source("api/mod.rs");
    let handlers = handlers();
    let mut declared = BTreeMap::new();
    for line in text.split(".routes(").skip(1) {
        let (scope, rest) = line.split_once(", routes!(").unwrap();
        for handler in rest.split_once("))").unwrap().0.split(',') {
            declared.insert(handlers[handler.trim()].clone(), scope.to_lowercase());
        }
    }
    declared.extend(
        ["GET /api/v1/openapi.json", "GET /metrics"].map(|route| (route.to_owned(), "read".to_owned())),
    );
    declared
}

/// Returns the routes that a key opens.
async fn opened(app: &TestApp, program: &Program<'_>) -> Vec<String> {
    let router = console(app);
    let mut opened = Vec::new();
    for route in console_routes(app).await.iter().filter(|route| route.is_of_api()) {
        let request = program.to(route.method.clone(), &route.uri()).header(CONTENT_TYPE, "application/json");
        let (status, _) = head(&router, request, Body::empty()).await;
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{}", route.name());
        if status != StatusCode::FORBIDDEN {
            opened.push(route.name());
        }
    }
    opened.sort_unstable();
    opened
}

#[tokio::test]
async fn each_key_opens_exactly_the_routes_of_its_scope() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    let declared = declared_scopes();
    let mut all: Vec<String> =
        console_routes(&app).await.iter().filter(|route| route.is_of_api()).map(Route::name).collect();
    all.sort_unstable();
    assert_eq!(declared.keys().cloned().collect::<Vec<_>>(), all);

    for (rank, scope) in SCOPES.iter().enumerate() {
        let program = app.program_with_scope(scope).await;
        let included = |required: &String| SCOPES[..=rank].contains(&required.as_str());
        let expected: Vec<&String> =
            declared.iter().filter(|(_, required)| included(required)).map(|(route, _)| route).collect();
        let opened = opened(&app, &program).await;
        assert_eq!(opened.iter().collect::<Vec<_>>(), expected, "{scope}");
    }
}

#[tokio::test]
async fn no_response_of_the_api_contains_a_library_key() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    let program = app.program_with_scope("admin").await;
    let mut requested = 0;
    for route in console_routes(&app).await.iter().filter(|route| route.is_of_api() && route.method == "GET")
    {
        if route.uri().ends_with("/events") {
            // The stream does not end. Its events are rows of the conversation, which the other routes return.
            continue;
        }
        let response = program.get(&route.uri()).await;
        for key in [app.radarr().api_key(), app.sonarr().api_key()] {
            assert!(!response.body.contains(key), "{}", route.name());
        }
        requested += 1;
    }
    assert!(requested > 12, "{requested} routes");
}

#[tokio::test]
async fn key_from_before_scopes_opens_only_its_earlier_routes() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    let program = app.program().await;
    app.remove_key_scopes().await;
    insta::assert_snapshot!(opened(&app, &program).await.join("\n"), @r"
    DELETE /api/v1/memory/responses/{id}
    GET /api/v1/conversations
    GET /api/v1/conversations/{id}
    GET /api/v1/conversations/{id}/events
    GET /api/v1/memory/context
    GET /api/v1/memory/stats
    GET /api/v1/messages/{id}
    GET /api/v1/openapi.json
    GET /api/v1/users
    GET /metrics
    POST /api/v1/conversations/{id}/reopen
    POST /api/v1/memory/process-pending
    POST /api/v1/memory/responses
    POST /api/v1/messages
    POST /api/v1/turns/{id}/cancel
    POST /api/v1/turns/{id}/resume
    POST /api/v1/users/{id}/approve
    POST /api/v1/users/{id}/block
    POST /api/v1/users/{id}/clear
    ");
    let page = app.browser().await.get("/keys").await;
    assert!(page.text().contains("None (older key)"));
}

#[tokio::test]
async fn document_states_the_scope_of_every_route() {
    let app = TestApp::start_without_model().await;
    let document = app.program().await.get("/api/v1/openapi.json").await.json();
    for (route, scope) in declared_scopes() {
        let (method, path) = route.split_once(' ').unwrap();
        let operation = &document["paths"][path][method.to_lowercase()];
        if operation.is_object() {
            let expected = serde_json::json!([{ "key": [scope] }, { "header": [scope] }, { "session": [] }]);
            assert_eq!(operation["security"], expected, "{route}");
        }
    }
    assert_eq!(document["security"], Value::Null);
}

#[tokio::test]
async fn refused_key_learns_the_scope_that_the_route_requires() {
    let app = TestApp::start_without_model().await;
    let reader = app.program_with_scope("read").await;
    let (status, detail) = reader.post("/api/v1/users/1/approve", Value::Null).await.problem();
    assert_eq!(status, 403);
    assert_eq!(detail, "This route requires a key with the scope write, and this key has read.");
}

#[tokio::test]
async fn new_key_without_a_choice_may_only_read() {
    let app = TestApp::start_without_model().await;
    let page = app.browser().await.submit("/keys", &[("name", "Stats")]).await;
    assert_eq!(page.status, 200);
    assert_eq!(app.lines("SELECT scope AS line FROM api_keys").await, ["read"]);
    let refused = app.browser().await.submit("/keys", &[("name", "Stats"), ("scope", "unscoped")]).await;
    assert_eq!(refused.status, 422);
}
