//! The library cache: loads of the libraries, and answers while they are unreachable.

use std::sync::Arc;

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::llm::keyword::KeywordResponder;
use dialarr::response_budget::LIBRARY_RESPONSE_BYTES;
use futures_util::future::join_all;
use serde_json::json;

use crate::harness::model::{adds_movie, calls_together, finds, says};
use crate::harness::world::World;
use crate::harness::{Has, TestApp};

/// Starts with Heat and The Bear in the libraries.
async fn household() -> TestApp {
    let app = TestApp::start().await;
    app.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    app.sonarr().add(series("The Bear").year(2022).seasons(3).size_gb(44.0));
    app
}

impl TestApp {
    /// Returns the text of the tools about a title.
    async fn do_we_have(&self, title: &str) -> String {
        self.model_plays([finds(title), says(""), says("")]);
        self.sms(&format!("do we have {title}?")).await
    }
}

#[tokio::test]
async fn repeated_queries_download_the_library_once() {
    let app = household().await;
    for title in ["heat", "the bear", "heat 1995"] {
        app.do_we_have(title).await;
    }
    assert_eq!((app.radarr().listing_count(), app.sonarr().listing_count()), (1, 1));
}

#[tokio::test]
async fn concurrent_queries_share_a_download() {
    let app = household().await;
    let both = [("find_in_library", json!({"query": "heat"})), ("find_in_library", json!({"query": "bear"}))];
    app.model_plays([calls_together(&both), says("You have both.")]);
    assert_eq!(app.sms("do we have heat and the bear?").await, "You have both.");
    assert_eq!((app.radarr().listing_count(), app.sonarr().listing_count()), (1, 1));
}

#[tokio::test]
async fn title_added_in_radarr_is_found_at_once() {
    let app = household().await;
    app.do_we_have("heat").await;
    app.radarr().add(movie("Dune").year(2021));
    assert_eq!(app.do_we_have("dune").await, "In the library: Dune (2021), not on disk yet.");
}

#[tokio::test]
async fn title_just_added_is_found() {
    let app = household().await;
    let dune = app.radarr().add_to_catalog(movie("Dune").year(2021));
    assert_eq!(app.do_we_have("dune").await, "Nothing in the library matches \"dune\".");
    app.model_plays(adds_movie("dune", dune).into_iter().chain([says("Added.")]).collect::<Vec<_>>());
    app.sms("add dune").await;
    assert_eq!(app.do_we_have("dune").await, "In the library: Dune (2021), not on disk yet.");
}

#[tokio::test]
async fn unreachable_server_is_named_despite_a_cached_library() {
    let app = household().await;
    app.do_we_have("heat").await;
    app.radarr().set_down(true);
    assert_eq!(
        app.do_we_have("heat").await,
        "I could not check the whole library. Radarr can't be reached right now."
    );
}

#[tokio::test]
async fn twelve_concurrent_members_stay_within_the_response_budget() {
    let app = TestApp::start_without_model().await;
    for number in 0..2_000 {
        app.radarr().add(movie(&format!("Movie {number}")).year(2000));
        app.sonarr().add(series(&format!("Show {number}")).year(2000));
    }
    let phones: Vec<String> = (0..12).map(|member| format!("+155501002{member:02}")).collect();
    for phone in &phones {
        app.register_user(phone, Has::AddRight).await;
    }
    let posts = phones.iter().map(|phone| app.post(app.text(phone, "find movie 1999")));
    assert!(join_all(posts).await.iter().all(|status| *status == 200));
    app.settle().await;
    for phone in &phones {
        assert!(app.last_to(phone).contains("Movie 1999"), "{}", app.last_to(phone));
    }
    let peak = app.responses().peak_bytes();
    assert!(0 < peak && peak <= LIBRARY_RESPONSE_BYTES, "{peak} bytes were reserved");
    assert_eq!(app.responses().reserved_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn library_without_memory_for_its_response_is_unreachable() {
    let world = World::start_with(Arc::new(KeywordResponder::NoModel)).await;
    world.radarr().add(movie("Heat").year(1995));
    let everything = world.responses().reserve_bytes(u64::from(LIBRARY_RESPONSE_BYTES)).await.unwrap();
    world.texts("have heat?").await;
    world.pass(60).await;
    let messages = world.sent_texts().concat();
    assert!(messages.contains("Radarr can't be reached right now."), "{messages}");
    drop(everything);
    world.texts("have heat?").await;
    world.pass(60).await;
    let messages = world.sent_texts();
    assert!(messages.last().unwrap().starts_with("In the library: Heat (1995)"), "{messages:?}");
}
