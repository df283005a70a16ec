//! The setup assistant in a browser: the built program starts with nothing configured, `setup.mjs` sets it up against
//! fakes, and a text then deletes a movie. `settings.mjs` then changes settings while members text.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
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
use url::Url;

use super::MODULES;

const ADMIN: &str = "+15550100002";
const NUMBER: &str = "+15550100000";
const PUBLIC_URL: &str = "https://sms.example.org";
const ACCOUNT: &str = "AC00000000000000000000000000000000";
const TOKEN: &str = "a-simulated-token";
/// Time limit for an answer by text.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Users who text while settings are changed.
const MEMBERS: [&str; 4] = ["+15550100011", "+15550100012", "+15550100013", "+15550100014"];
const PASSWORD: &str = "a horse and a battery";

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
    fn start(folder: &Path, twilio_url: &str) -> Result<Self> {
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
        ("PASSWORD", PASSWORD.to_owned()),
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
        ("MODULES", modules.clone()),
        ("SHOTS", shots.display().to_string()),
    ]);
    let mut script = Command::new("node");
    script.arg("tests/browser/setup.mjs").envs(fields).stdin(Stdio::null());
    let status = tokio::task::spawn_blocking(move || script.status()).await?.context("failed to run node")?;
    ensure!(status.success(), "the browser found faults; its pictures are in {}", shots.display());

    let mut sent = twilio.subscribe();
    let help = ask(&twilio, &program, &mut sent, "?").await?;
    println!("  {} s to the first answered text: {help}", started.elapsed().as_secs());
    let prompt = ask(&twilio, &program, &mut sent, "remove heat").await?;
    ensure!(prompt.contains("Heat") && radarr.removed_ids().is_empty(), "{prompt}");
    let report = ask(&twilio, &program, &mut sent, "yes").await?;
    ensure!(report.starts_with("Deleted Heat"), "{report}");
    assert_eq!(radarr.removed_ids().len(), 1);
    change_settings_under_load(&twilio, &program, &modules, &shots).await
}

/// Changes settings in the browser while members text, each after the answer to the last text.
async fn change_settings_under_load(
    twilio: &FakeTwilio,
    program: &Program,
    modules: &str,
    shots: &Path,
) -> Result<()> {
    let base = Url::parse(&program.link)?.origin().ascii_serialization();
    let mut script = Command::new("node");
    script.arg("tests/browser/settings.mjs").stdin(Stdio::null()).stdout(Stdio::piped());
    script.envs([("BASE", base.as_str()), ("PASSWORD", PASSWORD), ("MEMBERS", &MEMBERS.join(","))]);
    script.envs([("MODULES", Path::new(modules)), ("SHOTS", shots)]);
    let mut script = script.spawn().context("failed to run node")?;
    let output = script.stdout.take().context("the output is missing")?;
    let mut lines = BufReader::new(output).lines();
    while lines.next().context("the script ended")?? != "started" {}
    std::thread::spawn(move || lines.for_each(drop));
    let mut rounds = 0;
    let mut sent = twilio.subscribe();
    let status = loop {
        if let Some(status) = script.try_wait()? {
            break status;
        }
        for member in MEMBERS {
            deliver(twilio, program, member, "do we have alien").await?;
        }
        rounds += 1;
        let mut answered = Vec::new();
        for _ in MEMBERS {
            let answer = timeout(ANSWER_TIMEOUT, sent.recv()).await.context("a text was lost")??;
            ensure!(answer.body.contains("Alien"), "{}", answer.body);
            answered.push(answer.to.as_str().to_owned());
        }
        answered.sort_unstable();
        ensure!(answered == MEMBERS, "one of the texts was answered twice: {answered:?}");
    };
    ensure!(status.success(), "the browser found faults; its pictures are in {}", shots.display());
    println!("  {} texts during changes of settings", rounds * MEMBERS.len());
    // A second answer to a text would come at once.
    let extra = timeout(Duration::from_secs(3), sent.recv()).await;
    ensure!(extra.is_err(), "a text was answered twice: {extra:?}");
    ensure!(rounds >= 3, "only {rounds} texts of each member were sent");
    Ok(())
}

/// Sends a text of the admin to the program, and returns the text of the answer.
async fn ask(
    twilio: &FakeTwilio,
    program: &Program,
    sent: &mut broadcast::Receiver<SentMessage>,
    text: &str,
) -> Result<String> {
    deliver(twilio, program, ADMIN, text).await?;
    Ok(timeout(ANSWER_TIMEOUT, sent.recv()).await.context("no answer came")??.body)
}

async fn deliver(twilio: &FakeTwilio, program: &Program, from: &str, text: &str) -> Result<()> {
    let mut request = twilio.inbound_form(from, text).into_signed_request()?;
    let path = request.uri().path();
    *request.uri_mut() = format!("{}{path}", program.webhooks).parse::<Uri>()?;
    let response = FakeTwilio::deliver_request(request, &HttpClient::network()?).await?;
    ensure!(response.status() == 200, "the webhook answers {}", response.status());
    Ok(())
}
