//! Admin commands, and the audit entry before each change.

use dialarr::arr::fake::media_fixtures::movie;

use crate::harness::model::{adds_movie, removes_movie, says};
use crate::harness::{ANN, BOB, Has, TestApp};

const CAT: &str = "+15550100004";
const STRANGER: &str = "+15550100009";
const PAUSED: &str =
    "The assistant is paused right now. If that takes more than an hour, please send this again.";
const WENT_WRONG: &str = "Something went wrong on my side. Please try again.";

/// Starts without a model. Ann is an admin and has paused; Bob is a member.
async fn app_that_is_paused() -> TestApp {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    assert_eq!(
        app.sms("pause").await,
        "Paused. I save all texts, but only answer admins. Text RESUME to continue."
    );
    app
}

#[tokio::test]
async fn pause_answers_only_admins_and_informs_others_once() {
    let app = app_that_is_paused().await;
    assert_eq!(app.sms_from(BOB, "status").await, PAUSED);
    assert_eq!(app.sms_from(BOB, "upcoming").await, "");
    assert_eq!(app.sms_from(STRANGER, "hello").await, "");
    assert_eq!(app.sms("status").await, "Nothing is downloading.");
    assert_eq!(
        app.message_outcomes().await[1..4],
        ["status: pending", "upcoming: pending", "hello: pending"]
    );
}

#[tokio::test]
async fn messages_of_the_last_hour_are_processed_after_a_pause() {
    let app = app_that_is_paused().await;
    app.sms_from(BOB, "status").await;
    app.pass(50 * 60);
    app.sms_from(BOB, "upcoming").await;
    app.pass(30 * 60);
    assert_eq!(app.sms("resume").await, "I am back. I will answer texts from the last hour now.");
    assert_eq!(
        app.messages_to(BOB),
        [
            PAUSED,
            "I was paused for more than an hour after your text. Please resend anything you still need.",
            "Nothing comes out in the next 7 days."
        ]
    );
}

#[tokio::test]
async fn pause_notice_keeps_its_text_after_the_pause() {
    let app = app_that_is_paused().await;
    app.sms_from(BOB, "status").await;
    app.sms("resume").await;
    let notices = app.outbox().await.into_iter().filter(|text| text.contains(PAUSED));
    assert_eq!(notices.count(), 1);
}

#[tokio::test]
async fn pause_survives_a_restart_and_a_second_one_is_announced() {
    let mut app = app_that_is_paused().await;
    app.sms_from(BOB, "status").await;
    app.restart().await;
    app.settle().await;
    assert_eq!(app.sms_from(BOB, "status").await, "");
    app.sms("resume").await;
    assert_eq!(app.last_to(BOB), "Nothing is downloading.");
    app.sms("pause").await;
    assert_eq!(app.sms_from(BOB, "status").await, PAUSED);
    assert_eq!(app.sms("pause").await, "I am already paused. Text RESUME to continue.");
}

#[tokio::test]
async fn opt_out_takes_effect_during_a_pause() {
    let app = app_that_is_paused().await;
    assert_eq!(app.sms_from(BOB, "STOP").await, "");
    assert_eq!(app.sms_from(BOB, "status").await, "");
    app.sms("resume").await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
    assert_eq!(app.message_outcomes().await[1..3], ["STOP: skipped opt_out", "status: skipped opted_out"]);
}

#[tokio::test]
async fn yes_that_waited_for_the_end_of_a_pause_deletes_nothing() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::EveryRight).await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms_from(BOB, "delete dune").await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("pause").await;
    app.sms_from(BOB, "yes").await;
    app.pass(600);
    app.sms("resume").await;
    assert_eq!(app.last_to(BOB), "That question has expired. Dune (2021) is kept. Ask again to delete.");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn users_command_lists_roles_and_join_requests() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::NoRights).await;
    app.block(CAT).await;
    app.sms_from(STRANGER, "hi").await;
    assert_eq!(
        app.sms("users").await,
        "Ann (admin), Bob (may not add), +1 555 010 0004 (blocked)\nNo open requests."
    );
    app.sms_from(STRANGER, "Sam").await;
    assert_eq!(
        app.sms("users").await,
        "Ann (admin), Bob (may not add), +1 555 010 0004 (blocked)\nNew number +1 555 010 0009, \"Sam\": reply APPROVE \
         4747 or BLOCK 4747"
    );
}

#[tokio::test]
async fn broadcast_reaches_every_reachable_user() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_user(BOB, Has::AddRight).await;
    app.register_user(CAT, Has::AddRight).await;
    app.sms_from(CAT, "STOP").await;
    app.sms_from(STRANGER, "hi").await;
    assert_eq!(app.sms("tell everyone: Movie night at 8!").await, "OK, sent to one person.");
    assert_eq!(app.messages_to(BOB), ["Ann: Movie night at 8!"]);
    assert_eq!((app.messages_to(CAT).len(), app.messages_to(STRANGER).len()), (0, 1));
}

#[tokio::test]
async fn member_cannot_use_admin_commands() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    for order in ["pause", "users", "quota Bob +5", "tell everyone hello"] {
        app.model_plays([says("You can't do that.")]);
        assert_eq!(app.sms_from(BOB, order).await, "You can't do that.", "{order}");
    }
}

#[tokio::test]
async fn addition_is_refused_if_it_cannot_be_audited() {
    let app = TestApp::start().await;
    app.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(438_631));
    let [searches, adds] = adds_movie("dune", 438_631);
    app.model_plays([searches, adds]);
    app.refuse_audit().await;
    assert_eq!(app.sms("add dune").await, WENT_WRONG);
    assert_eq!(app.radarr().post_count(), 0);
}

#[tokio::test]
async fn deletion_is_refused_if_it_cannot_be_audited() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.refuse_audit().await;
    assert_eq!(app.sms("yes").await, "I was interrupted and kept Dune (2021).");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn admin_command_is_refused_if_it_cannot_be_audited() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.refuse_audit().await;
    assert_eq!(app.sms("pause").await, WENT_WRONG);
    assert_eq!(app.sms_from(BOB, "status").await, "Nothing is downloading.");
}

#[tokio::test]
async fn every_admin_command_is_in_the_audit_log() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    for order in ["pause", "resume", "quota Bob +5", "tell everyone hi"] {
        app.sms(order).await;
    }
    assert_eq!(
        app.audit().await,
        [
            "pause household by +15550100002",
            "resume household by +15550100002",
            "quota user:2 by +15550100002",
            "tell_everyone household by +15550100002",
        ]
    );
}

#[tokio::test]
async fn pause_notice_is_not_sent_after_the_pause() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::EveryRight).await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms_from(BOB, "delete dune").await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("pause").await;
    app.sms_from(BOB, "hm, wait").await;
    assert_eq!(app.messages_to(BOB).len(), 1, "the line waits for the answer to the question");
    app.model_plays([says("Fine.")]);
    app.sms("resume").await;
    assert_eq!(app.messages_to(BOB)[1..], ["OK, Dune (2021) is kept. Fine."]);
}

#[tokio::test]
async fn many_messages_from_a_long_pause_get_one_line() {
    let app = app_that_is_paused().await;
    for n in 0..45 {
        app.sms_from(BOB, &format!("add film {n}")).await;
    }
    app.pass(2 * 60 * 60);
    app.sms("resume").await;
    assert_eq!(
        app.messages_to(BOB)[1..],
        ["I was paused for more than an hour after 45 of your texts. Please resend anything you still need."]
    );
}
