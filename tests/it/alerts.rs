//! Alerts to the operator by ntfy, by Pushover and by a signed webhook.

use std::fs::{self, File};
use std::time::SystemTime;

use dialarr::messaging::alert_sender::{AlertSender, SIGNATURE_HEADER, sign_body};
use dialarr::messaging::alert_targets::{AlertTargets, AlertWebhook, Pushover};
use dialarr::store::database::backup::back_up;
use secrecy::SecretString;

use crate::harness::alert_server::{FakeAlertServer, ntfy};
use crate::harness::{Setup, TestApp};

const SAM: &str = "+15550100009";
const HOUR: i64 = 60 * 60;
const WAITS: &str = "A newcomer waits for approval.";
const BACKUP_FAILED: &str = "The last backup failed. The output of dialarr backup has the reason.";

fn pushover() -> Pushover {
    Pushover { token: "app token".into(), user: "user key".into() }
}

async fn app_with_a_waiting_newcomer(sender: AlertSender) -> TestApp {
    let app = Setup::default().alerted_by(sender).start().await;
    app.sms_from(SAM, "hello there").await;
    app.sms_from(SAM, "Sam").await;
    app
}

#[tokio::test]
async fn waiting_newcomer_causes_one_ntfy_alert() {
    let server = FakeAlertServer::default();
    let app = app_with_a_waiting_newcomer(server.sender(ntfy())).await;
    for _ in 0..3 {
        app.pass(HOUR);
        app.send_alerts().await;
    }
    assert_eq!(server.bodies(), [WAITS]);
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests[0].uri(), "https://ntfy.invalid/topic");
    assert_eq!(requests[0].headers()["authorization"], "Bearer tk_1");
}

#[tokio::test]
async fn second_newcomer_is_reported_after_an_hour() {
    let server = FakeAlertServer::default();
    let app = app_with_a_waiting_newcomer(server.sender(ntfy())).await;
    app.send_alerts().await;
    app.sms_from("+15550100010", "hello there").await;
    app.sms_from("+15550100010", "Kim").await;
    app.send_alerts().await;
    assert_eq!(server.bodies(), [WAITS]);
    app.pass(HOUR);
    app.send_alerts().await;
    assert_eq!(server.bodies(), [WAITS, "2 newcomers wait for approval."]);
}

#[tokio::test]
async fn failed_alert_is_sent_again_after_a_restart() {
    let server = FakeAlertServer::default();
    server.statuses.lock().unwrap().push(503);
    let mut app = app_with_a_waiting_newcomer(server.sender(ntfy())).await;
    app.send_alerts().await;
    app.send_alerts().await;
    assert_eq!(server.bodies(), [WAITS]);
    app.restart().await;
    app.pass(61);
    app.send_alerts().await;
    assert_eq!(server.bodies(), [WAITS, WAITS]);
}

#[tokio::test]
async fn webhook_alert_is_signed() {
    let server = FakeAlertServer::default();
    let secret = SecretString::from("a secret");
    let webhook =
        AlertWebhook { url: "https://hook.invalid/".parse().unwrap(), secret: Some(secret.clone()) };
    let sender = server.sender(AlertTargets { webhook: Some(webhook), ..AlertTargets::default() });
    let app = app_with_a_waiting_newcomer(sender).await;
    app.send_alerts().await;
    let requests = server.requests.lock().unwrap();
    let body: serde_json::Value = serde_json::from_slice(requests[0].body()).unwrap();
    assert_eq!((&body["event"], &body["message"]), (&"newcomer".into(), &WAITS.into()));
    assert_eq!(requests[0].headers()[SIGNATURE_HEADER], sign_body(&secret, requests[0].body()));
}

#[tokio::test]
async fn pushover_alert_carries_both_keys() {
    let server = FakeAlertServer::default();
    let sender = server.sender(AlertTargets { pushover: Some(pushover()), ..AlertTargets::default() });
    let app = app_with_a_waiting_newcomer(sender).await;
    app.send_alerts().await;
    assert_eq!(server.requests.lock().unwrap()[0].uri(), "https://api.pushover.net/1/messages.json");
    let form = "token=app+token&user=user+key&title=Dialarr&message=A+newcomer+waits+for+approval.";
    assert_eq!(server.bodies(), [form]);
}

#[tokio::test]
async fn spent_budget_causes_one_alert_a_day() {
    let server = FakeAlertServer::default();
    let setup = Setup::default().with(|settings| settings.budget.tokens = Some(1));
    let app = setup.alerted_by(server.sender(ntfy())).start().await;
    app.sms("hello").await;
    for _ in 0..2 {
        app.send_alerts().await;
        app.pass(HOUR);
    }
    assert_eq!(
        server.bodies(),
        ["Today's model budget is used up. Until midnight only short commands work."]
    );
}

#[tokio::test]
async fn failed_backup_is_reported_once_and_on_home_until_one_succeeds() {
    let server = FakeAlertServer::default();
    let app = Setup::default().alerted_by(server.sender(ntfy())).start().await;
    let (database, copy) = (app.database_path(), app.database_path() + ".copy");
    let back_up = |now| {
        let result = back_up(&database, &copy);
        // The mark has the time of the system's clock.
        if let Ok(mark) = File::options().write(true).open(format!("{database}.backup-failed")) {
            mark.set_modified(SystemTime::from(now)).unwrap();
        }
        result.is_ok()
    };
    fs::write(&copy, "an earlier copy").unwrap();
    assert!(!back_up(app.now()));
    for _ in 0..2 {
        app.send_alerts().await;
        app.pass(HOUR);
    }
    assert_eq!(server.bodies(), [BACKUP_FAILED]);
    let mut browser = app.browser().await;
    browser.get("/").await.assert_shows(200, "The last backup failed");

    fs::remove_file(&copy).unwrap();
    assert!(back_up(app.now()));
    assert!(!browser.get("/").await.text().contains("The last backup failed"));
    app.send_alerts().await;
    assert_eq!(server.bodies().len(), 1);
    assert!(!back_up(app.now()));
    app.send_alerts().await;
    assert_eq!(server.bodies(), [BACKUP_FAILED; 2]);
}

#[tokio::test]
async fn unreachable_target_is_given_up_after_a_day() {
    let server = FakeAlertServer::default();
    *server.statuses.lock().unwrap() = vec![503; 100];
    let app = app_with_a_waiting_newcomer(server.sender(ntfy())).await;
    for _ in 0..30 {
        app.send_alerts().await;
        app.pass(HOUR);
    }
    assert_eq!(server.bodies().len(), 24);
}

#[tokio::test]
async fn rejected_alert_is_not_sent_again() {
    let server = FakeAlertServer::default();
    *server.statuses.lock().unwrap() = vec![403];
    let app = app_with_a_waiting_newcomer(server.sender(ntfy())).await;
    for _ in 0..3 {
        app.send_alerts().await;
        app.pass(HOUR);
    }
    assert_eq!(server.bodies(), [WAITS]);
}

#[tokio::test]
async fn operator_can_test_a_target_from_the_health_page() {
    let server = FakeAlertServer::default();
    let targets = AlertTargets { pushover: Some(pushover()), ..ntfy() };
    let app = Setup::default().alerted_by(server.sender(targets)).start().await;
    let mut browser = app.browser().await;
    browser.submit("/health-checks", &[("connection", "alerts-ntfy")]).await;
    browser.submit("/health-checks", &[("connection", "alerts-pushover")]).await;
    let form = "token=app+token&user=user+key&title=Dialarr&message=Test%3A+alerts+of+Dialarr+arrive+here.";
    assert_eq!(server.bodies(), ["Test: alerts of Dialarr arrive here.", form]);
    server.statuses.lock().unwrap().push(403);
    let page = browser.submit("/health-checks", &[("connection", "alerts-ntfy")]).await;
    assert!(page.html.contains("ntfy: failed to get status 200: the status is 403"), "{}", page.html);
}

#[tokio::test]
async fn connection_that_is_lost_and_back_causes_two_alerts() {
    let server = FakeAlertServer::default();
    let app = Setup::default().alerted_by(server.sender(ntfy())).start().await;
    app.check_connections().await;
    app.radarr().set_down(true);
    let stopped = "Stopped working: Radarr. Home in the console shows the reason.";
    for (minutes, bodies) in [(0, [].as_slice()), (4, &[]), (1, &[stopped]), (90, &[stopped])] {
        app.pass(60 * minutes);
        app.check_connections().await;
        app.send_alerts().await;
        assert_eq!(server.bodies(), bodies, "after {minutes} minutes");
    }
    app.radarr().set_down(false);
    for _ in 0..2 {
        app.check_connections().await;
        app.send_alerts().await;
        assert_eq!(server.bodies(), [stopped, "Works again: Radarr."]);
    }
}

#[tokio::test]
async fn reported_loss_is_not_reported_again_after_a_restart() {
    let server = FakeAlertServer::default();
    let mut app = Setup::default().alerted_by(server.sender(ntfy())).start().await;
    app.check_connections().await;
    app.sonarr().set_down(true);
    for _ in 0..3 {
        for _ in 0..2 {
            app.check_connections().await;
            app.pass(5 * 60);
        }
        app.send_alerts().await;
        app.pass(HOUR);
        app.restart().await;
    }
    app.sonarr().set_down(false);
    app.check_connections().await;
    app.send_alerts().await;
    let stopped = "Stopped working: Sonarr. Home in the console shows the reason.";
    assert_eq!(server.bodies(), [stopped, "Works again: Sonarr."]);
}

#[tokio::test]
async fn connection_that_never_worked_causes_no_alert() {
    let server = FakeAlertServer::default();
    let app = Setup::default().alerted_by(server.sender(ntfy())).start().await;
    app.radarr().set_down(true);
    for _ in 0..3 {
        app.check_connections().await;
        app.send_alerts().await;
        app.pass(10 * 60);
    }
    assert!(server.bodies().is_empty());
}
