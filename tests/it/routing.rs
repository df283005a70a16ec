//! Messages without a reply, reactions in both directions, and the carrier's classification of messages.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::grammar::triage::TriageLevel;
use dialarr::conversation::notifications::quiet_hours::QuietHours;
use dialarr::engine::{ModelSkipping, SmsReactions};
use dialarr::llm::ModelError;
use serde_json::json;

use crate::harness::model::{adds_movie, calls, fails, removes_movie, request_text, says};
use crate::harness::{ANN, BOB, Has, TestApp};

/// Starts after a greeting of the model, without an open prompt.
async fn app_with_routing(routing: TriageLevel) -> TestApp {
    let app = TestApp::with(|settings| settings.triage_level = routing).await;
    app.model_plays([says("Hello Ann.")]);
    app.sms("hello there").await;
    app
}

#[tokio::test]
async fn thanks_and_emoji_without_a_prompt_get_no_reply() {
    let app = app_with_routing(TriageLevel::Heuristic).await;
    for text in ["thanks!", "\u{1f44d}", "ok cool", "hahaha", "\u{2764}\u{fe0f}\u{2764}\u{fe0f}"] {
        assert_eq!(app.sms(text).await, "", "{text}");
    }
    assert_eq!(app.message_outcomes().await[1], "thanks!: skipped small_talk");
    assert_eq!(app.model().request_count(), 1);
}

#[tokio::test]
async fn every_message_is_answered_without_triage() {
    let app = app_with_routing(TriageLevel::Off).await;
    app.model_plays([says("You are welcome.")]);
    assert_eq!(app.sms("thanks!").await, "You are welcome.");
}

#[tokio::test]
async fn first_message_and_answers_to_questions_get_a_reply() {
    let app = TestApp::start().await;
    app.model_plays([says("Hi, what would you like?")]);
    assert_eq!(app.sms("ok").await, "Hi, what would you like?");
    app.model_plays([says("Fine.")]);
    assert_eq!(app.sms("\u{1f44d}").await, "Fine.");
    app.pass(31 * 60);
    app.model_plays([says("Welcome back.")]);
    assert_eq!(app.sms("thanks").await, "Welcome back.");
}

#[tokio::test]
async fn thanks_during_an_open_prompt_repeat_it() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let question = app.sms("delete dune").await;
    assert_eq!(app.sms("\u{1f44d}").await, question);
}

#[tokio::test]
async fn only_an_exact_skip_suppresses_the_reply() {
    for (verdict, answered) in
        [("SKIP", false), ("skip", true), ("SKIP.", true), ("RESPOND", true), ("", true)]
    {
        let app = app_with_routing(TriageLevel::Ai).await;
        let answer = answered.then(|| says("Glad you liked it."));
        app.model_plays(std::iter::once(says(verdict)).chain(answer));
        let answer = app.sms("we loved the bear").await;
        assert_eq!(answer, if answered { "Glad you liked it." } else { "" }, "{verdict:?}");
    }
}

#[tokio::test]
async fn triage_model_is_called_only_for_ambiguous_messages() {
    let app = app_with_routing(TriageLevel::Ai).await;
    app.model_plays([says("It is.")]);
    assert_eq!(app.sms("is dune ready?").await, "It is.");
    app.sms("thanks").await;
    assert_eq!(app.model().request_count(), 2);
}

#[tokio::test]
async fn failed_triage_call_lets_the_message_be_answered() {
    let app = app_with_routing(TriageLevel::Ai).await;
    app.model_plays([fails(ModelError::Timeout), says("Glad you liked it.")]);
    assert_eq!(app.sms("we loved the bear").await, "Glad you liked it.");
}

#[tokio::test]
async fn skipped_message_is_not_in_later_prompts() {
    let app = app_with_routing(TriageLevel::Ai).await;
    app.model_plays([says("SKIP")]);
    app.sms("we loved the bear").await;
    app.model_plays([says("Fine.")]);
    app.sms("what is new?").await;
    assert!(!request_text(&app.last_request()).contains("we loved the bear"));
}

#[tokio::test]
async fn reaction_is_stored_and_not_shown_to_the_model() {
    let app = app_with_routing(TriageLevel::Heuristic).await;
    assert_eq!(app.sms("Loved \u{201c}Hello Ann.\u{201d}").await, "");
    assert_eq!(app.sms("Liked \u{201c}hello there\u{201d}").await, "");
    assert_eq!(app.sms("Laughed at \u{201c}Hello Ann.\u{201d}").await, "");
    assert_eq!(app.sms("Removed a laugh from \u{201c}Hello Ann.\u{201d}").await, "");
    assert_eq!(
        app.reactions().await,
        [
            "user \u{2764}\u{fe0f} taken back on Hello Ann.",
            "user \u{1f44d} on hello there",
            "user \u{1f602} taken back on Hello Ann.",
            "user \u{1f602} taken back on Hello Ann.",
        ]
    );
    app.model_plays([says("Fine.")]);
    app.sms("what is new?").await;
    assert!(!request_text(&app.last_request()).contains("Loved"));
}

#[tokio::test]
async fn reaction_to_a_prompt_is_not_shown_to_the_model() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let question = app.sms("delete dune").await;
    assert_eq!(app.sms(&format!("Liked \u{201c}{question}\u{201d}")).await, question);
    assert_eq!(app.reactions().await, [format!("user \u{1f44d} on {question}")]);
    app.sms("no").await;
    app.model_plays([says("It stays.")]);
    app.sms("so what about dune?").await;
    assert!(!request_text(&app.last_request()).contains("Liked"), "{}", request_text(&app.last_request()));
}

#[tokio::test]
async fn reaction_tool_alone_sends_no_message() {
    let app = app_with_routing(TriageLevel::Off).await;
    app.model_plays([calls("react", json!({ "emoji": "\u{1f389}" })), says("")]);
    assert_eq!(app.sms("thanks a lot").await, "");
    assert_eq!(app.reactions().await, ["assistant \u{1f389} on thanks a lot"]);
    assert_eq!(app.message_outcomes().await[1], "thanks a lot: skipped reacted");
}

#[tokio::test]
async fn reaction_can_be_sent_as_its_emoji() {
    let app = TestApp::with(|settings| settings.reactions = SmsReactions::Text).await;
    app.model_plays([calls("react", json!({ "emoji": "\u{1f389}" })), says("")]);
    assert_eq!(app.sms("thanks a lot").await, "\u{1f389}");
}

#[tokio::test]
async fn text_beside_a_reaction_is_sent() {
    let app = TestApp::start().await;
    app.model_plays([calls("react", json!({ "emoji": "\u{1f389}" })), says("Enjoy the film.")]);
    assert_eq!(app.sms("it is here!").await, "Enjoy the film.");
}

#[tokio::test]
async fn change_is_reported_even_if_the_model_only_reacts() {
    let app = TestApp::start().await;
    app.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(348));
    let [searches, adds] = adds_movie("alien", 348);
    app.model_plays([searches, adds, calls("react", json!({ "emoji": "\u{1f44d}" })), says("")]);
    assert_eq!(app.sms("add alien").await, "Added Alien (1979).");
}

#[tokio::test]
async fn failed_reaction_does_not_delay_the_reply() {
    let app = TestApp::start().await;
    app.refuse_reactions().await;
    app.model_plays([calls("react", json!({ "emoji": "\u{1f389}" })), says("Enjoy the film.")]);
    assert_eq!(app.sms("it is here!").await, "Enjoy the film.");

    app.model_plays([calls("react", json!({ "emoji": "hooray" })), says("Enjoy it.")]);
    assert_eq!(app.sms("it is here again!").await, "Enjoy it.");
    assert_eq!(app.reactions().await, Vec::<String>::new());
}

#[tokio::test]
async fn opt_out_during_a_prompt_denies_it() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    assert_eq!(app.sms("CANCEL").await, "");
    assert_eq!(app.sms("START").await, "");
    assert_eq!(app.sms("yes").await, "Dune (2021) is kept. Ask again to delete.");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn yes_lifts_an_opt_out_reported_by_the_carrier_and_answers() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.twilio().fail_next(400, 21610);
    assert_eq!(app.sms("delete dune").await, "");
    assert_eq!(app.people().await, ["+15550100002 active admin opted out"]);

    let question = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
    assert_eq!(app.sms("Yes").await, question, "it never saw the question");
    assert_eq!(app.sms("yes").await, "Deleted Dune (2021). Freed 21.4 GB.");
    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn opt_out_in_another_language_is_recognized_by_the_carrier() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    let word = |body: &str, kind: &str| app.text(BOB, body).with_field("OptOutType", kind);
    app.post(word("ARRET", "STOP")).await;
    assert_eq!(app.people().await[1], "+15550100003 active member opted out");
    assert_eq!(app.sms_from(BOB, "status").await, "");
    app.post(word("REPRENDRE", "START")).await;
    app.settle().await;
    assert_eq!(app.sms_from(BOB, "status").await, "Nothing is downloading.");
    app.post(word("AIDE", "HELP")).await;
    app.settle().await;
    assert_eq!(app.messages_to(BOB).len(), 1);
    assert_eq!(app.messages_to(ANN), Vec::<String>::new());
}

#[tokio::test]
async fn answer_to_our_question_counts_despite_a_notification_behind_it() {
    for quiet in [QuietHours::new(21, 7), None] {
        let app = TestApp::with(|settings| settings.quiet_hours = quiet).await;
        app.radarr().add(movie("Dune").year(2021).tmdb(438_631));
        app.follow_movie(ANN, 438_631).await;
        app.later(0).await;
        app.model_plays([says("Hello Ann. Shall I look for the sequel too?")]);
        app.sms("hello there").await;
        app.radarr().download_and_import("Dune");
        app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
        app.later(1).await;
        app.model_plays([says("I found no sequel.")]);
        assert_eq!(app.sms("ok").await, "I found no sequel.", "{quiet:?}");
    }
}

#[tokio::test]
async fn sure_question_skips_the_model_where_that_is_allowed() {
    for (skipping, routing, answer) in [
        (ModelSkipping::IfSure, TriageLevel::Heuristic, "Nothing is downloading."),
        (ModelSkipping::IfSure, TriageLevel::Off, "From the model."),
        (ModelSkipping::Never, TriageLevel::Heuristic, "From the model."),
    ] {
        let app = TestApp::with(|settings| {
            (settings.model_skipping, settings.triage_level) = (skipping, routing);
        })
        .await;
        if answer == "From the model." {
            app.model_plays([says(answer)]);
        }
        assert_eq!(app.sms("whats downloading rn?").await, answer, "{skipping:?} {routing:?}");
    }
}
