//! API routes for deliveries, spend, the audit log, settings and changes of users, and the page that describes them.

use dialarr::config::StoredValue;
use dialarr::conversation::model_cost::TokenUsage;
use http::Method;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::harness::model::{counted, says};
use crate::harness::program::{Answered, Program};
use crate::harness::settings::with_settings;
use crate::harness::{ANN, BOB, Has, TestApp};

const KEY: &str = "5ec2e7-radarr-key";

async fn patch(program: &Program<'_>, path: &str, body: Value) -> Answered {
    let request = program.to(Method::PATCH, path).header(CONTENT_TYPE, "application/json");
    program.send(request, &body.to_string()).await
}

#[tokio::test]
async fn deliveries_list_messages_with_their_state_and_reason() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    app.twilio().fail_next(400, 21614);
    app.sms("status").await;
    let program = app.program().await;

    let all = program.get("/api/v1/deliveries").await.json();
    let failed = program.get("/api/v1/deliveries?only=failed").await.json();

    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    assert_eq!(all["items"][1]["state"], "accepted");
    assert_eq!(failed["items"].as_array().unwrap().len(), 1);
    let message = &failed["items"][0];
    assert_eq!(message["state"], "failed");
    assert_eq!((&message["id"], &message["can_resend"]), (&json!(2), &json!(true)));
    assert!(message["reason"].as_str().unwrap().contains("21614"), "{message}");
    assert_eq!(program.get("/api/v1/deliveries?user=1&limit=1").await.json()["next"], 2);
    assert_eq!(program.get("/api/v1/deliveries?user=1&only=failed").await.problem().0, 422);
    assert_eq!(
        program.get("/api/v1/deliveries?only=lost").await.problem(),
        (400, "the query parameter only has an invalid value".to_owned())
    );
}

#[tokio::test]
async fn failed_delivery_is_resent_once_in_the_name_of_the_key() {
    let app = TestApp::start_without_model().await;
    app.twilio().fail_next(400, 21614);
    app.sms("status").await;
    let program = app.program().await;

    let resent = program.post("/api/v1/deliveries/1/resend", Value::Null).await;
    app.settle().await;

    assert_eq!((resent.status, resent.json()), (202, json!({ "delivery_id": 1 })));
    assert_eq!(app.messages_to(ANN), ["Nothing is downloading."]);
    assert_eq!(program.post("/api/v1/deliveries/1/resend", Value::Null).await.problem().0, 409);
    assert_eq!(program.post("/api/v1/deliveries/9/resend", Value::Null).await.problem().0, 404);
    let entry = &program.get("/api/v1/audit?kind=send_again").await.json()["items"][0];
    assert_eq!(entry["actor"], json!({ "type": "key", "name": "Script" }));
    assert_eq!(entry["subject"], json!({ "type": "user", "user": 1 }));
}

#[tokio::test]
async fn spend_is_the_sum_of_its_days_and_users() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    let few = TokenUsage { input: 120, cached: 100, output: 8 };
    app.model_plays([counted(few, says("One.")), counted(few, says("Two."))]);
    app.sms("one").await;
    app.sms_from(BOB, "two").await;

    let spend = app.program_with_scope("read").await.get("/api/v1/spend").await.json();

    let total = json!({
        "model_calls": 2, "input_tokens": 240, "cached_input_tokens": 200, "output_tokens": 16, "segments": 2,
        "cost_micros": 0
    });
    assert_eq!(spend["total"], total);
    assert_eq!(spend["first_day"], "2026-10-22");
    assert_eq!(spend["days"].as_array().unwrap().len(), 1);
    assert_eq!(spend["users"][0]["input_tokens"], 120);
}

#[tokio::test]
async fn audit_lists_changes_page_by_page() {
    let app = TestApp::start_without_model().await;
    let program = app.program().await;
    program.texts(json!({ "user": ANN, "text": "status" })).await;

    let first = program.get("/api/v1/audit?limit=1").await.json();
    let cursor = first["next"].as_i64().unwrap();
    let second = program.get(&format!("/api/v1/audit?limit=1&before={cursor}")).await.json();

    assert_eq!(first["items"][0]["kind"], "text_as");
    assert_eq!(first["items"][0]["detail"]["by"], Value::Null);
    assert_eq!(second["items"][0]["kind"], "key_made");
    assert_eq!(second["items"][0]["detail"], json!({ "name": "Script", "scope": "write" }));
    assert_eq!(second["items"][0]["subject"], json!({ "type": "key", "name": "Script" }));
}

#[tokio::test]
async fn user_is_changed_by_an_admin_key_only() {
    let app = TestApp::start_without_model().await;
    app.register_user(ANN, Has::EveryRight).await;
    app.register_user(BOB, Has::AddRight).await;
    let admin = app.program_with_scope("admin").await;
    let bob = "/api/v1/users/2";

    let changed = patch(&admin, bob, json!({ "name": "Bob", "may_delete": true, "movie_limit": 3.0 })).await;

    assert_eq!(changed.status, 200, "{changed:?}");
    let user = changed.json();
    assert_eq!(
        (&user["name"], &user["may_delete"], &user["movie_limit"]),
        (&json!("Bob"), &json!(true), &json!(3))
    );
    assert_eq!(user["season_limit"], Value::Null);
    let household = patch(&admin, bob, json!({ "movie_limit": null })).await.json();
    assert_eq!((&household["movie_limit"], &household["may_delete"]), (&Value::Null, &json!(true)));
    let with_digest = patch(&admin, bob, json!({ "digest": "Friday 6pm" })).await.json();
    assert_eq!(with_digest["digest"], "friday 18");
    let without_digest = patch(&admin, bob, json!({ "digest": null })).await.json();
    assert_eq!(without_digest["digest"], Value::Null);
    let limited = patch(&admin, bob, json!({ "space_limit_gb": 200 })).await.json();
    assert_eq!((&user["space_limit_gb"], &limited["space_limit_gb"]), (&Value::Null, &json!(200)));
    let entries = admin.get("/api/v1/audit?kind=set").await.json();
    assert_eq!(entries["items"][4]["detail"], json!({ "delete": true, "movies": 3, "name": "changed" }));

    assert_eq!(patch(&app.program().await, bob, json!({ "role": "admin" })).await.problem().0, 403);
    assert_eq!(patch(&admin, "/api/v1/users/9", json!({ "may_add": true })).await.problem().0, 404);
    assert_eq!(patch(&admin, "/api/v1/users/1", json!({ "role": "member" })).await.problem().0, 409);
    for (body, detail) in [
        (json!({ "movie_limit": -1 }), "movie_limit must be an integer from 0 to 1000000"),
        (json!({ "role": "owner" }), "the body field role has an invalid value"),
        (
            json!({ "name": "<b>" }),
            "name: not a name: at most 30 letters, digits, spaces, hyphens and apostrophes",
        ),
    ] {
        assert_eq!(patch(&admin, bob, body).await.problem(), (422, detail.to_owned()));
    }
}

fn setting<'a>(settings: &'a Value, name: &str) -> &'a Value {
    settings["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap()
}

#[tokio::test]
async fn settings_are_changed_together_and_secrets_never_shown() {
    with_settings(&[], async |app, settings| {
        let admin = app.program_with_scope("admin").await;
        let values =
            json!({ "RETENTION_DAYS": "30", "RADARR_URL": "http://127.0.0.1:9", "RADARR_API_KEY": KEY });

        let changed = patch(&admin, "/api/v1/settings", json!({ "version": 0, "values": values })).await;

        assert_eq!(changed.status, 200, "{changed:?}");
        assert_eq!((&changed.json()["version"], &changed.json()["status"]), (&json!(1), &json!("in_use")));
        let stored = settings.load_sources().await.unwrap();
        assert!(matches!(stored.stored()["RADARR_API_KEY"], StoredValue::Secret(_)));
        let shown = admin.get("/api/v1/settings").await;
        assert!(!shown.body.contains(KEY) && !changed.body.contains(KEY));
        let shown = shown.json();
        let secret = setting(&shown, "RADARR_API_KEY");
        assert_eq!(
            (&secret["secret"], &secret["has_value"], &secret["value"]),
            (&json!(true), &json!(true), &Value::Null)
        );
        assert_eq!(setting(&shown, "RETENTION_DAYS")["value"], "30");
        let audit = admin.get("/api/v1/audit?kind=configure").await;
        assert!(audit.body.contains("RADARR_API_KEY") && !audit.body.contains(KEY), "{}", audit.body);

        let removal =
            patch(&admin, "/api/v1/settings", json!({ "values": { "RETENTION_DAYS": null } })).await;
        assert_eq!(removal.json()["version"], 2);
        let again = patch(&admin, "/api/v1/settings", json!({ "values": { "RETENTION_DAYS": null } })).await;
        assert_eq!((&again.json()["version"], &again.json()["status"]), (&Value::Null, &json!("unchanged")));
    })
    .await;
}

#[tokio::test]
async fn refused_settings_change_nothing_and_repeat_no_secret() {
    with_settings(&[], async |app, settings| {
        let admin = app.program_with_scope("admin").await;
        let first = json!({ "RADARR_URL": "http://127.0.0.1:9", "RADARR_API_KEY": KEY });
        patch(&admin, "/api/v1/settings", json!({ "values": first })).await;
        let mut details = Vec::new();
        for (status, body) in [
            (409, json!({ "version": 0, "values": { "RADARR_URL": "http://127.0.0.1:8" } })),
            (422, json!({ "values": { "RADARR_URL": "http://127.0.0.1:8" } })),
            (422, json!({ "values": { "RETENTION_DAYS": "soon" } })),
            (422, json!({ "values": { "RETENTION_DAYS": " " } })),
            (422, json!({ "values": { "RETENTION": "30" } })),
            (422, json!({ "values": { "HOST": "127.0.0.1" } })),
            (422, json!({ "values": { "RETENTION_DAYS": 30 } })),
            (
                422,
                json!({ "values": { "RADARR_API_KEY": format!("{KEY}\n") , "CONSOLE_PASSWORD": "short" } }),
            ),
        ] {
            let (answered, detail) = patch(&admin, "/api/v1/settings", body).await.problem();
            assert_eq!(answered, status, "{detail}");
            details.push(detail);
        }
        assert!(!details.join("\n").contains(KEY), "{details:?}");
        assert_eq!(details[0], "a setting was changed since this version, read the settings again");
        assert_eq!(details[3], "RETENTION_DAYS: the value is empty; null removes it");
        assert_eq!(settings.load_version().await.unwrap(), 1);
        for scope in ["read", "write"] {
            let program = app.program_with_scope(scope).await;
            assert_eq!(program.get("/api/v1/settings").await.problem().0, 403);
            let change = json!({ "values": { "RETENTION_DAYS": "30" } });
            assert_eq!(patch(&program, "/api/v1/settings", change).await.problem().0, 403);
        }
    })
    .await;
}

#[tokio::test]
async fn simulated_program_has_no_settings_in_the_api() {
    let app = TestApp::start_without_model().await;
    let admin = app.program_with_scope("admin").await;
    assert_eq!(admin.get("/api/v1/settings").await.problem().0, 404);
}

#[tokio::test]
async fn api_page_shows_every_route_with_its_scope() {
    let app = TestApp::start_without_model().await;
    let document = app.program().await.get("/api/v1/openapi.json").await.json();
    let page = app.browser().await.get("/api").await;
    let text = page.text();

    assert!(page.html.len() < 60_000, "{} bytes", page.html.len());
    let content = page.html.split_once("<main").unwrap().1;
    for loaded in ["<script", "<img", "<link", "src=", "http://", "https://"] {
        assert!(!content.contains(loaded), "{loaded}");
    }
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap();
            let scope = operation["security"][0]["key"][0].as_str().unwrap();
            let row = format!("{} {path} {summary} {scope}", method.to_uppercase());
            assert!(text.contains(&row), "{row:?} is not in {text}");
        }
    }
    assert!(text.contains("movie_limit (body) Number of movies"), "{text}");
    assert!(text.contains("text (body, required) Message text; not blank."), "{text}");
}
