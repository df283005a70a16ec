//! Stored data of users, its retention and its erasure.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::store::privacy::forget::ErasureOutcome;
use serde_json::{Value, json};

use crate::harness::model::{Holding, adds_movie, calls, removes_movie, request_text, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

/// Lets Bob add a title, delete another, react, and get a prompt about a third.
async fn bob_writes_of_walrus(app: &TestApp) {
    app.register_user(BOB, Has::EveryRight).await;
    let walrus = app.radarr().add_to_catalog(movie("Walrus").year(2016));
    app.model_plays([&adds_movie("walrus", walrus)[..], &[says("Walrus is on its way.")]].concat());
    app.sms_from(BOB, "get walrus").await;
    let two = app.radarr().add(movie("Walrus Two").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("walrus two", two));
    app.sms_from(BOB, "delete walrus two").await;
    app.sms_from(BOB, "yes").await;
    app.sms_from(BOB, "Liked \u{201c}Walrus is on its way.\u{201d}").await;
    let three = app.radarr().add(movie("Walrus Three").year(2022).size_gb(1.0));
    app.model_plays(removes_movie("walrus three", three));
    app.sms_from(BOB, "delete walrus three").await;
}

#[tokio::test]
async fn messages_of_an_erased_user_are_gone() {
    let app = TestApp::start().await;
    bob_writes_of_walrus(&app).await;
    let columns = app.columns_with("walrus").await;
    assert!(columns.len() >= 8, "{columns:?}");

    assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);

    assert_eq!(app.columns_with("walrus").await, Vec::<String>::new());
    assert_eq!(app.columns_with("15550100003").await, Vec::<String>::new());
}

#[tokio::test]
async fn messages_of_an_erased_user_are_not_found_in_the_console() {
    let app = TestApp::start().await;
    bob_writes_of_walrus(&app).await;
    app.sms("tell everyone walrus night at 8").await;
    app.index_new_text().await;
    let mut browser = app.browser().await;
    let mut finds = async |words: &str| {
        let page = browser.get(&format!("/conversations?q={words}")).await.html;
        page.matches("<li><a class=\"conversation-link\"").count()
    };
    let before = [finds("liked").await, finds("walrus").await];
    assert!(before[0] == 1 && before[1] > 6, "{before:?}");

    assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);

    // Ann's own messages remain.
    assert_eq!([finds("liked").await, finds("walrus").await], [0, 1]);
}

#[tokio::test]
async fn messages_of_other_users_survive_an_erasure() {
    let app = TestApp::start().await;
    app.model_plays([says("Hello Ann.")]);
    app.sms("hello, this is Ann").await;
    bob_writes_of_walrus(&app).await;
    app.forget_user(BOB);
    assert_eq!(app.stored_texts().await[0], "hello, this is Ann");
    app.model_plays([says("You said hello.")]);
    assert_eq!(app.sms("what did I say?").await, "You said hello.");
    assert_eq!(app.last_request().messages.len(), 3);
}

#[tokio::test]
async fn erased_number_that_texts_again_is_a_newcomer() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::EveryRight).await;
    assert_ne!(app.sms_from(BOB, "?").await, "");
    app.forget_user(BOB);
    assert!(
        app.sms_from(BOB, "?")
            .await
            .ends_with("What is your name? I will ask the admins to let you in. Text STOP to opt out.")
    );
    assert_eq!(app.people().await, ["+15550100002 active admin", "+15550100003 pending member"]);
}

#[tokio::test]
async fn join_request_texts_are_erased_with_the_newcomer() {
    let app = TestApp::start_without_model().await;
    app.sms_from(BOB, "hello").await;
    app.sms_from(BOB, "Walrus").await;
    assert!(app.columns_with("walrus").await.contains(&"outbox body".to_owned()));
    let message = app.twilio().sent_messages().last().unwrap().body.clone();
    let code = message.split("APPROVE ").nth(1).unwrap()[..4].to_owned();

    assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);

    assert_eq!(app.columns_with("walrus").await, Vec::<String>::new());
    assert_eq!(app.columns_with("15550100003").await, Vec::<String>::new());
    assert_eq!(app.sms(&format!("approve {code}")).await, "That request was withdrawn.");
}

#[tokio::test]
async fn queued_message_does_not_reach_an_erased_user() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.twilio().fail_next(429, 20429);
    app.sms_from(BOB, "?").await;
    app.forget_user(BOB);
    app.pass(600);
    app.settle().await;
    assert_eq!(app.outbox().await, ["suppressed 2 "]);
    assert_eq!(app.texts_to(BOB, 0), "");
}

#[tokio::test]
async fn erasure_waits_for_running_work_of_the_user() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.post(app.text(BOB, "hold the walrus")).await;
    model.holds().await;
    assert_eq!(app.forget_user(BOB), ErasureOutcome::Busy);
    model.let_go();
    app.settle().await;
    assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);
    assert_eq!(app.columns_with("walrus").await, Vec::<String>::new());
}

#[tokio::test]
async fn last_admin_cannot_be_erased() {
    let app = TestApp::start_without_model().await;
    assert_eq!(app.forget_user(ANN), ErasureOutcome::LastAdmin);
    assert_eq!(app.people().await, ["+15550100002 active admin"]);
}

#[tokio::test]
async fn export_contains_both_sides_of_every_conversation() {
    let app = TestApp::start().await;
    bob_writes_of_walrus(&app).await;
    app.sms_from(BOB, "reset").await;
    app.model_plays([says("Hello again.")]);
    app.sms_from(BOB, "hello").await;

    let export = app.export_user(BOB);

    let bodies = |texts: &Value| -> Vec<String> {
        texts.as_array().unwrap().iter().map(|text| text["body"].as_str().unwrap().to_owned()).collect()
    };
    let turns = export["conversations"].as_array().unwrap().iter().flat_map(|conversation| {
        conversation["turns"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|turn| [bodies(&turn["texts_received"]), bodies(&turn["texts_sent"])].concat())
    });
    insta::assert_snapshot!(turns.collect::<Vec<_>>().join("\n"));
    assert_eq!(export["conversations"][0]["turns"][0]["steps"][1]["tool_calls"][0]["tool"], "add_movie");
    assert_eq!(export["addresses"][0]["address"], BOB);
    assert_eq!(bodies(&export["other_texts_received"]), ["Liked \u{201c}Walrus is on its way.\u{201d}"]);
    assert_eq!(export["audit"][0]["kind"], json!("write_done"));
}

#[tokio::test]
async fn texts_older_than_the_retention_are_erased() {
    let app = TestApp::start_without_model().await;
    app.sms("upcoming").await;
    app.days_pass(200).await;
    assert_eq!(app.stored_texts().await, ["upcoming"]);
    app.sms("status").await;
    app.days_pass(200).await;
    assert_eq!(app.stored_texts().await, ["", "status"]);
    assert_eq!(app.outbox().await, ["accepted 1 ", "accepted 1 Nothing is downloading."]);
    assert_eq!(app.message_outcomes().await, [": replied", "status: replied"]);
    app.days_pass(200).await;
    assert_eq!(app.stored_texts().await, ["", ""]);
}

#[tokio::test]
async fn retention_erases_more_than_one_batch_per_round() {
    let app = TestApp::with(|settings| settings.rate_limit = None).await;
    app.block(BOB).await;
    for _ in 0..410 {
        app.post(app.text(BOB, "walrus")).await;
    }
    app.settle().await;
    app.days_pass(366).await;
    assert_eq!(app.columns_with("walrus").await, Vec::<String>::new());
}

#[tokio::test]
async fn unanswered_prompt_is_closed_before_its_text_is_erased() {
    let app = TestApp::start().await;
    let walrus = app.radarr().add(movie("Walrus").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("walrus", walrus));
    app.sms("delete walrus").await;
    app.days_pass(366).await;
    assert_eq!(app.columns_with("walrus").await, Vec::<String>::new());
    app.model_plays([says("Nothing is open.")]);
    assert_eq!(app.sms("yes").await, "Nothing is open.");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn forget_all_erases_messages_and_keeps_the_user() {
    let app = TestApp::start().await;
    app.model_plays([says("The walrus film is called Tusk.")]);
    app.sms("what was that walrus film?").await;
    assert_eq!(
        app.sms("forget all").await,
        "OK, I erased our messages. I still have your number and permissions."
    );
    let kept = app.export_user(ANN).to_string();
    assert!(!kept.contains("walrus") && !kept.contains("Tusk"), "{kept}");

    app.model_plays([says("I don't know.")]);
    assert_eq!(app.sms("what film did I ask for?").await, "I don't know.");
    assert!(!request_text(&app.last_request()).contains("walrus"));
    assert_eq!(app.people().await, ["+15550100002 active admin"]);
    assert_eq!(app.audit().await, ["forget_all user:1 by +15550100002"]);
}

#[tokio::test]
async fn forget_all_closes_an_open_prompt_without_deleting() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    assert_eq!(
        app.sms("Forget all.").await,
        "OK, Dune (2021) is kept. OK, I erased our messages. I still have your number and permissions."
    );
    app.model_plays([says("What do you mean?")]);
    assert_eq!(app.sms("yes").await, "What do you mean?");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn waiting_removal_request_of_an_erased_user_is_not_sent() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.sms_from(BOB, "hi").await;
    app.sms_from(BOB, "Bobby").await;
    assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);
    app.sms("no").await;
    assert!(app.messages_to(ANN).iter().all(|text| !text.contains("Bobby")), "{:?}", app.messages_to(ANN));
    assert_eq!(app.columns_with("bobby").await, Vec::<String>::new());
}

#[tokio::test]
async fn name_of_another_user_outlives_neither_retention_nor_forgetting() {
    for is_forgotten in [false, true] {
        let app = TestApp::start().await;
        app.register_named_user("Walrus", BOB, Has::AddRight).await;
        let dune = app.radarr().add_to_catalog(movie("Dune").year(2021));
        app.model_plays([&adds_movie("dune", dune)[..], &[says("Dune is on its way.")]].concat());
        app.sms_from(BOB, "get dune").await;
        app.model_plays([&adds_movie("dune", dune)[..], &[says("Walrus asked for it.")]].concat());
        app.sms("get dune").await;
        let follow = calls("tell_me_when_ready", json!({ "type": "movie", "tmdb": dune }));
        app.model_plays([follow, says("OK, like Walrus.")]);
        app.sms("tell me too").await;
        let columns = app.columns_with("walrus").await;
        assert!(columns.contains(&"tool_calls response".to_owned()), "{columns:?}");
        assert!(!columns.contains(&"audit_log detail".to_owned()), "{columns:?}");

        if is_forgotten {
            assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);
        }
        app.days_pass(366).await;
        let left: &[&str] = if is_forgotten { &[] } else { &["users display_name"] };
        assert_eq!(app.columns_with("walrus").await, left);
    }
}
