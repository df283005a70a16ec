//! Setup assistant: from nothing to a configured program, and attempts to take it over.

use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::media_servers::CatalogIds;
use dialarr::media_servers::fake::FakeJellyfin;
use dialarr::messaging::smsgate::fake::{FakePhone, FakePhoneAccount};
use dialarr::seerr::fake::FakeSeerr;
use dialarr::settings::LiveSettings;
use dialarr::web::auth::LINK_PATH;
use http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use http::{Method, Request};
use jiff::SignedDuration;

use crate::harness::ANN;
use crate::harness::browser::{Browser, Page};
use crate::harness::cli::{Cli, Served, exchange};
use crate::harness::served::{Answers, BOT_TOKEN, model, serve, set_webhook_elsewhere, telegram};
use crate::harness::settings::with_settings;

const PASSWORD: &str = "a horse and a battery";
const CONTINUE: &str = "Save and continue";
const TEST: &str = "Save and test";
const SERVE: [(&str, &str); 3] = [("HOST", "127.0.0.1"), ("PORT", "0"), ("CONSOLE_BIND", "127.0.0.1:0")];

/// Uses a sign-in link, and returns the path of the page that follows.
async fn use_link(browser: &mut Browser<'_>, link: &str) -> (u16, Option<String>) {
    let Some(token) = browser.get(link).await.field("token") else { return (410, None) };
    let entered = browser.post(LINK_PATH, &[("token", &token)]).await;
    (entered.status, entered.location)
}

/// Returns the parts of a program with Radarr, whose webhook is not installed.
async fn serve_radarr(radarr: &FakeRadarr) -> [(&'static str, String); 5] {
    [
        ("RADARR_URL", serve(radarr.router()).await),
        ("RADARR_API_KEY", radarr.api_key().to_owned()),
        ("NOTIFICATION_URL", "http://dialarr:3000".to_owned()),
        ("NOTIFICATION_SECRET", "a-long-random-word".to_owned()),
        ("CONSOLE_PASSWORD", PASSWORD.to_owned()),
    ]
}

async fn set_password(browser: &mut Browser<'_>) -> Page {
    let page = browser.get("/setup").await;
    page.assert_shows(200, "Step 1 of 9: Password");
    browser.presses(&page, CONTINUE, &[("CONSOLE_PASSWORD", PASSWORD)]).await
}

async fn stored_text(settings: &LiveSettings, name: &str) -> Option<String> {
    let sources = settings.load_sources().await.unwrap();
    let variable = dialarr::config::find_setting(name).unwrap();
    sources.plain_text(variable).map(str::to_owned)
}

/// Connects a Seerr in the step about discovery, and returns the next step.
async fn connect_seerr(browser: &mut Browser<'_>, page: &Page) -> Page {
    page.assert_shows(200, "Step 5 of 9: Discovery");
    let url = serve(FakeSeerr::new("a-seerr-key", Clock::System).router()).await;
    let entered = [("SEERR_URL", url.as_str()), ("SEERR_API_KEY", "a-seerr-key")];
    let page = browser.presses(page, TEST, &entered).await;
    page.assert_shows(200, "ok Seerr: reachable, accepts the key; version 3.1.0");
    browser.presses(&page, CONTINUE, &[]).await
}

#[tokio::test]
async fn assistant_configures_everything_step_by_step() {
    let radarr = FakeRadarr::with_clock(Clock::System);
    let url = serve(radarr.router()).await;
    let jellyfin = FakeJellyfin::new("a-jellyfin-key", Clock::System);
    jellyfin.household.add_user("Grace");
    jellyfin.household.add_movie(("Heat", 1995), CatalogIds::default(), SignedDuration::ZERO);
    let jellyfin_url = serve(jellyfin.router()).await;
    let model_url = format!("{}/v1", serve(model(Answers::WithTheCall, 100_000)).await);
    with_settings(&[], async |app, settings| {
        app.demote_admins().await;
        let mut browser = app.browser().await;
        let page = set_password(&mut browser).await;

        page.assert_shows(200, "Step 2 of 9: You");
        page.assert_shows(200, "No phone number? Skip this step.");
        let finish = browser.get("/setup?step=finish").await;
        browser.presses(&finish, "Get a code", &[]).await.assert_shows(200, "Text LINK ");
        let entered = [("name", "Grace"), ("ADMIN_PHONE", "+15550100321")];
        let page = browser.presses(&page, TEST, &entered).await;
        page.assert_shows(200, "ok you: your number is +1 555 010 0321, and it is");
        let page = browser.presses(&page, CONTINUE, &[]).await;

        page.assert_shows(200, "Step 3 of 9: Sonarr and Radarr");
        let entered = [("RADARR_URL", url.as_str()), ("RADARR_API_KEY", radarr.api_key())];
        let page = browser.presses(&page, TEST, &entered).await;
        page.assert_shows(200, "ok Radarr: reachable, version 6.3.0.10514; root folders accessible");
        let page = browser.presses(&page, CONTINUE, &[]).await;

        page.assert_shows(200, "Step 4 of 9: Media servers");
        let entered = [("JELLYFIN_URL", jellyfin_url.as_str()), ("JELLYFIN_API_KEY", "a-jellyfin-key")];
        let page = browser.presses(&page, TEST, &entered).await;
        let expected = "ok Jellyfin: reachable, version 12.0.0; accounts: 1; libraries: Movies in /media/movies, Shows \
                        in /media/shows; movies and shows: 1, such as Heat (1995)";
        page.assert_shows(200, expected);
        let page = browser.presses(&page, CONTINUE, &[]).await;

        let page = connect_seerr(&mut browser, &page).await;

        page.assert_shows(200, "Step 6 of 9: Model");
        let entered = [
            ("preset", "other"),
            ("LLM_BASE_URL", model_url.as_str()),
            ("LLM_MODEL", "a-model"),
            ("LLM_PRICE_INPUT", "2.50"),
        ];
        let page = browser.presses(&page, TEST, &entered).await;
        page.assert_shows(
            200,
            "ok model: a-model responds and calls tools (118 tokens, which cost 0.000270), in",
        );
        let page = browser.presses(&page, CONTINUE, &[]).await;

        page.assert_shows(200, "Step 7 of 9: Texting");
        let page = browser.get("/setup?step=webhooks").await;
        assert!(page.html.contains("value=\"http://localhost:3000\""), "{}", page.html);
        let entered = [("NOTIFICATION_URL", "http://dialarr:3000")];
        let page = browser.presses(&page, "Save and show the changes", &entered).await;
        page.assert_shows(
            200,
            "to change Radarr webhook address: none -> http://dialarr:3000/webhook/radarr",
        );
        assert_eq!(radarr.format_connect_entries(), Vec::<String>::new());
        let page = browser.presses(&page, "Install webhooks", &[]).await;
        page.assert_shows(200, "done Radarr webhook");
        assert_eq!(radarr.format_connect_entries().len(), 1);

        let page = browser.get("/setup?step=finish").await;
        page.assert_shows(200, "A test conversation works in the browser.");
        assert!(!page.text().contains("one-time code"), "{}", page.text());
        browser.get("/users").await.assert_shows(200, "Grace");
        let audit = browser.get("/audit?kind=write_done").await;
        audit.assert_shows(200, "You, in the console Made a change The webhooks changed: Radarr webhook");
        assert_eq!(stored_text(settings, "LLM_MODEL").await.as_deref(), Some("a-model"));
    })
    .await;
}

#[tokio::test]
async fn assistant_sets_up_an_own_phone_and_sends_a_test_text() {
    let account = FakePhoneAccount {
        number: PhoneNumber::parse("+15550100077").unwrap(),
        user: "sms".to_owned(),
        password: "0123abcd".into(),
        signing_key: "a-long-random-word".into(),
    };
    let phone = FakePhone::new(account, Clock::System);
    let url = serve(phone.router()).await;
    with_settings(&[("ADMIN_PHONE", ANN)], async |app, settings| {
        let mut browser = app.browser().await;
        set_password(&mut browser).await;
        let page = browser.get("/setup?step=texting").await;
        assert!(page.html.contains("href=\"/setup?step=texting&#38;way=phone\""), "{}", page.html);
        let page = browser.get("/setup?step=texting&way=phone").await;
        page.assert_shows(200, "tap Local server and turn it on");
        assert!(!page.html.contains("TWILIO"), "{}", page.html);
        let entered = [
            ("SMSGATE_URL", url.as_str()),
            ("SMSGATE_PASSWORD", "wrong"),
            ("SMSGATE_PHONE_NUMBER", "+15550100077"),
        ];
        let page = browser.presses(&page, TEST, &entered).await;
        page.assert_shows(200, "failure Own phone: the phone refuses the user name or password");
        let page = browser.presses(&page, CONTINUE, &[("SMSGATE_PASSWORD", "0123abcd")]).await;
        page.assert_shows(200, "Test text Dialarr texts your own number by the phone.");
        let page = browser.presses(&page, "Send a test text", &[]).await;
        page.assert_shows(200, "Check again");
        app.settle().await;
        assert_eq!(phone.accepted_count(), 1);
        browser
            .get("/setup?step=texting&way=phone")
            .await
            .assert_shows(200, "ok The phone has the test text");
        browser.get("/setup?step=finish").await.assert_shows(200, "Text ? to +1 555 010 0077");
        assert_eq!(stored_text(settings, "SMSGATE_URL").await.as_deref(), Some(url.as_str()));
    })
    .await;
}

#[tokio::test]
async fn assistant_sets_up_a_bot_and_links_the_first_admin() {
    let bot = telegram();
    let url = serve(bot.router()).await;
    with_settings(&[("TELEGRAM_API_URL", &url)], async |app, settings| {
        app.demote_admins().await;
        let mut browser = app.browser().await;
        set_password(&mut browser).await;
        let page = browser.get("/setup?step=texting").await;
        assert!(page.html.contains("href=\"/setup?step=texting&#38;way=telegram\""), "{}", page.html);
        let page = browser.get("/setup?step=texting&way=telegram").await;
        page.assert_shows(200, "Send /newbot");
        assert!(!page.html.contains("TWILIO") && !page.html.contains("SMSGATE"), "{}", page.html);
        let page = browser.presses(&page, TEST, &[("TELEGRAM_BOT_TOKEN", "films_bot")]).await;
        page.assert_shows(422, "Problem: not a bot token such as 123456:ABC-DEF1234ghIkl");
        let page = browser.presses(&page, TEST, &[("TELEGRAM_BOT_TOKEN", "501:revoked")]).await;
        page.assert_shows(200, "failure Telegram: refuses the token");
        let page = browser.presses(&page, TEST, &[("TELEGRAM_BOT_TOKEN", BOT_TOKEN)]).await;
        page.assert_shows(200, "ok Telegram: the bot is @films_bot; messages are polled");
        assert!(!page.html.contains(BOT_TOKEN), "{}", page.html);
        let page = browser.presses(&page, CONTINUE, &[]).await;
        page.assert_shows(200, "Step 8 of 9: Webhooks");
        assert!(!page.text().contains("Twilio delivers"), "{}", page.text());

        let page = browser.get("/setup?step=finish").await;
        page.assert_shows(200, "Write ? to @films_bot on Telegram.");
        assert!(page.html.contains("href=\"https://t.me/films_bot\""), "{}", page.html);
        let page = browser.presses(&page, "Get a code", &[]).await;
        page.assert_shows(200, "On Telegram, open https://t.me/films_bot?start=link-");
        let sources = settings.load_sources().await.unwrap();
        assert_eq!(sources.stored().keys().collect::<Vec<_>>(), ["CONSOLE_PASSWORD", "TELEGRAM_BOT_TOKEN"]);
    })
    .await;
}

#[tokio::test]
async fn assistant_removes_the_webhook_of_an_earlier_program() {
    let bot = telegram();
    set_webhook_elsewhere(&bot).await;
    let url = serve(bot.router()).await;
    let environment = [
        ("TELEGRAM_API_URL", url.as_str()),
        ("NOTIFICATION_URL", "http://dialarr:3000"),
        ("NOTIFICATION_SECRET", "a-long-random-word"),
    ];
    with_settings(&environment, async |app, _| {
        let mut browser = app.browser().await;
        set_password(&mut browser).await;
        let page = browser.get("/setup?step=texting&way=telegram").await;
        let page = browser.presses(&page, TEST, &[("TELEGRAM_BOT_TOKEN", BOT_TOKEN)]).await;
        page.assert_shows(200, "failure Telegram: a webhook is set elsewhere: other.example");
        let page = browser.get("/setup?step=webhooks").await;
        page.assert_shows(200, "to change Telegram bot webhook: other.example -> none");
        let page = browser.presses(&page, "Install webhooks", &[]).await;
        page.assert_shows(200, "done Telegram bot");
    })
    .await;
}

#[tokio::test]
async fn loopback_address_is_not_suggested_to_a_radarr_on_another_machine() {
    let environment = [
        ("RADARR_URL", "http://radarr:7878"),
        ("RADARR_API_KEY", "0123456789abcdef"),
        ("CONSOLE_PASSWORD", PASSWORD),
    ];
    with_settings(&environment, async |app, _| {
        let page = app.browser().await.get("/setup?step=webhooks").await;
        assert_eq!(page.field("NOTIFICATION_URL").as_deref(), Some(""));
    })
    .await;
}

#[tokio::test]
async fn webhooks_are_installed_only_with_an_audit_entry() {
    let radarr = FakeRadarr::with_clock(Clock::System);
    let environment = serve_radarr(&radarr).await;
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    with_settings(&environment, async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/setup?step=webhooks").await;
        app.refuse_audit().await;
        assert_eq!(browser.presses(&page, "Install webhooks", &[]).await.status, 503);
        assert_eq!(radarr.format_connect_entries(), Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn failed_installation_of_webhooks_is_in_the_audit_log() {
    let radarr = FakeRadarr::with_clock(Clock::System);
    let environment = serve_radarr(&radarr).await;
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    with_settings(&environment, async |app, _| {
        let mut browser = app.browser().await;
        let page = browser.get("/setup?step=webhooks").await;
        radarr.fail_writes_to("/api/v3/notification", 400);
        let page = browser.presses(&page, "Install webhooks", &[]).await;
        page.assert_shows(
            200,
            "failed Radarr webhook: failed to get the request accepted: The request is refused",
        );
        let audit = browser.get("/audit?kind=write_failed").await;
        audit.assert_shows(200, "Failed to make a change The webhooks");
    })
    .await;
}

#[tokio::test]
async fn unfinished_setup_continues_after_signing_in_again() {
    with_settings(&[], async |app, _| {
        app.demote_admins().await;
        let mut browser = app.anonymous_browser();
        let link = app.sign_in_link().await;
        assert_eq!(use_link(&mut browser, &link).await, (303, Some("/setup".to_owned())));
        set_password(&mut browser).await;

        let mut later = app.anonymous_browser();
        let entered = later.post("/sign-in", &[("password", PASSWORD)]).await;
        assert_eq!(entered.location.as_deref(), Some("/setup"));
        later.get("/setup").await.assert_shows(200, "Step 2 of 9: You");
        let link = app.sign_in_link().await;
        assert_eq!(use_link(&mut app.anonymous_browser(), &link).await.1.as_deref(), Some("/setup"));
    })
    .await;
}

#[tokio::test]
async fn password_ends_every_earlier_link_and_session() {
    with_settings(&[], async |app, _| {
        let (first, second) = (app.sign_in_link().await, app.sign_in_link().await);
        let (mut owner, mut intruder) = (app.anonymous_browser(), app.browser().await);
        use_link(&mut owner, &first).await;

        set_password(&mut owner).await.assert_shows(200, "Step 2 of 9: You");

        assert_eq!(use_link(&mut app.anonymous_browser(), &first).await.0, 410);
        assert_eq!(use_link(&mut app.anonymous_browser(), &second).await.0, 410);
        let refused = intruder.get("/setup").await.location;
        assert_eq!(refused.as_deref(), Some("/sign-in?next=%2Fsetup"));
    })
    .await;
}

#[tokio::test]
async fn used_expired_or_guessed_link_opens_no_setup() {
    with_settings(&[], async |app, _| {
        let used = app.sign_in_link().await;
        assert_eq!(use_link(&mut app.anonymous_browser(), &used).await.0, 303);
        let expired = app.sign_in_link().await;
        app.pass(600);
        let guessed = format!("{LINK_PATH}?token={}", "a".repeat(43));
        for link in [used, expired, guessed] {
            let mut intruder = app.anonymous_browser();
            intruder.get(&link).await.assert_shows(410, "This link");
            let (_, token) = link.split_once("token=").unwrap();
            assert_eq!(intruder.post(LINK_PATH, &[("token", token)]).await.status, 410);
            assert_eq!(intruder.cookie(), None);
        }
    })
    .await;
}

#[tokio::test]
async fn second_browser_with_the_link_is_refused_during_the_first_step() {
    with_settings(&[], async |app, _| {
        let link = app.sign_in_link().await;
        let (mut owner, mut intruder) = (app.anonymous_browser(), app.anonymous_browser());
        let token = intruder.get(&link).await.field("token").unwrap();
        assert_eq!(use_link(&mut owner, &link).await.0, 303);
        owner.get("/setup").await.assert_shows(200, "Step 1 of 9: Password");

        assert_eq!(intruder.post(LINK_PATH, &[("token", &token)]).await.status, 410);
        let refused = intruder.get("/setup").await.location;
        assert_eq!(refused.as_deref(), Some("/sign-in?next=%2Fsetup"));
        set_password(&mut owner).await.assert_shows(200, "Step 2 of 9: You");
    })
    .await;
}

#[tokio::test]
async fn setup_accepts_an_ip_address_and_no_foreign_host_name() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let cookie = browser.cookie().unwrap().to_owned();
        let token = browser.get("/setup").await.field("token").unwrap();
        let fields = [
            ("token", token.as_str()),
            ("step", "password"),
            ("version", "0"),
            ("CONSOLE_PASSWORD", PASSWORD),
        ];
        let body = serde_urlencoded::to_string(fields).unwrap();
        let send = async |method: Method, host: &str| {
            let request = Request::builder().method(method).uri("/setup").header(HOST, host);
            let request = request.header(COOKIE, &cookie).header(ORIGIN, format!("http://{host}"));
            let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            app.ask_console(request.body(body.clone().into()).unwrap()).await.status().as_u16()
        };
        for host in
            ["evil.example", "evil.example:3001", "localhost.evil.example", "192.168.1.2.evil.example"]
        {
            assert_eq!((send(Method::GET, host).await, send(Method::POST, host).await), (421, 421), "{host}");
        }
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
        for host in ["192.168.1.2:3001", "[fd00::2]:3001"] {
            assert_eq!(send(Method::GET, host).await, 200, "{host}");
        }
        assert_eq!(send(Method::POST, "192.168.1.2:3001").await, 303);
    })
    .await;
}

#[tokio::test]
async fn nobody_without_a_session_opens_or_changes_an_unfinished_setup() {
    with_settings(&[], async |app, settings| {
        let mut anonymous = app.anonymous_browser();
        let form = [("step", "password"), ("version", "0"), ("CONSOLE_PASSWORD", PASSWORD)];
        for path in ["/setup", "/setup?step=library", "/setup?step=finish", "/settings"] {
            let page = anonymous.get(path).await;
            assert!(page.location.is_some_and(|target| target.starts_with("/sign-in")), "{path}");
        }
        for path in ["/setup", "/setup/webhooks", "/settings"] {
            assert_eq!(anonymous.post(path, &form).await.location.as_deref(), Some("/sign-in"), "{path}");
        }
        anonymous.post("/sign-in", &[("password", "")]).await.assert_shows(403, "dialarr console-link");
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
    })
    .await;
}

#[tokio::test]
async fn form_of_another_site_or_session_changes_no_setup() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let cookie = browser.cookie().unwrap().to_owned();
        let token = browser.get("/setup").await.field("token").unwrap();
        let body = |token: &str| {
            let fields =
                [("token", token), ("step", "password"), ("version", "0"), ("CONSOLE_PASSWORD", PASSWORD)];
            serde_urlencoded::to_string(fields).unwrap()
        };
        let foreign_token = app.browser().await.get("/setup").await.field("token").unwrap();
        for (origin, token) in [
            ("https://evil.example", token.as_str()),
            ("http://localhost:3001", &foreign_token),
            ("http://localhost:3001", ""),
        ] {
            let request =
                Request::builder().method(Method::POST).uri("/setup").header(HOST, "localhost:3001");
            let request = request.header(COOKIE, &cookie).header(ORIGIN, origin);
            let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            let answer = app.ask_console(request.body(body(token).into()).unwrap()).await;
            assert_eq!(answer.status(), 403, "{origin}");
        }
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
    })
    .await;
}

#[tokio::test]
async fn first_step_is_not_left_without_a_password() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let page = browser.get("/setup?step=library").await;
        page.assert_shows(200, "Step 1 of 9: Password");
        let token = page.field("token").unwrap();
        let skipped =
            [("token", token.as_str()), ("step", "you"), ("version", "0"), ("ADMIN_PHONE", "+15550100321")];
        assert_eq!(browser.post("/setup", &skipped).await.location.as_deref(), Some("/setup"));
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
        let page = browser.presses(&page, CONTINUE, &[]).await;
        page.assert_shows(422, "Problem: enter a password, e.g. four words you remember.");
        let page = browser.presses(&page, CONTINUE, &[("CONSOLE_PASSWORD", "short")]).await;
        page.assert_shows(422, "shorter than 10 characters");
    })
    .await;
}

#[tokio::test]
async fn step_whose_connection_fails_is_not_shown_as_done() {
    with_settings(&[], async |app, _| {
        let mut browser = app.browser().await;
        set_password(&mut browser).await;
        let page = browser.get("/setup?step=library").await;
        let radarr = FakeRadarr::with_clock(Clock::System);
        let url = serve(radarr.router()).await;
        let entered = [("RADARR_URL", url.as_str()), ("RADARR_API_KEY", "0123456789abcdef")];
        let page = browser.presses(&page, TEST, &entered).await;
        page.assert_shows(200, "Sonarr and Radarr ! does not work");
        let page = browser.presses(&page, TEST, &[("RADARR_API_KEY", radarr.api_key())]).await;
        page.assert_shows(200, "ok Radarr: reachable");
        app.check_connections().await;
        browser.get("/setup?step=finish").await.assert_shows(200, "Sonarr and Radarr done");
        radarr.set_down(true);
        app.check_connections().await;
        browser.get("/setup?step=finish").await.assert_shows(200, "Sonarr and Radarr does not work");
    })
    .await;
}

#[tokio::test]
async fn invalid_name_or_number_is_explained_and_nothing_is_saved() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let page = browser.get("/setup?step=you").await;
        let page = browser.presses(&page, CONTINUE, &[("CONSOLE_PASSWORD", PASSWORD)]).await;
        let entered = [("name", "Grace @home"), ("ADMIN_PHONE", "+15550100321")];
        let page = browser.presses(&page, CONTINUE, &entered).await;
        page.assert_shows(422, "A name has letters, digits, spaces, hyphens");
        assert_eq!(page.field("ADMIN_PHONE").as_deref(), Some("+15550100321"));
        assert_eq!(stored_text(settings, "ADMIN_PHONE").await, None);
        let page = browser.presses(&page, CONTINUE, &[("name", "Grace"), ("ADMIN_PHONE", "12")]).await;
        page.assert_shows(422, "Not saved: correct the marked fields");
        assert_eq!(page.field("ADMIN_PHONE").as_deref(), Some("12"));
    })
    .await;
}

#[tokio::test]
async fn preset_sets_the_server_and_none_removes_the_model() {
    with_settings(&[], async |app, settings| {
        let mut browser = app.browser().await;
        let page = browser.get("/setup").await;
        browser.presses(&page, CONTINUE, &[("CONSOLE_PASSWORD", PASSWORD)]).await;
        let page = browser.get("/setup?step=model").await;
        let entered = [("preset", "openrouter"), ("LLM_MODEL", "a-model"), ("LLM_API_KEY", "sk-hidden")];
        browser.presses(&page, CONTINUE, &entered).await.assert_shows(200, "Step 7 of 9: Texting");
        let page = browser.get("/setup?step=model").await;
        assert!(page.html.contains("value=\"openrouter\" selected"), "{}", page.html);
        assert!(!page.html.contains("sk-hidden"));
        assert_eq!(
            stored_text(settings, "LLM_BASE_URL").await.as_deref(),
            Some("https://openrouter.ai/api/v1")
        );
        let page = browser.presses(&page, CONTINUE, &[("preset", "none")]).await;
        page.assert_shows(200, "Step 7 of 9: Texting");
        let sources = settings.load_sources().await.unwrap();
        assert_eq!(sources.stored().keys().collect::<Vec<_>>(), ["CONSOLE_PASSWORD"]);
        let page = browser.get("/setup?step=model").await;
        let typed = [("LLM_BASE_URL", "http://nas.example:8080/v1"), ("LLM_MODEL", "a-model")];
        browser.presses(&page, CONTINUE, &typed).await;
        assert_eq!(
            stored_text(settings, "LLM_BASE_URL").await.as_deref(),
            Some("http://nas.example:8080/v1")
        );
    })
    .await;
}

#[tokio::test]
async fn copied_example_configuration_leaves_every_step_open() {
    let example = include_str!("../../.env.example");
    let values: Vec<(&str, &str)> = example
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(_, value)| value.is_empty())
        .collect();
    assert!(values.iter().any(|(name, _)| *name == "CONSOLE_PASSWORD"), "{values:?}");
    with_settings(&values, async |app, settings| {
        let mut browser = app.browser().await;
        let page = browser.get("/setup").await;
        let page = browser.presses(&page, CONTINUE, &[("CONSOLE_PASSWORD", PASSWORD)]).await;
        page.assert_shows(200, "Step 2 of 9: You");
        browser.presses(&page, CONTINUE, &[("name", "Grace"), ("ADMIN_PHONE", "+15550100321")]).await;
        assert_eq!(stored_text(settings, "ADMIN_PHONE").await.as_deref(), Some("+15550100321"));
    })
    .await;
}

#[test]
fn service_without_configuration_prints_a_link_and_refuses_webhooks() {
    let cli = Cli::new();
    let mut served = cli.serve(&SERVE);
    let console = served.console();
    let line = served.log_line("nothing is configured");
    assert!(line.contains(&format!("at http://{console}/sign-in/link?token=")), "{line}");
    for path in ["/webhook/twilio", "/webhook/twilio/status", "/webhook/radarr", "/webhook/sonarr"] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: dialarr\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\
             Connection: close\r\n\r\n{{}}"
        );
        let (status, _) = exchange(&served.address, &request);
        assert!(
            ["HTTP/1.1 403 Forbidden", "HTTP/1.1 503 Service Unavailable"].contains(&&*status),
            "{path}: {status}"
        );
    }
    assert!(!served.end_log().contains("/sign-in/link"));
}

#[test]
fn link_from_before_a_restart_works_once_until_it_expires() {
    let cli = Cli::new();
    let link = |served: &mut Served| {
        let console = served.console();
        let line = served.log_line("nothing is configured");
        let (_, link) = line.split_once(&console).unwrap();
        (console, link.split_whitespace().next().unwrap().to_owned())
    };
    let mut first = cli.serve(&SERVE);
    let (_, path) = link(&mut first);
    first.terminate();
    let mut second = cli.serve(&SERVE);
    let (console, _) = link(&mut second);
    let (_, token) = path.split_once('?').unwrap();
    let use_link = || {
        let request = format!(
            "POST {LINK_PATH} HTTP/1.1\r\nHost: {console}\r\nOrigin: http://{console}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{token}",
            token.len()
        );
        exchange(&console, &request).0
    };
    assert_eq!([use_link(), use_link()], ["HTTP/1.1 303 See Other", "HTTP/1.1 410 Gone"]);
}

#[test]
fn service_with_an_env_file_prints_no_setup_link() {
    let cli = Cli::new();
    cli.write(".env", "ADMIN_PHONE=+15550100123\n");
    assert!(!cli.serve(&SERVE).end_log().contains("/sign-in/link"));
}

#[test]
fn unfinished_setup_with_a_password_prints_its_address_only() {
    let cli = Cli::new();
    let mut served = cli.serve(&[&SERVE[..], &[("CONSOLE_PASSWORD", PASSWORD)]].concat());
    let console = served.console();
    let line = served.log_line("the setup is unfinished");
    assert!(line.contains(&format!("continue at http://{console}/setup")), "{line}");
    assert!(!served.end_log().contains("/sign-in/link"));
}
