//! States of the connections on the home page: each one broken and back, after a restart, and without a configuration.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use bytes::Bytes;
use dialarr::clock::Clock;
use dialarr::conversation::model_request::ModelRequest;
use dialarr::conversation::transcript::Address;
use dialarr::doctor::phone::PublicAddress;
use dialarr::http::HttpClient;
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse};
use dialarr::messaging::twilio::fake::{FakeAccount, FakeTwilio};
use futures_util::FutureExt;
use http::{Response, StatusCode};
use serde_json::json;
use tokio::time::timeout;

use crate::harness::browser::Browser;
use crate::harness::model::{fails, says};
use crate::harness::model_server::{Answer, ModelServer};
use crate::harness::served::{Answers, model, serve};
use crate::harness::settings::with_settings;
use crate::harness::{ANN, Setup, TestApp};

/// Returns the sections of the home page about attention and connections, after a check.
async fn home(browser: &mut Browser<'_>) -> (String, String) {
    browser.program().check_connections().await;
    let text = browser.get("/").await.text();
    let (attention, rest) = text.split_once(" Connections ").unwrap();
    let (connections, _) = rest.split_once(" Checked every minute.").unwrap();
    (
        attention.trim_start_matches("Home Connection lost. Reconnecting. Needs attention ").to_owned(),
        connections.to_owned(),
    )
}

#[track_caller]
fn check(sections: &(String, String), attention: &str, connection: &str) {
    assert!(sections.0.contains(attention), "{attention:?} is not in: {}", sections.0);
    assert!(sections.1.contains(connection), "{connection:?} is not in: {}", sections.1);
}

#[tokio::test]
async fn working_connections_are_listed_and_nothing_needs_attention() {
    let app = TestApp::start().await;
    let mut browser = app.browser().await;
    let (attention, connections) = home(&mut browser).await;
    assert_eq!(attention, "\u{2713} All clear.");
    let (before_disk, _) = connections.split_once(" Disk ").unwrap();
    assert_eq!(
        before_disk,
        "Sonarr Works reachable, version 4.0.19.2979 Radarr Works reachable, version 6.3.0.10514 \
         Twilio Works no request was made yet Public address Not set up \
         Model Works scripted responds Database Works in place and writable"
    );
}

#[tokio::test]
async fn unreachable_library_needs_attention_until_it_is_back() {
    let app = TestApp::start().await;
    let mut browser = app.browser().await;
    app.radarr().set_down(true);
    let broken = home(&mut browser).await;
    check(&broken, "Radarr since 21:04", "Radarr Failure");
    assert!(!broken.0.contains("All clear"), "{}", broken.0);
    app.radarr().set_down(false);
    check(&home(&mut browser).await, "All clear.", "Radarr Works");
}

#[tokio::test]
async fn failing_model_needs_attention_until_its_next_response() {
    let app = TestApp::start().await;
    let mut browser = app.browser().await;
    app.model_plays([fails(ModelError::Unauthorized("no such key".to_owned()))]);
    app.sms("how are you today?").await;
    check(&home(&mut browser).await, "Model since", "Model Failure");
    app.pass(6 * 60);
    app.model_plays([says("Fine.")]);
    app.sms("how are you today?").await;
    check(&home(&mut browser).await, "All clear.", "Model Works");
}

/// Model that is never called, and whose server is checked.
#[derive(Default)]
struct IdleModel {
    checks: AtomicUsize,
    is_down: AtomicBool,
}

#[async_trait]
impl Model for IdleModel {
    fn name(&self) -> &str {
        "idle"
    }

    async fn next_response(&self, _: &ModelRequest, _: DeltaSink<'_>) -> Result<ModelResponse, ModelError> {
        panic!("no check calls the model");
    }

    async fn check_server(&self) -> Result<(), ModelError> {
        self.checks.fetch_add(1, Ordering::Relaxed);
        let is_down = self.is_down.load(Ordering::Relaxed);
        if is_down { Err(ModelError::Unavailable("no connection".to_owned())) } else { Ok(()) }
    }
}

#[tokio::test]
async fn idle_model_is_checked_every_hour_and_every_minute_while_unreachable() {
    let model = Arc::new(IdleModel::default());
    let app = Setup::default().answered_by(model.clone()).start().await;
    let check_for_two_hours = async || {
        for _ in 0..120 {
            app.check_connections().await;
            app.pass(60);
        }
        model.checks.swap(0, Ordering::Relaxed)
    };
    assert_eq!(check_for_two_hours().await, 2);
    model.is_down.store(true, Ordering::Relaxed);
    assert_eq!(check_for_two_hours().await, 120);
}

#[tokio::test]
async fn rejected_carrier_account_needs_attention_until_it_is_accepted() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    app.twilio().fail_next(401, 20003);
    app.sms("status").await;
    check(&home(&mut browser).await, "Twilio refused the account's credentials", "Twilio Failure");
    app.pass(5 * 60);
    app.sms("status").await;
    let (_, connections) = home(&mut browser).await;
    assert!(connections.contains("Twilio Works responds"), "{connections}");
}

#[tokio::test]
async fn public_address_that_worked_before_needs_attention() {
    let status = Arc::new(AtomicU16::new(405));
    let proxy = status.clone();
    let respond = move |_| {
        let status = proxy.load(Ordering::Relaxed);
        async move { Response::builder().status(status).body(Bytes::new()).unwrap() }.boxed()
    };
    let http = HttpClient::in_process(Arc::new(respond));
    let address = PublicAddress { url: "https://sms.example.org".to_owned(), http };
    let app = Setup::default().keyword_responder().reached_at(address).start().await;
    let mut browser = app.browser().await;
    check(&home(&mut browser).await, "All clear.", "Public address Works");
    status.store(502, Ordering::Relaxed);
    check(&home(&mut browser).await, "returns 502 instead of 405", "Public address Failure");
    status.store(405, Ordering::Relaxed);
    check(&home(&mut browser).await, "All clear.", "Public address Works");
}

#[tokio::test]
async fn missing_database_file_needs_attention_until_it_is_back() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    let (path, aside) = (app.database_path(), app.database_path() + ".aside");
    fs::rename(&path, &aside).unwrap();
    let broken = home(&mut browser).await;
    check(
        &broken,
        "Database since 21:04 the database is missing",
        "Database Failure the database is missing",
    );
    assert!(!broken.0.contains("database file"), "{}", broken.0);
    fs::rename(&aside, &path).unwrap();
    app.pass(2);
    check(&home(&mut browser).await, "All clear.", "Database Works");
}

#[tokio::test]
async fn library_without_a_quality_profile_needs_attention() {
    let app = TestApp::start_without_model().await;
    app.sonarr().set_profiles(&[]);
    let mut browser = app.browser().await;
    check(&home(&mut browser).await, "no quality profile", "Sonarr Failure");
}

/// Waits until the home page shows these words, after a check that the program starts.
async fn await_home(browser: &mut Browser<'_>, words: &str) {
    let mut states = browser.program().app().console.connections.subscribe();
    let shown = async {
        while !browser.get("/").await.text().contains(words) {
            states.changed().await.unwrap();
        }
    };
    timeout(Duration::from_secs(30), shown).await.unwrap_or_else(|_| panic!("{words:?} is not on Home"));
}

#[tokio::test]
async fn tested_library_is_shown_on_home_at_once() {
    let app = TestApp::start_without_model().await;
    app.sonarr().set_profiles(&[]);
    let mut browser = app.browser().await;
    check(&home(&mut browser).await, "no quality profile", "Sonarr Failure");
    app.sonarr().set_profiles(&["Any"]);
    check(&home(&mut browser).await, "no quality profile", "Sonarr Failure");
    browser.submit("/health-checks", &[("connection", "sonarr")]).await;
    await_home(&mut browser, "All clear.").await;
}

#[tokio::test]
async fn tested_model_is_shown_on_home_at_once() {
    let is_refused = Arc::new(AtomicBool::new(true));
    let refusal = is_refused.clone();
    let guard = from_fn(move |request: Request, next: Next| {
        let is_refused = refusal.load(Ordering::Relaxed);
        async move { if is_refused { StatusCode::UNAUTHORIZED.into_response() } else { next.run(request).await } }
    });
    let url = format!("{}/v1", serve(model(Answers::WithTheCall, 100_000).layer(guard)).await);
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let entered = [("LLM_BASE_URL", url.as_str()), ("LLM_MODEL", "a-model")];
        let page = browser.presses(&page, "Save and test Model", &entered).await;
        await_home(&mut browser, "Model Failure").await;
        is_refused.store(false, Ordering::Relaxed);
        browser.presses(&page, "Save and test Model", &[]).await;
        await_home(&mut browser, "Model Works").await;
    })
    .await;
}

#[tokio::test]
async fn model_that_called_no_tool_in_its_test_fails_on_home_until_it_calls_one() {
    let answers = [
        Answer::Says("Nothing is downloading."),
        Answer::Says("The answer to the long request."),
        Answer::Says("I cannot tell."),
        Answer::Calls("find_in_library", json!({ "query": "dune" })),
        Answer::Says("You have it."),
    ];
    let server = ModelServer::start_here(answers).await;
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let (url, missing) = (server.url(), "a-model responds, but did not call the requested tool");
        let entered = [("LLM_BASE_URL", url.as_str()), ("LLM_MODEL", "a-model")];
        let page = browser.presses(&page, "Save and test Model", &entered).await;
        page.assert_shows(200, missing);
        let failed = format!("{missing} in its last test");
        check(&home(&mut browser).await, &failed, "Model Failure");

        app.types(ANN, "what can you tell me about dune?").await;
        check(&home(&mut browser).await, &failed, "Model Failure");
        app.types(ANN, "what else can you tell me about dune?").await;
        let (attention, connections) = home(&mut browser).await;
        assert!(!attention.contains("a-model"), "{attention}");
        assert!(connections.contains("Model Works a-model responds"), "{connections}");
    })
    .await;
}

#[tokio::test]
async fn webhook_that_the_assistant_installed_is_noticed_at_once() {
    let account = FakeAccount {
        account_sid: "AC00000000000000000000000000000000".to_owned(),
        auth_token: "a-simulated-token".into(),
        number: Address::new("+15550100000"),
        public_url: "https://sms.example.org".to_owned(),
    };
    let twilio = FakeTwilio::new(account, Clock::System);
    let url = serve(twilio.router()).await;
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/setup").await;
        browser.presses(&page, "Save and continue", &[("CONSOLE_PASSWORD", "a horse and a battery")]).await;
        let page = browser.get("/settings").await;
        let page = browser.presses(&page, "Save People", &[("ADMIN_PHONE", ANN)]).await;
        let entered = [
            ("TWILIO_API_URL", url.as_str()),
            ("TWILIO_ACCOUNT_SID", "AC00000000000000000000000000000000"),
            ("TWILIO_AUTH_TOKEN", "a-simulated-token"),
            ("TWILIO_PHONE_NUMBER", "+15550100000"),
            ("PUBLIC_URL", "https://sms.example.org"),
        ];
        browser.presses(&page, "Save Texting", &entered).await.assert_shows(200, "Saved.");
        await_home(&mut browser, "Twilio Failure").await;

        let page = browser.get("/setup?step=webhooks").await;
        let page = browser.presses(&page, "Save and show the changes", &[]).await;
        browser.presses(&page, "Install webhooks", &[]).await.assert_shows(200, "done Twilio number");
        await_home(&mut browser, "Twilio Works").await;
        browser.get("/setup?step=finish").await.assert_shows(200, "Texting done");
    })
    .await;
}

#[tokio::test]
async fn missing_setting_on_home_has_a_link_to_the_field_that_it_names() {
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        page.assert_shows(200, "Base URL of Sonarr");
        page.assert_shows(200, "SONARR_URL");
        browser.presses(&page, "Save Limits", &[("RETENTION_DAYS", "30")]).await;
        let home = browser.get("/").await;
        home.assert_shows(200, "libraries: none is configured, so nothing can be requested set SONARR_URL");
        assert!(
            home.html.contains("<a class=\"button plain\" href=\"/settings\">Settings</a>"),
            "{}",
            home.html
        );
    })
    .await;
}

#[tokio::test]
async fn unconfigured_program_is_not_all_clear() {
    let app = Setup::default().keyword_responder().unconfigured().start().await;
    let mut browser = app.browser().await;
    let (attention, connections) = home(&mut browser).await;
    for words in ["libraries: none is configured", "Twilio: no account is configured"] {
        assert!(attention.contains(words), "{attention}");
    }
    assert!(!attention.contains("All clear"), "{attention}");
    assert!(connections.starts_with("Sonarr Not set up"), "{connections}");
}

#[tokio::test]
async fn last_day_of_a_connection_survives_a_restart() {
    let mut app = TestApp::start_without_model().await;
    app.radarr().set_down(true);
    app.check_connections().await;
    app.radarr().set_down(false);
    app.pass(15 * 60);
    app.restart().await;
    let html = app.browser().await.get("/").await.html;
    let bar = "aria-label=\"Last 24 hours: failures in 1 of 2 quarter hours\"";
    assert_eq!(html.matches(bar).count(), 1, "{html}");
    app.pass(24 * 60 * 60);
    app.check_connections().await;
    assert!(!app.browser().await.get("/").await.html.contains("failures in"));
}

#[tokio::test]
async fn open_home_page_gets_only_changed_sections() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    let html = browser.get("/").await.html;
    let version = html.split_once("data-after=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let path = format!("/live?after={version}");
    assert!(!app.read_live(&browser, &path).await.contains("event: section"));
    app.radarr().set_down(true);
    app.check_connections().await;
    let update = app.read_live(&browser, &path).await;
    for words in ["id=\"section-attention\"", "Test Radarr", "1 item needs attention.", "\nid: "] {
        assert!(update.contains(words), "{words}: {update}");
    }
}
