//! Messages of one user over several channels: by phone, over the API, by a button. Each channel gets its own replies.

use dialarr::arr::fake::media_fixtures::movie;
use serde_json::{Value, json};

use crate::harness::model::{calls, finds, removes_movie, says};
use crate::harness::program::{Answered, Program};
use crate::harness::{ANN, BOB, Has, TestApp};

const TOO_FAST: &str = "That is more than 10 texts within a minute, so I ignored the rest. \
                        Please resend later what you still need.";

/// Sends a message as a user without a wait for the reply.
async fn leaves(program: &Program<'_>, user: &str, text: &str) -> Answered {
    let text = json!({ "user": user, "text": text });
    program.texts_with(("prefer", "respond-async"), text).await
}

async fn notes(program: &Program<'_>, user: &str, text: &str) {
    let text = json!({ "user": user, "text": text, "respond": false });
    program.texts_with(("prefer", "respond-async"), text).await;
}

async fn content(app: &TestApp, message: u32) -> Value {
    app.program().await.get(&format!("/api/v1/messages/{message}")).await.json()["content"].clone()
}

/// Starts with a prompt to Ann by phone about Dune, and with a removal request of Bob for Heat.
async fn app_with_prompt_and_removal_request() -> (TestApp, i64, i64) {
    let app = TestApp::start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let heat = app.radarr().add(movie("Heat").year(1995).size_gb(9.0));
    let wish = calls("request_removal", json!({ "type": "movie", "id": heat }));
    app.model_plays([finds("heat"), wish, says("I asked the admins.")]);
    app.sms_from(BOB, "delete heat").await;
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    (app, dune, heat)
}

#[tokio::test]
async fn removal_request_approved_by_button_keeps_the_admins_prompt() {
    let (app, dune, heat) = app_with_prompt_and_removal_request().await;
    app.pass(1);

    app.browser().await.submit("/wishes/1/approve", &[]).await;
    app.settle().await;

    assert_eq!(app.radarr().removed_ids(), [heat]);
    assert_eq!(app.last_to(ANN), "Deleted Heat (1995). Freed 9 GB.");
    assert_eq!(app.sms("yes").await, "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.");
    assert_eq!(app.sms("yes").await, "Deleted Dune (2021). Freed 21.4 GB.");
    assert_eq!(app.radarr().removed_ids(), [heat, dune]);
}

#[tokio::test]
async fn rate_limit_and_buttons_do_not_affect_each_other() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let heat = app.radarr().add(movie("Heat").year(1995).size_gb(9.0));
    app.sms_from(BOB, "remove heat").await;
    let program = app.program().await;
    for _ in 0..11 {
        program.texts(json!({ "user": ANN, "text": "have dune" })).await;
    }
    for _ in 0..9 {
        app.sms("have dune").await;
    }

    app.browser().await.submit("/wishes/1/approve", &[]).await;
    app.settle().await;

    assert_eq!(app.radarr().removed_ids(), [heat]);
    assert_eq!(app.sms("have dune").await, "Nothing in the library matches \"dune\".");
    assert_eq!(app.sms("have dune").await, TOO_FAST);
}

#[tokio::test]
async fn removal_request_approved_twice_by_button_runs_once() {
    let (mut app, _, heat) = app_with_prompt_and_removal_request().await;
    app.app().engine.abort().await;
    for _ in 0..2 {
        let answer = app.browser().await.submit("/wishes/1/approve", &[]).await;
        assert_eq!(answer.location.as_deref(), Some("/?flash=approved"));
        app.pass(61);
    }

    app.restart().await;
    app.settle().await;

    assert_eq!(app.radarr().removed_ids(), [heat]);
    assert_eq!(app.message_outcomes().await[2..], ["approve 4747: replied"]);
}

#[tokio::test]
async fn no_after_a_yes_drops_no_message_of_another_channel() {
    let (mut app, ..) = app_with_prompt_and_removal_request().await;
    let before = app.twilio().sent_messages().len();
    app.app().engine.abort().await;
    app.post(app.text(ANN, "yes")).await;
    app.pass(1);
    let program = app.program().await;
    notes(&program, ANN, "my tv is broken").await;
    leaves(&program, ANN, "?").await;
    app.pass(1);
    app.post(app.text(ANN, "no")).await;

    app.restart().await;
    app.settle().await;

    assert_eq!(app.texts_to(ANN, before), "OK, kept.");
    assert_eq!(
        app.message_outcomes().await[2..],
        ["yes: replied", "my tv is broken: skipped remembered", "?: replied", "no: replied"]
    );
    let answer = content(&app, 5).await;
    assert!(answer.as_str().unwrap().starts_with("You can text"), "{answer}");
}

#[tokio::test]
async fn late_messages_are_reported_on_each_channel() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("pause").await;
    let program = app.program().await;
    leaves(&program, BOB, "status").await;
    app.settle().await;
    for text in ["upcoming", "status"] {
        app.sms_from(BOB, text).await;
    }
    notes(&program, BOB, "my tv is broken").await;
    app.settle().await;
    let before = app.twilio().sent_messages().len();
    app.pass(2 * 3600);

    app.sms("resume").await;

    let too_late = |texts| {
        format!("I was paused for more than an hour after {texts}. Please resend anything you still need.")
    };
    assert_eq!(app.texts_to(BOB, before), too_late("2 of your texts"));
    assert_eq!(content(&app, 2).await, too_late("your text"));
    assert_eq!(app.message_outcomes().await[4], "my tv is broken: skipped remembered");
}

#[tokio::test]
async fn rate_limit_is_reported_on_each_channel() {
    let app = TestApp::start_without_model().await;
    let program = app.program().await;
    let mut answer = Value::Null;
    for _ in 0..11 {
        answer = program.texts(json!({ "user": ANN, "text": "have heat" })).await.json()["content"].clone();
    }
    assert_eq!(answer, TOO_FAST);

    let by_phone = app.sms_at_once(&["have heat"; 11]).await;

    assert!(by_phone.contains(TOO_FAST), "{by_phone}");
}
