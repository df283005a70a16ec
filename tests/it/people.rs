//! Users and their rights: configured users, newcomers, blocked and opted-out users, and the three checks of rights.

use dialarr::arr::fake::media_fixtures::movie;
use serde_json::{Value, json};

use crate::harness::model::{Holding, calls, offered, removes_movie, request_text, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const STRANGER: &str = "+15550100009";
const NOTHING_OUT: &str = "Nothing comes out in the next 7 days.";

fn vectors() -> Vec<(String, String)> {
    let vectors: Value = serde_json::from_str(include_str!("../data/optout_keywords.json")).unwrap();
    let text = |vector: &Value, name: &str| vector[name].as_str().unwrap().to_owned();
    let vectors = vectors["vectors"].as_array().unwrap();
    vectors.iter().map(|vector| (text(vector, "body"), text(vector, "ours"))).collect()
}

/// Returns the message bodies by which a user opts out.
fn ways_out() -> Vec<String> {
    let vectors =
        vectors().into_iter().filter(|(_, ours)| ours.starts_with("same") || ours.contains("opt-out"));
    let ways: Vec<String> = vectors.map(|(body, _)| body).filter(|body| body != "yes").collect();
    assert_eq!(ways.len(), 9);
    ways
}

#[tokio::test]
async fn configured_users_are_activated_once_and_not_changed_later() {
    let mut app = Setup::default().keyword_responder().people("+15550100021", &[BOB, ANN]).start().await;
    assert_eq!(
        app.people().await,
        ["+15550100002 active admin", "+15550100003 active member", "+15550100021 active admin"]
    );
    app.block(BOB).await;
    app.block("+15550100021").await;
    app.restart().await;
    assert_eq!(
        app.people().await,
        ["+15550100002 active admin", "+15550100003 blocked member", "+15550100021 blocked admin"]
    );
}

#[tokio::test]
async fn mistyped_number_of_the_operator_does_not_stay_an_admin() {
    let mut app = Setup::default().keyword_responder().people("+15550100021", &[]).start().await;
    app.reconfigure(|setup| setup.people("+15550100022", &[])).await;
    assert_eq!(
        app.people().await,
        ["+15550100002 active admin", "+15550100021 blocked member", "+15550100022 active admin"]
    );
    assert_eq!(app.audit().await, ["set user:1 by dialarr", "block user:1 by dialarr"]);
}

#[tokio::test]
async fn earlier_number_of_the_operator_that_has_texted_stays_an_admin() {
    let mut app = Setup::default().keyword_responder().people("+15550100021", &[]).start().await;
    app.sms_from("+15550100021", "upcoming").await;
    app.reconfigure(|setup| setup.people("+15550100022", &[])).await;
    assert_eq!(app.people().await[1], "+15550100021 active admin");
}

#[tokio::test]
async fn earlier_number_of_the_operator_that_is_listed_stays_an_admin() {
    let mut app = Setup::default().keyword_responder().people("+15550100021", &[]).start().await;
    app.reconfigure(|setup| setup.people("+15550100022", &["+15550100021"])).await;
    assert_eq!(app.people().await[1], "+15550100021 active admin");
}

#[tokio::test]
async fn newcomer_becomes_an_admin_once_their_number_is_the_operators() {
    let mut app = Setup::default().keyword_responder().people("+15550100021", &[]).start().await;
    app.sms_from(STRANGER, "hello").await;
    app.reconfigure(|setup| setup.people(STRANGER, &[])).await;
    app.settle().await;
    assert_eq!(
        app.people().await,
        ["+15550100002 active admin", "+15550100009 active admin", "+15550100021 blocked member"]
    );
    assert_eq!(app.sms_from(STRANGER, "upcoming").await, NOTHING_OUT);
}

#[tokio::test]
async fn configured_user_is_served() {
    let app = Setup::default().keyword_responder().people(ANN, &[BOB]).start().await;
    assert_eq!(app.sms_from(BOB, "upcoming").await, NOTHING_OUT);
}

#[tokio::test]
async fn blocked_user_gets_no_reply() {
    let app = TestApp::start().await;
    app.block(BOB).await;
    for text in ["add dune", "yes", "START", "?", "status"] {
        assert_eq!(app.sms_from(BOB, text).await, "", "{text}");
    }
    assert_eq!(app.model().request_count(), 0);
    assert_eq!(app.message_outcomes().await[0], "add dune: skipped blocked");
}

#[tokio::test]
async fn block_takes_effect_while_a_prompt_is_open() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::EveryRight).await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms_from(BOB, "delete dune").await;
    app.block(BOB).await;
    assert_eq!(app.sms_from(BOB, "yes").await, "");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn every_opt_out_word_denies_until_an_opt_in_word() {
    for (at, way_out) in ways_out().into_iter().enumerate() {
        let app = TestApp::start().await;
        let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
        app.model_plays(removes_movie("dune", dune));
        app.sms("delete dune").await;

        assert_eq!(app.sms(&way_out).await, "", "{way_out}");
        assert_eq!(app.people().await, ["+15550100002 active admin opted out"], "{way_out}");
        for text in ["status", "?", "yes please", "/clear", "no"] {
            assert_eq!(app.sms(text).await, "", "{way_out}, then {text}");
        }

        let way_back = ["START", "unstop", "Yes"][at % 3];
        let expected = if way_back == "Yes" { "Dune (2021) is kept. Ask again to delete." } else { "" };
        assert_eq!(app.sms(way_back).await, expected, "{way_out}, then {way_back}");
        assert_eq!(app.people().await, ["+15550100002 active admin"], "{way_out}, then {way_back}");
        assert_ne!(app.sms("?").await, "");
        assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    }
}

#[tokio::test]
async fn opt_out_ends_the_running_turn_without_a_reply() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    app.post(app.text(ANN, "hold the line")).await;
    app.post(app.text(ANN, "STOP")).await;
    assert_eq!(app.people().await, ["+15550100002 active admin opted out"]);
    model.let_go();
    app.settle().await;
    assert_eq!(app.outbox().await, Vec::<String>::new());
}

#[tokio::test]
async fn sentence_with_an_opt_out_word_goes_to_the_model() {
    for text in ["cancel it", "Stop please", "help me plan dinner", "start over", "the end"] {
        let app = TestApp::start().await;
        app.model_plays([says("Fine.")]);
        assert_eq!(app.sms(text).await, "Fine.", "{text}");
    }
}

#[tokio::test]
async fn newcomer_can_opt_out() {
    let app = TestApp::start().await;
    assert_eq!(app.sms_from(STRANGER, "STOP").await, "");
    assert_eq!(app.people().await[1], "+15550100009 pending member opted out");
}

#[tokio::test]
async fn help_word_is_left_to_the_carrier() {
    let app = TestApp::start().await;
    for text in ["HELP", "info"] {
        assert_eq!(app.sms(text).await, "");
    }
    assert_eq!(app.message_outcomes().await, ["HELP: skipped carrier_help", "info: skipped carrier_help"]);
}

#[tokio::test]
async fn opt_out_suppresses_queued_messages() {
    let app = TestApp::start_without_model().await;
    app.twilio().fail_next(429, 20429);
    app.sms("upcoming").await;
    assert_eq!(app.outbox().await, [format!("queued 1 {NOTHING_OUT}")]);

    app.sms("STOP").await;
    app.pass(600);
    app.settle().await;
    assert_eq!(app.outbox().await, [format!("suppressed 1 {NOTHING_OUT}")]);
    assert_eq!(app.sms("START").await, "");
}

#[tokio::test]
async fn opt_out_reported_by_the_carrier_is_recorded() {
    let app = TestApp::start_without_model().await;
    app.twilio().fail_next(400, 21610);
    assert_eq!(app.sms("upcoming").await, "");
    assert_eq!(app.outbox().await, [format!("suppressed 1 {NOTHING_OUT}")]);
    assert_eq!(app.people().await, ["+15550100002 active admin opted out"]);

    assert_eq!(app.sms("upcoming").await, "");
    assert_eq!(app.message_outcomes().await, ["upcoming: replied", "upcoming: skipped opted_out"]);
}

#[tokio::test]
async fn messages_of_an_opted_out_user_reach_no_model() {
    let app = TestApp::start().await;
    app.sms("STOP").await;
    for text in ["add dune", "delete dune", "what is on?"] {
        assert_eq!(app.sms(text).await, "");
    }
    assert_eq!(app.model().request_count(), 0);
    assert_eq!(app.message_outcomes().await[3], "what is on?: skipped opted_out");
}

#[tokio::test]
async fn member_is_offered_the_tools_of_their_rights() {
    for (has, adds, deletes) in
        [(Has::EveryRight, true, true), (Has::AddRight, true, false), (Has::NoRights, false, false)]
    {
        let app = TestApp::start().await;
        app.register_user(BOB, has).await;
        app.model_plays([says("Hello.")]);
        app.sms_from(BOB, "hello").await;
        let requests = app.model().requests();
        let offered = offered(&requests[0]);
        let listed = ["add_movie", "add_series", "remove_media"].map(|tool| offered.contains(&tool));
        assert_eq!(listed, [adds, adds, deletes]);
        assert!(offered.contains(&"search_media"));
    }
}

#[tokio::test]
async fn deletion_call_without_the_right_is_refused() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let [finds, removes] = removes_movie("dune", dune);
    app.model_plays([finds, removes, says("Please ask an admin.")]);

    assert_eq!(app.sms_from(BOB, "delete dune").await, "Please ask an admin.");
    assert!(request_text(app.model().requests().last().unwrap()).contains("not_permitted"));
    assert_eq!(app.sms_from(BOB, "status").await, "Nothing is downloading.");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn addition_call_without_the_right_is_refused() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::NoRights).await;
    app.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(438_631));
    app.model_plays([
        calls("search_media", json!({ "query": "dune", "type": "movie" })),
        calls("add_movie", json!({ "tmdb": 438_631 })),
        says("Please ask an admin."),
    ]);

    assert_eq!(app.sms_from(BOB, "get dune").await, "Please ask an admin.");
    assert!(request_text(app.model().requests().last().unwrap()).contains("not_permitted"));
    assert_eq!(app.radarr().added_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn yes_after_losing_the_right_deletes_nothing() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;

    app.register_user(ANN, Has::AddRight).await;

    assert_eq!(app.sms("yes").await, "You may not delete titles, so I kept Dune (2021).");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn rights_apply_without_a_model() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::NoRights).await;
    app.radarr().add(movie("Heat").year(1995).size_gb(9.0));
    app.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(438_631));
    assert_eq!(
        app.sms_from(BOB, "remove heat").await,
        "I asked the admins to delete Heat (1995). I'll text you their decision."
    );
    assert_eq!(app.sms_from(BOB, "add dune").await, "You can't add titles here. Please ask an admin.");
    assert_eq!((app.radarr().added_ids(), app.radarr().removed_ids()), (vec![], vec![]));
}

#[tokio::test]
async fn block_during_a_turn_suppresses_its_reply() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    app.register_user(BOB, Has::EveryRight).await;
    app.post(app.text(BOB, "hold the line")).await;
    app.block(BOB).await;
    model.let_go();
    app.settle().await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
}

#[tokio::test]
async fn queued_message_is_not_sent_after_a_block() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::EveryRight).await;
    app.twilio().fail_next(429, 20429);
    app.sms_from(BOB, "upcoming").await;
    app.block(BOB).await;
    app.pass(600);
    app.settle().await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
}
