//! Program among simulated peers, with a model server at a URL from the environment.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use anyhow::{Context, Result, ensure};
use dialarr::app::App;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::http::{HttpClient, build_network_client};
use dialarr::llm::dialect::AutoSetting;
use dialarr::llm::openai::{OpenAiModel, OpenAiSettings, ResponseTimeouts};
use dialarr::messaging::twilio::fake::FakeTwilio;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::web;
use jiff::tz::TimeZone;
use url::Url;

/// Digits of the only user's number, which no request may contain.
pub(crate) const ANN: &str = "+15550100002";
/// Key of the model server, which is sent only in a header.
pub(crate) const KEY: &str = "a-key-for-headers-only";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the URL of a model server from the environment; prints once that there is none.
pub(crate) fn server(variable: &str) -> Result<Option<Url>> {
    match env::var(variable) {
        Ok(url) => Ok(Some(url.parse().with_context(|| format!("failed to read {variable}"))?)),
        Err(_) => {
            // Writes directly to the terminal, because the output of a passing test is captured. The check does not
            // depend on it.
            drop(writeln!(io::stdout(), "skipped: {variable} names no server"));
            Ok(None)
        }
    }
}

pub(crate) struct ModelConversation {
    app: App,
    peers: SimulatedPeers,
    _folder: tempfile::TempDir,
}

impl ModelConversation {
    /// Starts with Ann, an admin, with Alien and Severance in the libraries and Dune downloading.
    pub(crate) async fn start(server: &Url) -> Result<Self> {
        let clock = Clock::stopped_at("2026-11-20T21:04:00Z".parse()?);
        let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        radarr.add(movie("Alien").year(1979).id(7).size_gb(12.0));
        radarr.add(movie("Dune").year(2021).id(8));
        radarr.add_download("Dune", 60, 40);
        sonarr.add(series("Severance").year(2022).id(9).size_gb(41.0));
        let peers = SimulatedPeers::new(clock, radarr, sonarr, "https://sms.example.org");
        let folder = tempfile::tempdir()?;
        let database = folder.path().join("talk.db");
        let settings = OpenAiSettings {
            base_url: server.join("/v1")?,
            key: Some(KEY.into()),
            model: "any".to_owned(),
            reasoning_effort: AutoSetting::Auto,
            token_field: AutoSetting::Auto,
            timeouts: ResponseTimeouts::default(),
        };
        let model = OpenAiModel::new(&build_network_client()?, settings)?;
        let db = Db::open(database.to_str().context("a path that is not UTF-8")?)?;
        let mut blueprint =
            peers.blueprint(simulation::simulation_settings(TimeZone::UTC), Some(Arc::new(model)))?;
        blueprint.admin = Some(PhoneNumber::parse(ANN)?);
        Ok(Self { app: App::start(db, peers.clock.clone(), blueprint).await?, peers, _folder: folder })
    }

    /// Delivers a message of Ann to the webhook, and returns the replies.
    pub(crate) async fn sms(&self, body: &str) -> Result<String> {
        self.peers.clock.advance(Duration::from_secs(1));
        let before = self.peers.twilio.sent_messages().len();
        let webhook = HttpClient::in_process(web::in_process(web::webhook_router(self.app.webhooks.clone())));
        let answer = FakeTwilio::deliver_request(
            self.peers.twilio.inbound_form(ANN, body).into_signed_request()?,
            &webhook,
        )
        .await?;
        ensure!(answer.status() == 200, "the webhook answers {}", answer.status());
        self.app.engine.scheduler.wait_until_idle().await;
        self.app.relay.wait_until_settled().await?;
        let sent = self.peers.twilio.sent_messages();
        Ok(sent[before..].iter().map(|text| text.body.as_str()).collect::<Vec<_>>().join("\n"))
    }

    pub(crate) async fn end(self) {
        self.app.drain_turns().await;
        self.app.close().await;
    }
}

/// Fetches a page of the model server.
pub(crate) async fn get(server: &Url, path: &str) -> Result<serde_json::Value> {
    let request = http::Request::get(server.join(path)?.as_str()).body(bytes::Bytes::new())?;
    let answer = HttpClient::network()?.send(request, TIMEOUT).await?;
    ensure!(answer.status() == 200, "{path} answers {}", answer.status());
    Ok(serde_json::from_slice(answer.body())?)
}
