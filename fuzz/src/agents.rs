//! The whole program behind its address for agents, with a scratch database in memory. Nobody answers its questions.

use std::time::Duration;

use bytes::Bytes;
use dialarr::app::App;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::http::InProcess;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::console_access::KeyScope;
use dialarr::store::database::db::Db;
use dialarr::store::people::users;
use dialarr::web::{self, auth};
use http::{Request, Response};
use jiff::tz::TimeZone;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Number of requests after which the program is replaced by a new one. A key makes no more calls than that in an hour.
const MAX_REQUESTS: usize = 250;
const ADMIN: &str = "+15550100002";

pub struct AgentProgram {
    runtime: Runtime,
    running: Option<Running>,
    requests: usize,
}

struct Running {
    app: App,
    door: InProcess,
    key: String,
    radarr: FakeRadarr,
    _folder: TempDir,
}

/// Response to a request, and the movies that have been deleted so far.
pub struct Seen {
    pub response: Response<Bytes>,
    pub key: String,
    pub removed: Vec<i64>,
}

impl AgentProgram {
    pub fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        Self { runtime, running: None, requests: 0 }
    }

    /// Sends a body to the address for agents, with the key of an agent that may ask about deletions.
    pub fn post(&mut self, headers: &[(&str, String)], body: &[u8]) -> Seen {
        if self.requests >= MAX_REQUESTS {
            self.end();
        }
        self.requests += 1;
        let running = self.running.get_or_insert_with(|| self.runtime.block_on(Running::start()));
        let mut request = Request::post(web::AGENT_PATH)
            .header("host", "localhost:3001")
            .header("authorization", format!("Bearer {}", running.key))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let Ok(request) = request.body(Bytes::copy_from_slice(body)) else {
            // The header has bytes that no header can have.
            return Seen {
                response: Response::new(Bytes::new()),
                key: running.key.clone(),
                removed: Vec::new(),
            };
        };
        let response = self.runtime.block_on((running.door)(request));
        Seen { response, key: running.key.clone(), removed: running.radarr.removed_ids() }
    }

    fn end(&mut self) {
        if let Some(Running { app, door, _folder, .. }) = self.running.take() {
            drop(door);
            self.runtime.block_on(async {
                app.engine.drain(Duration::from_secs(1)).await;
                app.close().await;
            });
        }
        self.requests = 0;
    }
}

impl Default for AgentProgram {
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
        let radarr = FakeRadarr::with_clock(Clock::System);
        for (id, title) in [(1, "Dune"), (2, "Heat")] {
            radarr.add(movie(title).id(id).tmdb(id).year(1995).size_gb(18.0));
        }
        let sonarr = FakeSonarr::with_clock(Clock::System);
        let peers = SimulatedPeers::new(Clock::System, radarr.clone(), sonarr, "https://sms.example.org");
        let settings = simulation::simulation_settings(TimeZone::UTC);
        let mut blueprint = peers.blueprint(settings, None).expect("a blueprint");
        blueprint.admin = Some(PhoneNumber::parse(ADMIN).expect("a number"));
        let app = App::start(db, peers.clock.clone(), blueprint).await.expect("the program starts");
        let admins = app.db.read(users::load_admins).await.expect("the admins");
        let new_key = ("fuzz".to_owned(), KeyScope::Write, Some(admins[0].id));
        let key = auth::create_key(&app.db, new_key, Clock::System.now()).await.expect("a key");
        let door = web::in_process(web::console_router(app.console.clone()));
        Self { app, door, key, radarr, _folder: folder }
    }
}
