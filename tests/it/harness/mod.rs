//! The words in which whole-app tests are written: a running program among simulated peers.

pub(crate) mod model;
pub(crate) mod world;

use std::sync::Arc;

use bytes::Bytes;
use dialarr::app::App;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::{PhoneNumber, Rights, Role, Status};
use dialarr::engine::{Codes, Settings};
use dialarr::http::Http;
use dialarr::llm::Model;
use dialarr::llm::scripted::{Line, Scripted};
use dialarr::messaging::fake::{FakeTwilio, InboundForm};
use dialarr::simulation::{self, Peers};
use dialarr::store::db::Db;
use dialarr::store::users::{self, Newcomer};
use dialarr::web;
use http::{Request, Response};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

pub(crate) const ANN: &str = "+15550100002";
pub(crate) const BOB: &str = "+15550100003";
pub(crate) const PUBLIC_URL: &str = "https://sms.example.org";

/// What a person has besides asking.
pub(crate) enum Has {
    EveryRight,
    NoRights,
    AddRight,
}

/// A running program. `sms` texts as Ann, an admin, and returns what she is texted back.
pub(crate) struct TestApp {
    /// `None` only while the program is down.
    app: Option<App>,
    world: World,
}

/// Everything that outlives a crash of the program.
struct World {
    peers: Peers,
    model: Option<Arc<Scripted>>,
    settings: Settings,
    folder: tempfile::TempDir,
}

impl TestApp {
    /// With a model that plays a script.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Without a model: the keyword brain answers.
    pub(crate) async fn start_without_model() -> Self {
        Self::build(None, |_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::build(Some(Arc::new(Scripted::new(Vec::new()))), change).await
    }

    async fn build(model: Option<Arc<Scripted>>, change: impl FnOnce(&mut Settings)) -> Self {
        let start: Timestamp = "2026-11-20T21:04:00Z".parse().unwrap();
        let clock = Clock::manual(start);
        let (radarr, sonarr) = (FakeRadarr::at(clock.clone()), FakeSonarr::at(clock.clone()));
        let peers = Peers::new(clock, radarr, sonarr, PUBLIC_URL);
        let mut settings = simulation::settings(TimeZone::UTC);
        settings.codes = Codes::Fixed(47);
        change(&mut settings);
        let world = World { peers, model, settings, folder: tempfile::tempdir().unwrap() };
        let app = world.run().await;
        let this = Self { app: Some(app), world };
        this.knows(ANN, Has::EveryRight).await;
        this
    }

    /// The program stops as if killed, and starts again on the same database.
    pub(crate) async fn restart(&mut self) {
        if let Some(app) = self.app.take() {
            app.kill().await;
        }
        self.app = Some(self.world.run().await);
    }

    pub(crate) fn radarr(&self) -> &FakeRadarr {
        &self.world.peers.radarr
    }

    pub(crate) fn sonarr(&self) -> &FakeSonarr {
        &self.world.peers.sonarr
    }

    pub(crate) fn twilio(&self) -> &FakeTwilio {
        &self.world.peers.twilio
    }

    pub(crate) fn app(&self) -> &App {
        self.app.as_ref().unwrap()
    }

    pub(crate) fn model(&self) -> &Scripted {
        self.world.model.as_ref().unwrap()
    }

    /// What the model answers from here on.
    pub(crate) fn model_plays(&self, lines: impl IntoIterator<Item = Line>) {
        self.model().play(lines.into_iter().collect());
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.world.peers.clock.advance(std::time::Duration::from_secs(seconds.unsigned_abs()));
    }

    /// Texts as Ann, one second after the last, and returns what she is texted back.
    pub(crate) async fn sms(&self, body: &str) -> String {
        self.sms_from(ANN, body).await
    }

    pub(crate) async fn sms_from(&self, from: &str, body: &str) -> String {
        self.pass(1);
        let before = self.twilio().sent().len();
        let status = self.post(self.text(from, body)).await;
        assert_eq!(status, 200, "the webhook takes the text");
        self.settle().await;
        self.texts_to(from, before)
    }

    /// What was sent to a person after the first `before` texts to anyone.
    pub(crate) fn texts_to(&self, phone: &str, before: usize) -> String {
        let sent = self.twilio().sent();
        let texts: Vec<&str> = sent[before..]
            .iter()
            .filter(|text| text.to.as_str().ends_with(phone))
            .map(|text| text.body.as_str())
            .collect();
        texts.join("\n")
    }

    /// A text on its way to our number.
    pub(crate) fn text(&self, from: &str, body: &str) -> InboundForm {
        self.twilio().text(from, body)
    }

    /// Brings a text to the webhook, without waiting for what comes of it.
    pub(crate) async fn post(&self, text: InboundForm) -> u16 {
        self.request(text.arrive().unwrap()).await.status().as_u16()
    }

    pub(crate) async fn request(&self, request: Request<Bytes>) -> Response<Bytes> {
        let webhook = Http::in_process(web::in_process(self.app().webhooks.clone()));
        webhook.send(request, std::time::Duration::from_secs(20)).await.unwrap()
    }

    /// Waits until nobody's text is being worked on and everything that can be sent is sent.
    pub(crate) async fn settle(&self) {
        self.app().engine.settled().await;
        self.app().relay.settled().await.unwrap();
    }

    /// Makes a person known and active.
    pub(crate) async fn knows(&self, phone: &str, has: Has) {
        let rights = match has {
            Has::EveryRight => Rights { role: Role::Admin, add: true, delete: true, four_k: true },
            Has::AddRight => Rights { role: Role::Member, add: true, delete: false, four_k: false },
            Has::NoRights => Rights { role: Role::Member, add: false, delete: false, four_k: false },
        };
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.world.peers.clock.now());
        self.app()
            .db
            .write(move |conn| {
                let id = users::ensure(conn, &phone, Newcomer::Member, now)?;
                users::set_status(conn, id, Status::Active, now)?;
                users::set_rights(conn, id, rights, now)
            })
            .await
            .unwrap();
    }

    pub(crate) async fn block(&self, phone: &str) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.world.peers.clock.now());
        self.app()
            .db
            .write(move |conn| {
                let id = users::ensure(conn, &phone, Newcomer::Member, now)?;
                users::set_status(conn, id, Status::Blocked, now)
            })
            .await
            .unwrap();
    }
}

impl World {
    async fn run(&self) -> App {
        let database = self.folder.path().join("test.db");
        let db = Db::open(database.to_str().unwrap()).unwrap();
        let model = self.model.clone().map(|model| model as Arc<dyn Model>);
        let mut blueprint = self.peers.blueprint(db, self.settings.clone(), model).unwrap();
        blueprint.confirm_for = SignedDuration::from_mins(5);
        App::start(blueprint).await.unwrap()
    }
}

impl Drop for TestApp {
    /// A script that was not played to its end means that the test did not test what it says.
    fn drop(&mut self) {
        let left = self.world.model.as_ref().map_or(0, |model| model.left());
        if left > 0 && !std::thread::panicking() {
            panic!("{left} lines of the model's script were not played");
        }
    }
}
