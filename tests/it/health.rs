//! Health checks for operators and monitoring: correct and cheap.

use bytes::Bytes;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::notifications::quiet_hours::QuietHours;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use http::Request;
use serde_json::{Value, json};

use crate::harness::{BOB, Has, Setup, TestApp};

async fn ask(app: &TestApp, path: &str) -> (u16, Value) {
    let request = Request::get(format!("http://localhost:3000{path}")).body(Bytes::new()).unwrap();
    let answered = app.request(request).await;
    (answered.status().as_u16(), serde_json::from_slice(answered.body()).unwrap())
}

/// Returns the failing checks with their details.
pub(crate) async fn wrong(app: &TestApp, path: &str) -> (u16, Vec<String>) {
    let (status, report) = ask(app, path).await;
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == json!(false));
    let problems = checks
        .map(|check| format!("{}: {}", check["name"].as_str().unwrap(), check["detail"].as_str().unwrap()));
    (status, problems.collect())
}

async fn run(app: &TestApp, sql: &'static str) {
    app.app().db.write(move |conn| conn.batch_execute(sql)).await.unwrap();
}

#[tokio::test]
async fn ready_lists_each_passed_check() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    let database = json!({ "name": "database", "ok": true, "detail": "responds" });
    assert_eq!(ask(&app, "/health").await, (200, json!({ "status": "ok", "checks": [database] })));
    let expected = json!({
        "status": "ok",
        "checks": [
            { "name": "database file", "ok": true, "detail": "in place" },
            { "name": "migrations", "ok": true, "detail": "schema is current" },
            { "name": "writing", "ok": true, "detail": "works" },
            { "name": "reading", "ok": true, "detail": "works" },
            { "name": "received texts", "ok": true, "detail": "0 waiting" },
            { "name": "texts to send", "ok": true, "detail": "0 to send" },
        ],
    });
    assert_eq!(ask(&app, "/ready").await, (200, expected));
}

#[tokio::test]
async fn full_disk_is_reported_until_space_is_free() {
    let app = TestApp::start_without_model().await;
    run(&app, "CREATE TRIGGER full BEFORE INSERT ON offsets BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
        .await;
    assert_eq!(wrong(&app, "/ready").await, (503, vec!["writing: database check failed".to_owned()]));
    // A restart does not free disk space.
    assert_eq!(wrong(&app, "/health").await, (200, vec![]));
    run(&app, "DROP TRIGGER full").await;
    app.pass(2);
    assert_eq!(wrong(&app, "/ready").await, (200, vec![]));
}

#[tokio::test]
async fn console_and_metrics_work_while_the_database_is_read_only() {
    let app = TestApp::start_without_model().await;
    let (mut browser, program) = (app.browser().await, app.program().await);
    assert!(browser.get("/").await.text().contains("All clear."));
    app.pass(2 * 60 * 60);
    for event in ["INSERT ON offsets", "UPDATE ON sessions", "UPDATE ON api_keys"] {
        let full = "database or disk is full";
        let (name, table) = event.split_once(" ON ").unwrap();
        let trigger =
            format!("CREATE TRIGGER {table}_{name} BEFORE {event} BEGIN SELECT RAISE(ABORT, '{full}'); END");
        app.app().db.write(move |conn| conn.batch_execute(&trigger)).await.unwrap();
    }

    let home = browser.get("/").await;
    assert!(home.text().contains("Not ready writing database check failed"), "{}", home.text());
    assert_eq!(program.get("/metrics").await.status, 200);
}

#[tokio::test]
async fn locked_database_is_neither_alive_nor_ready() {
    let app = TestApp::start_without_model().await;
    let mut other = SqliteConnection::establish(&app.database_path()).unwrap();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let late = |name: &str| format!("{name}: no response within 2 s");
    let (alive, ready) = tokio::join!(wrong(&app, "/health"), wrong(&app, "/ready"));
    assert_eq!(alive, (503, vec![late("database")]));
    assert_eq!(ready, (503, vec![late("writing")]));
    other.batch_execute("ROLLBACK").unwrap();
}

#[tokio::test]
async fn concurrent_checks_query_the_database_once() {
    let app = TestApp::start_without_model().await;
    assert_eq!(wrong(&app, "/ready").await.0, 200);
    run(&app, "CREATE TRIGGER full BEFORE INSERT ON offsets BEGIN SELECT RAISE(ABORT, 'full'); END").await;
    for _ in 0..20 {
        assert_eq!(wrong(&app, "/ready").await.0, 200, "a write that worked is believed for a while");
    }
    app.pass(11);
    assert_eq!(wrong(&app, "/ready").await.0, 503);
}

#[tokio::test]
async fn long_waiting_messages_are_reported_except_during_a_pause() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("pause").await;
    app.sms_from(BOB, "status").await;
    app.pass(700);
    assert_eq!(wrong(&app, "/ready").await, (200, vec![]));
    run(&app, "UPDATE pauses SET ended_at = begun_at").await;
    app.pass(2);
    let problems = vec!["received texts: 1 waiting, the oldest for 11 minutes".to_owned()];
    assert_eq!(wrong(&app, "/ready").await, (503, problems));
}

#[tokio::test]
async fn unsent_messages_are_reported() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    run(&app, "UPDATE outbox SET state = 'queued', provider_sid = NULL, attempts = 3, not_before = 1e15")
        .await;
    assert_eq!(wrong(&app, "/ready").await, (200, vec![]));
    app.pass(1000);
    let problems = vec!["texts to send: 1 to send, the oldest for 16 minutes".to_owned()];
    assert_eq!(wrong(&app, "/ready").await, (503, problems));
}

#[tokio::test]
async fn notification_in_quiet_hours_is_not_an_unsent_message() {
    let setup =
        Setup::default().keyword_responder().with(|settings| settings.quiet_hours = QuietHours::new(21, 7));
    let app = setup.start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add(movie("Dune").year(2021).tmdb(438_631));
    app.follow_movie(BOB, 438_631).await;
    app.later(0).await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;

    app.later(9 * 60 * 60).await;

    assert_eq!(app.lines("SELECT state AS line FROM outbox").await, ["queued"]);
    assert_eq!(wrong(&app, "/ready").await, (200, vec![]));
}

#[tokio::test]
async fn tables_of_another_version_are_reported() {
    let app = TestApp::start_without_model().await;
    run(&app, "INSERT INTO __diesel_schema_migrations (version) VALUES ('99999999999999')").await;
    let problems = vec!["migrations: the schema is that of another version".to_owned()];
    assert_eq!(wrong(&app, "/ready").await, (503, problems));
}

#[tokio::test]
async fn health_page_shows_status_and_tests_a_library() {
    let app = TestApp::start_without_model().await;
    app.radarr().add_health_problem("error", "IndexerStatusCheck", "All <b>indexers</b> are unavailable.");
    let mut browser = app.browser().await;

    let page = browser.get("/health-checks").await;
    let tested = browser.submit("/health-checks", &[("connection", "radarr")]).await;

    assert_eq!((page.status, tested.status), (200, 200));
    for words in ["Sonarr, Radarr and Twilio are simulated here.", "writing: works", "0 waiting"] {
        assert!(page.html.contains(words), "{words}: {}", page.html);
    }
    for words in [
        "Radarr: reachable, version 6.3.0.10514",
        "reports: All &#60;b&#62;indexers&#60;/b&#62; are unavailable",
    ] {
        assert!(tested.html.contains(words) && !page.html.contains(words), "{words}: {}", tested.html);
    }
    // The check of all connections that follows a test takes some of the failures.
    app.radarr().fail_next_n(100, 401);
    let down = browser.submit("/health-checks", &[("connection", "radarr")]).await;
    assert!(down.html.contains("badge bad"), "{}", down.html);
    assert_eq!(browser.submit("/health-checks", &[("connection", "elsewhere")]).await.status, 404);
}

#[tokio::test]
async fn health_page_tests_the_embeddings() {
    let app = Setup::default().with_embeddings().start().await;
    let mut browser = app.browser().await;
    let tested = browser.submit("/health-checks", &[("connection", "embeddings")]).await;
    for words in ["hashing-256 returned 256 dimensions", "the floor is 0.30"] {
        assert!(tested.html.contains(words), "{words}: {}", tested.html);
    }
}

#[tokio::test]
async fn health_page_reports_word_search_without_embeddings() {
    let app = Setup::default().start().await;
    let mut browser = app.browser().await;
    let tested = browser.submit("/health-checks", &[("connection", "embeddings")]).await;
    let words = "no model is configured; memory uses full-text search only";
    assert!(tested.html.contains(words), "{}", tested.html);
}
