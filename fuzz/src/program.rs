//! The whole program behind its webhooks, with a scratch database in memory. It accepts messages and processes none, so
//! that a run costs one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dialarr::app::App;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::http::{HttpClient, InProcess};
use dialarr::messaging::twilio::signature::{self, SIGNATURE_HEADER, SignatureVerifier};
use dialarr::messaging::twilio::{Twilio, TwilioReceiving, WEBHOOK_PATH};
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::web;
use http::Request;
use jiff::tz::TimeZone;
use secrecy::SecretString;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

const PUBLIC_URL: &str = "https://sms.example.org";
/// Secret that Sonarr and Radarr present.
pub const REPORT_SECRET: &str = "a-long-random-word";
/// Number of requests after which the database is replaced by an empty one.
const MAX_REQUESTS: usize = 20_000;
/// Message of an unknown user, so that there is a reply with a delivery status.
const FIRST_TEXT: &[u8] = b"AccountSid=AC00000000000000000000000000000000&ApiVersion=2010-04-01&Body=hi\
    &From=%2B15550100101&MessageSid=SM00000000000000000000000000000000&NumMedia=0&NumSegments=1\
    &SmsMessageSid=SM00000000000000000000000000000000&SmsSid=SM00000000000000000000000000000000\
    &SmsStatus=received&To=%2B15550100000";

pub struct Program {
    runtime: Runtime,
    running: Option<Running>,
    requests: usize,
}

struct Running {
    app: App,
    door: InProcess,
    _folder: TempDir,
}

/// Owner of the secret that signs a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signed {
    ByTwilio,
    BySomebody,
    Not,
}

impl Signed {
    fn token(self) -> Option<SecretString> {
        match self {
            Self::ByTwilio => Some("the-token".into()),
            Self::BySomebody => Some("another-token".into()),
            Self::Not => None,
        }
    }
}

impl Program {
    pub fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        Self { runtime, running: None, requests: 0 }
    }

    /// Returns the status of a form posted to `target`: `signed` is the form that the sender signed, which may differ
    /// from the received one.
    pub fn form(&mut self, target: &str, body: &[u8], by: Signed, signed: &[u8]) -> u16 {
        let url = signature::signed_url(PUBLIC_URL, target);
        let signature = by.token().map(|token| signature::sign_form(&token, &url, &fields(signed)));
        let mut request = Request::post(target).header("content-type", "application/x-www-form-urlencoded");
        if let Some(signature) = signature {
            request = request.header(SIGNATURE_HEADER, signature);
        }
        self.answer(request.body(Bytes::copy_from_slice(body)).expect("a request"))
    }

    /// Returns the status of an arr event of a library.
    pub fn report(&mut self, token: &str, body: &[u8]) -> u16 {
        let request = Request::post("/webhook/radarr").header("x-dialarr-token", token);
        self.answer(request.body(Bytes::copy_from_slice(body)).expect("a request"))
    }

    fn answer(&mut self, request: Request<Bytes>) -> u16 {
        if self.requests >= MAX_REQUESTS {
            self.end();
        }
        self.requests += 1;
        let running = self.running.get_or_insert_with(|| self.runtime.block_on(Running::start()));
        self.runtime.block_on((running.door)(request)).status().as_u16()
    }

    fn end(&mut self) {
        if let Some(Running { app, door, _folder }) = self.running.take() {
            drop(door);
            self.runtime.block_on(app.close());
        }
        self.requests = 0;
    }
}

impl Default for Program {
    fn default() -> Self {
        Self::new()
    }
}

impl Running {
    async fn start() -> Self {
        let folder =
            tempfile::Builder::new().prefix("dialarr-fuzz").tempdir_in("/dev/shm").expect("a folder");
        let path = folder.path().join("fuzz.db");
        let db = Db::open(path.to_str().expect("a path of letters")).expect("a database");
        let peers = SimulatedPeers::new(
            Clock::System,
            FakeRadarr::with_clock(Clock::System),
            FakeSonarr::with_clock(Clock::System),
            PUBLIC_URL,
        );
        let settings = simulation::simulation_settings(TimeZone::UTC);
        let mut blueprint = peers.blueprint(settings, None).expect("a blueprint");
        let tokens = Vec::from_iter(Signed::ByTwilio.token());
        let verifier = SignatureVerifier { tokens, shared_keys: BTreeMap::new() };
        let receiving = TwilioReceiving { verifier, ..peers.twilio_receiving() };
        let account = peers.twilio.client_account("https://api.twilio.invalid");
        let http = HttpClient::in_process(peers.twilio.in_process());
        let twilio = Twilio::new(account, http).with_receiving(receiving);
        blueprint.channels = blueprint.channels.with(Arc::new(twilio));
        blueprint.arr_secret = Some(REPORT_SECRET.into());
        let app = App::start(db, peers.clock.clone(), blueprint).await.expect("the program starts");
        let door = web::in_process(web::webhook_router(app.webhooks.clone()));
        let url = signature::signed_url(PUBLIC_URL, WEBHOOK_PATH);
        let token = Signed::ByTwilio.token().expect("Twilio has one");
        let first = Request::post(WEBHOOK_PATH)
            .header(SIGNATURE_HEADER, signature::sign_form(&token, &url, &fields(FIRST_TEXT)))
            .body(Bytes::from_static(FIRST_TEXT));
        assert_eq!(door(first.expect("a request")).await.status(), 200, "the first text is taken");
        app.engine.scheduler.wait_until_idle().await;
        app.engine.drain(Duration::from_secs(1)).await;
        Self { app, door, _folder: folder }
    }
}

/// Returns the fields of a form as its signer reads them.
pub fn fields(form: &[u8]) -> Vec<(String, String)> {
    serde_urlencoded::from_bytes(form).unwrap_or_default()
}

/// Returns the characters of a form that its signature covers. Twilio does not sign the borders between names and
/// values.
pub fn signed_words(form: &[u8]) -> String {
    let distinct: BTreeSet<(String, String)> = fields(form).into_iter().collect();
    distinct.into_iter().flat_map(|(name, value)| [name, value]).collect()
}
