//! Every tool through the program: a model's call, Sonarr and Radarr, and the text of the tool.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::llm::scripted::ScriptedReply;
use jiff::civil::date;
use serde_json::{Value, json};

use crate::harness::model::{calls, says};
use crate::harness::{ANN, Has, TestApp};

impl TestApp {
    /// Lets the model make these calls without a text of its own, and returns the reply, which is the text of the
    /// tools.
    async fn reply_to_calls(&self, calls_made: &[(&str, Value)]) -> String {
        let calls = calls_made.iter().map(|(tool, arguments)| calls(tool, arguments.clone()));
        self.model_plays(calls.chain([says(""), says("")]).collect::<Vec<ScriptedReply>>());
        self.sms("do as the script says").await
    }
}

#[tokio::test]
async fn search_shows_owned_and_available_titles() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4).popularity(50.0));
    app.radarr().add_to_catalog(movie("Dune: Part Two").year(2024));
    assert_eq!(
        app.reply_to_calls(&[("search_media", json!({ "query": "dune", "type": "movie" }))]).await,
        "I found Dune (2021) (you have it) and Dune: Part Two (2024)."
    );
}

#[tokio::test]
async fn library_is_searched() {
    let app = TestApp::start().await;
    app.sonarr().add(series("The Bear").year(2022).seasons(3).size_gb(44.0));
    assert_eq!(
        app.reply_to_calls(&[("find_in_library", json!({ "query": "the bear" }))]).await,
        "In the library: The Bear (2022), 24 of 24 episodes, 44 GB."
    );
}

#[tokio::test]
async fn movie_is_added_once() {
    let app = TestApp::start().await;
    let heat = app.radarr().add_to_catalog(movie("Heat").year(1995));
    let add = [("search_media", json!({ "query": "heat" })), ("add_movie", json!({ "tmdb": heat }))];
    assert_eq!(app.reply_to_calls(&add).await, "Added Heat (1995).");
    assert_eq!(
        app.reply_to_calls(&add).await,
        "Heat (1995) is already in the library and is being looked for. You asked for it on Nov 20."
    );
    assert_eq!((app.radarr().added_ids(), app.radarr().post_count()), (vec![heat], 1));
}

#[tokio::test]
async fn unreleased_movie_is_reported_as_unreleased() {
    let app = TestApp::start().await;
    let dune = app.radarr().add_to_catalog(movie("Dune: Part Three").year(2026).unreleased());
    assert_eq!(
        app.reply_to_calls(&[
            ("search_media", json!({ "query": "dune" })),
            ("add_movie", json!({ "tmdb": dune }))
        ])
        .await,
        "Added Dune: Part Three (2026). It is not out yet and will be fetched when it is."
    );
}

#[tokio::test]
async fn show_of_nine_seasons_needs_a_selection() {
    let app = TestApp::start().await;
    let office = app.sonarr().add_to_catalog(series("The Office (US)").year(2005).seasons(9));
    let search = ("search_media", json!({ "query": "the office" }));
    assert_eq!(
        app.reply_to_calls(&[search, ("add_series", json!({ "tvdb": office }))]).await,
        "The Office (US) (2005) has 9 seasons. Which ones: all, first, latest, or numbers?"
    );
    assert_eq!(app.sonarr().post_count(), 0);
    assert_eq!(
        app.reply_to_calls(&[("add_series", json!({ "tvdb": office, "seasons": [2, 3] }))]).await,
        "Added The Office (US) (2005), seasons 2 and 3."
    );
    assert_eq!(app.sonarr().added_ids(), [office]);
}

#[tokio::test]
async fn show_of_three_seasons_is_added_completely() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add_to_catalog(series("The Bear").year(2022).seasons(3));
    assert_eq!(
        app.reply_to_calls(&[
            ("search_media", json!({ "query": "the bear" })),
            ("add_series", json!({ "tvdb": bear }))
        ])
        .await,
        "Added The Bear (2022)."
    );
}

#[tokio::test]
async fn stuck_download_is_shown_without_paths() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021));
    app.radarr()
        .add_stuck_download("Dune", "No files found are eligible for import in /data/torrents/Dune.2021");
    assert_eq!(
        app.reply_to_calls(&[("check_status", json!({}))]).await,
        "Dune (2021) stuck: No files found are eligible for import."
    );
}

#[tokio::test]
async fn calendar_and_recent_imports_are_listed_by_day() {
    let app = TestApp::start().await;
    app.sonarr().add(series("The Bear").year(2022).seasons(3).size_gb(44.0));
    app.radarr().add_calendar_entry("Dune: Part Three", date(2026, 11, 24));
    app.radarr().add_import("Heat", "2026-11-19T10:00:00Z".parse().unwrap());
    assert_eq!(
        app.reply_to_calls(&[("upcoming", json!({ "days": 7 }))]).await,
        "Dune: Part Three online on Tue."
    );
    assert_eq!(app.reply_to_calls(&[("recently_added", json!({}))]).await, "New: Heat.");
}

#[tokio::test]
async fn four_k_instance_needs_the_right() {
    let four_k = FakeRadarr::new();
    let app = TestApp::start_with_four_k(&four_k).await;
    let heat = movie("Heat").tmdb(949).year(1995);
    app.radarr().add_to_catalog(heat.clone());
    four_k.add_to_catalog(heat);
    let add = [
        ("search_media", json!({ "query": "heat" })),
        ("add_movie", json!({ "tmdb": 949, "instance": "radarr-4k" })),
    ];
    app.register_user(ANN, Has::AddRight).await;
    assert_eq!(app.reply_to_calls(&add).await, "You can't add titles in 4K. Please ask an admin.");
    assert_eq!(four_k.post_count(), 0);
    app.register_user(ANN, Has::EveryRight).await;
    assert_eq!(app.reply_to_calls(&add).await, "Added Heat (1995).");
    assert_eq!((four_k.added_ids(), app.radarr().post_count()), (vec![949], 0));
}

#[tokio::test]
async fn titles_are_not_added_without_the_right() {
    let app = TestApp::start().await;
    app.register_user(ANN, Has::NoRights).await;
    let heat = app.radarr().add_to_catalog(movie("Heat").year(1995));
    assert_eq!(
        app.reply_to_calls(&[
            ("search_media", json!({ "query": "heat" })),
            ("add_movie", json!({ "tmdb": heat }))
        ])
        .await,
        "You can't add titles here. Please ask an admin."
    );
    assert_eq!(app.radarr().post_count(), 0);
}

type Fail = fn(&TestApp);

#[tokio::test]
async fn every_library_failure_names_its_instance() {
    let failures: [(&str, Fail); 4] = [
        ("Radarr is not set up correctly. An admin has to check it.", |app| app.radarr().fail_next(401)),
        ("Radarr is not set up correctly. An admin has to check it.", |app| app.radarr().return_html_next()),
        ("Radarr can't be reached right now.", |app| app.radarr().set_down(true)),
        ("Radarr had an error.", |app| app.radarr().fail_next(500)),
    ];
    for (expected, fail) in failures {
        let app = TestApp::start().await;
        fail(&app);
        let find = [("find_in_library", json!({ "query": "dune", "type": "movie" }))];
        assert_eq!(app.reply_to_calls(&find).await, expected);
    }
}

#[tokio::test]
async fn addition_with_a_lost_response_is_verified_by_a_read() {
    let app = TestApp::start().await;
    let heat = app.radarr().add_to_catalog(movie("Heat").year(1995));
    app.reply_to_calls(&[("search_media", json!({ "query": "heat", "type": "movie" }))]).await;
    // Reads before the write: existence, details, profiles, folders, the usual profile.
    (0..5).for_each(|_| app.radarr().allow_next());
    app.radarr().complete_next_with_status(504);
    assert_eq!(app.reply_to_calls(&[("add_movie", json!({ "tmdb": heat }))]).await, "Added Heat (1995).");
    assert_eq!((app.radarr().added_ids(), app.radarr().post_count()), (vec![heat], 1));
}

#[tokio::test]
async fn failed_addition_is_reported_and_not_claimed() {
    let app = TestApp::start().await;
    let heat = app.radarr().add_to_catalog(movie("Heat").year(1995));
    app.reply_to_calls(&[("search_media", json!({ "query": "heat", "type": "movie" }))]).await;
    app.radarr().set_down(true);
    assert_eq!(
        app.reply_to_calls(&[("add_movie", json!({ "tmdb": heat }))]).await,
        "Radarr can't be reached right now. I'll keep trying for a day and text you."
    );
    assert_eq!(app.radarr().added_ids(), Vec::<i64>::new());
}
