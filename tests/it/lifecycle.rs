//! Start, end and name of conversations, and the digest of earlier actions in a new one.

use dialarr::arr::fake::media_fixtures::movie;

use crate::harness::model::{adds_movie, removes_movie, request_text, says};
use crate::harness::{ANN, BOB, Has, TestApp};

const DAY: i64 = 24 * 60 * 60;

#[tokio::test]
async fn conversation_ends_after_half_an_hour_of_silence() {
    let app = TestApp::start().await;
    app.model_plays([says("The Bear is good."), says("Fine.")]);
    app.sms("what is good?").await;
    app.pass(29 * 60);
    app.sms("tell me more").await;
    assert!(request_text(&app.last_request()).contains("The Bear is good."));

    app.pass(30 * 60);
    app.model_plays([says("Hello.")]);
    app.sms("hello again").await;
    assert!(!request_text(&app.last_request()).contains("The Bear is good."));
    assert_eq!(app.conversations().await, ["idle", "open"]);
}

#[tokio::test]
async fn ended_conversation_has_the_time_of_its_expiry() {
    let app = TestApp::start().await;
    app.model_plays([says("Fine.")]);
    app.sms("what is good?").await;
    app.pass(29 * 60);
    app.run_maintenance().await;
    assert_eq!(app.conversations().await, ["open"]);
    app.pass(10 * DAY);
    app.run_maintenance().await;
    assert_eq!(app.conversations().await, ["idle"]);
    assert_eq!(app.conversation_times().await, ["2026-11-20 21:04 - 2026-11-20 21:34"]);
}

#[tokio::test]
async fn clear_ends_only_the_users_own_conversation() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.model_plays([says("Yes."), says("Yes.")]);
    app.sms("are you there?").await;
    app.sms_from(BOB, "are you there?").await;
    assert_eq!(app.sms("/clear").await, "OK, we start over.");
    assert_eq!(app.conversations().await, ["cleared", "open"]);
}

#[tokio::test]
async fn block_ends_the_conversation() {
    let app = TestApp::start().await;
    app.register_named_user("Bob", BOB, Has::EveryRight).await;
    app.model_plays([says("Yes.")]);
    app.sms_from(BOB, "are you there?").await;
    app.block(BOB).await;
    assert_eq!(app.conversations().await, ["blocked"]);
}

#[tokio::test]
async fn conversation_is_named_by_the_words_of_its_first_message() {
    let app = TestApp::start().await;
    app.model_plays([says("Yes.")]);
    app.sms("do we have the latest season of that show with the chefs?").await;
    assert_eq!(app.conversation_names().await, ["do we have the latest season of that..."]);
}

#[tokio::test]
async fn new_conversation_knows_the_actions_of_the_same_day() {
    let app = TestApp::start().await;
    app.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(348));
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let [searches, adds] = adds_movie("alien", 348);
    app.model_plays([searches, adds, says("Added Alien (1979).")]);
    app.sms("add alien").await;
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.sms("yes").await;
    app.sms("/clear").await;

    app.model_plays([says("Alien, and Dune is gone.")]);
    app.sms("what did we do today?").await;
    let request = request_text(&app.last_request());
    assert!(
        request.contains("earlier today: Added Alien (1979). Deleted Dune (2021). Freed 21.4 GB."),
        "{request}"
    );

    app.pass(DAY);
    app.model_plays([says("Nothing.")]);
    app.sms("and today?").await;
    assert!(!request_text(&app.last_request()).contains("earlier today"));
}

#[tokio::test]
async fn actions_of_other_users_are_not_in_the_prompt() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(348));
    let [searches, adds] = adds_movie("alien", 348);
    app.model_plays([searches, adds, says("Added Alien (1979).")]);
    app.sms("add alien").await;
    app.model_plays([says("Nothing.")]);
    app.sms_from(BOB, "what did we do today?").await;
    assert!(!request_text(&app.last_request()).contains("Alien"));
}

#[tokio::test]
async fn lifecycle_of_a_reply_names_its_conversation() {
    let app = TestApp::start().await;
    app.model_plays([says("Yes."), says("Still.")]);
    app.sms("are you there?").await;
    let expected = "conversation 1 are you there? since 2026-11-20T21:04:01Z";
    assert_eq!(app.lifecycle(ANN).await, format!("new {expected}"));
    app.sms("and still there?").await;
    assert_eq!(app.lifecycle(ANN).await, expected);
}
