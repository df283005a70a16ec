//! Peers on sockets, and the program as a child process that is started and killed.

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::serve::ListenerExt;
use bytes::Bytes;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::channel_list;
use dialarr::conversation::transcript::{Address, PhoneNumber, UserAddress};
use dialarr::http::HttpClient;
use dialarr::messaging::smsgate::fake::{FakePhone, FakePhoneAccount};
use dialarr::messaging::telegram::fake::{FakeBot, FakeTelegram};
use dialarr::messaging::twilio::fake::{FakeAccount, FakeTwilio};
use dialarr::store::Conn;
use dialarr::store::people::users::{self, FirstContactRole};
use diesel::Connection;
use secrecy::SecretString;
use tokio::net::TcpListener;

use super::model::FakeModel;

const NUMBER: &str = "+15550100000";
const ACCOUNT: &str = "AC00000000000000000000000000000000";
const TOKEN: &str = "a-simulated-token";
const BOT_TOKEN: &str = "501:a-simulated-token";
/// Time limit of every wait in these tests.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two checks of a condition that a test waits for.
pub(crate) const GLANCE: Duration = Duration::from_millis(10);

/// World around the program. The stage outlives every start of the program.
pub(crate) struct Stage {
    pub(crate) radarr: FakeRadarr,
    pub(crate) twilio: FakeTwilio,
    pub(crate) phone: FakePhone,
    pub(crate) telegram: FakeTelegram,
    carrier: StageCarrier,
    pub(crate) model: FakeModel,
    writes: Arc<Mutex<Vec<Write>>>,
    http: HttpClient,
    port: u16,
    urls: Urls,
    folder: tempfile::TempDir,
    titles: AtomicU64,
    texts: AtomicU64,
}

/// Carrier that the program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StageCarrier {
    Twilio,
    Phone,
    Bot,
}

struct Urls {
    radarr: String,
    sonarr: String,
    twilio: String,
    phone: String,
    telegram: String,
    model: String,
}

/// Request that would change a library, and its response status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Write {
    pub(crate) request: String,
    pub(crate) status: u16,
}

/// Title that exists for one request alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Title {
    pub(crate) name: String,
    /// Catalog number of the title, or its id in the library.
    pub(crate) id: i64,
}

impl Stage {
    /// Creates a stage with these users as admins in a fresh database.
    pub(crate) async fn open(people: &[String], pause: Duration) -> Self {
        Self::beside(people, pause, None).await
    }

    /// Creates a stage on which the users text a phone of the household.
    pub(crate) async fn open_by_phone(people: &[String]) -> Self {
        Self::build(people, Duration::from_millis(1), None, StageCarrier::Phone).await
    }

    /// Creates a stage on which an admin writes to a bot from an account.
    pub(crate) async fn open_by_bot(account: i64) -> Self {
        let people = [format!("{}{account}", channel_list::TELEGRAM_PREFIX)];
        Self::build(&people, Duration::from_millis(1), None, StageCarrier::Bot).await
    }

    /// Creates a stage with other servers in place of its Radarr and its Sonarr, if any are given.
    pub(crate) async fn beside(people: &[String], pause: Duration, library: Option<Router>) -> Self {
        Self::build(people, pause, library, StageCarrier::Twilio).await
    }

    async fn build(
        people: &[String],
        pause: Duration,
        library: Option<Router>,
        carrier: StageCarrier,
    ) -> Self {
        let port = free_port().await;
        let account = FakeAccount {
            account_sid: ACCOUNT.to_owned(),
            auth_token: SecretString::from(TOKEN.to_owned()),
            number: Address::new(NUMBER),
            public_url: format!("http://127.0.0.1:{port}"),
        };
        let (radarr, sonarr) = (FakeRadarr::new(), FakeSonarr::new());
        let twilio = FakeTwilio::new(account, Clock::System);
        let phone = FakePhone::new(phone_account(), Clock::System);
        let bot = FakeBot { token: BOT_TOKEN.to_owned(), username: "home_bot".to_owned() };
        let telegram = FakeTelegram::new(bot, Clock::System);
        let model = FakeModel::new(pause);
        let writes = Arc::default();
        let (movies, series) = match library {
            Some(servers) => (servers.clone(), servers),
            None => (noting(radarr.router(), Arc::clone(&writes)), sonarr.router()),
        };
        let urls = Urls {
            radarr: serve(movies).await,
            sonarr: serve(series).await,
            twilio: serve(twilio.router()).await,
            phone: serve(phone.router()).await,
            telegram: serve(telegram.router()).await,
            model: serve(model.router()).await,
        };
        let stage = Self {
            radarr,
            twilio,
            phone,
            telegram,
            carrier,
            model,
            writes,
            http: HttpClient::network().unwrap(),
            port,
            urls,
            folder: tempfile::tempdir().unwrap(),
            titles: AtomicU64::new(0),
            texts: AtomicU64::new(0),
        };
        stage.introduce(people).await;
        stage
    }

    async fn introduce(&self, people: &[String]) {
        // The program under test creates the tables, which may be older than those of these tests.
        let mut running = self.start(None);
        self.ready(&mut running).await;
        running.kill();
        let mut conn = Conn::establish(self.database().to_str().unwrap()).unwrap();
        let now = Clock::System.now();
        for person in people {
            let address = UserAddress::parse(person).unwrap();
            users::ensure_user(&mut conn, &address, FirstContactRole::Admin, now).unwrap();
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("dialarr.db")
    }

    /// Starts the program, with a failpoint at which it dies: `outbox.sent@2`.
    pub(crate) fn start(&self, failpoint: Option<&str>) -> Running {
        let log = self.folder.path().join("log");
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(program());
        command.arg("serve").env_clear().current_dir(self.folder.path()).stdin(Stdio::null());
        // Many stages run at once, and the console has one usual port.
        command.env("CONSOLE_BIND", "");
        command
            .envs(self.variables())
            .envs(self.carrier_variables())
            .envs(EXTRA_VARIABLE.get().copied())
            .envs(failpoint.map(|place| ("FAILPOINT", place)));
        let child = command.stdout(same(&log)).stderr(same(&log)).spawn().unwrap();
        Running { child }
    }

    fn carrier_variables(&self) -> Vec<(&'static str, String)> {
        let text = str::to_owned;
        match self.carrier {
            StageCarrier::Twilio => vec![
                ("PUBLIC_URL", self.public_url()),
                ("TWILIO_ACCOUNT_SID", text(ACCOUNT)),
                ("TWILIO_AUTH_TOKEN", text(TOKEN)),
                ("TWILIO_PHONE_NUMBER", text(NUMBER)),
                ("TWILIO_API_URL", self.urls.twilio.clone()),
            ],
            StageCarrier::Phone => vec![
                ("SMSGATE_URL", self.urls.phone.clone()),
                ("SMSGATE_PASSWORD", text(TOKEN)),
                ("SMSGATE_PHONE_NUMBER", text(NUMBER)),
            ],
            StageCarrier::Bot => vec![
                ("TELEGRAM_BOT_TOKEN", text(BOT_TOKEN)),
                ("TELEGRAM_API_URL", self.urls.telegram.clone()),
            ],
        }
    }

    fn variables(&self) -> [(&'static str, String); 17] {
        let text = str::to_owned;
        [
            ("HOST", text("127.0.0.1")),
            ("PORT", self.port.to_string()),
            ("DATABASE_URL", self.database().display().to_string()),
            ("TZ", text("UTC")),
            ("LLM_BASE_URL", format!("{}/v1", self.urls.model)),
            ("LLM_MODEL", text("fake")),
            // The limit of a public server: by default, one on this machine gets fewer calls at once.
            ("LLM_MAX_CONCURRENT", text("64")),
            ("SONARR_URL", self.urls.sonarr.clone()),
            ("SONARR_API_KEY", text(FakeSonarr::new().api_key())),
            ("RADARR_URL", self.urls.radarr.clone()),
            ("RADARR_API_KEY", text(self.radarr.api_key())),
            ("ADMIN_PHONE", text("+15550100001")),
            ("COALESCE_MS", text("0")),
            // The users send messages and add titles as fast as they are answered, with the tokens of many days.
            ("DAILY_TOKENS", text("1000000000000")),
            ("RATE_LIMIT", text("off")),
            ("QUOTA_MOVIES", text("off")),
            ("QUOTA_SEASONS", text("off")),
        ]
    }

    fn public_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until the program accepts messages.
    pub(crate) async fn ready(&self, running: &mut Running) {
        let url = format!("{}/ready", self.public_url());
        wait_for("the program to be ready", async || {
            assert_eq!(running.ended(), None, "it ended by itself:\n{}", self.log());
            let request = http::Request::get(&url).body(Bytes::new()).unwrap();
            let answer = self.http.send(request, TEST_TIMEOUT).await;
            answer.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
    }

    /// Creates a user's message: the carrier has it from here on. Returns its id, and the request to Dialarr's webhook.
    pub(crate) fn text(&self, phone: &str, body: &str) -> (String, http::Request<Bytes>) {
        let sid = format!("SM{:032x}", self.texts.fetch_add(1, Ordering::SeqCst));
        let request = self.twilio.inbound_form(phone, body).with_sid(&sid).into_signed_request().unwrap();
        (sid, request)
    }

    /// Delivers a message to the webhook, once. Returns whether the message was acknowledged.
    pub(crate) async fn deliver(&self, request: http::Request<Bytes>) -> bool {
        let answer = FakeTwilio::deliver_request(request, &self.http).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Creates a movie that can be added.
    pub(crate) fn addable(&self) -> Title {
        let name = self.name();
        let id = self.radarr.add_to_catalog(movie(&name));
        Title { name, id }
    }

    /// Creates a movie that can be deleted.
    pub(crate) fn deletable(&self) -> Title {
        let name = self.name();
        let id = self.radarr.add(movie(&name).size_gb(2.0));
        Title { name, id }
    }

    /// Returns a word that is not similar to any other title.
    fn name(&self) -> String {
        let mut left = self.titles.fetch_add(1, Ordering::SeqCst) + 1;
        let mut name = String::from("Q");
        while left > 0 {
            name.push(['a', 'e', 'i', 'o', 'u'][(left % 5) as usize]);
            left /= 5;
            name.push(['b', 'd', 'g', 'k', 'l', 'm', 'n', 'r', 's', 't'][(left % 10) as usize]);
            left /= 10;
        }
        format!("{name}ax")
    }

    /// Returns the requests that would have changed the library, oldest first.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }

    /// Returns the end of the program's log.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(60).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

fn phone_account() -> FakePhoneAccount {
    FakePhoneAccount {
        number: PhoneNumber::parse(NUMBER).unwrap(),
        user: "sms".to_owned(),
        password: SecretString::from(TOKEN.to_owned()),
        signing_key: SecretString::from(TOKEN.to_owned()),
    }
}

/// Program while it runs; the process does not outlive this value.
pub(crate) struct Running {
    pub(crate) child: Child,
}

impl Running {
    /// Returns whether the program ends on its own within this time.
    pub(crate) async fn ends_within(&mut self, time: Duration) -> bool {
        let mut glances = tokio::time::interval(GLANCE.min(time));
        let ended = async {
            while self.ended().is_none() {
                glances.tick().await;
            }
        };
        tokio::time::timeout(time, ended).await.is_ok()
    }

    /// Returns the exit status, if the program has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Returns whether the program aborted itself, as at a failpoint.
    pub(crate) fn aborted(&mut self) -> bool {
        const SIGABRT: i32 = 6;
        self.ended().is_some_and(|status| status.signal() == Some(SIGABRT))
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Program other than the one that was built with these tests, such as an older version for a comparison.
pub(crate) static OTHER_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Another variable of the program's environment.
pub(crate) static EXTRA_VARIABLE: OnceLock<(&str, &str)> = OnceLock::new();

/// Returns the program as it was when the first test began: a build may replace the file in the meantime.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let name = concat!("dialarr-under-", env!("CARGO_CRATE_NAME"));
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // No file exists before the first run.
        let _ = std::fs::remove_file(&kept);
        let built = OTHER_PROGRAM.get().map_or(Path::new(env!("CARGO_BIN_EXE_dialarr")), PathBuf::as_path);
        std::fs::copy(built, &kept).unwrap();
        // Benchmarks measure a program without failpoints.
        assert!(
            !cfg!(feature = "failpoints") || contains(&kept, b"FAILPOINT"),
            "the program was built again without failpoints"
        );
        kept
    })
}

/// Returns whether a file contains these bytes.
fn contains(file: &Path, bytes: &[u8]) -> bool {
    std::fs::read(file).unwrap().windows(bytes.len()).any(|window| window == bytes)
}

/// Checks a condition repeatedly, within a time limit.
pub(crate) async fn wait_for(what: &str, is_so: impl AsyncFnMut() -> bool) {
    assert!(becomes_true(is_so).await, "waited too long for {what}");
}

/// Returns whether a condition becomes true within the time limit.
pub(crate) async fn becomes_true(mut is_so: impl AsyncFnMut() -> bool) -> bool {
    let mut glances = tokio::time::interval(GLANCE);
    let looking = async {
        while !is_so().await {
            glances.tick().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, looking).await.is_ok()
}

/// Returns a port that stays reserved while the program is down: the port lies below those that the system assigns
/// automatically, for example to the listeners and connections of other tests.
async fn free_port() -> u16 {
    const FIRST: u32 = 12_000;
    const PORTS: u32 = 16_000;
    static USED_PORTS: AtomicU32 = AtomicU32::new(0);
    loop {
        // Two runs of these tests on one machine begin at different ports.
        let place = std::process::id().wrapping_mul(61) + USED_PORTS.fetch_add(1, Ordering::SeqCst);
        let port = u16::try_from(FIRST + place % PORTS).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).await.is_ok() {
            return port;
        }
    }
}

fn same(log: &File) -> File {
    log.try_clone().unwrap()
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // With Nagle's algorithm, each piece of a streamed response would wait for the acknowledgment of the previous one.
    let listener = listener.tap_io(|connection| {
        // A connection that is already closed needs no setting.
        let _ = connection.set_nodelay(true);
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Records every request that would change something.
fn noting(router: Router, writes: Arc<Mutex<Vec<Write>>>) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| {
        let writes = Arc::clone(&writes);
        async move { note(&writes, request, next).await }
    }))
}

async fn note(writes: &Mutex<Vec<Write>>, request: Request, next: Next) -> Response {
    if request.method() == http::Method::GET {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let request = format!("{} {} {}", parts.method, parts.uri.path(), json["tmdbId"]);
    let answer = next.run(Request::from_parts(parts, Body::from(body))).await;
    writes.lock().unwrap().push(Write { request, status: answer.status().as_u16() });
    answer
}
