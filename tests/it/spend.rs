//! Usage: tokens, cost and segments by user and day, and the daily budget.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::grammar::triage::TriageLevel;
use dialarr::conversation::model_cost::{
    CostEstimate, DailyBudget, ModelPrices, TokenUsage, estimate_tokens,
};
use dialarr::engine::MetadataSource;
use dialarr::llm::ModelError;
use dialarr::messaging::twilio::fake::FakeDelivery;
use jiff::tz::TimeZone;

use crate::harness::model::{Holding, adds_movie, counted, fails, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const OFF: &str = "The assistant is off right now. Hi! You can text \"add Paddington\" or \"what's new\".";
const SPENT: &str = "Today's model budget is used up. Until midnight I only understand short commands such as \
                     ADD, STATUS and REMOVE.";
const FEW: TokenUsage = TokenUsage { input: 120, cached: 100, output: 8 };

/// Maximum cost of a model call of an admin.
async fn one_call() -> u64 {
    let app = TestApp::start().await;
    app.model_plays([says("Hi.")]);
    app.sms("hello").await;
    CostEstimate::from_request(&app.last_request(), ModelPrices::default()).total().tokens
}

/// Starts with a budget that one call uses up.
async fn app_that_has_spent_its_budget() -> TestApp {
    let tokens = one_call().await;
    let app = TestApp::with(|settings| settings.budget.tokens = Some(tokens)).await;
    app.model_plays([counted(TokenUsage { input: tokens, cached: 0, output: 0 }, says("Hi."))]);
    assert_eq!(app.sms("hello").await, "Hi.");
    app
}

#[tokio::test]
async fn model_call_counts_for_its_user_and_day() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.model_plays([says("One."), says("Two."), says("Three.")].map(|line| counted(FEW, line)));
    app.sms("one").await;
    app.sms("two").await;
    app.sms_from(BOB, "three").await;
    assert_eq!(
        app.usage().await,
        [
            "2026-11-20 +15550100002: 2 calls, 240+16 tokens (200 cached), cost 0, 2 segments",
            "2026-11-20 +15550100003: 1 call, 120+8 tokens (100 cached), cost 0, 1 segment",
        ]
    );
    assert_eq!(app.running_call_count().await, 0);
}

#[tokio::test]
async fn spent_budget_switches_to_keywords_and_notifies_admins_once() {
    let app = app_that_has_spent_its_budget().await;
    app.register_user(BOB, Has::EveryRight).await;
    let spent = app.usage().await;
    assert_eq!(app.sms("hello").await, format!("{SPENT}\n{OFF}"));
    assert_eq!(app.sms("hello").await, OFF);
    assert_eq!(app.sms_from(BOB, "hello").await, OFF);
    assert_eq!(app.texts_to(BOB, 0), format!("{SPENT}\n{OFF}"));
    assert_eq!(app.model().request_count(), 1);
    assert_eq!(app.failed_attempts().await, vec!["the day's budget is spent"; 3]);
    let tokens = |line: &String| line.split(", cost").next().map(str::to_owned);
    assert_eq!(tokens(&app.usage().await[0]), tokens(&spent[0]), "the keyword brain costs nothing");
}

#[tokio::test]
async fn new_day_has_a_new_budget() {
    let tokens = one_call().await;
    let app = TestApp::with(|settings| {
        settings.budget.tokens = Some(tokens + 100);
        settings.zone = TimeZone::get("America/New_York").unwrap();
    })
    .await;
    app.model_plays([
        counted(TokenUsage { input: tokens, cached: 0, output: 0 }, says("Hi.")),
        says("Hi again."),
    ]);
    app.sms("hello").await;
    // In New York it is 16:04, and midnight in London lies in between.
    app.pass(7 * 3600);
    assert_eq!(app.sms("hello").await, format!("{SPENT}\n{OFF}"));
    app.pass(3600);
    assert_eq!(app.sms("hello").await, "Hi again.");
    let days: Vec<String> = app.usage().await.iter().map(|line| line[..10].to_owned()).collect();
    assert_eq!(days, ["2026-11-20", "2026-11-21"]);
}

#[tokio::test]
async fn running_call_counts_with_its_maximum_cost() {
    let model = Holding::closed();
    let room = 2 * one_call().await - 100;
    let setup = Setup::default().holding(&model).with(|settings| settings.budget.tokens = Some(room));
    let app = setup.start().await;
    app.register_user(BOB, Has::EveryRight).await;
    let mut sent = app.twilio().subscribe();

    app.post(app.text(ANN, "hold the line")).await;
    model.holds().await;
    app.post(app.text(BOB, "hello")).await;
    assert_eq!(sent.recv().await.unwrap().body, OFF);
    model.let_go();
    app.settle().await;

    assert_eq!(app.texts_to(ANN, 0), "Fine.", "nothing is told while there may be room again");
    assert_eq!(app.sms_from(BOB, "hello").await, "Fine.");
    assert_eq!(app.failed_attempts().await, ["the calls under way may use up the day's budget"]);
}

#[tokio::test]
async fn call_interrupted_by_a_crash_is_charged_for_its_input() {
    let model = Holding::closed();
    let mut app = Setup::default().holding(&model).start().await;
    app.post(app.text(ANN, "hold the line")).await;
    model.holds().await;
    let input = app.usage().await;
    assert!(input[0].starts_with("2026-11-20 +15550100002: 1 call, "), "{input:?}");

    app.restart().await;
    model.holds().await;
    assert_eq!(app.running_call_count().await, 1, "the turn has asked again");
    let charged = app.usage().await;
    assert!(charged[0].starts_with("2026-11-20 +15550100002: 2 calls, "), "{charged:?}");
    assert!(charged[0].ends_with("+0 tokens (0 cached), cost 0, 0 segments"), "{charged:?}");

    model.let_go();
    app.settle().await;
    assert_eq!(app.running_call_count().await, 0);
    assert_eq!(app.texts_to(ANN, 0), "Fine.");
}

#[tokio::test]
async fn canceled_call_counts_its_request() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    app.post(app.text(ANN, "hold the line")).await;
    model.holds().await;
    app.post(app.text(ANN, "STOP")).await;
    app.settle().await;
    let charged = app.usage().await;
    assert!(charged[0].starts_with("2026-11-20 +15550100002: 1 call, "), "{charged:?}");
    assert!(charged[0].ends_with("+0 tokens (0 cached), cost 0, 0 segments"), "{charged:?}");
    assert_eq!(app.running_call_count().await, 0);
}

#[tokio::test]
async fn failed_call_costs_nothing() {
    for error in [
        ModelError::Unauthorized("no such key".to_owned()),
        ModelError::QuotaSpent("no credit".to_owned()),
        ModelError::Rejected("no such model".to_owned()),
        ModelError::ContextTooLong,
    ] {
        let app = TestApp::start().await;
        app.model_plays([fails(error)]);
        assert_eq!(app.sms("hello").await, OFF);
        app.model_plays([]);
        assert_eq!(
            app.usage().await,
            ["2026-11-20 +15550100002: 0 calls, 0+0 tokens (0 cached), cost 0, 1 segment"]
        );
    }
}

#[tokio::test]
async fn refused_call_for_triage_or_metadata_costs_nothing() {
    for error in [
        ModelError::RateLimited { retry_after: None },
        ModelError::Unavailable("refused".to_owned()),
        ModelError::Unauthorized("no such key".to_owned()),
        ModelError::QuotaSpent("no credit".to_owned()),
    ] {
        let app = TestApp::with(|settings| {
            settings.triage_level = TriageLevel::Ai;
            settings.metadata_source = MetadataSource::ByModel;
        })
        .await;
        app.model_plays([counted(FEW, says("Hi."))]);
        app.sms("hello there").await;
        app.model_plays([fails(error.clone()), counted(FEW, says("Glad you liked it."))]);
        assert_eq!(app.sms("we loved the bear").await, "Glad you liked it.");
        // A wrong key disables the model for five minutes.
        app.pass(301);
        app.model_plays([counted(FEW, says("Open Plex on your TV."))]);
        app.sms("where do I watch it").await;
        app.model_plays([fails(error)]);
        assert_eq!(app.app().engine.indexer.index_due_answers().await.unwrap().failed, 2);
        app.model_plays([]);
        let paid = "2026-11-20 +15550100002: 3 calls, 360+24 tokens (300 cached), cost 0, 3 segments";
        assert_eq!((app.usage().await, app.running_call_count().await), (vec![paid.to_owned()], 0));
    }
}

#[tokio::test]
async fn retried_call_is_charged_once() {
    for error in
        [ModelError::RateLimited { retry_after: None }, ModelError::Unavailable("refused".to_owned())]
    {
        let app = TestApp::start().await;
        app.model_plays([fails(error), counted(FEW, says("Hi."))]);
        app.sms("hello").await;
        assert_eq!(
            app.usage().await,
            ["2026-11-20 +15550100002: 1 call, 120+8 tokens (100 cached), cost 0, 1 segment"]
        );
    }
}

#[tokio::test]
async fn call_that_the_server_may_have_read_counts_its_request() {
    for error in [ModelError::Timeout, ModelError::Malformed("no end".to_owned())] {
        let app = TestApp::start().await;
        app.model_plays([fails(error), counted(FEW, says("Hi."))]);
        app.sms("hello").await;
        let input = 120 + estimate_tokens(app.last_request().byte_size());
        let expected =
            format!("2026-11-20 +15550100002: 2 calls, {input}+8 tokens (100 cached), cost 0, 1 segment");
        assert_eq!(app.usage().await, [expected]);
    }
}

#[tokio::test]
async fn missing_usage_is_estimated_by_length() {
    let app = TestApp::start().await;
    app.model_plays([says("Hello there.")]);
    app.sms("hello").await;
    let input = estimate_tokens(app.last_request().byte_size());
    assert_eq!(
        app.usage().await,
        [format!("2026-11-20 +15550100002: 1 call, {input}+3 tokens (0 cached), cost 0, 1 segment")]
    );
}

#[tokio::test]
async fn cost_is_counted_with_prices_and_has_a_budget() {
    let app = TestApp::with(|settings| {
        settings.prices = ModelPrices { input: 2_000_000, cached: 500_000, output: 8_000_000 };
        settings.budget.cost = Some(1_000_000);
    })
    .await;
    let much = TokenUsage { input: 500_000, cached: 0, output: 0 };
    app.model_plays([counted(FEW, says("Hi.")), counted(much, says("Hi."))]);
    app.sms("hello").await;
    assert_eq!(
        app.usage().await,
        ["2026-11-20 +15550100002: 1 call, 120+8 tokens (100 cached), cost 154, 1 segment"]
    );
    app.sms("hello").await;
    assert_eq!(app.sms("hello").await, format!("{SPENT}\n{OFF}"));
}

#[tokio::test]
async fn turn_that_exhausts_the_budget_reports_its_changes() {
    let app = TestApp::with(|settings| settings.budget.tokens = Some(1_000_000)).await;
    let dune = app.radarr().add_to_catalog(movie("Dune").year(2021));
    let [searches, adds] = adds_movie("dune", dune);
    app.model_plays([searches, counted(TokenUsage { input: 1_000_000, cached: 0, output: 0 }, adds)]);
    assert_eq!(app.sms("get dune").await, format!("{SPENT}\nAdded Dune (2021)."));
}

#[tokio::test(start_paused = true)]
async fn message_counts_its_segments_once_despite_repeated_reports() {
    let world = World::start().await;
    world.model_plays([counted(FEW, says(&"So long. ".repeat(30)))]);
    world.twilio().lose_next_answer();
    world.sms("how long?").await;
    let sent = world.twilio().sent_messages();
    for delivery in
        [FakeDelivery::Queued, FakeDelivery::Sent, FakeDelivery::Delivered, FakeDelivery::Delivered]
    {
        let report = world.twilio().status_callback(&sent[0], delivery).unwrap().unwrap();
        assert_eq!(world.deliver(report).await, 204);
    }
    world.pass(300).await;
    assert_eq!(
        world.usage().await,
        ["2026-11-20 +15550100002: 1 call, 120+8 tokens (100 cached), cost 0, 2 segments"]
    );
}

#[tokio::test]
async fn no_budget_refuses_no_call() {
    let app = TestApp::with(|settings| settings.budget = DailyBudget::default()).await;
    let all = TokenUsage { input: u32::MAX.into(), cached: 0, output: u32::MAX.into() };
    app.model_plays([says("One."), says("Two."), says("Three.")].map(|line| counted(all, line)));
    for (asked, answered) in [("one", "One."), ("two", "Two."), ("three", "Three.")] {
        assert_eq!(app.sms(asked).await, answered);
    }
}

#[tokio::test]
async fn keyword_responder_costs_only_segments() {
    let app = TestApp::start_without_model().await;
    assert!(app.sms("hello").await.starts_with("Hi! You can text "));
    assert_eq!(
        app.usage().await,
        ["2026-11-20 +15550100002: 0 calls, 0+0 tokens (0 cached), cost 0, 1 segment"]
    );
}
