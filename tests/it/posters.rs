//! Posters: a separate picture beside the reply, from two hosts only, without a delay of the reply.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::engine::PicturePolicy;
use dialarr::llm::scripted::ScriptedReply;
use serde_json::json;

use crate::harness::TestApp;
use crate::harness::model::{calls, calls_together, offered, removes, says};

const DUNE: i64 = 438_631;
const AT_TMDB: &str = "https://image.tmdb.org/t/p/original/dune.jpg";
/// The same picture in a size for carriers.
const SMALLER: &str = "https://image.tmdb.org/t/p/w500/dune.jpg";

/// Starts with Dune in the catalog, with its picture at `url`.
async fn with_poster(url: &str) -> TestApp {
    let app = TestApp::start().await;
    app.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE).poster(url));
    app
}

fn sends_the_poster(words: &str) -> [ScriptedReply; 3] {
    let [searches, sends] =
        [calls("search_media", json!({ "query": "dune" })), calls("send_poster", json!({ "tmdb": DUNE }))];
    [searches, sends, says(words)]
}

/// Returns every message to Ann, with its pictures.
fn sent_with_media(app: &TestApp) -> Vec<String> {
    let line = |(body, media): (String, Vec<String>)| [vec![body], media].concat().join(" ");
    app.twilio().sent_messages().into_iter().map(|text| line((text.body, text.media))).collect()
}

#[tokio::test]
async fn poster_is_sent_as_a_picture_beside_the_reply() {
    let app = with_poster(AT_TMDB).await;
    app.model_plays(sends_the_poster("Here you are."));
    app.sms("show me the poster of dune").await;
    assert_eq!(sent_with_media(&app), ["Here you are.".to_owned(), format!("Dune (2021) {SMALLER}")]);
    assert_eq!(app.results().last().unwrap(), r#"{"status":"on_its_way","title":"Dune","year":2021}"#);
}

#[tokio::test]
async fn poster_of_a_show_comes_from_thetvdb() {
    let app = TestApp::start().await;
    let url = "https://artworks.thetvdb.com/banners/posters/371980-1.jpg";
    app.sonarr().add_to_catalog(series("Severance").year(2022).tvdb(371_980).poster(url));
    app.model_plays([
        calls("search_media", json!({ "query": "severance" })),
        calls("send_poster", json!({ "tvdb": 371_980 })),
        says(""),
    ]);
    app.sms("severance poster").await;
    assert_eq!(
        sent_with_media(&app),
        ["The poster of Severance (2022) is on its way.".to_owned(), format!("Severance (2022) {url}")]
    );
}

#[tokio::test]
async fn picture_of_another_host_is_not_sent() {
    let app = with_poster("https://evil.example/dune.jpg").await;
    app.model_plays(sends_the_poster("I have no poster of it."));
    app.sms("show me the poster of dune").await;
    assert_eq!(sent_with_media(&app), ["I have no poster of it."]);
    let expected = r#"{"error":"no_poster","hint":"the catalog has no poster of it: say so"}"#;
    assert_eq!(app.results().last().unwrap(), expected);
}

#[tokio::test]
async fn poster_needs_a_title_that_was_shown() {
    let app = with_poster(AT_TMDB).await;
    app.model_plays([calls("send_poster", json!({ "tmdb": DUNE })), says("Which one?")]);
    app.sms("show me a poster").await;
    assert_eq!(sent_with_media(&app), ["Which one?"]);
}

#[tokio::test]
async fn failed_poster_does_not_delay_the_reply() {
    let app = with_poster(AT_TMDB).await;
    app.model_plays(sends_the_poster("Here you are."));
    app.twilio().reject_media(400, 21_620);
    app.sms("show me the poster of dune").await;
    assert_eq!(sent_with_media(&app), ["Here you are."]);
    assert_eq!(app.outbox().await, ["failed 1 Dune (2021)", "accepted 1 Here you are."]);
}

#[tokio::test]
async fn poster_with_unknown_delivery_does_not_delay_the_reply() {
    let app = with_poster(AT_TMDB).await;
    app.model_plays(sends_the_poster("Here you are."));
    app.twilio().reject_media(503, 20_503);
    app.sms("show me the poster of dune").await;
    assert_eq!(app.outbox().await, ["unknown 1 Dune (2021)", "accepted 1 Here you are."]);
    app.model_plays([says("Gladly.")]);
    assert_eq!(app.sms("thank you, what else is like it?").await, "Gladly.");
}

#[tokio::test]
async fn poster_does_not_come_between_a_prompt_and_its_answer() {
    let app = TestApp::start().await;
    let dune = movie("Dune").year(2021).tmdb(DUNE).poster(AT_TMDB).size_gb(21.4);
    let dune = app.radarr().add(dune);
    app.model_plays([
        calls_together(&[
            ("search_media", json!({ "query": "dune" })),
            ("find_in_library", json!({ "query": "dune" })),
        ]),
        calls("send_poster", json!({ "tmdb": DUNE })),
        removes(&json!([{ "type": "movie", "id": dune }])),
    ]);
    let question = app.sms("show me dune once more and delete it").await;
    assert_eq!(question, "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.");
    assert_eq!(sent_with_media(&app), [question]);
    let answer = app.sms("yes").await;
    assert_eq!(answer, "Deleted Dune (2021). Freed 21.4 GB.\nDune (2021)");
    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn number_without_pictures_is_offered_no_poster_tool() {
    let app = TestApp::with(|settings| settings.pictures = PicturePolicy::NotSent).await;
    app.model_plays([says("I can't send pictures.")]);
    app.sms("show me the poster of dune").await;
    assert!(!offered(&app.last_request()).contains(&"send_poster"));
}
