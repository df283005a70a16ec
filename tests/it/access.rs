//! Access to the console and the API.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use dialarr::web::{self, auth};
use http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN, REFERER, SET_COOKIE};
use http::request::Builder;
use http::{Method, Request, Response, StatusCode, Version};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::harness::browser::{Browser, CONSOLE, Page};
use crate::harness::model::says;
use crate::harness::world::World;
use crate::harness::{Setup, TestApp};

const PASSWORD: &str = "correct horse battery";
const WEEK: i64 = 7 * 24 * 3600;

async fn with_password() -> TestApp {
    Setup::default().keyword_responder().console_password(PASSWORD).start().await
}

async fn try_password(browser: &mut Browser<'_>, password: &str) -> Page {
    browser.post("/sign-in", &[("password", password), ("next", "/keys")]).await
}

/// Presses the button of a sign-in link.
async fn use_link(browser: &mut Browser<'_>, link: &str) -> u16 {
    let token = link.split_once("token=").unwrap().1;
    browser.post("/sign-in/link", &[("token", token)]).await.status
}

fn of(page: &Page) -> (u16, Option<&str>) {
    (page.status, page.location.as_deref())
}

fn to(method: Method, path: &str) -> Builder {
    Request::builder().method(method).uri(path).header(HOST, "localhost:3001")
}

async fn ask(app: &TestApp, request: Builder) -> Response<Bytes> {
    app.ask_console(request.body(Bytes::new()).unwrap()).await
}

async fn status(app: &TestApp, request: Builder) -> u16 {
    ask(app, request).await.status().as_u16()
}

/// Creates a key on the page and returns it.
async fn new_key(browser: &mut Browser<'_>, name: &str) -> String {
    let page = browser.submit("/keys", &[("name", name)]).await;
    let key = page.text().split_whitespace().find(|word| word.starts_with("dlr_")).map(str::to_owned);
    key.unwrap()
}

fn with_key(key: &str) -> Builder {
    to(Method::GET, "/api/v1/nothing").header("x-api-key", key)
}

#[tokio::test]
async fn password_sign_in_leads_to_the_requested_page() {
    let app = with_password().await;
    let mut browser = app.anonymous_browser();
    assert_eq!(of(&browser.get("/keys?a=1").await), (303, Some("/sign-in?next=%2Fkeys%3Fa%3D1")));
    let page = browser.get("/sign-in?next=%2Fkeys%3Fa%3D1").await;
    let next = page.field("next").unwrap();

    let entered = browser.post("/sign-in", &[("password", PASSWORD), ("next", &next)]).await;

    assert_eq!(of(&entered), (303, Some("/keys?a=1")));
    assert_eq!(browser.get("/keys").await.status, 200);
    assert_eq!(of(&browser.get("/sign-in").await), (303, Some("/")));
}

#[tokio::test]
async fn wrong_password_is_refused_with_an_error() {
    let app = with_password().await;
    let mut browser = app.anonymous_browser();

    let page = try_password(&mut browser, "wrong").await;

    assert_eq!((page.status, browser.cookie()), (403, None));
    assert_eq!(page.field("next").as_deref(), Some("/keys"));
    assert!(page.html.contains(r#"role="alert" id="problem">Wrong password.</p>"#));
    assert!(!page.html.contains("wrong"));
}

#[tokio::test]
async fn link_is_the_only_sign_in_without_a_password() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.anonymous_browser();

    assert_eq!(
        browser.get("/sign-in").await.text(),
        "Dialarr Sign in On the server, run dialarr console-link and open the link that it prints; for a container, \
         run docker compose exec dialarr entrypoint console-link . To sign in with a password, set CONSOLE_PASSWORD ."
    );
    assert_eq!(try_password(&mut browser, "").await.status, 403);
    assert_eq!(use_link(&mut browser, &app.sign_in_link().await).await, 303);
    assert_eq!(browser.get("/").await.status, 200);
}

#[tokio::test]
async fn sign_in_link_is_used_up_by_its_button_only() {
    let app = TestApp::start_without_model().await;
    let link = app.sign_in_link().await;
    let mut preview = app.anonymous_browser();
    for _ in 0..2 {
        assert_eq!((preview.get(&link).await.status, preview.cookie()), (200, None));
    }

    let (mut first, mut second) = (app.anonymous_browser(), app.anonymous_browser());
    assert_eq!(use_link(&mut first, &link).await, 303);
    assert_eq!(use_link(&mut second, &link).await, 410);

    assert_eq!((first.get("/").await.status, second.get("/").await.status), (200, 303));
    let page = second.get(&link).await;
    assert_eq!(
        (page.status, page.text().as_str()),
        (
            410,
            "Dialarr Sign in This link was already used or has expired. On the server, dialarr console-link prints \
             another one; for a container, docker compose exec dialarr entrypoint console-link ."
        )
    );
}

#[tokio::test]
async fn concurrent_uses_of_a_link_sign_in_once() {
    let app = TestApp::start_without_model().await;
    let link = app.sign_in_link().await;
    let attempts = (0..8).map(|_| async {
        let mut browser = app.anonymous_browser();
        use_link(&mut browser, &link).await
    });

    let mut answers = futures_util::future::join_all(attempts).await;

    answers.sort_unstable();
    assert_eq!(answers, [303, 410, 410, 410, 410, 410, 410, 410]);
}

#[tokio::test]
async fn sign_in_link_expires_after_ten_minutes_and_is_deleted() {
    let app = TestApp::start_without_model().await;
    let link = app.sign_in_link().await;
    let mut browser = app.anonymous_browser();
    app.pass(599);
    assert_eq!(browser.get(&link).await.status, 200);
    app.pass(1);

    assert_eq!((browser.get(&link).await.status, use_link(&mut browser, &link).await), (410, 410));
    app.run_maintenance().await;
    assert_eq!(app.count("sign_in_links").await, 0);
}

#[tokio::test]
async fn changed_password_ends_all_sessions() {
    let mut app = with_password().await;
    let mut browser = app.anonymous_browser();
    try_password(&mut browser, PASSWORD).await;
    let cookie = browser.cookie().unwrap().to_owned();
    let is_in =
        async |app: &TestApp| app.anonymous_browser().with_cookie(&cookie).get("/").await.status == 200;

    app.restart().await;
    assert!(is_in(&app).await);
    app.restart_with(|setup| setup.console_password("another horse")).await;

    assert!(!is_in(&app).await);
    let mut browser = app.anonymous_browser();
    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 403);
    assert_eq!(try_password(&mut browser, "another horse").await.status, 303);
}

#[tokio::test]
async fn password_can_be_configured_by_its_hash() {
    let mut app = with_password().await;
    let hash = app.lines("SELECT hash AS line FROM console_password").await.pop().unwrap();
    assert!(!hash.contains(PASSWORD));

    app.restart_with(|setup| setup.console_password(&hash)).await;

    let mut browser = app.anonymous_browser();
    assert_eq!(try_password(&mut browser, &hash).await.status, 403);
    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 303);
}

#[tokio::test]
async fn stolen_database_gives_no_access() {
    let app = with_password().await;
    let mut browser = app.browser().await;
    let key = new_key(&mut browser, "Stats").await;
    let cookie = browser.cookie().unwrap().to_owned();
    let link = app.sign_in_link().await;

    let stolen = app.whole_database();

    let (_, session) = cookie.split_once('=').unwrap();
    for secret in [session, &key[4..], link.split_once("token=").unwrap().1, PASSWORD] {
        assert!(!stolen.contains(secret));
    }
    let hash = app.lines("SELECT lower(hex(token_hash)) AS line FROM sessions").await.pop().unwrap();
    for guess in [hash.as_str(), &hash[..43]] {
        let mut thief = app.anonymous_browser().with_cookie(&format!("dialarr={guess}"));
        assert_eq!(thief.get("/").await.status, 303);
    }
}

#[tokio::test]
async fn sign_in_does_not_redirect_to_another_site() {
    let app = with_password().await;
    for elsewhere in ["https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example"] {
        let mut browser = app.anonymous_browser();
        let entered = browser.post("/sign-in", &[("password", PASSWORD), ("next", elsewhere)]).await;
        assert_eq!(of(&entered), (303, Some("/")), "{elsewhere:?}");
    }
}

#[tokio::test]
async fn cross_site_requests_are_refused() {
    let app = with_password().await;
    let mut browser = app.browser().await;
    let token = browser.get("/").await.field("token").unwrap();
    let send = async |path: &str, headers: &[(&str, &str)]| {
        let request = to(Method::POST, path)
            .header(COOKIE, browser.cookie().unwrap())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let body = format!("token={token}&name=Stats&password=wrong");
        app.ask_console(request.body(body.into()).unwrap()).await.status().as_u16()
    };

    for path in ["/keys", "/sign-in", "/sign-in/link", "/sign-out", "/api/v1/nothing"] {
        let evil = ("origin", "https://evil.example");
        assert_eq!(send(path, &[evil]).await, 403, "{path}");
        assert_eq!(send(path, &[("origin", "null")]).await, 403, "{path}");
        assert_eq!(send(path, &[]).await, 403, "{path}");
        assert_eq!(send(path, &[("sec-fetch-site", "same-site"), ("origin", CONSOLE)]).await, 403, "{path}");
        assert_eq!(send(path, &[("sec-fetch-site", "cross-site")]).await, 403, "{path}");
    }

    assert_eq!(app.count("api_keys").await, 0);
    assert_eq!(send("/keys", &[("sec-fetch-site", "same-origin")]).await, 200);
    assert_eq!(send("/keys", &[("origin", CONSOLE)]).await, 200);
}

#[tokio::test]
async fn form_without_its_session_token_is_refused() {
    let app = TestApp::start_without_model().await;
    let (mut browser, mut other) = (app.browser().await, app.browser().await);
    let theirs = other.get("/").await.field("token").unwrap();

    for token in ["", "wrong", &theirs] {
        assert_eq!(browser.post("/keys", &[("token", token), ("name", "Stats")]).await.status, 403);
        assert_eq!(browser.post("/sign-out", &[("token", token)]).await.status, 403);
    }
    assert_eq!(browser.post("/keys", &[("name", "Stats")]).await.status, 403);

    assert_eq!(app.count("api_keys").await, 0);
    assert_eq!(browser.get("/").await.status, 200);
}

#[tokio::test]
async fn unknown_host_name_is_refused_on_every_path() {
    let app = TestApp::start_without_model().await;
    let browser = app.browser().await;
    let cookie = browser.cookie().unwrap();
    for path in ["/", "/assets/style.css", "/sign-in", "/api/v1/users", "/metrics", "/health", "/nothing"] {
        for host in ["evil.example", "localhost.evil.example:3001"] {
            let request = Request::get(path).header(HOST, host).header(COOKIE, cookie);
            let answer = ask(&app, request).await;
            assert_eq!(
                (answer.status().as_u16(), answer.body().as_ref()),
                (
                    421,
                    "Dialarr does not serve this host name. If it belongs to the console, add it to CONSOLE_HOSTS, or use \
                     the console's IP address.\n"
                        .as_bytes()
                ),
                "{host} {path}"
            );
        }
    }
    for host in ["localhost", "127.0.0.1:3001", "[::1]:3001", "192.168.1.9:3001", "[fd00::9]"] {
        let request = Request::get("/").header(HOST, host).header(COOKIE, cookie);
        assert_eq!(status(&app, request).await, 200, "{host}");
    }
}

#[tokio::test]
async fn configured_host_name_is_allowed_beside_localhost() {
    let app = Setup::default().keyword_responder().console_hosts(&["dialarr.home.lan"]).start().await;
    for host in ["Dialarr.home.lan", "dialarr.home.lan:8443", "localhost:3001"] {
        assert_eq!(status(&app, Request::get("/sign-in").header(HOST, host)).await, 200, "{host}");
    }
}

#[tokio::test]
async fn five_wrong_passwords_throttle_passwords_but_not_links() {
    let app = with_password().await;
    let mut browser = app.anonymous_browser();
    for _ in 0..5 {
        assert_eq!(try_password(&mut browser, "wrong").await.status, 403);
    }

    let page = try_password(&mut browser, PASSWORD).await;
    assert_eq!(page.status, 429);
    assert!(page.html.contains("Too many failed attempts. Try again in 30 seconds."));
    let form = to(Method::POST, "/sign-in").header(ORIGIN, CONSOLE);
    let form = form.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let answer = app.ask_console(form.body("password=wrong".into()).unwrap()).await;
    assert_eq!(answer.headers()["retry-after"], "30");

    let mut other = app.anonymous_browser();
    assert_eq!(use_link(&mut other, &app.sign_in_link().await).await, 303);
    app.pass(30);
    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 303);
    assert_eq!(try_password(&mut app.anonymous_browser(), "wrong").await.status, 403);
}

#[tokio::test]
async fn throttle_holds_after_the_clock_is_set_back() {
    let app = with_password().await;
    let mut browser = app.anonymous_browser();
    assert_eq!(try_password(&mut browser, "wrong").await.status, 403);
    app.clock_is_set_back(WEEK);
    for _ in 1..5 {
        assert_eq!(try_password(&mut browser, "wrong").await.status, 403);
    }
    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 429);
    app.clock_is_set_back(WEEK);
    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 429);
    app.pass(29);
    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 429);
    app.pass(1);
    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 303);
}

#[tokio::test]
async fn concurrent_passwords_get_no_extra_attempts() {
    let app = with_password().await;
    let attempts = (0..12).map(|_| async {
        let mut browser = app.anonymous_browser();
        try_password(&mut browser, "wrong").await.status
    });

    let mut answers = futures_util::future::join_all(attempts).await;

    answers.sort_unstable();
    assert_eq!(answers, [403, 403, 403, 403, 403, 429, 429, 429, 429, 429, 429, 429]);
}

#[tokio::test]
async fn sign_out_invalidates_the_session_cookie() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    let cookie = browser.cookie().unwrap().to_owned();

    assert_eq!(of(&browser.submit("/sign-out", &[]).await), (303, Some("/sign-in")));

    assert_eq!(browser.cookie(), None);
    assert_eq!(app.anonymous_browser().with_cookie(&cookie).get("/").await.status, 303);
    assert_eq!(app.count("sessions").await, 0);
}

/// Stream that lasts as long as its reader has access.
async fn follow(app: &TestApp, path: &str, name: &str, value: &str) -> Body {
    let router = web::console_router(app.app().console.clone());
    let request = to(Method::GET, path).header(name, value).body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

/// Returns whether the stream ends long before its regular end.
async fn is_over(stream: Body) -> bool {
    timeout(Duration::from_secs(20), to_bytes(stream, usize::MAX)).await.is_ok()
}

#[tokio::test]
async fn streams_end_with_their_key_or_session() {
    let app = TestApp::start().await;
    app.model_plays([says("One.")]);
    app.sms("one").await;
    let mut browser = app.browser().await;
    let key = new_key(&mut browser, "Stats").await;
    let cookie = browser.cookie().unwrap().to_owned();
    let (events, live) = ("/api/v1/conversations/1/events", "/conversations/1/live?after=0");

    let by_key = follow(&app, events, "x-api-key", &key).await;
    browser.submit("/keys/1/revoke", &[]).await;
    assert!(is_over(by_key).await, "the key is revoked");

    let by_session = follow(&app, events, "cookie", &cookie).await;
    let by_page = follow(&app, live, "cookie", &cookie).await;
    browser.submit("/sign-out", &[]).await;
    assert!(is_over(by_session).await && is_over(by_page).await, "somebody signed out");

    let mut browser = app.browser().await;
    let before = browser.cookie().unwrap().to_owned();
    let by_page = follow(&app, live, "cookie", &before).await;
    let link = app.sign_in_link().await;
    let token = browser.get(&link).await.field("token").unwrap();
    browser.post(auth::LINK_PATH, &[("token", &token)]).await;
    assert!(is_over(by_page).await, "another session took its place");
}

#[tokio::test]
async fn repeated_sign_in_replaces_the_session() {
    let app = with_password().await;
    let mut browser = app.browser().await;
    let before = browser.cookie().unwrap().to_owned();

    try_password(&mut browser, PASSWORD).await;

    assert_ne!(browser.cookie(), Some(before.as_str()));
    assert_eq!(app.count("sessions").await, 1);
}

#[tokio::test]
async fn session_expires_a_week_after_its_last_use() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    app.pass(WEEK - 1);
    assert_eq!(browser.get("/").await.status, 200);
    app.pass(WEEK - 1);
    assert_eq!(browser.get("/").await.status, 200);
    app.pass(WEEK);

    assert_eq!(browser.get("/").await.status, 303);
    app.run_maintenance().await;
    assert_eq!(app.count("sessions").await, 0);
}

#[tokio::test]
async fn session_cookie_is_renewed_at_most_hourly() {
    let app = TestApp::start_without_model().await;
    let browser = app.browser().await;
    let given = async |path: &str| {
        let request = to(Method::GET, path).header(COOKIE, browser.cookie().unwrap());
        ask(&app, request).await.headers().get(SET_COOKIE).cloned()
    };
    app.pass(3599);
    assert_eq!(given("/").await, None);
    app.pass(1);

    let cookie = given("/").await.unwrap();
    let expected = format!("{}; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax", browser.cookie().unwrap());
    assert_eq!(cookie, expected);
    assert_eq!(given("/").await, None);
}

#[tokio::test]
async fn cookie_over_tls_is_secure_and_host_only() {
    let app = TestApp::start_without_model().await;
    let link = app.sign_in_link().await;
    let body = link.split_once('?').unwrap().1.to_owned();
    let request = to(Method::POST, "/sign-in/link")
        .header("x-forwarded-proto", "https")
        .header("sec-fetch-site", "same-origin")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");

    let answer = app.ask_console(request.body(body.into()).unwrap()).await;

    let cookie = answer.headers()[SET_COOKIE].to_str().unwrap();
    let (name, rest) = cookie.split_once('=').unwrap();
    assert_eq!(
        (name, rest.split_once(';').unwrap().1),
        ("__Host-dialarr", " Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure")
    );
    let held = cookie.split(';').next().unwrap();
    assert_eq!(app.anonymous_browser().with_cookie(held).get("/").await.status, 200);
    app.pass(3600);
    let prolonged = ask(&app, to(Method::GET, "/").header(COOKIE, held)).await;
    assert_eq!(prolonged.headers()[SET_COOKIE], cookie);
}

#[tokio::test]
async fn api_key_opens_the_api_only_until_revoked() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    let key = new_key(&mut browser, "Stats").await;
    let bearer = format!("Bearer {key}");

    assert_eq!(status(&app, with_key(&key)).await, 404);
    assert_eq!(status(&app, to(Method::GET, "/api/v1/nothing").header("authorization", &bearer)).await, 404);
    assert_eq!(status(&app, to(Method::POST, "/api/v1/nothing").header("x-api-key", &key)).await, 404);
    assert_eq!(status(&app, to(Method::GET, "/keys").header("x-api-key", &key)).await, 303);
    assert_eq!(status(&app, with_key(&key[..key.len() - 1])).await, 401);

    assert_eq!(of(&browser.submit("/keys/1/revoke", &[]).await), (303, Some("/keys")));
    assert_eq!(status(&app, with_key(&key)).await, 401);
}

#[tokio::test]
async fn api_key_is_shown_once_and_then_by_its_ending() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    let key = new_key(&mut browser, "Home <b>Assistant</b>").await;
    let ending = &key[key.len() - 4..];
    let lines = async |browser: &mut Browser<'_>| {
        let says = browser.get("/keys").await.text();
        says.split_once("Actions ").map(|(_, lines)| lines.to_owned()).unwrap()
    };

    assert!(!browser.get("/keys").await.html.contains(&key));
    assert_eq!(lines(&mut browser).await, format!("Home <b>Assistant</b> {ending} Read 21:04 never Revoke"));
    app.pass(60);
    status(&app, with_key(&key)).await;
    app.pass(59);
    status(&app, with_key(&key)).await;
    assert_eq!(lines(&mut browser).await, format!("Home <b>Assistant</b> {ending} Read 21:04 21:05 Revoke"));
}

#[tokio::test]
async fn api_key_name_has_limited_length() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    for name in ["", "  ", &"x".repeat(61), "two\nlines"] {
        let page = browser.submit("/keys", &[("name", name)]).await;
        assert_eq!(page.status, 422, "{name:?}");
        assert!(page.html.contains(r#"role="alert" id="problem">Enter a purpose of 1 to 60 characters."#));
    }
    assert_eq!(app.count("api_keys").await, 0);
}

#[tokio::test]
async fn unauthorized_api_request_gets_a_problem() {
    let app = TestApp::start_without_model().await;

    let answer = ask(&app, to(Method::GET, "/api/v1/users")).await;

    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/problem+json");
    let body = String::from_utf8(answer.into_body().to_vec()).unwrap();
    assert_eq!(
        body,
        r#"{"status":401,"title":"Unauthorized","detail":"An API key or a console session is required."}"#
    );
}

#[tokio::test]
async fn open_console_refuses_forwarded_requests_without_a_key() {
    let app = Setup::default().keyword_responder().open_console().start().await;
    let key = new_key(&mut app.anonymous_browser(), "Stats").await;
    let forwarded = |path: &str| to(Method::GET, path).header("x-forwarded-for", "203.0.113.7");

    let refused = ask(&app, forwarded("/")).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(
        str::from_utf8(refused.body()).unwrap(),
        "This request came through a proxy, and CONSOLE_AUTH=none allows only browsers on this machine. \
         To use the console through a proxy, set CONSOLE_AUTH=password and restart Dialarr.\n"
    );
    assert_eq!(status(&app, forwarded("/api/v1/nothing")).await, 403);
    assert_eq!(status(&app, forwarded("/health")).await, 200);
    assert_eq!(status(&app, forwarded("/api/v1/nothing").header("x-api-key", key)).await, 404);

    let signs_in = with_password().await;
    assert_eq!(status(&signs_in, forwarded("/sign-in")).await, 200);
}

#[tokio::test]
async fn open_console_refuses_requests_of_a_silent_proxy() {
    let app = Setup::default().keyword_responder().open_console().start().await;
    let page = || to(Method::GET, "/users");
    let form = || to(Method::POST, "/resume").header("sec-fetch-site", "same-origin");
    assert_eq!(status(&app, page().version(Version::HTTP_10)).await, 403);
    assert_eq!(status(&app, page().header(REFERER, "https://dialarr.example/")).await, 403);
    assert_eq!(status(&app, form().header(ORIGIN, "https://dialarr.example")).await, 403);

    assert_eq!(status(&app, page()).await, 200);
    assert_eq!(status(&app, page().header(REFERER, format!("{CONSOLE}/"))).await, 200);
    let link = page().header("sec-fetch-site", "cross-site").header(REFERER, "https://start.example/");
    assert_eq!(status(&app, link).await, 200);
}

#[tokio::test]
async fn open_console_needs_no_sign_in_but_refuses_other_sites() {
    let app = Setup::default().keyword_responder().open_console().start().await;
    let mut browser = app.anonymous_browser();

    let page = browser.get("/keys").await;
    assert_eq!((page.status, page.html.contains("Sign out")), (200, false));
    assert_eq!(of(&browser.get("/sign-in").await), (303, Some("/")));
    assert_eq!(status(&app, to(Method::GET, "/api/v1/nothing")).await, 404);
    assert_eq!(browser.submit("/keys", &[("name", "Stats")]).await.status, 200);

    assert_eq!(browser.post("/keys", &[("token", "wrong"), ("name", "Stats")]).await.status, 403);
    let foreign = to(Method::POST, "/keys").header(ORIGIN, "https://evil.example");
    assert_eq!(status(&app, foreign).await, 403);
    assert_eq!(app.count("api_keys").await, 1);
}

#[tokio::test]
async fn open_console_refuses_the_address_of_another_machine() {
    let app = Setup::default().keyword_responder().open_console().start().await;
    for (host, expected) in
        [("127.0.0.1:3001", 200), ("[::1]:3001", 200), ("192.168.1.2:3001", 421), ("[fd00::2]:3001", 421)]
    {
        assert_eq!(status(&app, Request::get("/").header(HOST, host)).await, expected, "{host}");
    }
}

#[tokio::test]
async fn sign_ins_and_failures_are_in_the_audit_log() {
    let app = with_password().await;
    let mut browser = app.anonymous_browser();
    for _ in 0..5 {
        try_password(&mut browser, "wrong").await;
    }
    app.pass(30);
    try_password(&mut browser, PASSWORD).await;
    new_key(&mut browser, "Stats").await;
    browser.submit("/keys/1/revoke", &[]).await;
    browser.submit("/keys/1/revoke", &[]).await;
    browser.submit("/sign-out", &[]).await;
    app.browser().await;

    assert_eq!(
        app.lines("SELECT kind || ' ' || subject || ' ' || detail AS line FROM audit_log ORDER BY id").await,
        [
            r#"password console {"by":"dialarr","set":true}"#,
            r#"sign_in_failed console {"by":"console","failed":5}"#,
            r#"sign_in console {"by":"console","failed_before":5,"with":"password"}"#,
            r#"key_made api_key:1 {"by":"console","name":"Stats","scope":"read"}"#,
            r#"key_revoked api_key:1 {"by":"console","name":"Stats"}"#,
            r#"sign_out console {"by":"console"}"#,
            r#"sign_in_link console {"by":"shell"}"#,
            r#"sign_in console {"by":"console","with":"link"}"#,
        ]
    );
}

#[tokio::test]
async fn sign_in_fails_if_the_audit_log_cannot_be_written() {
    let app = with_password().await;
    let link = app.sign_in_link().await;
    app.refuse_audit().await;
    let mut browser = app.anonymous_browser();

    assert_eq!(try_password(&mut browser, PASSWORD).await.status, 503);
    assert_eq!(use_link(&mut browser, &link).await, 503);
    assert_eq!((browser.cookie(), app.count("sessions").await), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn stalled_form_upload_times_out() {
    let world = World::start().await;
    let never = Body::from_stream(futures_util::stream::pending::<Result<Bytes, Infallible>>());
    let request = to(Method::POST, "/api/v1/messages").header(ORIGIN, CONSOLE);
    let request = request.header(CONTENT_TYPE, "application/json").body(never).unwrap();
    let asked = tokio::time::Instant::now();
    let answer = web::console_router(world.console()).oneshot(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), asked.elapsed().as_secs()), (400, 10));
}
