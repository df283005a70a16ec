//! Authors of changes over the API: the key, or the signed-in operator.

use bytes::Bytes;
use dialarr::arr::fake::media_fixtures::movie;
use http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use http::{Method, Request};
use serde_json::{Value, json};

use crate::harness::browser::CONSOLE;
use crate::harness::model::{Holding, removes_movie};
use crate::harness::{ANN, Setup, TestApp};

const SAM: &str = "+15550100009";

fn as_ann(text: &str) -> Value {
    json!({ "user": ANN, "text": text })
}

/// Returns the audit log without sign-ins and created keys.
async fn changes(app: &TestApp) -> Vec<String> {
    let audit = app.audit().await;
    audit.into_iter().filter(|line| !line.contains(" console by ") && !line.contains(" api_key:")).collect()
}

#[tokio::test]
async fn changes_by_a_program_are_audited_under_its_key() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    app.sms_from(SAM, "hi").await;
    app.program().await;
    let program = app.program().await;

    program.post("/api/v1/users/2/approve", json!({})).await;
    program.post("/api/v1/users/2/block", json!({})).await;
    program.post("/api/v1/users/1/clear", json!({})).await;
    program.post("/api/v1/conversations/1/reopen", json!({})).await;
    program.post("/api/v1/memory/responses", json!({ "trigger": "where?", "response": "On the TV." })).await;
    program.texts(as_ann("status")).await;
    program.texts(json!({ "user": ANN, "text": "my tv is broken", "respond": false })).await;

    assert_eq!(
        changes(&app).await,
        [
            "approve user:2 by key:2",
            "block user:2 by key:2",
            "clear user:1 by key:2",
            "reopen user:1 by key:2",
            "memory_added household by key:2",
            "text_as user:1 by key:2",
            "text_as user:1 by key:2",
        ]
    );
}

#[tokio::test]
async fn turn_canceled_by_a_program_is_audited_under_its_key() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    let program = app.program().await;
    program.texts_with(("prefer", "respond-async"), as_ann("hold")).await;
    model.holds().await;

    program.post("/api/v1/turns/1/cancel", json!({})).await;
    app.settle().await;

    assert_eq!(changes(&app).await, ["text_as user:1 by key:1", "cancel_turn turn:1 by key:1"]);
}

#[tokio::test]
async fn signed_in_api_requests_are_attributed_to_the_operator() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    let browser = app.browser().await;
    let request = Request::builder().method(Method::POST).uri("/api/v1/messages");
    let request = request.header(HOST, "localhost:3001").header(ORIGIN, CONSOLE);
    let request = request.header(COOKIE, browser.cookie().unwrap()).header(CONTENT_TYPE, "application/json");

    let answer = app.ask_console(request.body(Bytes::from(as_ann("upcoming").to_string())).unwrap()).await;

    assert_eq!(answer.status(), 200);
    assert_eq!(changes(&app).await, ["text_as user:1 by console"]);
    let page = app.browser().await.get("/conversations/1").await.text();
    assert!(page.contains("upcoming 21:04 you over the API"), "{page}");
}

#[tokio::test]
async fn console_distinguishes_keys_from_the_operator() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let mut browser = app.browser().await;
    let program = app.program().await;
    program.texts(as_ann("delete dune")).await;
    app.settle().await;
    browser.answers(1, "yes").await;
    browser.submit("/keys/1/revoke", &[]).await;

    let page = browser.get("/conversations/1").await.text();
    let audit = browser.get("/audit").await.text();

    assert!(page.contains("delete dune 21:04 API key Script"), "{page}");
    assert!(page.contains("YES 21:04 you in the console"), "{page}");
    assert!(audit.contains("API key Script Texted as a user"), "{audit}");
    assert!(audit.contains("You, in the console Answered a question with yes"), "{audit}");
}

#[tokio::test]
async fn message_is_refused_if_it_cannot_be_audited() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    let program = app.program().await;
    app.refuse_audit().await;

    assert_eq!(program.texts(as_ann("upcoming")).await.problem().0, 503);

    assert_eq!(app.stored_texts().await, ["status"]);
}
