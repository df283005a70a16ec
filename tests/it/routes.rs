//! Every route of both listeners, from the source and the API document: security headers, access, form tokens and body
//! limits. A new route is checked automatically.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use dialarr::access_rules::TrustedProxies;
use dialarr::conversation::channel::Channel;
use dialarr::conversation::channel_list::CHANNELS;
use dialarr::web::auth::LINK_PATH;
use dialarr::web::http_server::{ListenerLimits, serve_sockets};
use dialarr::web::{self, AGENT_PATH};
use futures_util::stream;
use http::header::{CONTENT_TYPE, COOKIE, HOST, HeaderMap, LOCATION, ORIGIN, SET_COOKIE};
use http::request::Builder;
use http::{Method, Request, StatusCode};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::harness::browser::CONSOLE;
use crate::harness::phone::Channels;
use crate::harness::settings::{StoredSettings, with_settings};
use crate::harness::world::World;
use crate::harness::{TestApp, reports};

/// Routes of the console that need no sign-in.
const OPEN: [&str; 12] = [
    "GET /assets/apple-touch-icon.png",
    "GET /assets/icon-192.png",
    "GET /assets/icon-512.png",
    "GET /assets/icon.svg",
    "GET /assets/live.js",
    "GET /assets/manifest.webmanifest",
    "GET /assets/style.css",
    "GET /health",
    "GET /sign-in",
    "GET /sign-in/link",
    "POST /sign-in",
    "POST /sign-in/link",
];
/// Forms that need no token, because there is no session yet.
const UNSIGNED: [&str; 2] = ["POST /sign-in", "POST /sign-in/link"];
/// Routes that are reachable from the internet.
const WEBHOOKS: [&str; 11] = [
    "GET /health",
    "GET /ready",
    "POST /webhook/smsgate",
    "POST /webhook/smsgate/status",
    "POST /webhook/telegram",
    "POST /webhook/telegram/status",
    "POST /webhook/twilio",
    "POST /webhook/twilio/status",
    "POST /webhook/{library}",
    "POST /webhooks/seerr",
    "PUT /webhook/{library}",
];
/// Headers that instruct browsers, and headers that identify the server.
const REPORTED_HEADERS: [&str; 10] = [
    "access-control-allow-credentials",
    "access-control-allow-origin",
    "cache-control",
    "content-security-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "referrer-policy",
    "server",
    "x-content-type-options",
    "x-powered-by",
];
const EVIL: &str = "https://evil.example";
const FORM: &str = "application/x-www-form-urlencoded";
const FORM_LIMIT: usize = 64 << 10;
const REPORT_LIMIT: usize = 1 << 20;
const PIECE: usize = 16 << 10;
/// Number of chunks after which a body ends, so that a reader of the whole body is detected without a wait.
const PIECES: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Path in the notation of the router, with its braces.
    pub(crate) path: String,
}

impl Route {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Path of an existing object.
    pub(crate) fn uri(&self) -> String {
        self.path.replace("{id}", "1").replace("{library}", "sonarr").replace("{instance}", "radarr")
    }

    pub(crate) fn is_page(&self) -> bool {
        !self.path.starts_with("/api/") && self.path != "/metrics" && !self.is_for_agents()
    }

    /// Returns whether keys for programs open it.
    pub(crate) fn is_of_api(&self) -> bool {
        !self.is_page() && !self.is_for_agents()
    }

    /// Returns whether only keys for agents open it.
    pub(crate) fn is_for_agents(&self) -> bool {
        self.path == AGENT_PATH
    }

    fn changes(&self) -> bool {
        self.method != Method::GET
    }

    fn is_stream(&self) -> bool {
        self.path.ends_with("/live") || self.path.ends_with("/events")
    }

    fn to(&self) -> Builder {
        Request::builder().method(self.method.clone()).uri(self.uri()).header(HOST, "localhost:3001")
    }
}

pub(crate) fn source(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web").join(path)).unwrap()
}

/// Returns the routes that a function lists, which must be its only ones.
fn listed(source: &str, function: &str) -> Vec<Route> {
    let body = &source[source.find(&format!("fn {function}(")).unwrap()..];
    let body = body.split("\n}\n").next().unwrap();
    let body = &body.replace(".fallback(console::show_not_found)", "");
    for way in [".nest", ".fallback", ".route_service", "any(", "on("] {
        assert!(!body.contains(way), "{function} has routes by `{way}`, which nothing here knows");
    }
    let known = ["api.router)", "channel_webhook::", "asset_routes()", "user_routes()"];
    let is_known = |rest: &&str| known.iter().any(|start| rest.starts_with(start));
    let merged: Vec<&str> = body.split(".merge(").skip(1).filter(|rest| !is_known(rest)).collect();
    assert!(merged.is_empty(), "{function} merges routes that nothing here knows: {merged:?}");
    body.split(".route(").skip(1).flat_map(of_line).collect()
}

/// Parses a line such as `"/keys", get(keys::show).post(keys::make))`.
fn of_line(rest: &str) -> Vec<Route> {
    let (path, methods) = rest.split_once(',').unwrap();
    let path = match path.trim().rsplit("::").next().unwrap() {
        "LINK_PATH" => LINK_PATH,
        "AGENT_PATH" => AGENT_PATH,
        literal => literal.strip_prefix('"').unwrap().strip_suffix('"').unwrap(),
    };
    let methods = methods.lines().next().unwrap();
    let named = |method: &Method| methods.contains(&format!("{}(", method.as_str().to_lowercase()));
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let routes: Vec<Route> =
        methods.into_iter().filter(named).map(|method| Route { method, path: path.to_owned() }).collect();
    assert!(!routes.is_empty(), "no method is known of {rest}");
    routes
}

fn webhook_routes() -> Vec<Route> {
    let of_channel = |channel: Channel| {
        let path = format!("/webhook/{}", channel.word());
        [path.clone(), format!("{path}/status")].map(|path| Route { method: Method::POST, path })
    };
    let with_webhooks = CHANNELS.into_iter().filter(|channel| channel.profile().receiving.webhook);
    let mut routes = listed(&source("mod.rs"), "webhook_router");
    routes.extend(with_webhooks.flat_map(of_channel));
    routes
}

/// Returns the routes of the console from the source, and those of the API from its document, which is built from its
/// routes.
pub(crate) async fn console_routes(app: &TestApp) -> Vec<Route> {
    console_routes_of(&app.program().await.get("/api/v1/openapi.json").await.json())
}

/// Returns the paths of existing objects that a signed-in operator can read, except endless streams.
pub(crate) fn readable_paths(document: &Value) -> Vec<String> {
    let routes = console_routes_of(document).into_iter();
    let readable = routes.filter(|route| !route.changes() && !route.is_stream());
    readable.map(|route| route.uri()).collect()
}

fn console_routes_of(document: &Value) -> Vec<Route> {
    let described = document["paths"].as_object().unwrap().iter().flat_map(|(path, operations)| {
        operations
            .as_object()
            .unwrap()
            .keys()
            .map(|method| Route { method: method.to_uppercase().parse().unwrap(), path: path.clone() })
    });
    let mut routes: Vec<Route> = described.collect();
    for function in ["console_router", "asset_routes", "user_routes"] {
        routes.extend(listed(&source("mod.rs"), function));
    }
    let api = source("api/mod.rs");
    routes.extend(api.split(".route(").skip(1).flat_map(of_line));
    assert!(routes.len() > 60, "{routes:?}");
    routes
}

pub(crate) fn console(app: &TestApp) -> Router {
    web::console_router(app.app().console.clone())
}

fn webhooks(app: &TestApp) -> Router {
    web::webhook_router(app.app().webhooks.clone())
}

/// Returns the status and the headers only, because the body of a stream does not end.
pub(crate) async fn head(router: &Router, request: Builder, body: Body) -> (StatusCode, HeaderMap) {
    let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap().into_parts().0;
    (response.status, response.headers)
}

fn reported_headers(headers: &HeaderMap) -> BTreeMap<&'static str, String> {
    let header = |name: &'static str| Some((name, headers.get(name)?.to_str().unwrap().to_owned()));
    REPORTED_HEADERS.into_iter().filter_map(header).collect()
}

/// Returns the headers of every response. Only existing assets and posters may be cached.
fn expected(path: &str, status: StatusCode) -> BTreeMap<&'static str, String> {
    let kept = match status.is_success() {
        true if path.starts_with("/assets/") => "max-age=3600",
        true if path.starts_with("/posters/") => "private, max-age=300",
        _ => "no-store",
    };
    let policy =
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    [
        ("cache-control", kept),
        ("content-security-policy", policy),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

/// Returns whether a cookie is the session's, with all protections.
fn is_kept_well(cookie: &str) -> bool {
    let (name, rest) = cookie.split_once('=').unwrap();
    let (_, attributes) = rest.split_once("; ").unwrap();
    let attributes: Vec<&str> =
        attributes.split("; ").filter(|attribute| !attribute.starts_with("Max-Age=")).collect();
    match name {
        "dialarr" => attributes == ["Path=/", "HttpOnly", "SameSite=Lax"],
        "__Host-dialarr" => attributes == ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"],
        _ => false,
    }
}

/// Returns a body beyond every limit, with the number of bytes that were read of it.
fn endless() -> (Body, Arc<AtomicUsize>) {
    let read = Arc::new(AtomicUsize::new(0));
    let counter = read.clone();
    let pieces = (0..PIECES).map(move |_| {
        counter.fetch_add(PIECE, Ordering::Relaxed);
        Ok::<Bytes, Infallible>(Bytes::from_static(&[b'a'; PIECE]))
    });
    (Body::from_stream(stream::iter(pieces)), read)
}

/// Sends messages, so that every page has content.
async fn used() -> TestApp {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    app
}

#[tokio::test]
async fn every_console_response_has_security_headers() {
    let app = used().await;
    let router = console(&app);
    let mut routes = console_routes(&app).await;
    routes.extend(
        ["/nothing", "/api/v1/nothing", "/assets"]
            .map(|path| Route { method: Method::GET, path: path.to_owned() }),
    );
    let browser = app.browser().await;
    let cookie = browser.cookie().unwrap();
    for route in &routes {
        for (origin, cookie) in [(CONSOLE, ""), (CONSOLE, cookie), (EVIL, cookie)] {
            for method in [route.method.clone(), Method::DELETE, Method::HEAD, Method::OPTIONS] {
                let asked = Route { method, path: route.path.clone() };
                let request = asked.to().header(ORIGIN, origin).header(COOKIE, cookie);
                let (status, headers) = head(&router, request, Body::empty()).await;
                assert_eq!(
                    reported_headers(&headers),
                    expected(&route.path, status),
                    "{status} {} from {origin}",
                    asked.name()
                );
            }
        }
    }
}

#[tokio::test]
async fn every_cookie_is_http_only_and_same_site() {
    let app = used().await;
    let router = console(&app);
    let mut given = Vec::new();
    for route in console_routes(&app).await {
        let mut browser = app.browser().await;
        let token = browser.get("/keys").await.field("token").unwrap();
        // By then the session is renewed by every request.
        app.pass(3600);
        let link = app.sign_in_link().await;
        let body = match route.name().as_str() {
            "POST /sign-in/link" => link.split_once('?').unwrap().1.to_owned(),
            "POST /sign-out" => format!("token={token}"),
            _ => String::new(),
        };
        let request = route.to().header(ORIGIN, CONSOLE).header(COOKIE, browser.cookie().unwrap());
        let (_, headers) = head(&router, request.header(CONTENT_TYPE, FORM), body.into()).await;
        for cookie in headers.get_all(SET_COOKIE) {
            assert!(is_kept_well(cookie.to_str().unwrap()), "{}: {cookie:?}", route.name());
            given.push(route.name());
        }
    }
    for name in ["GET /", "POST /sign-in/link", "POST /sign-out"] {
        assert!(given.iter().any(|by| by == name), "no cookie by {name}: {given:?}");
    }
}

/// Returns the routes that do not refuse a request without a session and a key.
async fn open_routes(app: &TestApp) -> Vec<String> {
    let router = console(app);
    let mut open = Vec::new();
    let mut routes = console_routes(app).await;
    routes.extend(
        ["/nothing", "/api/v1/nothing"].map(|path| Route { method: Method::GET, path: path.to_owned() }),
    );
    for route in routes {
        for method in [route.method.clone(), Method::PUT, Method::DELETE] {
            let asked = Route { method, path: route.path.clone() };
            let (status, headers) = head(&router, asked.to().header(ORIGIN, CONSOLE), Body::empty()).await;
            let to_sign_in = headers.get(LOCATION).is_some_and(|to| to.as_bytes().starts_with(b"/sign-in"));
            let turned_away = if route.is_page() {
                status == StatusCode::SEE_OTHER && to_sign_in
            } else {
                status == StatusCode::UNAUTHORIZED
            };
            if !turned_away && status != StatusCode::METHOD_NOT_ALLOWED {
                open.push(asked.name());
            }
        }
    }
    open.sort_unstable();
    open
}

#[tokio::test]
async fn only_the_named_routes_are_open_without_a_sign_in() {
    assert_eq!(open_routes(&used().await).await, OPEN);
}

#[tokio::test]
async fn unfinished_setup_opens_no_further_route() {
    with_settings(&[], async |app, settings| {
        assert_eq!(open_routes(app).await, OPEN);
        assert!(settings.load_sources().await.unwrap().stored().is_empty());
    })
    .await;
}

#[tokio::test]
async fn api_key_opens_no_page_except_open_ones() {
    let app = used().await;
    let router = console(&app);
    let program = app.program().await;
    for route in console_routes(&app).await.iter().filter(|route| route.is_page()) {
        let request = program.to(route.method.clone(), &route.uri()).header(ORIGIN, CONSOLE);
        let (status, _) = head(&router, request, Body::empty()).await;
        let is_open = OPEN.contains(&route.name().as_str());
        assert!(is_open || status == StatusCode::SEE_OTHER, "{status} {}", route.name());
    }
}

#[tokio::test]
async fn changes_need_the_same_site_and_forms_their_token() {
    let mut app = used().await;
    let stored = StoredSettings::of(&app);
    app.offer_settings(stored.settings.clone());
    let router = console(&app);
    let routes = console_routes(&app).await;
    let (mut browser, mut other) = (app.browser().await, app.browser().await);
    let token = browser.get("/keys").await.field("token").unwrap();
    let foreign_token = other.get("/keys").await.field("token").unwrap();
    let before = app.changed_rows().await;
    let asked = |route: &Route| {
        let request = route.to().header(COOKIE, browser.cookie().unwrap());
        request.header(CONTENT_TYPE, if route.is_page() { FORM } else { "application/json" })
    };
    // No session opens the address for agents at all.
    for route in routes.iter().filter(|route| route.changes() && !route.is_for_agents()) {
        let name = route.name();
        for request in [
            asked(route),
            asked(route).header(ORIGIN, EVIL),
            asked(route).header(ORIGIN, "null"),
            asked(route).header("sec-fetch-site", "cross-site"),
            asked(route).header("sec-fetch-site", "same-site").header(ORIGIN, CONSOLE),
        ] {
            let (status, _) = head(&router, request, format!("token={token}").into()).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{name}");
        }
        if route.is_page() && !UNSIGNED.contains(&name.as_str()) {
            for body in ["", "token=", "token=wrong", &format!("token={foreign_token}")] {
                let (status, _) =
                    head(&router, asked(route).header(ORIGIN, CONSOLE), body.to_owned().into()).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{name} with {body:?}");
            }
        }
    }
    assert_eq!(app.changed_rows().await, before);
}

#[tokio::test]
async fn no_route_reads_a_body_beyond_its_limit() {
    let app = used().await;
    let browser = app.browser().await;
    let (console, webhooks) = (console(&app), webhooks(&app));
    let pages = console_routes(&app).await.into_iter().map(|route| (&console, route));
    let outside = webhook_routes().into_iter().map(|route| (&webhooks, route));
    let mut takers = 0;
    for (router, route) in pages.chain(outside) {
        let kind = if route.is_page() { FORM } else { "application/json" };
        let request = route.to().header(ORIGIN, CONSOLE).header(COOKIE, browser.cookie().unwrap());
        let request = request.header(CONTENT_TYPE, kind).header("x-twilio-signature", "none");
        let request = request.header("x-dialarr-token", reports::SECRET);
        let limit = if route.path == "/webhook/{library}" { REPORT_LIMIT } else { FORM_LIMIT };
        let (body, read) = endless();
        let (status, _) = head(router, request, body).await;
        let read = read.load(Ordering::Relaxed);
        let name = route.name();
        assert!(read <= limit + PIECE, "{name} read {read} bytes");
        assert!(read == 0 || status == StatusCode::PAYLOAD_TOO_LARGE, "{status} {name} after {read} bytes");
        takers += usize::from(read > 0);
    }
    assert!(takers > 30, "{takers} routes read a body");
}

#[tokio::test(start_paused = true)]
async fn stalled_webhook_body_times_out() {
    let world = World::start_with_channels(Channels::Both).await;
    let router = web::webhook_router(world.webhooks());
    for route in webhook_routes().iter().filter(|route| route.changes()) {
        let never = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let request = route.to().header("x-twilio-signature", "none").header(CONTENT_TYPE, FORM);
        let request = request.header("x-signature", "none").header("x-dialarr-token", reports::SECRET);
        let asked = Instant::now();
        let (status, _) = head(&router, request, never).await;
        let answered = (status, asked.elapsed().as_secs());
        let expected = match route.path.as_str() {
            // An arr event has presented the secret by then.
            "/webhook/{library}" => (StatusCode::SERVICE_UNAVAILABLE, 14),
            // It presents no secret, and its body is not read.
            "/webhooks/seerr" => (StatusCode::UNAUTHORIZED, 0),
            // No bot is configured.
            "/webhook/telegram" | "/webhook/telegram/status" => (StatusCode::SERVICE_UNAVAILABLE, 0),
            _ => (StatusCode::REQUEST_TIMEOUT, 3),
        };
        assert_eq!(answered, expected, "{}", route.name());
    }
}

#[tokio::test]
async fn webhook_listener_serves_only_its_routes() {
    let app = used().await;
    let routes = webhook_routes();
    let mut names: Vec<String> = routes.iter().map(Route::name).collect();
    names.sort_unstable();
    assert_eq!(names, WEBHOOKS);

    let router = webhooks(&app);
    let elsewhere = console_routes(&app).await.into_iter().filter(|route| route.path != "/health");
    for route in elsewhere {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            let asked = Route { method, path: route.path.clone() };
            let (status, _) = head(&router, asked.to(), Body::empty()).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{}", asked.name());
        }
    }
}

#[tokio::test]
async fn webhook_responses_have_security_headers_and_need_a_signature() {
    let app = used().await;
    let router = webhooks(&app);
    let (texts, reports) = (app.count("inbound_events").await, app.count("arr_events").await);
    let mut routes = webhook_routes();
    routes.push(Route { method: Method::GET, path: "/nothing".to_owned() });
    for route in &routes {
        for method in [route.method.clone(), Method::DELETE, Method::HEAD, Method::OPTIONS] {
            let asked = Route { method, path: route.path.clone() };
            let request = asked.to().header(ORIGIN, EVIL).header(CONTENT_TYPE, FORM);
            let (status, headers) = head(&router, request, "MessageSid=SM1&From=%2B15550100002".into()).await;
            assert_eq!(
                reported_headers(&headers),
                expected(&route.path, status),
                "{status} {}",
                asked.name()
            );
            assert_eq!(headers.get(SET_COOKIE), None, "{}", asked.name());
        }
        if route.changes() {
            let (status, _) = head(&router, route.to(), Body::empty()).await;
            // Neither a phone nor a bot is configured.
            let unused = ["/webhook/smsgate", "/webhook/telegram"];
            let is_unused = unused.iter().any(|path| route.path.starts_with(path))
                && status == StatusCode::SERVICE_UNAVAILABLE;
            let refused = is_unused || matches!(status, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED);
            assert!(refused, "{status} {}", route.name());
        }
    }
    assert_eq!((app.count("inbound_events").await, app.count("arr_events").await), (texts, reports));
}

/// Returns the header names of a response on the socket.
async fn on_the_wire(router: Router, limits: ListenerLimits, request: &str) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve_sockets(listener, router, limits, stop.clone()));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    stop.cancel();
    server.await.unwrap().unwrap();
    let head = answer.split("\r\n\r\n").next().unwrap();
    head.lines().skip(1).map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn responses_do_not_name_the_server_software() {
    let app = used().await;
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut known: Vec<&str> = vec!["connection", "content-length", "content-type", "date"];
    known.extend(expected("/health", StatusCode::OK).into_keys());
    known.sort_unstable();
    for (router, limits) in [
        (console(&app), ListenerLimits::CONSOLE),
        (webhooks(&app), ListenerLimits::for_webhooks(TrustedProxies::default())),
    ] {
        let mut names = on_the_wire(router, limits, request).await;
        names.sort_unstable();
        assert_eq!(names, known);
    }
}
