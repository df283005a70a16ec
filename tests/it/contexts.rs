//! Context of the model requests: stable from request to request, with the notifications and pictures that the history
//! does not contain.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::model_request::ModelRequest;
use dialarr::conversation::transcript::StopReason;
use serde_json::json;

use crate::harness::model::{
    adds_movie, calls, calls_together, calls_with_broken_arguments, ends, finds, is_cut_off_in, removes,
    removes_movie, says, says_with_call,
};
use crate::harness::{ANN, TestApp};

const DUNE: i64 = 438_631;

/// Returns the texts of the last request.
fn request_text(app: &TestApp) -> String {
    format!("{:?}", app.last_request().messages)
}

/// Returns whether `next` begins with the whole of `previous`, so that a model server can cache it.
fn continues(previous: &ModelRequest, next: &ModelRequest) -> bool {
    previous.system == next.system
        && previous.tools == next.tools
        && next.messages.starts_with(&previous.messages)
}

#[tokio::test]
async fn requests_of_a_day_begin_with_the_ones_before_them() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    for text in 0..30 {
        let reply = says("Dune (2021) is there, and nothing is downloading.");
        match text % 3 {
            0 => app.model_plays([finds("dune"), calls("check_status", json!({})), reply]),
            1 => app.model_plays([says("Good to know.")]),
            _ => app.model_plays([calls("upcoming", json!({})), reply]),
        }
        app.pass(if text == 15 { 4 * 60 * 60 } else { 90 });
        app.sms(&format!("how is it going with dune, question {text}?")).await;
    }
    let requests = app.model().requests();
    let pairs = requests.windows(2);
    let stable = pairs.clone().filter(|pair| continues(&pair[0], &pair[1])).count();
    assert!(pairs.len() >= 55 && stable * 100 >= pairs.len() * 95, "{stable} of {}", pairs.len());
}

#[tokio::test]
async fn request_after_an_ignored_prompt_contains_the_end_of_the_prompt() {
    for wait_seconds in [30, 10 * 60] {
        let app = TestApp::start().await;
        let dune = app.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
        app.model_plays(removes_movie("dune", dune));
        app.sms("delete dune").await;
        app.pass(wait_seconds);
        app.model_plays([says("Nothing new.")]);
        app.sms("anything new this week?").await;
        let request = request_text(&app);
        assert!(request.contains("not_done") && !request.contains("awaiting_user"), "{request}");
    }
}

/// Checks that a turn that is cached at its end equals the stored one, which is loaded after a restart.
#[tokio::test]
async fn requests_before_and_after_a_restart_repeat_the_same_turns() {
    let mut app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    let heat = app.radarr().add(movie("Heat").year(1995).size_gb(18.3));
    let rocky = app.radarr().add_to_catalog(movie("Rocky").year(1976));
    let [search, add] = adds_movie("Rocky", rocky);
    let texts = [
        ("have we got dune?", vec![finds("dune"), says("Dune (2021) is there, 21.4 GB.")]),
        ("add rocky please", vec![search, add, says("Rocky is on its way.")]),
        (
            "remember that i dislike horror",
            vec![calls("remember", json!({ "kind": "dislike", "value": "horror" })), says("OK.")],
        ),
        ("delete dune", vec![finds("dune"), removes(&json!([{ "type": "movie", "id": dune }]))]),
        ("no", vec![]),
        ("delete heat", vec![finds("heat"), removes(&json!([{ "type": "movie", "id": heat }]))]),
        ("yes", vec![]),
        ("Liked \"Rocky is on its way.\"", vec![says("Glad that you like it.")]),
        (
            "what is up?",
            vec![
                calls_together(&[("check_status", json!({})), ("no_such_tool", json!({ "n": 0.1 }))]),
                says("Nothing."),
            ],
        ),
        (
            "and now?",
            vec![
                calls_with_broken_arguments("search_media", "{"),
                says_with_call("One moment.", "upcoming", json!({})),
                says("Nothing."),
            ],
        ),
        ("tell me more", vec![is_cut_off_in("search_media", json!({ "query": "x" })), says("That is all.")]),
        ("a long one", vec![ends(StopReason::Length, &"All that I know. ".repeat(60))]),
        ("more", vec![]),
    ];
    for (text, replies) in texts {
        app.model_plays(replies);
        app.pass(60);
        app.sms(text).await;
    }
    app.model_plays([says("Good.")]);
    app.sms("how is it going?").await;
    let kept = app.last_request();
    assert!(kept.messages.len() > 30, "{}", kept.messages.len());

    app.restart().await;
    app.model_plays([says("Good.")]);
    app.sms("and now?").await;
    let loaded = app.last_request();
    assert_eq!(loaded.messages[..kept.messages.len()], kept.messages);
}

#[tokio::test]
async fn notification_that_was_just_sent_can_be_answered() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    app.follow_movie(ANN, DUNE).await;
    app.later(0).await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    app.model_plays([finds("dune"), removes(&json!([{ "type": "movie", "id": dune }]))]);
    let question = app.sms("which one was that? delete it").await;
    assert!(question.starts_with("Delete Dune (2021) and its file"), "{question}");
    let text = request_text(&app);
    assert!(text.contains("just texted (21:04): Dune (2021) is ready to watch."), "{text}");

    app.sms("no").await;
    app.model_plays([says("Fine.")]);
    app.sms("hello again").await;
    let text = request_text(&app);
    assert_eq!(text.matches("just texted").count(), 1, "{text}");
}

#[tokio::test]
async fn forgotten_fact_is_removed_from_the_contexts_of_earlier_texts() {
    let app = TestApp::start().await;
    app.model_plays([calls("remember", json!({ "kind": "dislike", "value": "horror" })), says("OK.")]);
    app.sms("i hate horror").await;
    app.model_plays([says("Hello.")]);
    app.sms("hello there").await;
    assert!(request_text(&app).contains("known: Dislikes horror"), "{}", request_text(&app));
    app.model_plays([says("Hello.")]);
    app.sms("hello again").await;
    app.sms("forget 1").await;
    app.model_plays([says("Hello.")]);
    app.sms("hello once more").await;
    assert!(!request_text(&app).contains("known: "), "{}", request_text(&app));
}

#[tokio::test]
async fn picture_with_words_is_mentioned_to_the_model() {
    let app = TestApp::start().await;
    app.model_plays([says("I can't see pictures. Which title is it?")]);
    let form = app.text(ANN, "do we have this one?");
    app.post(form.with_media("https://media.example/1.jpg", "image/jpeg")).await;
    app.settle().await;
    assert!(request_text(&app).contains("a picture that you cannot see"), "{}", request_text(&app));
}
