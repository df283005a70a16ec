//! Settings page of the console.

use std::fs;

use axum::Router;
use axum::routing::post;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::config::StoredValue;
use dialarr::media_servers::CatalogIds;
use dialarr::media_servers::fake::{FakeHousehold, FakePlex, FakeTautulli};
use dialarr::store::audit::Actor;
use diesel::connection::SimpleConnection;
use http::Method;
use jiff::{SignedDuration, Timestamp};

use crate::harness::TestApp;
use crate::harness::forms::UNCHECKED;
use crate::harness::served::serve;
use crate::harness::settings::{StoredSettings, change, with_settings};

const LIBRARY: &str = "Save Sonarr and Radarr";
const MEDIA: &str = "Save and test Media servers";
const SONARR: [(&str, &str); 2] = [("SONARR_URL", "http://127.0.0.1:9"), ("SONARR_API_KEY", "first-key")];

fn retention_days(app: &TestApp) -> i64 {
    app.app().engine.settings().retention.as_hours() / 24
}

#[tokio::test]
async fn saved_setting_is_in_use_when_the_page_returns() {
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let page = browser.presses(&page, "Save Server", &[("RUST_LOG", "debug")]).await;
        page.assert_shows(200, "Restart Dialarr to use RUST_LOG.");
        let page = browser.presses(&page, "Save Limits", &[("RETENTION_DAYS", "30")]).await;
        page.assert_shows(200, "Saved.");
        assert_eq!(page.field("RETENTION_DAYS").as_deref(), Some("30"));
        assert_eq!(retention_days(app), 30);
        let page = browser.presses(&page, "Save Limits", &[]).await;
        page.assert_shows(200, "No changes to save.");
        browser.presses(&page, "Save Limits", &[("RETENTION_DAYS", "")]).await;
        assert_eq!(retention_days(app), 365);
    })
    .await;
}

#[tokio::test]
async fn listed_models_are_offered_and_the_prompt_is_extended() {
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let model = [("LLM_MODELS", "small 1/2, large"), ("PROMPT_ADDITION", "The kids are 6 and 9.")];
        let page = browser.presses(&page, "Save Model", &model).await;
        page.assert_shows(200, "Saved.");
        for name in ["small", "large"] {
            assert!(page.html.contains(&format!("<option value=\"{name}\">")), "{}", page.html);
        }
        let addition = app.app().engine.settings().prompt_addition.clone();
        assert_eq!(addition.as_deref(), Some("The kids are 6 and 9."));
    })
    .await;
}

#[tokio::test]
async fn few_values_are_chosen_from_a_list_or_checkboxes() {
    with_settings(&[], async |app, settings| {
        let stored = async |name: &str| {
            let sources = settings.load_sources().await.unwrap();
            match sources.stored().get(name) {
                Some(StoredValue::Text(text)) => Some(text.clone()),
                _ => None,
            }
        };
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let list = "<option value=\"\" selected>Several or large titles (default)</option>\
                    <option value=\"always\">Every deletion</option></select>";
        assert!(page.html.contains(list), "{}", page.html);
        let chosen = [("CONFIRM_CODE", "always"), ("CONFIRM_LANGS-fr", "on"), ("CONFIRM_LANGS-es", "on")];
        let page = browser.presses(&page, "Save Conversations", &chosen).await;
        page.assert_shows(200, "Saved.");
        assert_eq!(stored("CONFIRM_CODE").await.as_deref(), Some("always"));
        assert_eq!(stored("CONFIRM_LANGS").await.as_deref(), Some("es,fr"));

        let list = "<option value=\"\">Several or large titles (default)</option>\
                    <option value=\"always\" selected>Every deletion</option></select>";
        assert!(page.html.contains(list), "{}", page.html);
        let page = browser.presses(&page, "Save Conversations", &[]).await;
        page.assert_shows(200, "No changes to save.");
        let default = [("CONFIRM_CODE", ""), ("CONFIRM_LANGS-fr", UNCHECKED)];
        let page = browser.presses(&page, "Save Conversations", &default).await;
        assert_eq!(stored("CONFIRM_CODE").await, None);
        assert_eq!(stored("CONFIRM_LANGS").await.as_deref(), Some("es"));
        browser.presses(&page, "Save Conversations", &[("CONFIRM_LANGS-es", UNCHECKED)]).await;
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
    })
    .await;
}

#[tokio::test]
async fn refused_form_keeps_what_was_chosen() {
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let chosen = [("CONFIRM_CODE", "always"), ("CONFIRM_LANGS-de", "on"), ("CONFIRM_MINUTES", "900")];
        let page = browser.presses(&page, "Save Conversations", &chosen).await;
        page.assert_shows(422, "not a whole number from 1 to 60");
        assert!(page.html.contains("<option value=\"always\" selected>"), "{}", page.html);
        assert!(page.html.contains("name=\"CONFIRM_LANGS-de\" checked>"), "{}", page.html);
    })
    .await;
}

#[tokio::test]
async fn moved_server_is_listed_and_compared_on_request() {
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        assert!(!browser.get("/settings").await.text().contains("was moved"));
        let moved = "UPDATE service_identities SET earlier_identity = 'http://earlier' WHERE slot = 'radarr'";
        app.app().db.write(move |conn| conn.batch_execute(moved)).await.unwrap();
        let page = browser.get("/settings").await;
        page.assert_shows(200, "Radarr was moved to another server on");
        let page = browser.presses(&page, "Radarr is the same server", &[]).await;
        page.assert_shows(200, "Cannot tell: fewer than 20 titles of the earlier server are known");
        let moved_again = "UPDATE service_identities SET changed_at = changed_at + 1 WHERE slot = 'radarr'";
        app.app().db.write(move |conn| conn.batch_execute(moved_again)).await.unwrap();
        let page = browser.presses(&page, "Radarr is another server", &[]).await;
        page.assert_shows(
            200,
            "Nothing to confirm: this server was not moved, or was moved again meanwhile.",
        );
        let page = browser.presses(&page, "Radarr is another server", &[]).await;
        page.assert_shows(200, "Confirmed. Lists that were sent before the move stay void.");
        assert!(!page.text().contains("was moved"), "{}", page.text());
        let audit = browser.get("/audit?kind=other_server").await;
        audit.assert_shows(200, "You, in the console Stated that a moved server is another one");
    })
    .await;
}

#[tokio::test]
async fn secret_is_kept_replaced_and_removed_without_being_shown() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let page = browser.presses(&page, LIBRARY, &SONARR).await;
        page.assert_shows(200, "Saved.");
        let mut pages = vec![page];
        let moved = [("SONARR_URL", "http://127.0.0.1:10")];
        pages.push(browser.presses(&pages[0], LIBRARY, &moved).await);
        let needed = "It belongs to http://127.0.0.1:9, and is not sent to another server. \
                      Enter it again for the new server.";
        pages[1].assert_shows(422, needed);
        let invalid = [("SONARR_URL", "nowhere"), ("SONARR_API_KEY", "second-key")];
        pages.push(browser.presses(&pages[1], LIBRARY, &invalid).await);
        assert_eq!(pages[2].status, 422);
        let again = [moved[0], ("SONARR_API_KEY", "second-key")];
        pages.push(browser.presses(&pages[2], LIBRARY, &again).await);
        pages[3].assert_shows(200, "Saved.");
        let removed = [("SONARR_URL", ""), ("remove-SONARR_API_KEY", "on")];
        pages.push(browser.presses(&pages[3], LIBRARY, &removed).await);
        pages[4].assert_shows(200, "Saved.");
        for page in pages {
            assert!(!page.html.contains("first-key") && !page.html.contains("second-key"), "{}", page.html);
        }
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
    })
    .await;
}

#[tokio::test]
async fn value_of_the_environment_is_shown_and_not_changed() {
    with_settings(
        &[("RETENTION_DAYS", "90"), ("NOTIFICATION_SECRET", "hidden-0123456789")],
        async |app, settings| {
            let mut browser = app.browser().await;
            let page = browser.get("/settings").await;
            page.assert_shows(200, "Set by the environment.");
            assert!(page.html.contains("id=\"RETENTION_DAYS\" value=\"90\""));
            assert!(!page.html.contains("hidden-0123456789"));
            let page = browser.presses(&page, "Save Limits", &[("RETENTION_DAYS", "30")]).await;
            page.assert_shows(200, "No changes to save.");
            assert!(settings.load_sources().await.unwrap().stored().is_empty());
        },
    )
    .await;
}

#[tokio::test]
async fn setting_changed_meanwhile_is_a_conflict_with_the_entered_value() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let meanwhile = change(&[("RETENTION_DAYS", "60")]);
        settings.apply_changes(meanwhile, Actor::Shell, Timestamp::UNIX_EPOCH).await.unwrap();
        settings.wait_until_tried(1).await;
        let page = browser.presses(&page, "Save Limits", &[("RETENTION_DAYS", "30")]).await;
        page.assert_shows(409, "Not saved: a setting of this form was changed meanwhile.");
        assert_eq!(page.field("RETENTION_DAYS").as_deref(), Some("30"));
        assert_eq!(retention_days(app), 60);
        browser.presses(&page, "Save Limits", &[]).await.assert_shows(200, "Saved.");
        assert_eq!(retention_days(app), 30);
    })
    .await;
}

#[tokio::test]
async fn invalid_value_is_explained_at_its_field_and_stays_there() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let page = browser.presses(&page, "Save Limits", &[("RETENTION_DAYS", "0")]).await;
        page.assert_shows(422, "Problem: not a whole number");
        assert_eq!(page.field("RETENTION_DAYS").as_deref(), Some("0"));
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
    })
    .await;
}

#[tokio::test]
async fn saved_connection_is_tested_and_described_in_a_sentence() {
    let sonarr = FakeSonarr::with_clock(Clock::System);
    let url = serve(sonarr.router()).await;
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let entered = [("SONARR_URL", url.as_str()), ("SONARR_API_KEY", sonarr.api_key())];
        let page = browser.presses(&page, "Save and test Sonarr and Radarr", &entered).await;
        page.assert_shows(
            200,
            "ok Sonarr: reachable, version 4.0.19.2979; root folders accessible, 1.2 TB free; quality profiles: 2; \
             reports no health problems",
        );
        page.assert_shows(200, "Saved.");
        assert!(!page.html.contains(sonarr.api_key()));
        let wrong = [("SONARR_API_KEY", "another-key")];
        let page = browser.presses(&page, "Save and test Sonarr and Radarr", &wrong).await;
        page.assert_shows(200, "failure Sonarr: failed to ");
        page.assert_shows(200, "Hint: copy its API key again: Settings, General, Security");
        let page = browser.presses(&page, "Save and test Model", &[]).await;
        page.assert_shows(200, "ok model: none is configured; only common requests are understood");
    })
    .await;
}

#[tokio::test]
async fn tautulli_is_tested_together_with_its_plex() {
    let household = FakeHousehold::new(Clock::System);
    household.add_user("Grace");
    household.add_movie(("Heat", 1995), CatalogIds::default(), SignedDuration::ZERO);
    let plex = FakePlex::with_household("a-plex-token", household.clone());
    let tautulli = FakeTautulli::with_household("a-tautulli-key", household.clone());
    let (plex_url, tautulli_url) = (serve(plex.router()).await, serve(tautulli.router()).await);
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let alone = [("TAUTULLI_URL", tautulli_url.as_str()), ("TAUTULLI_API_KEY", "a-tautulli-key")];
        let refused = browser.presses(&page, MEDIA, &alone).await;
        refused.assert_shows(422, "needed with TAUTULLI_URL, which only records Plex");
        let both = [alone[0], alone[1], ("PLEX_URL", plex_url.as_str()), ("PLEX_TOKEN", "a-plex-token")];
        let page = browser.presses(&page, MEDIA, &both).await;
        page.assert_shows(200, "ok Plex: reachable, version 1.41.0.0-aaaaaaaaa; libraries: Movies in");
        page.assert_shows(200, "ok Tautulli: reachable, version v2.17.2; users: 1");
        assert!(!page.html.contains("a-tautulli-key"));
        household.set_recorder_status(Some(404));
        let page = browser.presses(&page, MEDIA, &[]).await;
        page.assert_shows(200, "failure Tautulli: failed to find the API at this URL: it may be turned off");
        app.check_connections().await;
        browser
            .get("/")
            .await
            .assert_shows(200, "Plex Works reachable, version 1.41.0.0-aaaaaaaaa Tautulli Failure");
    })
    .await;
}

#[tokio::test]
async fn target_of_alerts_is_tested_by_a_message() {
    let target = Router::new().route("/topic", post(|| std::future::ready("")));
    let url = format!("{}/topic", serve(target).await);
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/settings").await;
        let page = browser.presses(&page, "Save and test Notifications", &[("NTFY_URL", &url)]).await;
        page.assert_shows(200, "ok alerts: ntfy accepted a test message");
        let wrong = url.replace("topic", "nothing");
        let page = browser.presses(&page, "Save and test Notifications", &[("NTFY_URL", &wrong)]).await;
        page.assert_shows(200, "failure alerts: ntfy: failed to");
    })
    .await;
}

#[tokio::test]
async fn secrets_file_that_cannot_be_read_changes_nothing() {
    let mut app = TestApp::start_without_model().await;
    let stored = StoredSettings::of(&app);
    fs::create_dir(stored.context.secrets_file.path()).unwrap();
    app.offer_settings(stored.settings.clone());
    let mut browser = app.browser().await;
    let page = browser.get("/settings").await;
    let page = browser.presses(&page, LIBRARY, &SONARR).await;
    page.assert_shows(500, "Not saved: failed to read the secrets file");
    assert!(stored.settings.load_sources().await.unwrap().stored().is_empty());
}

#[tokio::test]
async fn password_changed_on_the_page_keeps_its_session_and_ends_others() {
    with_settings(&[], async |app, _| {
        let (mut browser, mut other) = (app.browser().await, app.browser().await);
        let page = browser.get("/settings").await;
        let entered = [("CONSOLE_PASSWORD", "a horse and a battery")];
        let page = browser.presses(&page, "Save Console", &entered).await;
        page.assert_shows(200, "Saved.");
        assert!(!page.html.contains("battery"));
        assert_eq!(other.get("/settings").await.location.as_deref(), Some("/sign-in?next=%2Fsettings"));
    })
    .await;
}

#[tokio::test]
async fn api_key_opens_no_settings_page() {
    with_settings(&[], async |app, settings| {
        let program = app.program_with_scope("admin").await;
        for (method, status) in [(Method::GET, 303), (Method::POST, 403)] {
            let answer = program.send(program.to(method, "/settings"), "group=limits&version=0").await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
    })
    .await;
}

#[tokio::test]
async fn simulated_program_has_no_settings() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    browser.get("/settings").await.assert_shows(200, "there are no settings");
    assert_eq!(browser.submit("/settings", &[("group", "limits"), ("version", "0")]).await.status, 404);
}
