//! The console in a browser without JavaScript: forms are submitted as served, and the result is on the next page or
//! after a reload.

use dialarr::arr::fake::media_fixtures::movie;

use crate::harness::model::{Holding, removes_movie, says};
use crate::harness::{ANN, Setup, TestApp};

const CONVERSATION: &str = "/conversations/1";
const PASSWORD: &str = "correct horse battery";

#[tokio::test]
async fn sign_in_and_approval_work_without_javascript() {
    let app = Setup::default().console_password(PASSWORD).start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.pass(1);
    let mut browser = app.anonymous_browser();
    let sign_in = browser.get("/sign-in?next=/conversations/1").await;
    let page = browser.presses(&sign_in, "Sign in", &[("password", PASSWORD)]).await;
    assert!(page.text().contains("Awaiting confirmation"), "{}", page.text());
    assert!(
        page.html.contains("<noscript>") && page.html.contains("<a href=\"/conversations/1\">Reload</a>")
    );

    let page = browser.presses(&page, "Approve", &[]).await;

    assert_eq!(page.status, 200);
    assert!(page.text().contains("Answered. The user will get the result."));
    app.settle().await;
    let page = browser.get(CONVERSATION).await.text();
    assert!(
        page.contains("Deleted Dune (2021). Freed 21.4 GB.") && !page.contains("Awaiting confirmation"),
        "{page}"
    );
    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn deletion_is_rejected_without_javascript() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.pass(1);
    let mut browser = app.browser().await;
    let page = browser.get(CONVERSATION).await;
    browser.presses(&page, "Reject", &[]).await;
    app.settle().await;
    assert!(browser.get(CONVERSATION).await.text().contains("OK, kept."));
    let none: [i64; 0] = [];
    assert_eq!(app.radarr().removed_ids(), none);
}

#[tokio::test]
async fn running_turn_is_canceled_without_javascript() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    let mut browser = app.browser().await;
    app.pass(1);
    assert_eq!(app.post(app.text(ANN, "please hold")).await, 200);
    model.holds().await;
    let page = browser.get(CONVERSATION).await;
    assert!(page.text().contains("Working"), "{}", page.text());

    let page = browser.presses(&page, "Cancel", &[]).await;

    assert_eq!(page.status, 200);
    assert!(page.text().contains("The turn will finish before its next change."), "{}", page.text());
    // The model has not responded: the cancellation alone ends its call.
    app.settle().await;
    let page = browser.get(CONVERSATION).await.text();
    assert!(page.contains("Canceled") && !page.contains("Working") && !page.contains("Fine."), "{page}");
}

#[tokio::test]
async fn message_search_works_without_javascript() {
    let app = TestApp::start().await;
    app.model_plays([says("With <b>butter</b>."), says("Fine.")]);
    app.sms("how do I make pancakes?").await;
    app.sms("and how do I keep them warm?").await;
    app.index_new_text().await;
    let mut browser = app.browser().await;
    let list = browser.get("/conversations").await;

    let found = browser.presses(&list, "Search", &[("q", "butter")]).await;

    assert!(found.text().contains("Matching texts, newest first."), "{}", found.text());
    let (_, hit) = found.html.split_once("<a class=\"conversation-link\" href=\"").unwrap();
    let hit = hit.split('"').next().unwrap();
    assert_eq!(hit, "/conversations/1?before=2#turn-1");
    let page = browser.get(hit.split('#').next().unwrap()).await;
    assert!(page.html.contains("id=\"turn-1\"") && page.text().contains("With <b>butter</b>."));
    let nothing = browser.presses(&list, "Search", &[("q", "waffles")]).await;
    assert!(nothing.text().contains("No matches."));
}
