//! Compared listeners: the program's own, and the same steps with other ways to the disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use dialarr::access_rules::{TrustedProxies, parse_network};
use dialarr::app::App;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::channel_list;
use dialarr::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use dialarr::conversation::routing::verification::FieldAuthority;
use dialarr::conversation::transcript::Address;
use dialarr::messaging::twilio::WEBHOOK_PATH;
use dialarr::messaging::twilio::signature::{self, ClaimedSignature, SIGNATURE_HEADER, SignatureVerifier};
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::store::queue::inbound_messages::{self, DebouncePolicy};
use dialarr::web;
use dialarr::web::http_server::{self, ListenerLimits};
use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};
use jiff::tz::TimeZone;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::load::TEXTS;

pub(crate) const PUBLIC_URL: &str = "https://sms.example.org";
const AT_ONCE: DebouncePolicy = DebouncePolicy { quiet_ms: 0, max_delay_ms: 0 };
const EMPTY_TWIML: &str = r#"<?xml version="1.0" encoding="UTF-8"?><Response/>"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The unchanged program: each message is stored, acknowledged, then processed by a task and skipped.
    Program,
    /// Storage by the program's writer, without further steps.
    Admission,
    /// The same for users with an open conversation, whose readers get an event for the message.
    InConversations,
    /// Storage with a commit per message, by a connection behind a lock.
    CommitEach,
    /// Parsing and a response, without storage.
    NoStore,
}

/// Listener, with the handle that ends it.
pub(crate) struct Stage {
    pub(crate) url: String,
    stop: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
    running: Running,
    _folder: tempfile::TempDir,
}

enum Running {
    App(Box<App>),
    Db(Db),
    Nothing,
}

/// Registers every user, with an open conversation.
fn register_users_sql() -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {TEXTS})
         INSERT INTO users (id, status, created_at, updated_at) SELECT i + 1, 'active', 0, 0 FROM n;
         INSERT INTO user_addresses (user_id, address, created_at)
         SELECT id, printf('+1555%07d', id - 1), 0 FROM users;
         INSERT INTO conversations (user_id, name, started_at, last_activity_at) SELECT id, 'A talk', 0, 0 FROM users;"
    )
}

/// Destination of a verified message.
#[derive(Clone)]
enum Sink {
    Writer(Db),
    Lock(Arc<Mutex<SqliteConnection>>),
    Nowhere,
}

#[derive(Clone)]
struct Door {
    verifier: Arc<SignatureVerifier>,
    sink: Sink,
}

impl Variant {
    pub(crate) const ALL: [Self; 5] =
        [Self::Program, Self::Admission, Self::InConversations, Self::CommitEach, Self::NoStore];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Program => "the program",
            Self::Admission => "its writer, no work after it",
            Self::InConversations => "the same, conversations open",
            Self::CommitEach => "(a) one commit each",
            Self::NoStore => "(b) no commit",
        }
    }

    /// Uses a separate database, so that all have the same size.
    pub(crate) async fn start(self) -> Result<Stage> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("ack.db");
        let path = path.to_str().context("a path that is not UTF-8")?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let stop = CancellationToken::new();
        let (server, running) = match self {
            Self::Program => {
                let app = program(path).await?;
                let router = web::webhook_router(app.webhooks.clone());
                // Connections are kept as in the other variants, because only the way to the disk is compared.
                let server = tokio::spawn(http_server::serve_sockets(
                    listener,
                    router,
                    ListenerLimits::CONSOLE,
                    stop.clone(),
                ));
                (server, Running::App(Box::new(app)))
            }
            Self::Admission | Self::InConversations => {
                let db = Db::open(path)?;
                if self == Self::InConversations {
                    db.write(|conn| conn.batch_execute(&register_users_sql())).await?;
                }
                let server = serve(listener, Sink::Writer(db.clone()), stop.clone());
                (server, Running::Db(db))
            }
            Self::CommitEach => {
                let lock = Sink::Lock(Arc::new(Mutex::new(connect(path).await?)));
                (serve(listener, lock, stop.clone()), Running::Nothing)
            }
            Self::NoStore => (serve(listener, Sink::Nowhere, stop.clone()), Running::Nothing),
        };
        Ok(Stage { url, stop, server, running, _folder: folder })
    }
}

impl Stage {
    /// The program with the limits of its webhooks, behind a local proxy that names its clients.
    pub(crate) async fn behind_proxy() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("ack.db");
        let app = program(path.to_str().context("a path that is not UTF-8")?).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let stop = CancellationToken::new();
        let proxies = TrustedProxies::from_networks(parse_network("127.0.0.1").into_iter().collect());
        let router = web::webhook_router(app.webhooks.clone());
        let server = tokio::spawn(http_server::serve_sockets(
            listener,
            router,
            ListenerLimits::for_webhooks(proxies),
            stop.clone(),
        ));
        Ok(Self { url, stop, server, running: Running::App(Box::new(app)), _folder: folder })
    }

    /// Waits for all work, so that it does not affect the next round.
    pub(crate) async fn end(self) -> Result<()> {
        self.stop.cancel();
        self.server.await??;
        match self.running {
            Running::App(app) => {
                app.engine.scheduler.wait_until_idle().await;
                app.drain_turns().await;
                app.close().await;
            }
            Running::Db(db) => db.close().await,
            Running::Nothing => {}
        }
        Ok(())
    }
}

pub(crate) fn token() -> SecretString {
    "a-simulated-token".into()
}

fn verifier() -> Arc<SignatureVerifier> {
    Arc::new(SignatureVerifier { tokens: vec![token()], shared_keys: BTreeMap::new() })
}

async fn program(path: &str) -> Result<App> {
    let (radarr, sonarr) = (FakeRadarr::with_clock(Clock::System), FakeSonarr::with_clock(Clock::System));
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, PUBLIC_URL);
    let blueprint = peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None)?;
    Ok(App::start(Db::open(path)?, peers.clock.clone(), blueprint).await?)
}

/// Opens a connection like the writer's, to a database that the program prepared.
async fn connect(path: &str) -> Result<SqliteConnection> {
    Db::open(path)?.close().await;
    let mut conn = SqliteConnection::establish(path)?;
    conn.batch_execute(
        "PRAGMA busy_timeout=5000; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; \
         PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;",
    )?;
    Ok(conn)
}

fn serve(listener: TcpListener, sink: Sink, stop: CancellationToken) -> JoinHandle<std::io::Result<()>> {
    let router =
        Router::new().route(WEBHOOK_PATH, post(receive)).with_state(Door { verifier: verifier(), sink });
    let listener = listener.tap_io(|stream| {
        // An error would only make it slower.
        let _ = stream.set_nodelay(true);
    });
    tokio::spawn(
        async move { axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await },
    )
}

async fn receive(State(door): State<Door>, headers: HeaderMap, body: Bytes) -> Response {
    let stored = match read(&door.verifier, &headers, &body) {
        Some(received) => door.sink.store(received).await,
        None => return StatusCode::FORBIDDEN.into_response(),
    };
    match stored {
        Ok(()) => ([(header::CONTENT_TYPE, "text/xml; charset=utf-8")], EMPTY_TWIML).into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

fn read(verifier: &SignatureVerifier, headers: &HeaderMap, body: &[u8]) -> Option<ReceivedMessage> {
    let form: Vec<(String, String)> = serde_urlencoded::from_bytes(body).ok()?;
    let claim = ClaimedSignature { signature: headers.get(SIGNATURE_HEADER)?.to_str().ok()?, settings: None };
    let url = signature::signed_url(PUBLIC_URL, WEBHOOK_PATH);
    verifier.verify(&url, signature::SignedBody::Form(&form), claim).ok()?;
    let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let now = Clock::System.now();
    Some(ReceivedMessage {
        channel: channel_list::TWILIO,
        external_id: field("MessageSid")?.to_owned(),
        from: Address::new(field("From")?).phone().ok()?.into(),
        to: Address::new(field("To")?),
        body: field("Body")?.to_owned(),
        media: Vec::new(),
        via: MessageSource::Webhook,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: now,
        received_at: now,
    })
}

impl Sink {
    async fn store(&self, received: ReceivedMessage) -> Result<()> {
        match self {
            Self::Writer(db) => {
                db.write_or_busy(move |conn| inbound_messages::admit_message(conn, &received, AT_ONCE))
                    .await?;
            }
            Self::Lock(conn) => {
                let conn = conn.clone();
                let stored = tokio::task::spawn_blocking(move || {
                    let mut conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
                    conn.immediate_transaction(|conn| {
                        inbound_messages::admit_message(conn, &received, AT_ONCE)
                    })
                });
                stored.await??;
            }
            Self::Nowhere => {}
        }
        Ok(())
    }
}
