//! HTTP server on sockets: time limits for clients, the number of concurrent connections, and shutdown.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::{Listener, ListenerExt};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::auth;
use super::client_shares::{ClientShares, ConnectionSlot, SlotOutcome};
use super::lingering::{LingeringStream, UnreadBody};
use crate::access_rules::TrustedProxies;

/// Limits of a listener for its clients.
#[derive(Debug, Clone)]
pub struct ListenerLimits {
    /// Most concurrent connections; further ones wait in the system's queue until one ends.
    pub connections: usize,
    /// Share of the connections for clients that have not proven their identity, divided fairly; `None`: all.
    pub shares: Option<ClientShares>,
    /// Time from the opening of a connection, or from the last response on it, to the end of the next request's header.
    /// A slower connection is closed, and so is one that is idle for as long.
    pub header: Duration,
    /// Longest time for which written data may remain unread. On systems that cannot detect this, there is no limit.
    pub unread: Duration,
    pub reuse: ConnectionReuse,
}

/// Use of a connection: for one request or for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionReuse {
    Many,
    /// One request. A proxy keeps connections open for longer than we do, and loses a message that it sends on a
    /// connection at the moment when we close it: so no connection is reused.
    One,
}

impl ListenerLimits {
    pub const PAGES: Self = Self {
        connections: 768,
        shares: None,
        header: Duration::from_secs(10),
        unread: Duration::from_secs(60),
        reuse: ConnectionReuse::Many,
    };

    /// Returns the limits of the webhooks. The connections beyond the slots are for senders who have proven their
    /// identity, and for those whose client is not known yet.
    pub fn for_webhooks(proxies: TrustedProxies) -> Self {
        let shares = ClientShares::new(UNPROVEN_CONNECTIONS, proxies);
        Self { shares: Some(shares), reuse: ConnectionReuse::One, ..Self::PAGES }
    }
}

/// Slots of the webhooks for clients that have not proven their identity.
const UNPROVEN_CONNECTIONS: usize = 512;
/// Largest header, and the most of a body that is buffered before it is read.
const MAX_BUFFER_BYTES: usize = 32 << 10;
/// Time in which a connection that lost its slot can still get a response.
const DISPLACED_RESPONSE_TIME: Duration = Duration::from_millis(250);

/// Files that are open while both listeners serve the maximum number of connections, with ample reserve.
const FILES: u64 = 4096;

/// Raises the limit of open files to that number, as far as the system allows: many systems give 1,024 or fewer to a
/// program that does not ask.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(FILES, |maximum| maximum.min(FILES));
    if current.is_none_or(|current| current >= allowed) {
        return;
    }
    let wanted = Rlimit { current: Some(allowed), maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "no more files may be open than {}", current.unwrap_or_default());
    }
}

/// Serves until `stop`, then lets current requests end. Dropping the future drops its connections.
pub async fn serve_sockets(
    listener: TcpListener,
    router: Router,
    limits: ListenerLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let unread = limits.unread;
    serve_listener(listener.tap_io(move |stream| configure_stream(stream, unread)), router, limits, stop)
        .await
}

/// Serves in the same way on streams of any kind.
pub async fn serve_listener<L: Listener<Addr = SocketAddr>>(
    mut listener: L,
    router: Router,
    limits: ListenerLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_buf_size(MAX_BUFFER_BYTES)
        .keep_alive(limits.reuse == ConnectionReuse::Many);
    let mut connections = JoinSet::new();
    loop {
        while let Some(ended) = connections.try_join_next() {
            log_failure(ended);
        }
        let has_room = connections.len() < limits.connections;
        tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next(), if !has_room => log_failure(ended),
            // Errors of accepting are logged by axum, which waits when no more files can be opened.
            (stream, peer) = listener.accept(), if has_room => {
                let slot = match &limits.shares {
                    None => None,
                    Some(shares) => match shares.open_connection(peer.ip()) {
                        // Dropping the stream refuses the client.
                        None => continue,
                        slot => slot,
                    },
                };
                let exchange = OpenConnection { router: router.clone(), slot, unread: UnreadBody::default() };
                connections.spawn(serve_connection(stream, exchange, builder.clone(), stop.clone()));
            }
        }
    }
    // Clients that connect after this point are refused rather than left waiting.
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        log_failure(ended);
    }
    Ok(())
}

fn configure_stream(stream: &TcpStream, unread: Duration) {
    // With Nagle's algorithm small responses can wait 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    // A client that does not read, or that disappears without closing, would keep its connection for a quarter of an
    // hour or forever.
    #[cfg(target_os = "linux")]
    {
        let unread = u32::try_from(unread.as_millis()).unwrap_or(u32::MAX);
        if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, unread) {
            tracing::debug!(%error, "failed to set TCP_USER_TIMEOUT");
        }
    }
}

/// State for the responses of one connection.
#[derive(Clone)]
struct OpenConnection {
    router: Router,
    /// Slot of the connection. `None`: the connection needs none.
    slot: Option<Arc<ConnectionSlot>>,
    unread: UnreadBody,
}

impl OpenConnection {
    async fn handle_request(self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let Some(slot) = &self.slot else { return self.route_request(request.map(Body::new)).await };
        if slot.begin_request(request.headers()) == SlotOutcome::Refused {
            return Ok(refusal_response().await);
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Arc::clone(slot));
        tokio::select! {
            biased;
            answered = self.route_request(request) => answered,
            () = slot.wait_displaced() => Ok(refusal_response().await),
        }
    }

    async fn route_request(&self, request: Request<Body>) -> Result<Response, Infallible> {
        let has_body = !request.body().is_end_stream();
        let response = self.router.clone().oneshot(request).await?;
        // A client that was too slow is not waited for any longer.
        let status = response.status();
        let is_unread = has_body && status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT;
        self.unread.set_unread(is_unread);
        if let Some(slot) = self.slot.as_ref().filter(|_| !is_unread) {
            slot.end_request();
        }
        Ok(response)
    }

    /// Returns once another client has taken the slot, if there is one.
    async fn wait_displaced(&self) {
        match &self.slot {
            Some(slot) => slot.wait_displaced().await,
            None => std::future::pending().await,
        }
    }
}

/// Response to a client that holds as many slots as any other while all are in use.
async fn refusal_response() -> Response {
    let mut response =
        auth::headers::add_security_headers(StatusCode::SERVICE_UNAVAILABLE.into_response()).await;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn serve_connection<S>(
    stream: S,
    exchange: OpenConnection,
    builder: http1::Builder,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stream = LingeringStream::new(stream, exchange.unread.clone());
    let service = service_fn(|request| exchange.clone().handle_request(request));
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = exchange.wait_displaced() => {
            connection.as_mut().graceful_shutdown();
            match timeout(DISPLACED_RESPONSE_TIME, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended with an error");
    }
}

fn log_failure(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "failed to serve a connection");
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;
    use tokio::task::JoinHandle;
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;

    use super::{ConnectionReuse, ListenerLimits, serve_sockets};

    /// Time limit of the tests. Nothing here takes this long unless it hangs.
    const TEST_TIMEOUT: Duration = Duration::from_secs(20);
    /// Duration that no test waits for.
    const LONG_TIMEOUT: Duration = Duration::from_secs(60);

    struct Served {
        address: SocketAddr,
        stop: CancellationToken,
        server: JoinHandle<std::io::Result<()>>,
    }

    impl Served {
        async fn within(router: Router, limits: ListenerLimits) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stop = CancellationToken::new();
            let server = tokio::spawn(serve_sockets(listener, router, limits, stop.clone()));
            Self { address, stop, server }
        }

        async fn connect(&self) -> Client {
            Client(TcpStream::connect(self.address).await.unwrap())
        }

        async fn stops(self) {
            self.stop.cancel();
            timeout(TEST_TIMEOUT, self.server).await.unwrap().unwrap().unwrap();
        }
    }

    struct Client(TcpStream);

    impl Client {
        async fn writes(&mut self, text: &str) {
            self.0.write_all(text.as_bytes()).await.unwrap();
        }

        async fn asks(&mut self) {
            self.writes("GET / HTTP/1.1\r\nHost: here\r\n\r\n").await;
        }

        /// Reads one response, whose body is a single character.
        async fn read_answer(&mut self) -> String {
            let mut answer = String::new();
            while !answer.contains("\r\n\r\n") {
                answer.push(char::from(timeout(TEST_TIMEOUT, self.0.read_u8()).await.unwrap().unwrap()));
            }
            char::from(timeout(TEST_TIMEOUT, self.0.read_u8()).await.unwrap().unwrap()).to_string()
        }

        /// Reads until the server closes the connection.
        async fn is_cut_off(&mut self) -> String {
            let mut rest = String::new();
            timeout(TEST_TIMEOUT, self.0.read_to_string(&mut rest)).await.unwrap().unwrap();
            rest
        }
    }

    /// Router that responds to each request with its number.
    fn counting() -> Router {
        let count = Arc::new(AtomicU32::new(0));
        Router::new()
            .route("/", get(move || async move { (count.fetch_add(1, Ordering::Relaxed) + 1).to_string() }))
    }

    #[tokio::test]
    async fn incomplete_header_and_idle_connection_time_out() {
        let limits = ListenerLimits { header: Duration::from_millis(50), ..ListenerLimits::PAGES };
        let served = Served::within(counting(), limits).await;
        let mut slow = served.connect().await;
        slow.writes("GET / HTTP/1.1\r\nHost: he").await;
        assert_eq!(slow.is_cut_off().await, "");
        let mut silent = served.connect().await;
        assert_eq!(silent.is_cut_off().await, "");
        let mut resting = served.connect().await;
        resting.asks().await;
        assert_eq!(resting.read_answer().await, "1");
        assert_eq!(resting.is_cut_off().await, "");
        served.stops().await;
    }

    #[tokio::test]
    async fn connection_over_the_limit_waits_for_another_to_end() {
        let limits = ListenerLimits { connections: 2, header: LONG_TIMEOUT, ..ListenerLimits::PAGES };
        let served = Served::within(counting(), limits).await;
        let (mut first, mut second) = (served.connect().await, served.connect().await);
        first.asks().await;
        assert_eq!(first.read_answer().await, "1");
        second.asks().await;
        assert_eq!(second.read_answer().await, "2");
        let mut third = served.connect().await;
        third.asks().await;
        for expected in ["3", "4", "5"] {
            first.asks().await;
            assert_eq!(first.read_answer().await, expected);
        }
        drop(second);
        assert_eq!(third.read_answer().await, "6");
        served.stops().await;
    }

    #[tokio::test]
    async fn shutdown_answers_running_requests_and_closes_idle_connections() {
        let (asked, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (asked, release) = (asked.clone(), release.clone());
            get(move || async move {
                asked.notify_one();
                release.notified().await;
                "1"
            })
        };
        let limits = ListenerLimits { header: LONG_TIMEOUT, ..ListenerLimits::PAGES };
        let served = Served::within(Router::new().route("/", slow), limits).await;
        let mut resting = served.connect().await;
        let mut busy = served.connect().await;
        busy.asks().await;
        asked.notified().await;
        served.stop.cancel();
        assert_eq!(resting.is_cut_off().await, "");
        release.notify_one();
        assert_eq!(busy.read_answer().await, "1");
        served.stops().await;
    }
    #[tokio::test]
    async fn client_that_does_not_read_is_disconnected() {
        let much = get(|| async { vec![b'.'; 64 << 20] });
        let limits = ListenerLimits { unread: Duration::from_millis(200), ..ListenerLimits::PAGES };
        let served = Served::within(Router::new().route("/", much), limits).await;
        let mut deaf = served.connect().await;
        deaf.asks().await;
        let mut first = [0];
        deaf.0.read_exact(&mut first).await.unwrap();
        // The server waits for all current requests.
        served.stops().await;
    }

    #[tokio::test]
    async fn connection_without_reuse_is_closed_after_its_response() {
        let limits =
            ListenerLimits { reuse: ConnectionReuse::One, header: LONG_TIMEOUT, ..ListenerLimits::PAGES };
        let served = Served::within(counting(), limits).await;
        let mut proxy = served.connect().await;
        proxy.asks().await;
        let response = proxy.is_cut_off().await;
        assert!(
            response.contains("\r\nconnection: close\r\n") && response.ends_with("\r\n\r\n1"),
            "{response}"
        );
        served.stops().await;
    }
}
