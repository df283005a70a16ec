//! Changes of the configuration while the program runs.

use std::sync::Arc;

use dialarr::app::ApplyError;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::config::{Config, ConfigSection, ConfigSources};
use dialarr::conversation::deletion::deletion_messages::CodePolicy;
use dialarr::conversation::rate_limit::RateLimit;
use dialarr::llm::scripted::ScriptedModel;
use futures_util::future::join_all;
use jiff::SignedDuration;

use crate::harness::model::{Gated, Holding, finds, offered, removes_movie, says};
use crate::harness::model_server::{Answer, ModelServer};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

impl TestApp {
    /// Sends a message as Ann whose turn waits for the model.
    async fn sms_to_gated(&self, model: &Gated, body: &str) {
        self.pass(1);
        assert_eq!(self.post(self.text(ANN, body)).await, 200);
        model.is_asked().await;
    }
}

#[tokio::test]
async fn messages_during_changes_are_answered_exactly_once() {
    const ROUNDS: usize = 12;
    let app = Setup::default().holding(&Holding::closed()).start().await;
    let users: Vec<String> = (0..5).map(|user| format!("+1555010200{user}")).collect();
    for user in &users {
        app.register_user(user, Has::AddRight).await;
    }
    for round in 0..ROUNDS {
        app.pass(20);
        let texts: Vec<_> =
            users.iter().map(|user| app.text(user, &format!("what is film {round}"))).collect();
        let policy = if round % 2 == 0 { CodePolicy::Always } else { CodePolicy::Bulk };
        let change = app.app().change_blueprint(|current| {
            let mut changed = current.clone();
            changed.settings.code_policy = policy;
            changed.model = Some(Holding::closed());
            Ok::<_, ApplyError>(changed)
        });
        let posts = join_all(texts.into_iter().map(|text| app.post(text)));
        let (statuses, changed) = tokio::join!(posts, change);
        changed.unwrap();
        assert!(statuses.iter().all(|status| *status == 200));
        app.settle().await;
    }
    for user in &users {
        assert_eq!(app.messages_to(user), vec!["Fine."; ROUNDS]);
    }
}

#[tokio::test]
async fn running_turn_ends_on_the_parts_with_which_it_began() {
    let earlier = Gated::playing([finds("severance"), says("You have Severance.")]);
    let mut app = Setup::default().answered_by(earlier.clone()).start().await;
    app.sonarr().add(series("Severance").year(2022).seasons(2).size_gb(41.0));
    app.sms_to_gated(&earlier, "do i have severance?").await;

    let later = Arc::new(ScriptedModel::new(vec![says("Hello from the new model.")]));
    app.reconfigure(|setup| setup.answered_by(later.clone()).without_sonarr()).await;
    earlier.release(2);
    app.settle().await;

    assert_eq!(app.messages_to(ANN), ["You have Severance."]);
    assert_eq!(app.sms("who are you?").await, "Hello from the new model.");
}

#[tokio::test]
async fn stricter_code_policy_applies_to_the_prompt_of_a_running_turn() {
    let mut app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let model = Gated::playing(removes_movie("dune", dune));
    app.reconfigure(|setup| setup.answered_by(model.clone())).await;
    app.sms_to_gated(&model, "delete dune").await;

    app.reconfigure(|setup| setup.with(|settings| settings.code_policy = CodePolicy::Always)).await;
    model.release(2);
    app.settle().await;

    assert_eq!(app.messages_to(ANN), ["Delete Dune (2021) and its file, 21.4 GB? Reply YES 47 or NO."]);
}

#[tokio::test]
async fn smaller_budget_refuses_the_next_call_of_a_running_turn() {
    let model = Gated::playing([finds("dune"), says("never sent")]);
    let mut app = Setup::default().answered_by(model.clone()).start().await;
    app.sms_to_gated(&model, "do i have dune?").await;

    app.reconfigure(|setup| setup.with(|settings| settings.budget.tokens = Some(1))).await;
    model.release(2);
    app.settle().await;

    assert_eq!(app.failed_attempts().await, ["the day's budget is spent"]);
    assert!(!app.messages_to(ANN).contains(&"never sent".to_owned()));
}

#[tokio::test]
async fn changed_rate_limit_applies_to_the_next_message() {
    let mut app = TestApp::start_without_model().await;
    app.sms("status").await;
    let limit = Some(RateLimit { max: 1, period: SignedDuration::from_mins(1) });
    app.reconfigure(|setup| setup.with(|settings| settings.rate_limit = limit)).await;
    for text in ["what is new?", "and now?"] {
        app.sms(text).await;
    }
    assert_eq!(app.message_outcomes().await[2], "and now?: skipped rate_limited");
}

#[tokio::test]
async fn tools_of_a_removed_sonarr_are_not_offered() {
    let mut app = TestApp::start().await;
    app.model_plays([says("Hi."), says("Hello.")]);
    app.sms("hi there, what is up?").await;
    assert!(offered(&app.last_request()).contains(&"add_series"));

    app.reconfigure(Setup::without_sonarr).await;
    app.sms("hi again, what is up?").await;

    let request = app.last_request();
    assert!(!offered(&request).contains(&"add_series"));
    assert!(offered(&request).contains(&"add_movie"));
}

#[tokio::test]
async fn model_added_at_run_time_answers_and_a_removed_one_hands_over_to_keywords() {
    let mut app = TestApp::start_without_model().await;
    let question = "which of my films is the saddest?";
    let by_keywords = app.sms(question).await;

    let model = Arc::new(ScriptedModel::new(vec![says("Manchester by the Sea.")]));
    app.reconfigure(|setup| setup.answered_by(model)).await;
    assert_eq!(app.sms(question).await, "Manchester by the Sea.");

    app.reconfigure(Setup::keyword_responder).await;
    assert_eq!(app.sms(question).await, by_keywords);
}

#[tokio::test]
async fn webhooks_accept_only_the_newest_secrets() {
    let mut app = TestApp::start_without_model().await;
    app.reconfigure(|setup| setup.tokens(&["another token"]).without_report_secret()).await;
    assert_eq!(app.post(app.text(BOB, "hello")).await, 403);
    app.reconfigure(|setup| setup.tokens(&["a-simulated-token"])).await;
    assert_eq!(app.post(app.text(BOB, "hello")).await, 200);
}

#[tokio::test]
async fn changed_password_applies_to_the_console() {
    let mut app = TestApp::start_without_model().await;
    app.reconfigure(|setup| setup.console_password("correct horse battery")).await;
    let page = app.anonymous_browser().get("/sign-in").await;
    assert!(page.text().contains("Password"), "{}", page.text());
}

#[tokio::test]
async fn failed_change_leaves_the_program_as_it_was() {
    let app = TestApp::start().await;
    app.model_plays([says("Still here.")]);
    let failed = app.app().change_blueprint(|_| Err(ChangeError::Refused)).await;
    assert!(matches!(failed, Err(ChangeError::Refused)));
    assert_eq!(app.sms("are you there?").await, "Still here.");
}

/// Failure of a change in a test.
enum ChangeError {
    Refused,
    Apply,
}

impl From<ApplyError> for ChangeError {
    fn from(_: ApplyError) -> Self {
        Self::Apply
    }
}

#[tokio::test]
async fn configuration_with_a_model_is_applied_without_a_restart() {
    let app = TestApp::start_without_model().await;
    let server = ModelServer::start_here([Answer::Says("Hi.")]).await;
    let config = |model: &str, url: String| {
        let values = [("LLM_BASE_URL", url.as_str()), ("LLM_MODEL", model), ("TZ", "UTC")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Config::from_sources(&ConfigSources::from_environment(values)).unwrap()
    };
    assert_eq!(app.app().apply_configuration(&config("one", server.url())).await.unwrap(), []);
    let changed = app.app().apply_configuration(&config("two", server.url())).await.unwrap();
    assert_eq!(changed, [ConfigSection::Model]);

    app.types(ANN, "what can you tell me about dune?").await;

    let models: Vec<String> = server.requests().iter().map(|request| request["model"].to_string()).collect();
    assert_eq!(models, ["\"two\""]);
}
