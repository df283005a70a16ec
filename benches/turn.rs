//! How long does the program itself take for a turn with one read, when the model and the peers answer at once?
//! From the signed webhook to the text that the carrier takes, in one process, with every record on disk.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dialarr::app::App;
use dialarr::arr::fake::demo_library::demo_library;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::{Arguments, PhoneNumber};
use dialarr::engine::Settings;
use dialarr::http::Http;
use dialarr::llm::scripted::{Line, Scripted};
use dialarr::messaging::fake::FakeTwilio;
use dialarr::simulation::{self, Peers};
use dialarr::store::db::Db;
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
    let (radarr, sonarr) = demo_library(Clock::System.now());
    let peers = Peers::new(Clock::System, radarr, sonarr, "https://sms.example.org");
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("turn.db");
    let model = Arc::new(Scripted::new(Vec::new()));
    let mut blueprint = peers.blueprint(
        Db::open(database.to_str().context("a path that is not UTF-8")?)?,
        // One person texts here as fast as many would.
        Settings { rate: None, ..simulation::settings(TimeZone::UTC) },
        Some(model.clone()),
    )?;
    blueprint.admin = Some(PhoneNumber::parse(ANN)?);
    let app = App::start(blueprint).await?;
    let webhook = Http::in_process(web::in_process(web::webhook_router(app.webhooks.clone())));

    let mut times = Vec::with_capacity(TURNS);
    for turn in 0..WARM_UP + TURNS {
        model.play(vec![
            Line::Calls(vec![("check_status".to_owned(), Arguments::parse(json!({})))]),
            Line::Says(format!("Six downloads are running, look {turn}.")),
        ]);
        let took = time_turn(&peers, &webhook).await?;
        ensure!(model.left() == 0, "turn {turn} did not ask the model twice");
        if turn >= WARM_UP {
            times.push(took);
        }
        app.engine.settled().await;
        app.relay.settled().await?;
    }
    app.drain().await;
    // The database closes once nothing holds it.
    drop(webhook);
    app.close().await;
    report(times);
    Ok(())
}

async fn time_turn(peers: &Peers, webhook: &Http) -> Result<Duration> {
    let mut accepted = peers.twilio.subscribe();
    let text = peers.twilio.text(ANN, "what is downloading?").arrive()?;
    let start = Instant::now();
    let answer = FakeTwilio::deliver(text, webhook).await?;
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
