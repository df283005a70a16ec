//! Stored secrets of the built program: none is in a page, the API, a command's output, the log or the database, even
//! if the servers return what they receive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use dialarr::config::{SettingGroup, VARIABLES, Variable};
use dialarr::web::auth::LINK_PATH;
use serde_json::json;

use crate::harness::browser::{Browser, Page};
use crate::harness::cli::Cli;
use crate::harness::served::serve;
use crate::routes::readable_paths;

const SECRETS: &str = "dialarr.secrets.json";
/// Groups with a button that tests their connections.
const TESTED: [SettingGroup; 4] =
    [SettingGroup::Library, SettingGroup::Model, SettingGroup::Texting, SettingGroup::Notifications];

/// Program with a browser that has used its setup link, and everything that it has shown.
struct Observed<'a> {
    browser: Browser<'a>,
    shown: Vec<(String, String)>,
}

impl Observed<'_> {
    fn note(&mut self, source: &str, text: String) {
        self.shown.push((source.to_owned(), text));
    }

    /// Fills in the form of a group, presses the button, and returns the page that follows.
    async fn submit(&mut self, group: SettingGroup, button: &str, values: &[(&str, &str)]) -> Page {
        let page = self.browser.get("/settings").await;
        let button = format!("{button} {}", group.label());
        let page = self.browser.presses(&page, &button, values).await;
        self.note(&button, page.html.clone());
        page
    }

    /// Opens every page and every resource of the API.
    async fn visit_everything(&mut self) {
        let document = self.browser.get("/api/v1/openapi.json").await.html;
        let mut paths = readable_paths(&serde_json::from_str(&document).unwrap());
        let steps = ["you", "library", "media", "discovery", "model", "texting", "webhooks", "finish"];
        paths.extend(steps.map(|step| format!("/setup?step={step}")));
        for path in paths {
            let page = self.browser.get(&path).await;
            self.note(&path, format!("{} {:?} {}", page.status, page.location, page.html));
        }
    }
}

/// Returns a value of a secret that occurs nowhere else.
fn hidden_value(variable: &Variable) -> String {
    let number = VARIABLES.iter().position(|other| other == variable).unwrap();
    format!("5ec2e75ec2e7{:020x}", number * 0x1111)
}

/// Builds a server that rejects every request with a status, and returns everything that it received in its error.
fn echo(status: Arc<AtomicU16>) -> Router {
    Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
        let headers: BTreeMap<String, String> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let text = format!("invalid key {uri} {headers:?} {}", String::from_utf8_lossy(&body));
        let error = json!({ "message": text, "error": { "message": text }, "errorMessage": text, "code": 1,
            "ok": false, "description": text });
        let status = StatusCode::from_u16(status.load(Ordering::SeqCst)).unwrap();
        async move { (status, error.to_string()) }
    })
}

/// Returns values for the forms: each URL is that of the server, and each secret has a value of its own.
fn form_values(server: &str) -> Vec<(SettingGroup, &'static str, String)> {
    let needed = [
        "ADMIN_PHONE",
        "LLM_MODEL",
        "EMBEDDINGS_MODEL",
        "TWILIO_ACCOUNT_SID",
        "TWILIO_PHONE_NUMBER",
        "TWILIO_API_KEY_SID",
        "SMSGATE_PHONE_NUMBER",
    ];
    let value = |variable: &Variable| match variable.name {
        "PUBLIC_URL" => Some("https://sms.example.org".to_owned()),
        name if variable.is_secret() && name.ends_with("_URL") => {
            Some(format!("{server}/{}", hidden_value(variable)))
        }
        // The id of the bot is not secret.
        "TELEGRAM_BOT_TOKEN" => Some(format!("501:{}", hidden_value(variable))),
        _ if variable.is_secret() => Some(hidden_value(variable)),
        name if name.ends_with("_URL") => Some(server.to_owned()),
        name if needed.contains(&name) => Some(variable.example.split_once('=').unwrap().1.to_owned()),
        _ => None,
    };
    let values = VARIABLES.iter().filter(|variable| variable.is_storable());
    values.filter_map(|variable| Some((variable.group, variable.name, value(variable)?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_secret_appears_nowhere_but_in_its_file() {
    let status = Arc::new(AtomicU16::new(401));
    let server = serve(echo(status.clone())).await;
    let cli = Cli::new();
    let environment =
        [("HOST", "127.0.0.1"), ("PORT", "0"), ("CONSOLE_BIND", "127.0.0.1:0"), ("RUST_LOG", "trace")];
    let mut served = cli.serve(&environment);
    let console = served.console();
    let line = served.log_line("nothing is configured");
    let link = line.split(&console).nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let log = served.collect_log();
    let mut observed = Observed { browser: Browser::at(&console), shown: Vec::new() };
    let token = observed.browser.get(&link).await.field("token").unwrap();
    assert_eq!(observed.browser.post(LINK_PATH, &[("token", &token)]).await.status, 303);

    // Pushover has a fixed address in the internet, so it is configured after all tests.
    let (late, values): (Vec<_>, Vec<_>) =
        form_values(&server).into_iter().partition(|(_, name, _)| name.starts_with("PUSHOVER"));
    let groups = VARIABLES.chunk_by(|one, other| one.group == other.group).map(|group| group[0].group);
    for group in groups {
        let values = values.iter().filter(|(of, ..)| *of == group);
        let values: Vec<_> = values.map(|(_, name, value)| (*name, value.as_str())).collect();
        if !values.is_empty() {
            observed.submit(group, "Save", &values).await.assert_shows(200, "Saved.");
        }
    }
    for rejection in [401, 400, 500, 200] {
        status.store(rejection, Ordering::SeqCst);
        for group in TESTED {
            let page = observed.submit(group, "Save and test", &[]).await;
            assert!(page.html.contains("class=\"report\""), "{}", page.text());
        }
        let page = observed.browser.get("/setup?step=webhooks").await;
        observed.note("webhooks", page.html);
    }
    for command in [&["doctor"][..], &["config", "show"], &["config", "export"], &["health"]] {
        let ended = tokio::task::block_in_place(|| cli.run(command, &environment));
        observed.note(&format!("{command:?}"), ended.output + &ended.errors);
    }
    let late: Vec<_> = late.iter().map(|(_, name, value)| (*name, value.as_str())).collect();
    observed.submit(SettingGroup::Notifications, "Save", &late).await.assert_shows(200, "Saved.");
    observed.visit_everything().await;

    let Observed { mut shown, .. } = observed;
    assert_eq!(served.terminate().0, Some(0));
    shown.push(("log".to_owned(), log.join().unwrap()));
    for file in cli.names().into_iter().filter(|name| name != SECRETS) {
        shown.push((file.clone(), String::from_utf8_lossy(&cli.read(&file)).into_owned()));
    }
    assert_eq!(cli.mode(SECRETS), 0o600);
    let stored = String::from_utf8(cli.read(SECRETS)).unwrap();
    for secret in VARIABLES.iter().filter(|variable| variable.is_secret()) {
        let value = hidden_value(secret);
        // The file has only the hash of the console password.
        assert_eq!(stored.contains(&value), secret.name != "CONSOLE_PASSWORD", "{}", secret.name);
        let leaks = shown.iter().filter_map(|(source, text)| {
            let start = text.find(&value)?;
            Some(format!("{source}: {}", text.get(start.saturating_sub(200)..start + 40).unwrap_or_default()))
        });
        assert_eq!(leaks.collect::<Vec<_>>(), [""; 0], "{} is shown", secret.name);
    }
    assert!(shown.len() > 50, "{}", shown.len());
}
