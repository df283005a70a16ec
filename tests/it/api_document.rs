//! The API document and its agreement with the API: a program can be written from the document alone.

use std::collections::{BTreeMap, BTreeSet};

use dialarr::arr::fake::media_fixtures::movie;
use http::Method;
use serde_json::{Map, Value, json};

use crate::harness::model::{calls, removes_movie, says};
use crate::harness::program::Program;
use crate::harness::{ANN, TestApp};

/// Returns the documented schema of each event by its name.
fn events(document: &Value) -> BTreeMap<String, String> {
    let described = document["paths"]["/api/v1/conversations/{id}/events"]["get"]["description"].as_str();
    let lines = described.unwrap().lines().filter_map(|line| line.strip_prefix("| `"));
    let event = |line: &str| {
        let (name, rest) = line.split_once("` | [`").unwrap();
        (name.to_owned(), rest.split_once("`](#/components/schemas/").unwrap().0.to_owned())
    };
    lines.map(event).collect()
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(place) => {
            document.pointer(place.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("{place}"))
        }
        None => schema,
    }
}

/// Returns every field of an object with its schema, and whether it is required.
fn fields<'a>(document: &'a Value, schema: &'a Value) -> BTreeMap<&'a str, (&'a Value, bool)> {
    let schema = resolved(document, schema);
    let mut all = BTreeMap::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        all.extend(fields(document, part));
    }
    let must = |name: &str| schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
    let own = schema["properties"].as_object().into_iter().flatten();
    all.extend(own.map(|(name, field)| (name.as_str(), (field, must(name)))));
    all
}

fn kind(data: &Value) -> &'static str {
    match data {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the differences between data and its schema.
fn misfits(document: &Value, schema: &Value, data: &Value, place: &str) -> Vec<String> {
    let schema = resolved(document, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices.iter().any(|choice| misfits(document, choice, data, place).is_empty());
        return if fits { Vec::new() } else { vec![format!("{place}: {data}")] };
    }
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let known = schema["enum"].as_array().is_none_or(|words| words.contains(data));
    if (schema.get("type").is_some() && !kinds.contains(&json!(kind(data)))) || !known {
        return vec![format!("{place}: {data}")];
    }
    match data {
        Value::Array(items) => {
            let of = |item| misfits(document, &schema["items"], item, place);
            items.iter().flat_map(of).collect()
        }
        Value::Object(given) if schema.get("properties").is_some() || schema.get("allOf").is_some() => {
            object_misfits(document, schema, given, place)
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn object_misfits(document: &Value, schema: &Value, given: &Map<String, Value>, place: &str) -> Vec<String> {
    let fields = fields(document, schema);
    let missing = fields.iter().filter(|(name, (_, must))| *must && !given.contains_key(**name));
    let mut found: Vec<String> = missing.map(|(name, _)| format!("{place}.{name} is missing")).collect();
    for (name, value) in given {
        match fields.get(name.as_str()) {
            Some((field, _)) => found.extend(misfits(document, field, value, &format!("{place}.{name}"))),
            None => found.push(format!("{place}.{name} is not described")),
        }
    }
    found
}

#[tokio::test]
async fn every_event_matches_the_api_document() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays([calls("react", json!({ "emoji": "\u{1f44d}" })), says("Good evening.")]);
    app.sms("good evening").await;
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.sms("no").await;
    let document = app.program().await.get("/api/v1/openapi.json").await.json();
    let browser = app.browser().await;
    let path = "/api/v1/conversations/1/events";
    let stream_text = app.read_live(&browser, path).await
        + &app.read_live(&browser, &format!("{path}?after=0")).await
        + &app.read_live(&browser, &format!("{path}?after=-1")).await;

    let described = events(&document);
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for event in stream_text.split("\n\n") {
        let line = |key: &str| event.lines().find_map(|line| line.strip_prefix(key));
        let (Some(name), Some(data)) = (line("event: "), line("data: ")) else { continue };
        seen.insert(name);
        let Some(schema) = described.get(name) else {
            wrong.push(format!("{name} is not described"));
            continue;
        };
        let schema = &document["components"]["schemas"][schema];
        assert!(schema.is_object(), "the data of {name} has no schema");
        wrong.extend(misfits(&document, schema, &serde_json::from_str(data).unwrap(), name));
    }

    assert_eq!(wrong, Vec::<String>::new());
    // An attempt is abandoned only if a model fails.
    let expected: BTreeSet<&str> =
        described.keys().map(String::as_str).filter(|name| *name != "step_abandoned").collect();
    assert_eq!(seen, expected);
    assert!(app.messages_to(ANN).len() > 1);
}

#[tokio::test]
async fn schema_check_reports_each_difference() {
    let document = json!({ "components": { "schemas": { "Key": {
        "type": "object", "required": ["step"], "properties": { "step": { "type": "integer" } }
    } } } });
    let schema = json!({
        "allOf": [{ "$ref": "#/components/schemas/Key" }],
        "type": "object",
        "properties": { "state": { "type": "string", "enum": ["open"] }, "at": { "type": ["string", "null"] } }
    });
    let check = |data: Value| misfits(&document, &schema, &data, "x");
    assert_eq!(check(json!({ "step": 1, "state": "open", "at": null })), Vec::<String>::new());
    assert_eq!(
        check(json!({ "state": "shut", "at": 1, "more": 2 })),
        ["x.step is missing", "x.at: 1", "x.more is not described", "x.state: \"shut\""]
    );
}

/// Returns every route of the document, as `GET /api/v1/users`.
fn routes(document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().unwrap();
    let routes = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    routes.collect()
}

#[tokio::test]
async fn api_document_names_every_route() {
    let app = TestApp::start_without_model().await;
    let document = app.program().await.get("/api/v1/openapi.json").await.json();
    insta::assert_snapshot!(routes(&document).join("\n"), @r"
    GET /api/v1/audit
    GET /api/v1/conversations
    GET /api/v1/conversations/{id}
    GET /api/v1/conversations/{id}/events
    POST /api/v1/conversations/{id}/reopen
    GET /api/v1/deliveries
    POST /api/v1/deliveries/{id}/resend
    GET /api/v1/memory/context
    POST /api/v1/memory/process-pending
    POST /api/v1/memory/responses
    DELETE /api/v1/memory/responses/{id}
    GET /api/v1/memory/stats
    POST /api/v1/messages
    GET /api/v1/messages/{id}
    GET /api/v1/requests
    POST /api/v1/requests/{id}/decline
    GET /api/v1/settings
    PATCH /api/v1/settings
    GET /api/v1/spend
    GET /api/v1/titles
    POST /api/v1/turns/{id}/cancel
    POST /api/v1/turns/{id}/resume
    GET /api/v1/users
    PATCH /api/v1/users/{id}
    POST /api/v1/users/{id}/approve
    POST /api/v1/users/{id}/block
    POST /api/v1/users/{id}/clear
    ");
}

#[tokio::test]
async fn api_document_names_every_schema() {
    let app = TestApp::start_without_model().await;
    let document = app.program().await.get("/api/v1/openapi.json").await.json();
    let schemas: Vec<&str> =
        document["components"]["schemas"].as_object().unwrap().keys().map(String::as_str).collect();
    let lines: Vec<String> = schemas.chunks(4).map(|names| names.join(" ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    AbandonedEvent Action AddedResponse Asides
    AuditActor AuditEntry AuditSubject BlockEvent
    BlockKey BlockWord CallEvent CallWord
    ChangeStatus ChangedSettings Cleared Content
    Conversation ConversationEvent ConversationWord Count
    DayUsage Decline Declined Delivery
    DeltaEvent Direction Intervention Lifecycle
    MemoryContext MemoryStats Message MessageEvent
    MessageWord NewMessage NewResponse NoData
    Page_AuditEntry Page_Conversation Page_Delivery Page_TitleRequest
    Page_Turn Page_User Pending PhoneNumber
    Problem Processed Question QuestionEvent
    QuestionWord Reaction ReactionEvent ReactionWord
    Remembered Reply Resent Role
    Sender Setting SettingSource Settings
    SettingsPatch Snapshot SnapshotConversation Spend
    Text Title TitleAvailability TitleKind
    TitleList TitleRequest TitleRequestState ToolCall
    Turn TurnEvent TurnState TurnWord
    Usage User UserPatch UserUsage
    WholeConversation
    ");
}

#[tokio::test]
async fn api_document_has_the_license_of_the_package() {
    let app = TestApp::start_without_model().await;
    let document = app.program().await.get("/api/v1/openapi.json").await.json();
    let license = env!("CARGO_PKG_LICENSE");
    assert_eq!(document["info"]["license"], json!({ "name": license, "identifier": license }));
}

#[tokio::test]
async fn every_documented_route_is_served_and_needs_a_key() {
    let app = TestApp::start_without_model().await;
    let program = app.program().await;
    let document = program.get("/api/v1/openapi.json").await.json();
    for route in routes(&document) {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace("{id}", "77");
        let method: Method = method.parse().unwrap();
        let known = program.send(program.to(method.clone(), &path), "").await;
        assert_ne!(known.status, 405, "{route}");
        if known.status == 404 {
            let (_, detail) = known.problem();
            assert_ne!(detail, "no API route has this path", "{route}");
        }
        let stranger = Program::without_a_key(&app).send_without_key(method, &path).await;
        assert_eq!(stranger.problem().0, 401, "{route}");
    }
}
