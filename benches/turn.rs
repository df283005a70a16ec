//! Duration of the program's own work in a turn with one read, with immediate responses of the model and the peers:
//! from the signed webhook to the carrier's acceptance of the reply, in one process, with every record on disk.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dialarr::app::App;
use dialarr::arr::fake::demo_library::create_demo_servers;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::{PhoneNumber, ToolArguments};
use dialarr::engine::HouseholdSettings;
use dialarr::http::HttpClient;
use dialarr::llm::scripted::{ScriptedModel, ScriptedReply};
use dialarr::messaging::twilio::fake::FakeTwilio;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::web;
use jiff::tz::TimeZone;
use serde_json::json;

const ANN: &str = "+15550100002";
const TURNS: usize = 500;
/// The first turns fill caches.
const WARM_UP: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    dialarr::http::install_tls();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<()> {
    let (radarr, sonarr) = create_demo_servers(Clock::System.now());
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, "https://sms.example.org");
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("turn.db");
    let model = Arc::new(ScriptedModel::new(Vec::new()));
    let db = Db::open(database.to_str().context("a path that is not UTF-8")?)?;
    let mut blueprint = peers.blueprint(
        // One user texts here as fast as many users would.
        HouseholdSettings { rate_limit: None, ..simulation::simulation_settings(TimeZone::UTC) },
        Some(model.clone()),
    )?;
    blueprint.admin = Some(PhoneNumber::parse(ANN)?);
    let app = App::start(db, peers.clock.clone(), blueprint).await?;
    let webhook = HttpClient::in_process(web::in_process(web::webhook_router(app.webhooks.clone())));

    let mut times = Vec::with_capacity(TURNS);
    for turn in 0..WARM_UP + TURNS {
        model.replace_script(vec![
            ScriptedReply::Calls(vec![("check_status".to_owned(), ToolArguments::parse(json!({})))]),
            ScriptedReply::Text(format!("Six downloads are running, look {turn}.")),
        ]);
        let took = time_turn(&peers, &webhook).await?;
        ensure!(model.remaining_replies() == 0, "turn {turn} did not ask the model twice");
        if turn >= WARM_UP {
            times.push(took);
        }
        app.engine.scheduler.wait_until_idle().await;
        app.relay.wait_until_settled().await?;
    }
    app.drain_turns().await;
    // The database closes once no handle remains.
    drop(webhook);
    app.close().await;
    report(times);
    Ok(())
}

async fn time_turn(peers: &SimulatedPeers, webhook: &HttpClient) -> Result<Duration> {
    let mut accepted = peers.twilio.subscribe();
    let text = peers.twilio.inbound_form(ANN, "what is downloading?").into_signed_request()?;
    let start = Instant::now();
    let answer = FakeTwilio::deliver_request(text, webhook).await?;
    ensure!(answer.status() == 200, "the webhook answers {}", answer.status());
    tokio::time::timeout(TIMEOUT, accepted.recv()).await.context("no text within 10 s")??;
    Ok(start.elapsed())
}

fn report(mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!(
        "{} turns: median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        times.len(),
        at(50),
        at(99),
        at(100)
    );
}
