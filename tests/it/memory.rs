//! Recall of stored answers: by their owners only, and not after erasure.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::model_request::ModelRequest;
use dialarr::conversation::transcript::{PhoneNumber, StopReason};
use dialarr::engine::MetadataSource;
use dialarr::engine::memory::indexer::IndexingProgress;
use dialarr::llm::ModelError;
use dialarr::llm::embeddings::hashing::HashingEmbedder;
use dialarr::llm::embeddings::{EmbedError, Embedder};
use dialarr::llm::scripted::ScriptedReply;
use dialarr::store::audit::Actor;
use dialarr::store::people::users;
use dialarr::store::privacy::forget::{ErasureOutcome, forget_user};
use diesel::connection::SimpleConnection;
use http::StatusCode;
use serde_json::{Value, json};

use crate::harness::browser::Page;
use crate::harness::model::{Gated, calls, ends, fails, removes_movie, request_text, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const DAY: i64 = 24 * 60 * 60;
const CAL: &str = "+15550100004";
const SPIES: &str = "Slow Horses fits you, it is about spies.";

/// Returns the lines about earlier answers in a request.
fn remembered(request: &ModelRequest) -> Vec<String> {
    let words = request_text(request);
    let lines = words.lines().skip_while(|line| !line.starts_with("earlier answers"));
    lines.skip(1).take_while(|line| line.starts_with("- ")).map(|line| line[2..].to_owned()).collect()
}

/// Asks on another day, and returns the recalled lines in the request to the model.
async fn recalled_later(app: &TestApp, from: &str, text: &str) -> Vec<String> {
    app.pass(DAY);
    app.index_new_text().await;
    app.model_plays([says("Fine.")]);
    app.sms_from(from, text).await;
    remembered(&app.last_request())
}

async fn learns(app: &TestApp) -> IndexingProgress {
    app.index_new_text().await;
    app.app().engine.indexer.index_due_answers().await.unwrap()
}

async fn ask(app: &TestApp, from: &str, text: &str, answer: &str) {
    app.model_plays([says(answer)]);
    app.sms_from(from, text).await;
}

#[tokio::test]
async fn stored_answer_is_recalled_only_in_later_conversations() {
    let app = Setup::default().with_embeddings().start().await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 1, ..IndexingProgress::default() });
    app.model_plays([says("Yes.")]);
    app.sms("is that spy show a good one").await;
    assert_eq!(remembered(&app.last_request()), [""; 0]);

    assert_eq!(
        recalled_later(&app, ANN, "which spy show was it?").await,
        [
            &format!("Nov 20, this user said \"recommend a spy show\", you answered: {SPIES}"),
            "Nov 20, this user said \"is that spy show a good one\", you answered: Yes.",
        ]
    );
}

#[tokio::test]
async fn answer_is_found_by_words_before_indexing_and_without_vectors() {
    let app = Setup::default().start().await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    let line = format!("Nov 20, this user said \"recommend a spy show\", you answered: {SPIES}");
    assert_eq!(recalled_later(&app, ANN, "a show about spies").await, [line.as_str()]);
    learns(&app).await;
    assert_eq!(recalled_later(&app, ANN, "horses").await, [line.as_str()]);
    assert_eq!(recalled_later(&app, ANN, "horse racing").await, [""; 0]);
}

#[tokio::test]
async fn stored_answers_of_other_users_are_not_recalled() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    learns(&app).await;
    assert_eq!(recalled_later(&app, BOB, "recommend a spy show").await, [""; 0]);
    let program = app.program().await;
    let context = program.get("/api/v1/memory/context?user=%2B15550100003&query=slow%20horses").await;
    assert_eq!(context.json()["lines"], json!([]));
}

#[tokio::test]
async fn the_operator_sees_which_answers_a_user_would_recall() {
    let app = TestApp::start().await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    learns(&app).await;
    let page = app.browser().await.get("/memory?user=1&query=slow+horses").await.text();
    assert!(page.contains("Answers to this user") && page.contains(SPIES), "{page}");
}

#[tokio::test]
async fn forget_all_leaves_no_stored_answers() {
    let app = TestApp::start().await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    learns(&app).await;
    assert_eq!(recalled_later(&app, ANN, "which spy show").await.len(), 1);
    app.sms("forget all").await;
    assert_eq!(recalled_later(&app, ANN, "which spy show").await, [""; 0]);
    assert_eq!(learns(&app).await.indexed, 1);
}

#[tokio::test]
async fn greetings_codes_and_prompts_are_not_remembered() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    ask(&app, ANN, "hi", "Hello.").await;
    app.sms("users").await;
    app.sms("commands").await;
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    assert_eq!(learns(&app).await, IndexingProgress { skipped: 1, ..IndexingProgress::default() });
    app.sms("yes").await;
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 1, ..IndexingProgress::default() });
    assert_eq!(
        recalled_later(&app, ANN, "was dune deleted?").await,
        ["Nov 20, this user said \"yes\", you answered: Deleted Dune (2021). Freed 21.4 GB."]
    );
}

#[tokio::test]
async fn fallback_and_filtered_replies_are_not_remembered() {
    let app = TestApp::start().await;
    app.model_plays([ends(StopReason::Filtered, "")]);
    app.sms("tell me of the walrus").await;
    app.model_plays([says(""), says("")]);
    app.sms("and of the other walrus").await;
    assert_eq!(recalled_later(&app, ANN, "that walrus").await, [""; 0]);
    let off = Setup::default().keyword_responder().start().await;
    assert!(off.sms("well i never").await.starts_with("I did not understand that."));
    assert_eq!(off.count("agent_responses").await, 0);
}

#[tokio::test]
async fn broadcast_is_recalled_only_by_its_recipients() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("tell everyone the server moves to the attic on friday").await;
    learns(&app).await;
    app.register_user(CAL, Has::AddRight).await;
    let line = "Nov 20, told to several: the server moves to the attic on friday";
    assert_eq!(recalled_later(&app, BOB, "where does the server move").await, [line]);
    assert_eq!(recalled_later(&app, ANN, "where does the server move").await, [line]);
    assert_eq!(recalled_later(&app, CAL, "where does the server move").await, [""; 0]);

    app.sms_from(BOB, "forget all").await;
    assert_eq!(recalled_later(&app, BOB, "where does the server move").await, [""; 0]);
}

#[tokio::test]
async fn answers_of_an_erased_user_belong_to_no_other_user() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    ask(&app, BOB, "recommend a spy show", SPIES).await;
    learns(&app).await;
    let program = app.program().await;
    let before = program.get("/api/v1/memory/context?user=2&query=spy%20show").await;
    assert_eq!(before.json()["lines"].as_array().unwrap().len(), 1);
    app.sms_from(BOB, "forget all").await;
    let after = program.get("/api/v1/memory/context?user=2&query=spy%20show").await;
    assert_eq!(after.json()["lines"], json!([]));
}

async fn changes(app: &TestApp, statement: &'static str) {
    app.app().db.write(move |conn| conn.batch_execute(statement)).await.unwrap();
}

/// Builds the model's reply with the metadata of these exchanges.
fn metadata_reply(ids: impl IntoIterator<Item = usize>, scope: &str) -> ScriptedReply {
    let result = |id| {
        json!({
            "id": id, "summary": "Where films are watched", "topics": ["Plex"], "keywords": ["television"],
            "response_type": "explanation", "importance": 0.9, "scope": scope, "facts": [],
        })
    };
    let results: Vec<Value> = ids.into_iter().map(result).collect();
    says(&json!({ "results": results }).to_string())
}

/// Returns the questions in the last requests for metadata, one list for each request.
fn filed_questions(app: &TestApp, requests: usize) -> Vec<Vec<String>> {
    let all = app.model().requests();
    let questions = |request: &ModelRequest| {
        let exchanges: Vec<Value> = serde_json::from_str(&request_text(request)).unwrap();
        exchanges.iter().map(|exchange| exchange["user"].as_str().unwrap().to_owned()).collect()
    };
    all[all.len() - requests..].iter().map(questions).collect()
}

/// Returns the number of model calls of a user on one day, and their input tokens.
fn charged_calls(usage: &[String]) -> (u64, u64) {
    let [line] = usage else { panic!("{usage:?}") };
    let number =
        |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    let (_, calls) = line.split_once(": ").unwrap();
    let (_, tokens) = calls.split_once(", ").unwrap();
    (number(calls), number(tokens))
}

async fn start_with_notes() -> TestApp {
    TestApp::with(|settings| settings.metadata_source = MetadataSource::ByModel).await
}

#[tokio::test]
async fn model_extracts_bounded_metadata() {
    let app = start_with_notes().await;
    ask(&app, ANN, "where do I watch it", "Open Plex on your TV.").await;
    app.model_plays([metadata_reply([1], "user")]);
    assert_eq!(learns(&app).await.indexed, 1);
    let asked = app.last_request();
    assert!(asked.reply_schema.is_some() && asked.tools.is_empty());
    let exchange = json!([{ "id": 1, "user": "where do I watch it", "assistant": "Open Plex on your TV." }]);
    assert_eq!(request_text(&asked), exchange.to_string());

    let program = app.program().await;
    let found = program.get("/api/v1/memory/context?user=1&query=television").await.json();
    let found = &found["said_to_user"][0];
    assert_eq!((&found["summary"], &found["importance"]), (&json!("Where films are watched"), &json!(0.9)));
}

#[tokio::test]
async fn answers_of_one_user_share_a_metadata_request() {
    let app = start_with_notes().await;
    app.register_user(BOB, Has::AddRight).await;
    for (user, text) in [(ANN, "where do I watch it"), (BOB, "where is it shown"), (ANN, "who directed heat")]
    {
        ask(&app, user, text, "Open Plex on your TV.").await;
    }
    app.model_plays([metadata_reply(1..=2, "user"), metadata_reply([1], "user")]);
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 3, ..IndexingProgress::default() });
    let expected = [&["where do I watch it", "who directed heat"][..], &["where is it shown"]];
    assert_eq!(filed_questions(&app, 2), expected);
    let source = "SELECT DISTINCT extracted_by AS line FROM agent_responses";
    assert_eq!((app.lines(source).await, app.running_call_count().await), (vec!["model".to_owned()], 0));
}

#[tokio::test]
async fn answer_without_a_result_is_retried_alone() {
    let app = start_with_notes().await;
    for text in ["where do I watch it", "who directed heat", "what is on tonight"] {
        ask(&app, ANN, text, "Open Plex on your TV.").await;
    }
    app.model_plays([metadata_reply([1], "user")]);
    let outcome = IndexingProgress { indexed: 1, failed: 2, ..IndexingProgress::default() };
    assert_eq!(learns(&app).await, outcome);
    app.pass(301);
    app.model_plays([metadata_reply([1], "user"), metadata_reply([1], "user")]);
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 2, ..IndexingProgress::default() });
    assert_eq!(filed_questions(&app, 2), [["who directed heat"], ["what is on tonight"]]);
}

#[tokio::test]
async fn batch_that_takes_too_long_is_followed_by_smaller_ones() {
    let app = start_with_notes().await;
    for text in ["where do I watch it", "who directed heat"] {
        ask(&app, ANN, text, "Open Plex on your TV.").await;
    }
    app.model_plays([fails(ModelError::Timeout)]);
    assert_eq!(learns(&app).await.failed, 2);
    app.pass(301);
    for text in ["what is on tonight", "who plays in heat"] {
        ask(&app, ANN, text, "Open Plex on your TV.").await;
    }
    app.model_plays((0..4).map(|_| metadata_reply([1], "user")));
    assert_eq!(learns(&app).await.indexed, 4);
    let texts = ["what is on tonight", "who plays in heat", "where do I watch it", "who directed heat"];
    assert_eq!(filed_questions(&app, 4), texts.map(|text| [text]));
}

#[tokio::test]
async fn metadata_falls_back_to_code_after_three_bad_replies() {
    let app = start_with_notes().await;
    ask(&app, ANN, "where do I watch it", "Open Plex on your TV.").await;
    for _ in 0..2 {
        app.model_plays([says("I would rather not.")]);
        assert_eq!(learns(&app).await, IndexingProgress { failed: 1, ..IndexingProgress::default() });
        assert_eq!(learns(&app).await, IndexingProgress::default(), "it is left alone for a while");
        app.pass(301);
    }
    app.model_plays([says("{}")]);
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 1, ..IndexingProgress::default() });
    app.pass(301);
    assert_eq!(learns(&app).await, IndexingProgress::default());
}

/// The answer itself may cause the timeouts, so each attempt counts.
#[tokio::test]
async fn metadata_falls_back_to_code_after_three_timeouts() {
    let app = start_with_notes().await;
    ask(&app, ANN, "where do I watch it", "Open Plex on your TV.").await;
    let late = || fails(ModelError::Timeout);
    app.model_plays([late(), late(), late(), says("Yes.")]);
    for pause in [301, 601] {
        assert_eq!(learns(&app).await, IndexingProgress { failed: 1, ..IndexingProgress::default() });
        app.pass(pause);
    }
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 1, ..IndexingProgress::default() });
    assert_eq!(app.sms("is it open").await, "Yes.");
}

#[tokio::test]
async fn killed_metadata_call_is_charged_for_its_input_and_repeated() {
    let model = Gated::playing([says("Open Plex on your TV."), metadata_reply([1], "user")]);
    let setup = Setup::default().answered_by(model.clone());
    let mut app = setup.with(|settings| settings.metadata_source = MetadataSource::ByModel).start().await;
    model.release(1);
    app.sms("where do I watch it").await;
    model.is_asked().await;
    let answered = app.usage().await;
    let indexer = app.app().engine.indexer.clone();
    let run = tokio::spawn(async move { indexer.index_due_answers().await });
    model.is_asked().await;
    run.abort();
    app.restart().await;
    let killed = app.usage().await;

    app.pass(301);
    model.release(1);
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 1, ..IndexingProgress::default() });
    let repeated = app.usage().await;
    let [answered, killed, repeated] = [answered, killed, repeated].map(|lines| charged_calls(&lines));
    assert_eq!([answered.0, killed.0, repeated.0], [1, 2, 3]);
    assert!(
        killed.1 > answered.1 && repeated.1 == 2 * killed.1 - answered.1,
        "{answered:?} {killed:?} {repeated:?}"
    );
}

#[tokio::test]
async fn metadata_retries_back_off_while_the_model_is_down() {
    let app = start_with_notes().await;
    for text in ["where do I watch it", "who directed heat", "what is on tonight"] {
        ask(&app, ANN, text, "Open Plex on your TV.").await;
    }
    let before = (app.model().request_count(), app.usage().await);
    app.model_plays((0..7).map(|_| fails(ModelError::Unavailable("busy".to_owned()))));
    for _ in 0..36 {
        learns(&app).await;
        app.pass(600);
    }
    assert_eq!(app.model().request_count() - before.0, 7);
    let next_day = "2026-11-21 +15550100002: 0 calls, 0+0 tokens (0 cached), cost 0, 0 segments";
    assert_eq!(app.usage().await, [&before.1[0], next_day], "a call that fails costs nothing");

    app.pass(6 * 3600);
    app.model_plays([metadata_reply(1..=3, "user")]);
    assert_eq!(learns(&app).await.indexed, 3);
}

#[tokio::test]
async fn failed_metadata_does_not_delay_vectors() {
    let mut app =
        Setup::default().with(|settings| settings.metadata_source = MetadataSource::ByModel).start().await;
    ask(&app, ANN, "where do I watch it", "Open Plex on your TV.").await;
    app.model_plays([metadata_reply([1], "user")]);
    assert_eq!(learns(&app).await.indexed, 1);
    app.restart_with(Setup::with_embeddings).await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    app.model_plays([fails(ModelError::Unavailable("busy".to_owned())), says("Yes.")]);
    assert_eq!(
        learns(&app).await,
        IndexingProgress { failed: 1, embedded: 1, ..IndexingProgress::default() }
    );
    assert_eq!(app.sms("is it good").await, "Yes.");
}

/// Number of texts in each embedding request.
#[derive(Default)]
struct Watched(Mutex<Vec<usize>>);

#[async_trait]
impl Embedder for Watched {
    fn model(&self) -> &str {
        HashingEmbedder.model()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.lock().unwrap().push(texts.len());
        HashingEmbedder.embed(texts).await
    }
}

#[tokio::test]
async fn question_and_answer_are_embedded_in_one_request() {
    let embedder = Arc::new(Watched::default());
    let app = Setup::default().embedded_by(embedder.clone()).start().await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    embedder.0.lock().unwrap().clear();
    assert_eq!(learns(&app).await.indexed, 1);
    assert_eq!(*embedder.0.lock().unwrap(), [2]);
}

#[tokio::test]
async fn answer_for_everyone_waits_for_an_approval() {
    let app = start_with_notes().await;
    app.register_user(BOB, Has::AddRight).await;
    for (question, answer) in [("where do I watch it", "Open Plex on your TV."), ("how loud is it", "Very.")]
    {
        ask(&app, ANN, question, answer).await;
        app.model_plays([metadata_reply([1], "global")]);
        learns(&app).await;
    }
    let program = app.program().await;
    let bob_finds = async |query: &str| {
        let context = program.get(&format!("/api/v1/memory/context?user=2&query={query}")).await;
        context.json()["lines"].clone()
    };
    assert_eq!(bob_finds("where+do+I+watch+it").await, json!([]));

    let mut browser = app.browser().await;
    let page = browser.get("/memory").await.text();
    assert!(page.contains("where do I watch it") && page.contains("how loud is it"), "{page}");
    let pressed = |answer: Page| answer.location.unwrap();
    let location = pressed(browser.submit("/memory/1/share", &[]).await);
    assert!(browser.get(&location).await.text().contains("Shared. Every user may get this answer."));
    let location = pressed(browser.submit("/memory/2/keep", &[]).await);
    let page = browser.get(&location).await.text();
    assert!(page.contains("Kept private to its recipient.") && !page.contains("how loud is it"), "{page}");
    assert_eq!(
        bob_finds("where+do+I+watch+it").await,
        json!(["Nov 20, asked \"where do I watch it\", you answered: Open Plex on your TV."])
    );
    assert_eq!(bob_finds("how+loud+is+it").await, json!([]));
}

#[tokio::test]
async fn operator_adds_an_answer_for_everyone_that_is_indexed_once() {
    let app = Setup::default().keyword_responder().with_embeddings().start().await;
    app.register_user(BOB, Has::AddRight).await;
    let program = app.program().await;
    let added = program
        .post(
            "/api/v1/memory/responses",
            json!({ "trigger": "where do i watch it", "response": "Open Plex on your TV." }),
        )
        .await;
    assert_eq!(added.status, StatusCode::CREATED.as_u16());

    let process = async || program.post("/api/v1/memory/process-pending", json!({})).await.json();
    let nothing = json!({ "learned": 0, "skipped": 0, "failed": 0, "embedded": 0 });
    assert_eq!(process().await, json!({ "learned": 1, "skipped": 0, "failed": 0, "embedded": 0 }));
    assert_eq!(process().await, nothing);
    for user in ["1", "2"] {
        let path = format!("/api/v1/memory/context?user={user}&query=where+do+i+watch");
        let found = program.get(&path).await.json();
        assert_eq!(
            found["lines"],
            json!(["Nov 20, asked \"where do i watch it\", you answered: Open Plex on your TV."])
        );
    }
    let stats = program.get("/api/v1/memory/stats").await.json();
    assert_eq!(stats["by_scope"], json!([{ "name": "global", "count": 1 }]));
    assert_eq!(stats["by_model"], json!([{ "name": "hashing-256/256", "count": 1 }]));
    assert_eq!(stats["vector_bytes"], json!(2 * 256 * 4));
}

#[tokio::test]
async fn operator_erases_an_answer_for_everyone() {
    let app = TestApp::start_without_model().await;
    let program = app.program().await;
    let says = json!({ "trigger": "where do i watch it", "response": "Open Plex on your TV." });
    let looks = async || {
        app.index_new_text().await;
        let path = "/api/v1/memory/context?user=1&query=where+do+i+watch";
        program.get(path).await.json()["lines"].as_array().unwrap().len()
    };
    program.post("/api/v1/memory/responses", says.clone()).await;
    app.app().engine.indexer.index_due_answers().await.unwrap();
    assert_eq!(looks().await, 1);

    let mut browser = app.browser().await;
    assert!(
        browser.get("/memory").await.text().contains("Answers that everyone may get where do i watch it")
    );
    let location = browser.submit("/memory/1/forget", &[]).await.location.unwrap();
    let page = browser.get(&location).await.text();
    assert!(page.contains("Removed from memory.") && !page.contains("watch"), "{page}");
    assert_eq!(looks().await, 0);
    assert!(app.columns_with("Plex").await.is_empty());

    program.post("/api/v1/memory/responses", says).await;
    assert_eq!(looks().await, 1);
    assert_eq!(program.delete("/api/v1/memory/responses/2").await.status, 204);
    assert_eq!(looks().await, 0);
    for gone in ["2", "9", "x"] {
        assert_eq!(program.delete(&format!("/api/v1/memory/responses/{gone}")).await.problem().0, 404);
    }
    let erased: Vec<_> = app.audit().await.into_iter().filter(|line| line.contains("erased")).collect();
    assert_eq!(erased, ["memory_erased household by console", "memory_erased household by key:1"]);
}

#[tokio::test]
async fn metadata_leaves_half_of_the_daily_budget_to_replies() {
    let app = TestApp::with(|settings| {
        settings.metadata_source = MetadataSource::ByModel;
        settings.budget.tokens = Some(1_000_000);
    })
    .await;
    let below = "UPDATE usage SET tokens_in = 490000";
    let above = "UPDATE usage SET tokens_in = 510000";
    for (spent, by) in [(below, "model"), (above, "code")] {
        ask(&app, ANN, &format!("where do I watch it by {by}"), "Open Plex on your TV.").await;
        changes(&app, spent).await;
        app.model_plays((by == "model").then(|| metadata_reply([1], "user")));
        assert_eq!(learns(&app).await.indexed, 1);
        let noted =
            app.lines("SELECT extracted_by AS line FROM agent_responses ORDER BY id DESC LIMIT 1").await;
        assert_eq!(noted, [by]);
    }
}

#[tokio::test]
async fn answers_are_embedded_once_a_model_is_configured() {
    let mut app = Setup::default().start().await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    assert_eq!(learns(&app).await, IndexingProgress { indexed: 1, ..IndexingProgress::default() });
    app.restart_with(Setup::with_embeddings).await;
    assert_eq!(learns(&app).await, IndexingProgress { embedded: 1, ..IndexingProgress::default() });
    assert_eq!(learns(&app).await, IndexingProgress::default());
}

#[tokio::test]
async fn answer_is_indexed_once_by_concurrent_runs() {
    let app = TestApp::start().await;
    ask(&app, ANN, "recommend a spy show", SPIES).await;
    let (one, other) = tokio::join!(learns(&app), learns(&app));
    assert_eq!(one.indexed + other.indexed, 1);
}

#[tokio::test]
async fn saved_fact_is_not_a_stored_answer() {
    let app = TestApp::start().await;
    app.model_plays([calls("remember", json!({ "kind": "dislike", "value": "horror" })), says("OK.")]);
    app.sms("no horror please").await;
    assert_eq!(learns(&app).await, IndexingProgress::default());
    assert_eq!(recalled_later(&app, ANN, "any horror?").await, [""; 0]);
}

#[tokio::test]
async fn operator_answer_is_found_by_common_words() {
    let app = TestApp::start_without_model().await;
    let program = app.program().await;
    let added = json!({ "trigger": "what can you do", "response": "Find and add films." });
    program.post("/api/v1/memory/responses", added).await;
    assert_eq!(learns(&app).await.indexed, 1);
    let found = program.get("/api/v1/memory/context?user=1&query=which+films+to+find").await;
    assert_eq!(found.json()["lines"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn number_of_an_erased_user_leaves_stored_answers_of_others() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    ask(&app, ANN, "who is +1 555 010 0003", "That is Bob's number, walrus.").await;
    learns(&app).await;
    let (bob, now) = (PhoneNumber::parse(BOB).unwrap(), app.now());
    let forget_user = move |conn: &mut _| {
        let bob = users::find_user_by_phone(conn, &bob)?.unwrap();
        forget_user(conn, bob.id, Actor::Shell, now)
    };
    assert_eq!(app.app().db.write(forget_user).await.unwrap(), ErasureOutcome::Erased);
    assert_eq!(recalled_later(&app, ANN, "walrus").await, [""; 0]);
}
