//! Server for agents against third-party clients. `DIALARR_MCP_CLIENT` is a command for bash, which gets the address of the
//! server as `URL` and a key for an agent as `KEY`; without it nothing is checked.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use dialarr::app::App;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::simulation::{self, LibraryWrite, SimulatedPeers};
use dialarr::store::console_access::{self, KeyScope, NewApiKey, TokenHash};
use dialarr::store::database::db::Db;
use dialarr::store::people::users;
use dialarr::web;
use dialarr::web::http_server::{ListenerLimits, serve_sockets};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const ANN: &str = "+15550100002";
/// Key for an agent after its prefix.
const TOKEN: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

/// Program with Ann, an admin, and an agent that acts for her. Alien, Heat and Severance are in the libraries.
struct AgentHousehold {
    app: App,
    peers: SimulatedPeers,
    _folder: tempfile::TempDir,
}

impl AgentHousehold {
    async fn start() -> Result<Self> {
        // Clients measure real time.
        let clock = Clock::System;
        let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        radarr.add(movie("Alien").year(1979).id(7).tmdb(348).size_gb(12.0));
        radarr.add(movie("Heat").year(1995).id(8).tmdb(949).size_gb(18.0));
        sonarr.add(series("Severance").year(2022).id(9).size_gb(41.0));
        let peers = SimulatedPeers::new(clock, radarr, sonarr, "https://sms.example.org");
        let folder = tempfile::tempdir()?;
        let database = folder.path().join("agents.db");
        let db = Db::open(database.to_str().context("a path that is not UTF-8")?)?;
        let mut blueprint = peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None)?;
        blueprint.admin = Some(PhoneNumber::parse(ANN)?);
        let app = App::start(db, peers.clock.clone(), blueprint).await?;
        Ok(Self { app, peers, _folder: folder })
    }

    /// Creates a key with which an agent may do whatever Ann may.
    async fn create_key(&self) -> Result<String> {
        let (phone, now) = (PhoneNumber::parse(ANN)?, self.peers.clock.now());
        let person = self.app.db.read(move |conn| users::find_user_by_phone(conn, &phone)).await?;
        let new_key = NewApiKey {
            hash: TokenHash(Sha256::digest(TOKEN).into()),
            name: "check".to_owned(),
            ending: TOKEN[TOKEN.len() - 4..].to_owned(),
            scope: KeyScope::Write,
            agent_of: Some(person.context("no admin")?.id),
        };
        self.app.db.write(move |conn| console_access::create_api_key(conn, &new_key, now)).await?;
        Ok(format!("dlr_{TOKEN}"))
    }

    async fn end(self) {
        self.app.drain_turns().await;
        self.app.close().await;
    }
}

/// Adds the key to requests without one: the conformance suite cannot send a header.
fn open_gate(router: Router, key: &str) -> Result<Router> {
    let value = HeaderValue::from_str(&format!("Bearer {key}"))?;
    Ok(router.layer(map_request(move |mut request: Request| {
        request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| value.clone());
        async { request }
    })))
}

#[tokio::test]
async fn third_party_client_is_served_and_deletes_nothing() -> Result<()> {
    let Ok(client) = env::var("DIALARR_MCP_CLIENT") else { return Ok(()) };
    let household = AgentHousehold::start().await?;
    let key = household.create_key().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let router = open_gate(web::console_router(household.app.console.clone()), &key)?;
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve_sockets(listener, router, ListenerLimits::CONSOLE, stop.clone()));

    let mut command = Command::new("bash");
    command.args(["-c", &client]).env("URL", url).env("KEY", key);
    let status = tokio::task::spawn_blocking(move || command.status()).await?.context("run the client")?;
    stop.cancel();
    server.await??;
    let writes = household.peers.take_writes();
    household.end().await;
    ensure!(status.success(), "the client ended with {status}");
    ensure!(!writes.iter().any(|write| matches!(write, LibraryWrite::Removed(..))), "{writes:?}");
    Ok(())
}
