//! Calls of agents against messages over the API, alternating in one process with every record on disk: the ratio of their
//! durations, and the growth of the resident memory over the run.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use dialarr::app::App;
use dialarr::arr::fake::demo_library::create_demo_servers;
use dialarr::clock::Clock;
use dialarr::conversation::agents::CALL_LIMIT;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::engine::HouseholdSettings;
use dialarr::http::HttpClient;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::console_access::KeyScope;
use dialarr::store::database::db::Db;
use dialarr::store::people::users;
use dialarr::web::{self, auth};
use http::Request;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

const ANN: &str = "+15550100002";
const CALLS: usize = 2_000;
/// The first calls fill caches.
const WARM_UP: usize = 500;
const TIMEOUT: Duration = Duration::from_secs(20);
const REVISION: &str = "2026-07-28";

fn main() -> Result<()> {
    dialarr::http::install_tls();
    tokio::runtime::Runtime::new()?.block_on(run())
}

struct Household {
    app: App,
    console: HttpClient,
    api_key: String,
    /// One key makes a limited number of calls.
    agent_keys: Vec<String>,
}

async fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("agents.db");
    let household = start(database.to_str().context("a path that is not UTF-8")?).await?;
    let (mut calls, mut messages) = (Vec::new(), Vec::new());
    let mut resident_before = 0.0;
    for number in 0..WARM_UP + CALLS {
        if number == WARM_UP {
            resident_before = resident_mib()?;
        }
        let call = time_request(&household.console, household.agent_call(number)?).await?;
        let message = time_request(&household.console, household.api_message()?).await?;
        if number >= WARM_UP {
            calls.push(call);
            messages.push(message);
        }
    }
    let growth = resident_mib()? - resident_before;
    let (call, message) = (median_ms(calls), median_ms(messages));
    println!(
        "{CALLS} calls of check_status by an agent: median {call:.2} ms; the message \"status\" over the API: {message:.2} ms; \
         ratio {:.2}; resident memory grew by {growth:.1} MiB",
        call / message
    );
    let Household { app, console, .. } = household;
    app.drain_turns().await;
    drop(console);
    app.close().await;
    Ok(())
}

async fn start(database: &str) -> Result<Household> {
    let (radarr, sonarr) = create_demo_servers(Clock::System.now());
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, "https://sms.example.org");
    let mut blueprint = peers.blueprint(
        HouseholdSettings { rate_limit: None, ..simulation::simulation_settings(TimeZone::UTC) },
        None,
    )?;
    blueprint.admin = Some(PhoneNumber::parse(ANN)?);
    let app = App::start(Db::open(database)?, peers.clock.clone(), blueprint).await?;
    let person = app.db.read(users::load_admins).await?.first().context("no admin")?.id;
    let now = Clock::System.now();
    let api_key = auth::create_key(&app.db, ("bench".to_owned(), KeyScope::Write, None), now).await?;
    let mut agent_keys = Vec::new();
    for number in 0..=(WARM_UP + CALLS) / CALL_LIMIT.max as usize {
        let new_key = (format!("bench {number}"), KeyScope::Read, Some(person));
        agent_keys.push(auth::create_key(&app.db, new_key, now).await?);
    }
    let console = HttpClient::in_process(web::in_process(web::console_router(app.console.clone())));
    Ok(Household { app, console, api_key, agent_keys })
}

impl Household {
    fn agent_call(&self, number: usize) -> Result<Request<Bytes>> {
        let key = &self.agent_keys[number / CALL_LIMIT.max as usize];
        let body = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "check_status", "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        } });
        let request = self.request(web::AGENT_PATH, key);
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", "check_status");
        Ok(request.body(Bytes::from(body.to_string()))?)
    }

    fn api_message(&self) -> Result<Request<Bytes>> {
        let body = json!({ "user": ANN, "text": "status" });
        Ok(self.request("/api/v1/messages", &self.api_key).body(Bytes::from(body.to_string()))?)
    }

    fn request(&self, path: &str, key: &str) -> http::request::Builder {
        Request::post(path)
            .header("host", "localhost:3001")
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
    }
}

async fn time_request(console: &HttpClient, request: Request<Bytes>) -> Result<Duration> {
    let start = Instant::now();
    let response = console.send(request, TIMEOUT).await?;
    let took = start.elapsed();
    let answer: Value = serde_json::from_slice(response.body())?;
    let is_answered = answer["result"]["structuredContent"]["total"].is_number()
        || answer["content"].as_str().is_some_and(|text| !text.is_empty());
    ensure!(response.status() == 200 && is_answered, "{} {answer}", response.status());
    Ok(took)
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn resident_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}
