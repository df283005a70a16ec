//! Metrics after a day of use.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::model_cost::TokenUsage;
use dialarr::conversation::transcript::TurnId;
use dialarr::engine::operator::turns::ResumeTurnOutcome;
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::store::audit::Actor;
use dialarr::store::queue::backlog::load_backlog;
use serde_json::json;

use crate::harness::model::{Slow, adds_movie, calls, counted, removes_movie, says};
use crate::harness::program::Program;
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, TestApp};

/// Returns the samples of a metric, without its help text.
async fn samples(program: &Program<'_>, names: &[&str]) -> String {
    let answered = program.get("/metrics").await;
    assert_eq!(answered.status, 200);
    among(&answered.body, names)
}

/// The same for a program with a simulated clock.
async fn samples_of(world: &World, names: &[&str]) -> String {
    let now = world.now();
    let backlog = world.read_database(move |conn| load_backlog(conn, now)).await;
    among(&world.console().metrics.render(&backlog, now).unwrap(), names)
}

/// Returns the total duration of the turns in tens of seconds.
async fn seconds_spent(world: &World) -> String {
    let spent = samples_of(world, &["dialarr_turn_duration_seconds_sum"]).await;
    let tens = |line: &str| {
        let (name, seconds) = line.rsplit_once(' ').unwrap();
        format!("{name} {:.0}0", seconds.parse::<f64>().unwrap() / 10.0)
    };
    spent.lines().map(tens).collect::<Vec<_>>().join("\n")
}

fn among(metrics: &str, names: &[&str]) -> String {
    let wanted = |line: &&str| names.iter().any(|name| line.starts_with(name));
    let mut lines: Vec<&str> = metrics.lines().filter(wanted).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[tokio::test]
async fn metrics_count_each_operation_once() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.sms("yes").await;
    app.sms("?").await;
    app.model_plays([calls("make_tea", json!({})), says("I cannot make tea.")]);
    let program = app.program().await;
    program.texts(json!({ "user": ANN, "text": "make tea" })).await;
    app.settle().await;

    insta::assert_snapshot!(
        samples(&program, &["dialarr_texts", "dialarr_text_", "dialarr_turns", "dialarr_model", "dialarr_tool"]).await,
        @r#"
    dialarr_model_calls_limit 4
    dialarr_model_calls_running 0
    dialarr_model_calls_total{brain="model",outcome="answered"} 4
    dialarr_model_calls_waiting{purpose="answer"} 0
    dialarr_model_calls_waiting{purpose="notes"} 0
    dialarr_model_retries_total 0
    dialarr_text_retries_total 0
    dialarr_text_segments_sent_total 5
    dialarr_texts_received_total{channel="console"} 1
    dialarr_texts_received_total{channel="phone"} 3
    dialarr_texts_sent_total{kind="question",channel="phone"} 1
    dialarr_texts_sent_total{kind="reply",channel="console"} 1
    dialarr_texts_sent_total{kind="reply",channel="phone"} 2
    dialarr_texts_unsent 0
    dialarr_texts_waiting 0
    dialarr_tool_calls_total{tool="find_in_library",outcome="complete"} 1
    dialarr_tool_calls_total{tool="remove_media",outcome="complete"} 1
    dialarr_tool_calls_total{tool="remove_media",outcome="held"} 1
    dialarr_tool_calls_total{tool="unknown",outcome="error"} 1
    dialarr_turns_live 0
    dialarr_turns_total{kind="chat",outcome="completed"} 2
    dialarr_turns_total{kind="command",outcome="completed"} 1
    dialarr_turns_total{kind="confirm",outcome="completed"} 1
    "#
    );
    insta::assert_snapshot!(samples(&program, &["dialarr_turn_duration_seconds_count", "dialarr_webhook"]).await, @r#"
    dialarr_turn_duration_seconds_count{part="model"} 4
    dialarr_turn_duration_seconds_count{part="own"} 4
    dialarr_turn_duration_seconds_count{part="tools"} 4
    dialarr_webhook_answers_total{webhook="/webhook/twilio",status="200"} 3
    "#);
}

#[tokio::test]
async fn token_metrics_match_the_usage_of_the_model() {
    let app = TestApp::start().await;
    let tokens = TokenUsage { input: 900, cached: 600, output: 20 };
    app.model_plays([counted(tokens, says("Fine."))]);
    app.sms("how are you").await;
    let program = app.program().await;
    insta::assert_snapshot!(samples(&program, &["dialarr_model_tokens"]).await, @r#"
    dialarr_model_tokens_total{kind="cached"} 600
    dialarr_model_tokens_total{kind="input"} 900
    dialarr_model_tokens_total{kind="output"} 20
    "#);
}

#[tokio::test(start_paused = true)]
async fn message_confirmed_by_a_report_counts_once() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.twilio().lose_next_answer();
    world.sms("one").await;
    for delivery in [FakeDelivery::Sent, FakeDelivery::Delivered, FakeDelivery::Delivered] {
        let report =
            world.twilio().status_callback(&world.twilio().sent_messages()[0], delivery).unwrap().unwrap();
        assert_eq!(world.deliver(report).await, 204);
    }
    world.pass(300).await;
    let names = ["dialarr_texts_sent", "dialarr_text_segments", "dialarr_text_outcomes"];
    insta::assert_snapshot!(samples_of(&world, &names).await, @r#"
    dialarr_text_outcomes_total{outcome="delivered"} 1
    dialarr_text_segments_sent_total 1
    dialarr_texts_sent_total{kind="reply",channel="phone"} 1
    "#);
}

#[tokio::test(start_paused = true)]
async fn resumed_turn_counts_once_and_its_wait_does_not() {
    let [search, add] = adds_movie("heat", 949);
    let again = calls("search_media", json!({ "query": "heat 1995" }));
    let model = Slow::playing(25, [search, again, add, says("Heat is added.")]);
    let world = World::start_with(model).await;
    world.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(949));
    world.texts("add heat").await;
    world.pass(900).await;
    let resumed = world.engine().turn_actions.resume_turn(TurnId(1), Actor::Console).await.unwrap();
    assert_eq!(resumed, ResumeTurnOutcome::Resumed);
    world.pass(60).await;
    insta::assert_snapshot!(samples_of(&world, &["dialarr_turns_", "dialarr_tool"]).await, @r#"
    dialarr_tool_calls_total{tool="add_movie",outcome="complete"} 1
    dialarr_tool_calls_total{tool="add_movie",outcome="error"} 1
    dialarr_tool_calls_total{tool="search_media",outcome="complete"} 2
    dialarr_turns_live 0
    dialarr_turns_resumed_total{outcome="completed"} 1
    dialarr_turns_total{kind="chat",outcome="failed"} 1
    "#);
    // Four model responses, and moments for everything else.
    insta::assert_snapshot!(seconds_spent(&world).await, @r#"
    dialarr_turn_duration_seconds_sum{part="model"} 100
    dialarr_turn_duration_seconds_sum{part="own"} 00
    dialarr_turn_duration_seconds_sum{part="tools"} 00
    "#);
}

#[tokio::test(start_paused = true)]
async fn downtime_does_not_count_as_turn_time() {
    let mut world = World::start_with(Slow::playing(20, [says("Hello.")])).await;
    world.texts("hello there, who are you?").await;
    world.pass(10).await;
    world.kill().await;
    world.pass(3_600).await;
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.sent_texts(), ["Hello."]);
    insta::assert_snapshot!(seconds_spent(&world).await, @r#"
    dialarr_turn_duration_seconds_sum{part="model"} 20
    dialarr_turn_duration_seconds_sum{part="own"} 00
    dialarr_turn_duration_seconds_sum{part="tools"} 00
    "#);
}

#[tokio::test]
async fn waiting_messages_are_counted_with_the_oldest_age() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("pause").await;
    app.sms_from(BOB, "status").await;
    app.sms_from(BOB, "status?").await;
    app.pass(90);
    let program = app.program().await;
    let names = ["dialarr_texts_waiting", "dialarr_oldest", "dialarr_texts_unsent", "dialarr_turns_live"];
    insta::assert_snapshot!(samples(&program, &names).await, @r#"
    dialarr_oldest_text_unsent_seconds 0.0
    dialarr_oldest_text_waiting_seconds 91.0
    dialarr_texts_unsent 0
    dialarr_texts_waiting 2
    dialarr_turns_live 0
    "#);
}

#[tokio::test]
async fn metrics_name_no_user_and_need_a_key() {
    let app = TestApp::start_without_model().await;
    app.sms("add dune").await;
    let answer = app.program().await.get("/metrics").await;
    assert_eq!(answer.kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    for secret in [ANN, "15550100002", "dune", "Dune"] {
        assert!(!answer.body.contains(secret), "{secret}");
    }
    let stranger = Program::without_a_key(&app).send_without_key(http::Method::GET, "/metrics").await;
    assert_eq!(stranger.problem().0, 401);
}
