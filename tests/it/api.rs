//! The API: messages in the name of users, their outcomes, and the other operations for programs.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::model_request::ModelMessage;
use dialarr::conversation::people::admin_commands;
use dialarr::store::privacy::forget::ErasureOutcome;
use diesel::connection::SimpleConnection;
use http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::model::{Holding, calls, calls_together, removes_movie, says};
use crate::harness::program::Answered;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

/// Returns the text of a successful response.
#[track_caller]
fn content(answered: &Answered) -> String {
    assert_eq!(answered.status, 200, "{answered:?}");
    answered.json()["content"].as_str().unwrap().to_owned()
}

fn as_ann(text: &str) -> Value {
    json!({ "user": ANN, "text": text })
}

/// Returns the last messages to the model, without tool results.
fn model_messages(app: &TestApp) -> Vec<String> {
    let words = |message: &ModelMessage| match message {
        ModelMessage::User(text) => Some(format!("user: {text}")),
        ModelMessage::Assistant { text, .. } => Some(format!("assistant: {text}")),
        ModelMessage::ToolResult { .. } => None,
    };
    app.last_request().messages.iter().filter_map(|message| words(message)).collect()
}

#[tokio::test]
async fn message_by_api_is_answered_by_api_only() {
    let app = TestApp::start().await;
    app.sms("hello").await;
    let by_phone = app.twilio().sent_messages().len();
    app.model_plays([says("Good evening.")]);
    let program = app.program().await;

    let answered = program.texts(json!({ "user": ANN, "text": "good evening" })).await;

    assert_eq!(answered.status, 200, "{answered:?}");
    let expected = json!({
        "message_id": 2,
        "content": "Good evening.",
        "actions": [],
        "lifecycle": {
            "is_new_conversation": false,
            "conversation_id": 1,
            "conversation_name": "hello",
            "started_at": "2026-11-20T21:04:01.000Z",
        },
        "turn": { "id": 2, "state": "COMPLETED" },
    });
    assert_eq!(answered.json(), expected);
    app.settle().await;
    assert_eq!(app.twilio().sent_messages().len(), by_phone);
    assert_eq!(program.get("/api/v1/messages/2").await.json(), answered.json());
    let by_id = json!({ "user": 1.0, "text": "thanks" });
    assert_eq!(content(&program.texts(by_id).await), "");
}

#[tokio::test]
async fn actions_of_a_turn_are_returned_by_api_and_not_sent() {
    let app = TestApp::start().await;
    let url = "https://image.tmdb.org/t/p/w500/dune.jpg";
    app.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(438_631).poster(url));
    app.model_plays([
        calls("search_media", json!({ "query": "dune" })),
        calls_together(&[
            ("react", json!({ "emoji": "\u{1f44d}" })),
            ("send_poster", json!({ "tmdb": 438_631 })),
        ]),
        says("Here."),
    ]);

    let answered = app.program().await.texts(as_ann("poster of dune")).await;

    let actions = json!([
        { "type": "react", "emoji": "\u{1f44d}" },
        { "type": "send_poster", "title": "Dune (2021)", "url": url },
    ]);
    assert_eq!((content(&answered), &answered.json()["actions"]), ("Here.".to_owned(), &actions));
    app.settle().await;
    assert_eq!(app.messages_to(ANN), Vec::<String>::new());
}

#[tokio::test]
async fn deletion_is_prompted_over_the_api_and_confirmed_by_the_person() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let program = app.program().await;

    let asked = program.texts(as_ann("delete dune")).await;
    app.settle().await;
    app.pass(1);
    let refused = program.texts(as_ann("yes")).await;

    let question = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
    let refusal = "Only a person can confirm this, in their own chat or in the console. Nothing was done.";
    assert_eq!([content(&asked), content(&refused)], [question, refusal]);
    assert_eq!(app.radarr().titles().len(), 1);
    app.browser().await.answers(1, "yes").await;
    assert!(app.radarr().titles().is_empty());
}

#[tokio::test]
async fn yes_by_phone_does_not_confirm_an_api_prompt() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let program = app.program().await;
    let question = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
    assert_eq!(content(&program.texts(as_ann("delete dune")).await), question);
    app.settle().await;
    assert_eq!(app.messages_to(ANN), Vec::<String>::new());

    assert_eq!(app.sms("yes").await, question);
    assert_eq!(app.radarr().titles().len(), 1);
    assert_eq!(app.sms("yes").await, "Deleted Dune (2021). Freed 21.4 GB.");
}

#[tokio::test]
async fn api_messages_do_not_use_up_the_phone_quota() {
    let app = TestApp::start_without_model().await;
    let program = app.program().await;
    for _ in 0..10 {
        program.texts(as_ann("have heat")).await;
    }
    app.settle().await;

    assert_eq!(app.sms("have heat").await, "Nothing in the library matches \"heat\".");
    let one_more = content(&program.texts(as_ann("have heat")).await);
    assert_ne!(one_more, "Nothing in the library matches \"heat\".");
}

#[tokio::test]
async fn pause_notice_by_api_is_repeated_by_phone() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("pause").await;
    let program = app.program().await;
    for respond in [false, true] {
        let text = json!({ "user": BOB, "text": "status", "respond": respond });
        program.texts_with(("prefer", "respond-async"), text).await;
        app.settle().await;
    }
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());

    assert_eq!(app.sms_from(BOB, "status").await, admin_commands::PAUSED);
}

#[tokio::test]
async fn message_without_response_is_only_remembered() {
    let app = TestApp::start().await;
    let program = app.program().await;

    let noted = program.texts(json!({ "user": ANN, "text": "my tv is broken", "respond": false })).await;
    app.model_plays([says("I heard.")]);
    let later = program.texts(as_ann("what did I say?")).await;

    assert_eq!(content(&noted), "");
    assert_eq!(noted.json()["lifecycle"]["is_new_conversation"], true);
    assert_eq!(later.json()["lifecycle"]["conversation_id"], noted.json()["lifecycle"]["conversation_id"]);
    assert_eq!(content(&later), "I heard.");
    assert_eq!(app.messages_to(ANN), Vec::<String>::new());
    let messages = model_messages(&app).join("\n");
    assert!(messages.contains("my tv is broken"), "{messages}");
}

#[tokio::test]
async fn message_without_response_keeps_the_pending_action() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;

    for text in ["no", "yes", "/clear"] {
        let noted = app.program().await.texts(json!({ "user": ANN, "text": text, "respond": false })).await;
        assert_eq!(content(&noted), "");
    }

    assert_eq!(app.sms("yes").await, "Deleted Dune (2021). Freed 21.4 GB.");
}

#[tokio::test]
async fn repeated_idempotency_key_returns_the_first_reply() {
    let app = TestApp::start().await;
    app.model_plays([says("Once.")]);
    let program = app.program().await;
    let key = ("idempotency-key", "order-1");

    let first = program.texts_with(key, as_ann("say it")).await;
    let again = program.texts_with(key, as_ann("say it")).await;
    let other = program.texts_with(key, as_ann("say something else")).await;
    let none = program.texts_with(("idempotency-key", ""), as_ann("say it")).await;

    assert_eq!((content(&first), first.json()), ("Once.".to_owned(), again.json()));
    assert_eq!(
        other.problem(),
        (422, "this Idempotency-Key was used with another text or another value of respond".to_owned())
    );
    assert_eq!(
        none.problem(),
        (400, "Idempotency-Key must have 1 to 255 characters of printable ASCII".to_owned())
    );
    assert_eq!(app.stored_texts().await, ["say it"]);
}

#[tokio::test]
async fn reused_key_for_another_user_stores_nothing() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.model_plays([says("Once.")]);
    let program = app.program().await;
    let (key, as_bob) = (("idempotency-key", "order-1"), json!({ "user": BOB, "text": "say it" }));

    let first = program.texts_with(key, as_ann("say it")).await;
    let other = program.texts_with(key, as_bob).await;

    assert_eq!(content(&first), "Once.");
    assert_eq!(other.problem(), (422, "this Idempotency-Key was used for another user".to_owned()));
    assert_eq!(app.stored_texts().await, ["say it"]);
}

/// Gives the first message the id that an earlier version stored for this key of user 1, received hours ago.
async fn was_stored_by_an_earlier_version(app: &TestApp, key: &str, hours: i64) {
    let id = format!("api:key-1:{}", URL_SAFE_NO_PAD.encode(Sha256::digest(format!("1:{key}"))));
    let at = (app.now() - SignedDuration::from_hours(hours)).as_millisecond();
    let update = format!("UPDATE inbound_events SET external_id = '{id}', received_at = {at}");
    app.app().db.write(move |conn| conn.batch_execute(&update)).await.unwrap();
}

#[tokio::test]
async fn request_from_before_an_upgrade_is_repeated_safely() {
    let app = TestApp::start().await;
    app.model_plays([says("Once."), says("Another.")]);
    let program = app.program().await;
    let key = ("idempotency-key", "order-1");
    let first = program.texts_with(key, as_ann("say it")).await;
    app.settle().await;
    was_stored_by_an_earlier_version(&app, "order-1", 23).await;

    let again = program.texts_with(key, as_ann("say it")).await;
    assert_eq!((content(&first), first.json()), ("Once.".to_owned(), again.json()));
    assert_eq!(app.stored_texts().await, ["say it"]);

    let other = program.texts_with(key, as_ann("say something else")).await;
    assert_eq!(content(&other), "Another.");
}

#[tokio::test]
async fn key_of_an_earlier_version_expires_after_a_day() {
    let app = TestApp::start().await;
    app.model_plays([says("Once."), says("Again.")]);
    let program = app.program().await;
    let key = ("idempotency-key", "order-1");
    program.texts_with(key, as_ann("say it")).await;
    app.settle().await;
    was_stored_by_an_earlier_version(&app, "order-1", 25).await;
    assert_eq!(content(&program.texts_with(key, as_ann("say it")).await), "Again.");
}

#[tokio::test]
async fn repeated_key_after_erasure_returns_no_text() {
    let app = TestApp::start().await;
    app.model_plays([says("Once.")]);
    let program = app.program().await;
    let key = ("idempotency-key", "order-1");
    let first = program.texts_with(key, as_ann("say it")).await;
    app.settle().await;
    app.sms("forget all").await;

    let again = program.texts_with(key, as_ann("say it")).await;

    assert_eq!((again.status, content(&again)), (200, String::new()));
    assert_eq!(again.json()["message_id"], first.json()["message_id"]);
    assert_eq!(app.count("inbound_events").await, 2);
}

#[tokio::test]
async fn repeated_key_after_user_erasure_is_refused() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.model_plays([says("Once.")]);
    let program = app.program().await;
    let (key, as_bob) = (("idempotency-key", "order-1"), json!({ "user": BOB, "text": "say it" }));
    program.texts_with(key, as_bob.clone()).await;
    app.settle().await;
    assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);

    for user in [json!(BOB), json!(2)] {
        let again = program.texts_with(key, json!({ "user": user, "text": "say it" })).await;
        assert_eq!(again.problem(), (404, "no user has this id or number".to_owned()));
    }

    app.register_user(BOB, Has::AddRight).await;
    let other = program.texts_with(key, as_bob).await;
    assert_eq!(other.problem(), (422, "this Idempotency-Key was used for another user".to_owned()));
}

#[tokio::test]
async fn slow_reply_can_be_fetched_later() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    let program = app.program().await;

    let pending = program.texts_with(("prefer", "wait=0"), as_ann("hold")).await;
    model.holds().await;
    let still = program.get(pending.location.as_deref().unwrap()).await;
    model.let_go();
    app.settle().await;
    let done = program.get("/api/v1/messages/1").await;

    assert_eq!((pending.status, pending.location.as_deref()), (202, Some("/api/v1/messages/1")));
    assert_eq!(still.status, 202);
    assert_eq!(still.json(), json!({ "message_id": 1, "turn": { "id": 1, "state": "IN_PROGRESS" } }));
    assert_eq!(content(&done), "Fine.");
}

#[tokio::test]
async fn api_refuses_messages_of_unavailable_users() {
    let app = TestApp::start_without_model().await;
    app.sms_from("+15550100009", "hi").await;
    app.register_user(BOB, Has::NoRights).await;
    app.block(BOB).await;
    app.sms("STOP").await;
    let program = app.program().await;
    let mut refused = Vec::new();
    for user in ["+15550100009", BOB, ANN, "+15550100077", "+1555", "Ann"] {
        refused.push(program.texts(json!({ "user": user, "text": "add dune" })).await.problem());
    }
    let not_a_number = "user must be a user id or a phone number in E.164 format such as +15550100123";
    let expected = [
        (409, "the user is not approved yet"),
        (409, "the user is blocked"),
        (409, "the user has opted out"),
        (404, "no user has this id or number"),
        (422, not_a_number),
        (422, not_a_number),
    ];
    assert_eq!(refused, expected.map(|(status, detail)| (status, detail.to_owned())));
}

#[tokio::test]
async fn message_by_api_during_a_pause_waits() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("pause").await;
    let waits = app.program().await.texts(json!({ "user": BOB, "text": "status" })).await;
    assert_eq!((waits.status, waits.json()["turn"].clone()), (202, Value::Null));
}

#[tokio::test]
async fn conversations_are_listed_by_user_state_and_page() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::NoRights).await;
    for _ in 0..3 {
        app.sms("?").await;
        app.pass(3600);
        app.run_maintenance().await;
    }
    app.sms_from(BOB, "?").await;
    let program = app.program().await;
    let ids = |answered: Answered| {
        let ids: Vec<i64> = answered.json()["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_i64().unwrap())
            .collect();
        (ids, answered.json()["next"].as_i64())
    };
    let list = async |query: &str| ids(program.get(&format!("/api/v1/conversations{query}")).await);

    assert_eq!(list("").await, (vec![4, 3, 2, 1], None));
    assert_eq!(list("?limit=3").await, (vec![4, 3, 2], Some(2)));
    assert_eq!(list("?limit=3&before=2").await, (vec![1], None));
    assert_eq!(list("?open=true").await, (vec![4], None));
    assert_eq!(list("?open=false&limit=1").await, (vec![3], Some(3)));
    assert_eq!(list("?user=%2B15550100003").await, (vec![4], None));
    assert_eq!(list("?user=1&open=true").await, (vec![], None));
    for (query, status, detail) in [
        ("?limit=0", 400, "limit must be from 1 to 100"),
        ("?limit=101", 400, "limit must be from 1 to 100"),
        ("?limit=ten", 400, "the query parameter limit has an invalid value"),
        ("?open=maybe", 400, "the query parameter open has an invalid value"),
        ("?colour=red", 400, "there is no query parameter colour"),
        ("?open=true&open=true", 400, "the query parameter open appears more than once"),
        ("?user=99", 404, "no user has this id or number"),
        ("?user=Bob", 422, "user must be a user id or a phone number in E.164 format such as +15550100123"),
    ] {
        let problem = program.get(&format!("/api/v1/conversations{query}")).await.problem();
        assert_eq!(problem, (status, detail.to_owned()), "{query}");
    }
}

#[tokio::test]
async fn conversation_shows_its_newest_turns_first() {
    let app = TestApp::start().await;
    app.model_plays([calls("check_status", json!({})), says("Nothing downloads."), says("Welcome.")]);
    app.sms("what is going on?").await;
    app.sms("and how are you?").await;
    let program = app.program().await;

    let shown = program.get("/api/v1/conversations/1?limit=1").await;
    let older = program.get("/api/v1/conversations/1?limit=1&before=2").await;

    assert_eq!(shown.json()["turns"]["next"], 2);
    assert_eq!(shown.json()["turns"]["items"][0]["answer"], "Welcome.");
    let turn = &older.json()["turns"]["items"][0];
    assert_eq!(older.json()["turns"]["next"], Value::Null);
    assert_eq!(turn["texts"][0]["body"], "what is going on?");
    assert_eq!(turn["tool_calls"][0]["tool"], "check_status");
    assert_eq!(turn["state"], "COMPLETED");
    assert_eq!(program.get("/api/v1/conversations/9").await.problem().0, 404);
}

#[tokio::test]
async fn users_are_listed_approved_and_blocked_by_api() {
    let app = TestApp::start_without_model().await;
    app.sms_from("+15550100009", "hi").await;
    let program = app.program().await;
    let listed = program.get("/api/v1/users?limit=1").await.json();
    assert_eq!(
        (&listed["items"][0]["phone"], &listed["items"][0]["status"], &listed["next"]),
        (&json!("+15550100009"), &json!("pending"), &json!(2))
    );

    assert_eq!(program.post("/api/v1/users/2/approve", json!({})).await.json()["status"], "active");
    assert_eq!(program.post("/api/v1/users/2/block", json!({})).await.json()["status"], "blocked");

    let last_admin = "the user is the last active admin, make another user an admin first".to_owned();
    assert_eq!(program.post("/api/v1/users/1/block", json!({})).await.problem(), (409, last_admin));
    assert_eq!(program.post("/api/v1/users/9/approve", json!({})).await.problem().0, 404);
}

#[tokio::test]
async fn clearing_ends_the_conversation_and_its_pending_action() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    let program = app.program().await;

    let cleared = program.post("/api/v1/users/1/clear", json!({})).await;
    let again = program.post("/api/v1/users/1/clear", json!({})).await;

    assert_eq!(
        (cleared.json(), again.json()),
        (json!({ "conversation_id": 1 }), json!({ "conversation_id": null }))
    );
    assert_eq!(app.conversations().await, ["cleared"]);
    assert_eq!(app.sms("yes").await, "That question is closed. Dune (2021) is kept. Ask again to delete.");
    assert_eq!(program.post("/api/v1/users/9/clear", json!({})).await.problem().0, 404);
}

#[tokio::test]
async fn ended_conversation_can_be_reopened() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    app.sms("/clear").await;
    let program = app.program().await;

    let reopened = program.post("/api/v1/conversations/1/reopen", json!({})).await;
    let goes_on = program.texts(as_ann("status")).await;

    assert_eq!((reopened.status, &reopened.json()["ended_at"]), (200, &Value::Null));
    assert_eq!(goes_on.json()["lifecycle"]["conversation_id"], 1);
    assert_eq!(program.post("/api/v1/conversations/9/reopen", json!({})).await.problem().0, 404);
}

#[tokio::test]
async fn only_a_running_turn_can_be_canceled() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    let program = app.program().await;
    program.texts_with(("prefer", "respond-async"), as_ann("hold")).await;
    model.holds().await;

    let canceled = program.post("/api/v1/turns/1/cancel", json!({})).await;
    app.settle().await;

    assert_eq!((canceled.status, canceled.json()), (202, json!({ "turn_id": 1 })));
    let shown = program.get("/api/v1/messages/1").await.json();
    assert_eq!((&shown["content"], &shown["turn"]["state"]), (&json!(""), &json!("CANCELED")));
    let over = program.post("/api/v1/turns/1/cancel", json!({})).await;
    assert_eq!(over.problem(), (409, "the turn has already finished".to_owned()));
    let resumed = program.post("/api/v1/turns/1/resume", json!({})).await;
    assert_eq!(resumed.problem(), (409, "the turn is running or did not fail".to_owned()));
    assert_eq!(program.post("/api/v1/turns/9/resume", json!({})).await.problem().0, 404);
}

#[tokio::test]
async fn unreadable_request_gets_a_problem_with_a_reason() {
    let app = TestApp::start_without_model().await;
    let program = app.program().await;
    let send = async |kind: &str, body: &str| {
        let request = program.to(Method::POST, "/api/v1/messages").header("content-type", kind);
        program.send(request, body).await.problem()
    };
    let long = json!({ "user": ANN, "text": "a".repeat(1601) }).to_string();
    let huge = json!({ "user": ANN, "text": "a".repeat(70_000) }).to_string();
    for (kind, body, status, detail) in [
        ("text/plain", "{}", 415, "the body must be JSON, with the header Content-Type: application/json"),
        ("application/json", "{", 400, "the body is not valid JSON"),
        ("application/json", "[]", 422, "the body must be a JSON object"),
        ("application/json", "{}", 422, "the body field user is missing"),
        (
            "application/json",
            r#"{"user": 1, "text": "hi", "colour": "red"}"#,
            422,
            "there is no body field colour",
        ),
        ("application/json", r#"{"user": 1, "text": " "}"#, 422, "text is blank"),
        (
            "application/json",
            r#"{"user": 1.5, "text": "hi"}"#,
            422,
            "the body field user has an invalid value",
        ),
        ("application/json", long.as_str(), 422, "text is longer than 1600 characters"),
        ("application/json", huge.as_str(), 413, "the body is over 64 KiB"),
    ] {
        let start = &body[..body.len().min(60)];
        assert_eq!(send(kind, body).await, (status, detail.to_owned()), "{kind} {start}");
    }
    let to = async |method: Method, path: &str| {
        let answered = program.send(program.to(method, path), "").await;
        answered.problem().0
    };
    assert_eq!(to(Method::GET, "/api/v1/nothing").await, 404);
    assert_eq!(to(Method::GET, "/api/v1").await, 404);
    assert_eq!(to(Method::DELETE, "/api/v1/users").await, 405);
    assert_eq!(to(Method::GET, "/api/v1/conversations/one").await, 404);
    assert_eq!(to(Method::GET, "/api/v1/conversations/99999999999999999999").await, 404);
}
