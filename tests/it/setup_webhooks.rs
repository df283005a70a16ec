//! Webhooks that the setup assistant finds at Sonarr and Radarr.

use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::clock::Clock;

use crate::harness::served::serve;
use crate::harness::settings::with_settings;

const STEP: &str = "/setup?step=webhooks";
const INSTALL: &str = "Install webhooks";

/// Returns the environment of a program whose Radarr events need this secret.
fn environment<'a>(url: &'a str, radarr: &'a FakeRadarr, secret: &'a str) -> [(&'static str, &'a str); 5] {
    [
        ("RADARR_URL", url),
        ("RADARR_API_KEY", radarr.api_key()),
        ("NOTIFICATION_URL", "http://dialarr:3000"),
        ("NOTIFICATION_SECRET", secret),
        ("CONSOLE_PASSWORD", "a horse and a battery"),
    ]
}

#[tokio::test]
async fn webhook_of_an_earlier_installation_gets_the_new_secret() {
    let radarr = FakeRadarr::with_clock(Clock::System);
    let url = serve(radarr.router()).await;
    with_settings(&environment(&url, &radarr, "an-earlier-long-word"), async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get(STEP).await;
        browser.presses(&page, INSTALL, &[]).await.assert_shows(200, "done Radarr webhook");
    })
    .await;
    with_settings(&environment(&url, &radarr, "a-later-long-word"), async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get(STEP).await;
        page.assert_shows(200, "to change Radarr webhook secret: not readable -> sent again");
        browser.presses(&page, INSTALL, &[]).await.assert_shows(200, "done Radarr webhook");
    })
    .await;
    let entries = radarr.format_connect_entries();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].contains("dialarr:a-later-long-word"), "{entries:?}");
}

#[tokio::test]
async fn assistant_leaves_webhook_of_another_installation_without_advice() {
    let radarr = FakeRadarr::with_clock(Clock::System);
    radarr.add_connect_entry("Dialarr", "http://other:3000/webhook/radarr", &["onDownload"]);
    let url = serve(radarr.router()).await;
    with_settings(&environment(&url, &radarr, "a-long-random-word"), async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get(STEP).await;
        page.assert_shows(200, "another webhook: Dialarr at http://other:3000/webhook/radarr -> unchanged");
        assert!(!page.text().contains("--take-over"), "{}", page.text());
    })
    .await;
}
