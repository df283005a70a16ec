//! Changes of the configuration while the program runs.

use std::sync::Arc;
use std::time::Duration;

use dialarr::app::ApplyError;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::config::{Config, ConfigSection, ConfigSources};
use dialarr::conversation::deletion::deletion_messages::CodePolicy;
use dialarr::conversation::rate_limit::RateLimit;
use dialarr::llm::scripted::ScriptedModel;
use dialarr::settings::change::{SettingsChange, apply_changes};
use dialarr::settings::prepared_change::PreparedChange;
use dialarr::simulation::{ACCOUNT, OUR_NUMBER};
use dialarr::store::audit::Actor;
use dialarr::store::settings::{SettingContent, store_settings};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio::time::timeout;

use crate::harness::model::{Gated, Holding, finds, offered, removes_movie, says};
use crate::harness::model_server::{Answer, ModelServer};
use crate::harness::served::{Answers, TOKEN, model, serve};
use crate::harness::settings::{StoredSettings, change};
use crate::harness::{ANN, BOB, Has, PUBLIC_URL, Setup, TestApp};

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

/// Returns settings for all services, each behind the address of the same index.
async fn settings_at_two_addresses(app: &TestApp) -> [[Vec<(&'static str, String)>; 4]; 2] {
    let model = async || serve(model(Answers::WithWords, 100_000)).await;
    let mut settings = Vec::new();
    for number in 0..2 {
        settings.push([
            vec![
                ("LLM_BASE_URL", format!("{}/v1", model().await)),
                ("LLM_API_KEY", format!("sk-0123456{number}")),
                ("LLM_MODEL", format!("model {number}")),
            ],
            vec![
                ("RADARR_URL", serve(app.radarr().router()).await),
                ("RADARR_API_KEY", app.radarr().api_key().to_owned()),
            ],
            vec![
                ("SONARR_URL", serve(app.sonarr().router()).await),
                ("SONARR_API_KEY", app.sonarr().api_key().to_owned()),
            ],
            vec![
                ("TWILIO_API_URL", serve(app.twilio().router()).await),
                ("TWILIO_AUTH_TOKEN", TOKEN.to_owned()),
            ],
        ]);
    }
    settings.try_into().unwrap()
}

#[tokio::test]
async fn messages_during_changes_of_every_server_are_answered_exactly_once() {
    const ROUNDS: usize = 12;
    let app = TestApp::start_without_model().await;
    let mut stored = StoredSettings::of(&app);
    let users: Vec<String> = (0..6).map(|user| format!("+1555010200{user}")).collect();
    for user in &users {
        app.register_user(user, Has::AddRight).await;
    }
    let settings = settings_at_two_addresses(&app).await;
    let texting = [
        ("ADMIN_PHONE", ANN),
        ("PUBLIC_URL", PUBLIC_URL),
        ("TWILIO_ACCOUNT_SID", ACCOUNT),
        ("TWILIO_PHONE_NUMBER", OUR_NUMBER),
        ("COALESCE_MS", "0"),
        ("RATE_LIMIT", "off"),
    ];
    let first = settings[0].iter().flatten().map(|(name, value)| (*name, value.as_str()));
    stored.set(&texting.into_iter().chain(first).collect::<Vec<_>>()).await;
    stored.applier.apply_newest(app.app()).await;

    for round in 0..ROUNDS {
        app.pass(20);
        let texts = users.iter().enumerate().map(|(user, phone)| {
            let body = if user % 2 == 0 { format!("what is film {round}") } else { "status".to_owned() };
            app.text(phone, &body)
        });
        let posts = join_all(texts.map(|text| app.post(text)));
        let (address, service) = ((1 + round / 4) % 2, round % 4);
        let values: Vec<_> =
            settings[address][service].iter().map(|(name, value)| (*name, value.as_str())).collect();
        let change = async {
            stored.set(&values).await;
            stored.applier.apply_newest(app.app()).await;
        };
        let (statuses, ()) = tokio::join!(posts, change);
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
        app.settle().await;
        assert_eq!(stored.settings.current_use().failure, None);
    }
    for user in &users {
        assert_eq!(app.messages_to(user).len(), ROUNDS, "{user}: {:?}", app.messages_to(user));
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

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

#[tokio::test]
async fn stored_model_answers_without_a_restart() {
    let app = TestApp::start_without_model().await;
    let server = ModelServer::start_here([Answer::Says("Hi.")]).await;
    let (mut stored, url) = (StoredSettings::of(&app), server.url());
    stored.set(&[("LLM_BASE_URL", url.as_str()), ("LLM_MODEL", "stored"), ("LLM_API_KEY", "sk-1")]).await;
    stored.applier.apply_newest(app.app()).await;

    app.types(ANN, "what can you tell me about dune?").await;

    let models: Vec<String> = server.requests().iter().map(|request| request["model"].to_string()).collect();
    assert_eq!(models, ["\"stored\""]);
}

#[tokio::test]
async fn turns_record_the_model_that_was_active_and_its_prices() {
    let app = TestApp::start_without_model().await;
    let server = ModelServer::start_here([Answer::Says("Hi."), Answer::Says("Hello.")]).await;
    let (mut stored, url) = (StoredSettings::of(&app), server.url());
    for model in ["small-model", "large-model"] {
        let models = ("LLM_MODELS", "small-model 1/2, large-model 30/60");
        stored.set(&[("LLM_BASE_URL", &url), models, ("LLM_MODEL", model)]).await;
        stored.applier.apply_newest(app.app()).await;
        app.types(ANN, "what can you tell me about dune?").await;
    }

    let models = app.lines("SELECT turn_id || ' ' || model AS line FROM llm_steps ORDER BY turn_id").await;
    assert_eq!(models, ["1 small-model", "2 large-model"]);
    let page = app.browser().await.get("/conversations/1").await.text();
    assert!(page.contains("small-model") && page.contains("large-model"), "{page}");
    // Each response has 1,000 tokens of input and 20 of output.
    let cost = (1_000 + 20 * 2) + (30 * 1_000 + 20 * 60);
    let costs = app.lines("SELECT CAST(cost_micros AS TEXT) AS line FROM usage").await;
    assert_eq!(costs, [cost.to_string()]);
}

#[tokio::test(start_paused = true)]
async fn settings_changed_by_a_command_are_noticed_and_used() {
    let app = TestApp::start_without_model().await;
    let StoredSettings { context, settings, mut applier, folder: _folder } = StoredSettings::of(&app);
    let command = async {
        settings.wait_until_tried(0).await;
        let changed = change(&[("RETENTION_DAYS", "30")]);
        let changed = PreparedChange::new(changed, &ConfigSources::default()).unwrap();
        let store = move |conn: &mut _| apply_changes(conn, &context, &changed, Actor::Shell, NOW);
        app.app().db.write(store).await.unwrap();
        // The paused clock also advances while the database works.
        let tried = timeout(Duration::from_hours(24), settings.wait_until_tried(1));
        assert_eq!(tried.await.unwrap().failure, None);
    };
    tokio::select! {
        never = applier.run(app.app()) => match never {},
        () = command => {}
    }
    assert_eq!(app.app().engine.settings().retention, SignedDuration::from_hours(30 * 24));
}

#[tokio::test]
async fn unusable_settings_leave_the_earlier_ones_in_use() {
    let app = TestApp::start_without_model().await;
    let mut stored = StoredSettings::of(&app);
    stored.set(&[("RETENTION_DAYS", "30")]).await;
    stored.applier.apply_newest(app.app()).await;
    let invalid = [
        ("CONFIRM_MINUTES".to_owned(), SettingContent::Text("hunter2".to_owned())),
        ("RETENTION_DAYS".to_owned(), SettingContent::Text("60".to_owned())),
    ];
    app.app().db.write(move |conn| store_settings(conn, &invalid, Actor::Shell, NOW)).await.unwrap();

    stored.applier.apply_newest(app.app()).await;

    let retention = || app.app().engine.settings().retention;
    assert_eq!(retention(), SignedDuration::from_hours(30 * 24));
    insta::assert_snapshot!(stored.settings.current_use().failure.as_deref().unwrap(), @r"
    failed to read the configuration
      CONFIRM_MINUTES, stored setting: not a whole number from 1 to 60, e.g. dialarr config set CONFIRM_MINUTES=5
    ");

    stored.set(&[("CONFIRM_MINUTES", "5")]).await;
    stored.applier.apply_newest(app.app()).await;
    assert_eq!(stored.settings.current_use().failure, None);
    assert_eq!(retention(), SignedDuration::from_hours(60 * 24));
}

#[tokio::test]
async fn settings_of_the_start_are_reported_until_they_are_undone() {
    let app = TestApp::start_without_model().await;
    let mut stored = StoredSettings::of(&app);
    stored.set(&[("RUST_LOG", "debug"), ("TRUSTED_PROXIES", "10.0.0.1"), ("RETENTION_DAYS", "30")]).await;
    stored.applier.apply_newest(app.app()).await;
    assert_eq!(stored.settings.current_use().needing_restart, ["RUST_LOG", "TRUSTED_PROXIES"]);
    let unset = SettingsChange { unset: vec!["RUST_LOG".to_owned()], ..change(&[]) };
    stored.settings.apply_changes(unset, Actor::Console, NOW).await.unwrap();
    stored.applier.apply_newest(app.app()).await;
    assert_eq!(stored.settings.current_use().needing_restart, ["TRUSTED_PROXIES"]);
}
