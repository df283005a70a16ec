//! Title requests and follows: requesters are named, and followers are notified.

use dialarr::arr::fake::media_fixtures::{movie, series};
use serde_json::json;

use crate::harness::model::{adds_movie, calls, finds, says};
use crate::harness::{ANN, BOB, Has, TestApp};

const DUNE: i64 = 438_631;
const DAY: i64 = 24 * 60 * 60;

/// Starts with Ann and Bob, both with names, and with two movies and a show that can be added.
async fn furnished(app: TestApp) -> TestApp {
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    app.sonarr().add_to_catalog(series("Severance").year(2022).tvdb(371_980).seasons(2));
    app
}

/// Starts three days after Bob added Dune.
async fn app_with_bobs_dune() -> TestApp {
    let app = furnished(TestApp::start().await).await;
    let [searches, adds] = adds_movie("dune", DUNE);
    app.model_plays([searches, adds, says("Added.")]);
    app.sms_from(BOB, "add dune").await;
    app.pass(3 * DAY);
    app
}

#[tokio::test]
async fn user_who_adds_a_title_follows_it() {
    let app = app_with_bobs_dune().await;
    assert_eq!(app.requests().await, ["+15550100003 added radarr Dune (2021)"]);
    assert_eq!(app.follows().await, ["+15550100003 radarr movie 438631"]);
}

#[tokio::test]
async fn user_who_adds_seasons_follows_each_season() {
    let app = furnished(TestApp::start().await).await;
    let searches = calls("search_media", json!({ "query": "severance" }));
    app.model_plays([
        searches,
        calls("add_series", json!({ "tvdb": 371_980, "seasons": [2] })),
        says("Added."),
    ]);
    app.sms("add season 2 of severance").await;
    assert_eq!(app.requests().await, ["+15550100002 added sonarr Severance (2022) [2]"]);
    assert_eq!(app.follows().await, ["+15550100002 sonarr series 371980 season 2"]);
}

#[tokio::test]
async fn title_answers_name_the_requester() {
    let app = app_with_bobs_dune().await;
    app.radarr().add_download("Dune", 62, 12);
    let details = calls("media_details", json!({ "type": "movie", "id": 1 }));
    app.model_plays([finds("dune"), calls("check_status", json!({})), details, says("Bob asked for it.")]);
    app.sms("who wanted dune, and where is it?").await;
    let results = app.results();
    assert!(
        results.len() == 3 && results.iter().all(|result| result.contains(r#""asked_by":"Bob on Nov 20""#)),
        "{results:#?}"
    );
}

#[tokio::test]
async fn requester_without_a_name_is_not_identified_by_number() {
    let app = TestApp::start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    let [searches, adds] = adds_movie("dune", DUNE);
    app.model_plays([searches, adds, says("Added."), finds("dune"), says("Somebody.")]);
    app.sms_from(BOB, "add dune").await;
    app.sms("who asked for dune?").await;
    assert!(app.results()[0].contains(r#""asked_by":"someone on Nov 20""#), "{}", app.results()[0]);
}

#[tokio::test]
async fn requesting_an_existing_title_names_the_requester_and_follows() {
    let app = furnished(TestApp::start_without_model().await).await;
    assert_eq!(app.sms_from(BOB, "add dune").await, "Added Dune (2021).");
    app.pass(3 * DAY);
    assert_eq!(
        app.sms("add dune").await,
        "Dune (2021) is already in the library and is being looked for. Bob asked for it on Nov 20. Text TELL ME and I \
         will let you know when it is ready."
    );
    assert_eq!(app.sms("Tell me!").await, "I'll text you when Dune (2021) is ready.");
    assert_eq!(app.sms("have dune?").await, "In the library: Dune (2021), not on disk yet.");
    assert_eq!(app.sms("Me too!").await, "I'll text you when Dune (2021) is ready.");
    assert_eq!(app.sms("tell me when it's ready").await, "I'll text you when Dune (2021) is ready.");
    assert_eq!(app.follows().await, ["+15550100003 radarr movie 438631", "+15550100002 radarr movie 438631"]);
}

#[tokio::test]
async fn adding_an_existing_title_names_the_requester_and_offers_to_follow() {
    let app = app_with_bobs_dune().await;
    let [searches, adds] = adds_movie("dune", DUNE);
    app.model_plays([searches, adds, says("Bob asked for it on Nov 20. Shall I tell you when it is ready?")]);
    app.sms("add dune").await;
    assert_eq!(
        app.results()[1],
        r#"{"asked_by":"Bob on Nov 20","hint":"offer to tell them when it is ready: tell_me_when_ready","id":1,"looked_for":true,"on_disk":false,"released":true,"status":"already_exists","title":"Dune","tmdb":438631,"type":"movie","year":2021}"#
    );
    assert_eq!(app.follows().await, ["+15550100003 radarr movie 438631"]);

    app.model_plays([
        calls("tell_me_when_ready", json!({ "type": "movie", "tmdb": DUNE })),
        says("I will tell you."),
    ]);
    app.sms("yes please").await;
    assert_eq!(app.follows().await.len(), 2);
}

#[tokio::test]
async fn following_is_idempotent_and_can_be_stopped() {
    let app = app_with_bobs_dune().await;
    let follows = |stop: bool| calls("tell_me_when_ready", json!({ "type": "movie", "id": 1, "stop": stop }));
    app.model_plays([finds("dune"), follows(false), says("I will tell you."), follows(false), says("Yes.")]);
    app.sms("tell me when dune is ready").await;
    app.sms("really do").await;
    assert_eq!(app.follows().await.len(), 2);

    app.model_plays([follows(true), says("OK.")]);
    app.sms("no need to tell me about dune any more").await;
    assert_eq!(app.follows().await, ["+15550100003 radarr movie 438631"]);
}

#[tokio::test]
async fn title_on_disk_is_ready_and_not_followed() {
    let app = furnished(TestApp::start().await).await;
    let heat = app.radarr().add(movie("Heat").year(1995).tmdb(949).size_gb(18.2));
    let follows = calls("tell_me_when_ready", json!({ "type": "movie", "id": heat }));
    app.model_plays([finds("heat"), follows, says("It is there.")]);
    app.sms("tell me when heat is ready").await;
    assert_eq!(app.results()[1], r#"{"status":"ready","title":"Heat","year":1995}"#);
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn single_season_can_be_followed() {
    let app = furnished(TestApp::start().await).await;
    let dark = app.sonarr().add(series("Dark").year(2017).tvdb(334_824).seasons(3).missing(1));
    let follows =
        |season: u32| calls("tell_me_when_ready", json!({ "type": "series", "id": dark, "season": season }));
    app.model_plays([finds("dark"), follows(3), follows(9), says("I will tell you.")]);
    app.sms("tell me when season 3 of dark is there").await;
    assert_eq!(
        app.results()[2],
        r#"{"error":"bad_arguments","field":"season","hint":"say which seasons there are","seasons":3}"#
    );
    assert_eq!(app.follows().await, ["+15550100002 sonarr series 334824 season 3"]);
}

#[tokio::test]
async fn specials_can_be_followed() {
    let app = furnished(TestApp::start().await).await;
    let dark = app.sonarr().add(series("Dark").year(2017).tvdb(334_824).seasons(3).specials(2));
    let follows = calls("tell_me_when_ready", json!({ "type": "series", "id": dark, "season": 0 }));
    app.model_plays([finds("dark"), follows, says("")]);
    assert_eq!(
        app.sms("tell me when the specials of dark are there").await,
        "I'll text you when Dark (2017), the specials are ready. It is not being looked for at the moment."
    );
    assert_eq!(app.follows().await, ["+15550100002 sonarr series 334824 season 0"]);
}

#[tokio::test]
async fn following_allows_no_claim_of_an_addition() {
    let app = app_with_bobs_dune().await;
    let follows = calls("tell_me_when_ready", json!({ "type": "movie", "id": 1 }));
    app.model_plays([finds("dune"), follows, says("Added Dune."), says("I'll tell you.")]);
    assert_eq!(app.sms("tell me when dune is ready").await, "I'll tell you.");
}

#[tokio::test]
async fn forget_all_erases_title_requests_and_follows() {
    let app = app_with_bobs_dune().await;
    assert_eq!(app.export_user(BOB)["titles_asked_for"][0]["title"], "Dune");
    assert_eq!(app.export_user(BOB)["titles_to_hear_of"][0]["catalog_id"], DUNE);
    app.sms_from(BOB, "forget all").await;
    assert_eq!((app.requests().await, app.follows().await), (Vec::new(), Vec::new()));
}
