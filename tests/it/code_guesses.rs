//! Guessed codes: five wrong codes in a day suspend deletions and approvals by message.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::deletion::deletion_messages::CodePolicy;
use dialarr::engine::CodeSource;

use crate::harness::model::{adds_movie, removes_movie};
use crate::harness::{ANN, BOB, Has, TestApp};

const SAM: &str = "+15550100009";
const HOURS: i64 = 60 * 60;
const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES 47 or NO.";
const CLOSED: &str =
    "I did not get a clear yes. Dune (2021) is kept. Ask again if you still want to delete it.";
const DELETED: &str = "Deleted Dune (2021). Freed 21.4 GB.";
const UNKNOWN: &str = "No request has that code. Text USERS to see open requests.";
const SUSPENDED: &str = "Too many wrong codes. I won't delete or approve anything by text until tomorrow. The console still works.";
const SUSPENDED_NOW: &str = "Too many wrong codes. I won't delete or approve anything by text until tomorrow. The \
                             console still works. If this was not you, someone may be using your number.";

async fn app_that_always_asks_for_a_code() -> (TestApp, i64) {
    let app = TestApp::with(|settings| settings.code_policy = CodePolicy::Always).await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    (app, dune)
}

async fn asks_for_dune(app: &TestApp, dune: i64) {
    app.pass(60);
    app.model_plays(removes_movie("dune", dune));
    assert_eq!(app.sms("delete dune").await, QUESTION);
}

/// Makes two guesses at each of two prompts and one at the third, which stays open.
async fn guesses_five_times(app: &TestApp, dune: i64) {
    for _ in 0..2 {
        asks_for_dune(app, dune).await;
        assert_eq!(app.sms("yes 48").await, QUESTION);
        assert_eq!(app.sms("yes 4711").await, CLOSED);
    }
    asks_for_dune(app, dune).await;
    assert_eq!(app.sms("49").await, SUSPENDED_NOW);
}

#[tokio::test]
async fn five_wrong_codes_suspend_deletions_across_prompts_and_restarts() {
    let (mut app, dune) = app_that_always_asks_for_a_code().await;
    guesses_five_times(&app, dune).await;
    assert_eq!(app.sms("yes 47").await, SUSPENDED);
    app.restart().await;
    assert_eq!(app.sms("yes 47").await, SUSPENDED);
    assert_eq!(app.radarr().removed_ids(), [0_i64; 0]);

    app.pass(3 * HOURS);
    asks_for_dune(&app, dune).await;
    assert_eq!(app.sms("yes 47").await, DELETED);
}

#[tokio::test]
async fn no_reads_and_additions_work_during_a_suspension() {
    let (app, dune) = app_that_always_asks_for_a_code().await;
    app.radarr().add_to_catalog(movie("Arrival").year(2016).tmdb(329_865));
    guesses_five_times(&app, dune).await;
    assert_eq!(app.sms("no").await, "OK, kept.");
    assert_eq!(app.sms("status").await, "Nothing is downloading.");
    app.model_plays(adds_movie("arrival", 329_865));
    app.sms("add arrival").await;
    assert_eq!(app.radarr().added_ids(), [329_865]);
}

#[tokio::test]
async fn yes_without_a_code_is_not_a_guess() {
    let (app, dune) = app_that_always_asks_for_a_code().await;
    for _ in 0..3 {
        asks_for_dune(&app, dune).await;
        assert_eq!(app.sms("yes").await, QUESTION);
        assert_eq!(app.sms("yes").await, CLOSED);
    }
    asks_for_dune(&app, dune).await;
    assert_eq!(app.sms("yes 47").await, DELETED);
}

#[tokio::test]
async fn renewed_approval_codes_allow_no_further_guesses() {
    let app = TestApp::start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::EveryRight).await;
    app.sms_from(SAM, "hi").await;
    app.sms_from(SAM, "Sam").await;
    for wrong in ["approve 1111", "block 2222", "deny 3333"] {
        assert_eq!(app.sms(wrong).await, UNKNOWN);
    }
    app.pass(60);
    assert!(app.sms("users").await.ends_with("reply APPROVE 4748 or BLOCK 4748"));
    assert_eq!(app.sms("approve 1112").await, UNKNOWN);
    assert_eq!(app.sms("approve 1113").await, SUSPENDED_NOW);
    assert_eq!(app.sms("approve 4748").await, SUSPENDED);
    let told = "Too many wrong codes from Ann's number. Ann can't delete or approve by text until tomorrow. The number may \
                be forged. You can lift this in the console.";
    assert_eq!(app.messages_to(BOB).iter().filter(|text| *text == told).count(), 1);

    assert_eq!(app.sms_from(BOB, "approve 4748").await, "Sam can text me now.");
    assert!(
        app.audit().await.contains(&"suspend_codes user:1 by dialarr".to_owned()),
        "{:?}",
        app.audit().await
    );
}

#[tokio::test]
async fn suspended_deletion_can_be_confirmed_in_the_console() {
    let (app, dune) = app_that_always_asks_for_a_code().await;
    guesses_five_times(&app, dune).await;
    assert_eq!(app.sms("yes 47").await, SUSPENDED);
    let mut browser = app.browser().await;
    browser.answers(1, "yes").await;
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), [dune]);
    assert_eq!(app.last_to(ANN), DELETED);
}

#[tokio::test]
async fn suspension_is_shown_at_home_and_lifted_on_the_users_page() {
    let (app, dune) = app_that_always_asks_for_a_code().await;
    guesses_five_times(&app, dune).await;
    let mut browser = app.browser().await;
    assert!(browser.get("/").await.text().contains("Deletions by text suspended"));
    let page = browser.get("/users/1").await;
    let lifted = browser.presses(&page, "Allow again", &[]).await;
    assert!(lifted.text().contains("This user can delete and approve by text again."), "{}", lifted.text());
    assert!(!browser.get("/").await.text().contains("Deletions by text suspended"));
    let last = app.audit().await.pop().unwrap_or_default();
    assert_eq!(last, "lift_suspension user:1 by console");

    // Another message was sent after the prompt, so the prompt is repeated.
    assert_eq!(app.sms("yes 47").await, QUESTION);
    assert_eq!(app.sms("yes 47").await, DELETED);
}

#[tokio::test]
async fn random_code_has_four_digits() {
    let app = TestApp::with(|settings| {
        settings.code_policy = CodePolicy::Always;
        settings.codes = CodeSource::Random;
    })
    .await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let question = app.sms("delete dune").await;
    let code = question.split("YES ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_digit()), "{question}");
    assert_eq!(app.sms(&format!("yes {code}")).await, DELETED);
}
