//! The console in a browser: serves a program among simulated peers, and `console.mjs` uses it like an operator. Run
//! this test by name: it needs Node.js with playwright-core and axe-core, and Chromium.

mod assistant;
mod rooms;
mod switches;
mod typist;
mod volume;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use dialarr::access_rules::{AccessRules, AllowedHosts, ConsolePassword, SignIn};
use dialarr::app::{App, AppBlueprint};
use dialarr::arr::fake::demo_library::create_demo_servers;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::http::{HttpClient, install_tls};
use dialarr::messaging::twilio::fake::FakeTwilio;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::web;
use dialarr::web::http_server::{ListenerLimits, serve_sockets};
use jiff::tz::TimeZone;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use switches::Switches;
use typist::{RIDDLE, STORY, Typist};

const ANN: &str = "+15550100002";
const PASSWORD: &str = "a horse and a battery";
/// First messages of the household, so that no page is empty. The newcomer's name is hostile.
const DAY: [(&str, &str); 9] = [
    (ANN, "status"),
    (ANN, "add fight club"),
    (ANN, "have heat"),
    ("+15550100003", "hello"),
    ("+15550100003", "Bobby Tables"),
    ("+15550100004", "hi <script>alert(1)</script>"),
    (ANN, "upcoming"),
    (ANN, "remove the matrix"),
    (ANN, "no"),
];

/// Environment variable with the folder of the Node.js modules.
const MODULES: &str = "DIALARR_NODE_MODULES";

/// Console of a program among simulated peers, served to a browser.
struct ConsoleServer {
    app: Arc<App>,
    base: String,
    stop: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

impl ConsoleServer {
    async fn start(database: &Path, peers: &SimulatedPeers, mut blueprint: AppBlueprint) -> Result<Self> {
        let db = Db::open(database.to_str().context("a path that is not UTF-8")?)?;
        let password = ConsolePassword::parse(PASSWORD).map_err(anyhow::Error::msg)?;
        blueprint.console = AccessRules { sign_in: SignIn::Password(password), hosts: AllowedHosts::local() };
        let app = Arc::new(App::start(db, peers.clock.clone(), blueprint).await?);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let base = format!("http://{}", listener.local_addr()?);
        let stop = CancellationToken::new();
        let router = web::console_router(app.console.clone());
        let server = tokio::spawn(serve_sockets(listener, router, ListenerLimits::CONSOLE, stop.clone()));
        Ok(Self { app, base, stop, server })
    }

    /// Runs a script in the browser with the console and `environment`. Its screenshots are in `shots`.
    async fn run_script(&self, name: &str, shots: &Path, environment: &[(&str, &str)]) -> Result<()> {
        let modules = env::var(MODULES).with_context(|| format!("failed to read {MODULES}"))?;
        let mut script = Command::new("node");
        script
            .arg(format!("tests/browser/{name}"))
            .envs([("BASE", self.base.as_str()), ("PASSWORD", PASSWORD)])
            .envs(environment.iter().copied())
            .env("MODULES", &modules)
            .env("SHOTS", shots)
            .stdin(Stdio::null());
        let status =
            tokio::task::spawn_blocking(move || script.status()).await?.context("failed to run node")?;
        ensure!(status.success(), "the browser found faults; its pictures are in {}", shots.display());
        Ok(())
    }

    async fn stop(self) -> Result<()> {
        self.app.drain_turns().await;
        self.stop.cancel();
        self.server.await??;
        // A connection of the script may still hold the program, which ends with the test.
        if let Some(app) = Arc::into_inner(self.app) {
            app.close().await;
        }
        Ok(())
    }
}

/// Returns an empty folder for screenshots: those of an earlier run would be mistaken for those of this run.
fn create_shots_folder(path: &str) -> Result<PathBuf> {
    let shots = env::current_dir()?.join(path);
    if shots.exists() {
        fs::remove_dir_all(&shots)?;
    }
    fs::create_dir_all(&shots)?;
    Ok(shots)
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_watches_and_decides_in_a_browser() -> Result<()> {
    let shots = create_shots_folder("target/browser")?;
    install_tls();
    let (radarr, sonarr) = create_demo_servers(Clock::System.now());
    let peers = SimulatedPeers::new(Clock::System, radarr.clone(), sonarr, "https://sms.example.org");
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("browser.db");
    let typist = Typist::default();
    let switches = Switches::new(&peers, database.clone(), typist.is_down.clone());
    let mut blueprint =
        peers.blueprint(simulation::simulation_settings(TimeZone::UTC), Some(Arc::new(typist)))?;
    switches.apply(&mut blueprint);
    blueprint.settings.context_window = Some(8_000);
    blueprint.admin = Some(PhoneNumber::parse(ANN)?);
    let console = ConsoleServer::start(&database, &peers, blueprint).await?;
    spend_a_day(&console.app, &peers).await?;

    let switch_listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let switch_base = format!("http://{}", switch_listener.local_addr()?);
    let switch_router = switches.router(console.app.clone());
    let switch_server = tokio::spawn(async move { axum::serve(switch_listener, switch_router).await });
    let environment = [("STORY", STORY), ("RIDDLE", RIDDLE), ("SWITCHES", switch_base.as_str())];
    let outcome = console.run_script("console.mjs", &shots, &environment).await;
    let deleted = radarr.removed_ids().len();
    switch_server.abort();
    console.stop().await?;

    outcome?;
    assert_eq!(deleted, 2, "each approval deletes one film");
    Ok(())
}

async fn spend_a_day(app: &App, peers: &SimulatedPeers) -> Result<()> {
    for text in DAY {
        bring(text, app, peers).await?;
        app.engine.scheduler.wait_until_idle().await;
        app.relay.wait_until_settled().await?;
    }
    // Its turn fails after a minute, during the browser's run.
    bring((ANN, "tell me a riddle"), app, peers).await
}

async fn bring((from, body): (&str, &str), app: &App, peers: &SimulatedPeers) -> Result<()> {
    let webhook = HttpClient::in_process(web::in_process(web::webhook_router(app.webhooks.clone())));
    let answer =
        FakeTwilio::deliver_request(peers.twilio.inbound_form(from, body).into_signed_request()?, &webhook)
            .await?;
    ensure!(answer.status() == 200, "the webhook answers {}", answer.status());
    Ok(())
}
