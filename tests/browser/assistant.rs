//! The setup assistant in a browser: the built program starts with nothing configured, `setup.mjs` sets it up against
//! fakes, and a text then deletes a movie.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use axum::Router;
use dialarr::arr::fake::demo_library::create_demo_servers;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::Address;
use dialarr::http::{HttpClient, install_tls};
use dialarr::messaging::twilio::fake::{FakeAccount, FakeTwilio, SentMessage};
use http::Uri;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::time::timeout;

use super::MODULES;

const ADMIN: &str = "+15550100002";
const NUMBER: &str = "+15550100000";
const PUBLIC_URL: &str = "https://sms.example.org";
const ACCOUNT: &str = "AC00000000000000000000000000000000";
const TOKEN: &str = "a-simulated-token";
/// Time limit for an answer by text.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Running program, which is killed at the end of the test.
struct Program {
    child: Child,
    webhooks: String,
    /// One-time link from the log.
    link: String,
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// Starts the program in an empty folder, and reads its addresses from its log.
    fn start(folder: &std::path::Path, twilio_url: &str) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dialarr"));
        command.arg("serve").current_dir(folder).env_clear();
        command.envs([("HOST", "127.0.0.1"), ("PORT", "0"), ("CONSOLE_BIND", "127.0.0.1:0")]);
        // The real Twilio is never reached.
        command.env("TWILIO_API_URL", twilio_url);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let log = child.stderr.take().context("the log is missing")?;
        let mut lines = BufReader::new(log).lines();
        let (mut webhooks, mut link) = (String::new(), String::new());
        while link.is_empty() {
            let line = lines.next().context("the program ended")??;
            if let Some((_, address)) = line.split_once(" listening address=")
                && webhooks.is_empty()
            {
                webhooks = format!("http://{}", address.trim());
            }
            if let Some((_, rest)) = line.split_once("set up Dialarr at ") {
                link = rest.split_whitespace().next().unwrap_or_default().to_owned();
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, webhooks, link })
    }
}

async fn serve(router: Router) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

#[tokio::test(flavor = "multi_thread")]
async fn assistant_leads_from_nothing_to_a_deletion_confirmed_by_text() -> Result<()> {
    let modules = env::var(MODULES).with_context(|| format!("failed to read {MODULES}"))?;
    let shots = env::current_dir()?.join("target/browser-setup");
    fs::create_dir_all(&shots)?;
    install_tls();
    let (radarr, sonarr) = create_demo_servers(Clock::System.now());
    let account = FakeAccount {
        account_sid: ACCOUNT.to_owned(),
        auth_token: TOKEN.to_owned().into(),
        number: Address::new(NUMBER),
        public_url: PUBLIC_URL.to_owned(),
    };
    let twilio = FakeTwilio::new(account, Clock::System);
    let folder = tempfile::tempdir()?;
    let started = Instant::now();
    let program = Program::start(folder.path(), &serve(twilio.router()).await?)?;
    let fields = BTreeMap::from([
        ("LINK", program.link.clone()),
        ("PASSWORD", "a horse and a battery".to_owned()),
        ("ADMIN", ADMIN.to_owned()),
        ("RADARR_URL", serve(radarr.router()).await?),
        ("RADARR_KEY", radarr.api_key().to_owned()),
        ("SONARR_URL", serve(sonarr.router()).await?),
        ("SONARR_KEY", sonarr.api_key().to_owned()),
        ("TWILIO_SID", ACCOUNT.to_owned()),
        ("TWILIO_TOKEN", TOKEN.to_owned()),
        ("NUMBER", NUMBER.to_owned()),
        ("PUBLIC_URL", PUBLIC_URL.to_owned()),
        ("WEBHOOK_URL", program.webhooks.clone()),
        ("MODULES", modules),
        ("SHOTS", shots.display().to_string()),
    ]);
    let mut script = Command::new("node");
    script.arg("tests/browser/setup.mjs").envs(fields).stdin(Stdio::null());
    let status = tokio::task::spawn_blocking(move || script.status()).await?.context("failed to run node")?;
    ensure!(status.success(), "the browser found faults; its pictures are in {}", shots.display());

    let mut sent = twilio.subscribe();
    let help = send_text(&twilio, &program, &mut sent, "?").await?;
    println!("  {} s to the first answered text: {help}", started.elapsed().as_secs());
    let prompt = send_text(&twilio, &program, &mut sent, "remove heat").await?;
    ensure!(prompt.contains("Heat") && radarr.removed_ids().is_empty(), "{prompt}");
    let report = send_text(&twilio, &program, &mut sent, "yes").await?;
    ensure!(report.starts_with("Deleted Heat"), "{report}");
    assert_eq!(radarr.removed_ids().len(), 1);
    Ok(())
}

/// Sends a text of the admin to the program, and returns the text of the answer.
async fn send_text(
    twilio: &FakeTwilio,
    program: &Program,
    sent: &mut broadcast::Receiver<SentMessage>,
    text: &str,
) -> Result<String> {
    let mut request = twilio.inbound_form(ADMIN, text).into_signed_request()?;
    let path = request.uri().path();
    *request.uri_mut() = format!("{}{path}", program.webhooks).parse::<Uri>()?;
    let response = FakeTwilio::deliver_request(request, &HttpClient::network()?).await?;
    ensure!(response.status() == 200, "the webhook answers {}", response.status());
    Ok(timeout(ANSWER_TIMEOUT, sent.recv()).await.context("no answer came")??.body)
}
