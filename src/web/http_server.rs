//! HTTP server on sockets, with timeouts, a limit on concurrent connections, and graceful shutdown.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
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
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::auth;
use super::client_shares::{ClientShares, ConnectionSlot, SlotOutcome};
use super::idle_connections::{ConnectionActivity, IdleConnections, TrackedBody};
use super::lingering::{LingeringStream, UnreadBody};
use crate::access_rules::TrustedProxies;

/// Limits of a listener for its clients.
#[derive(Debug, Clone)]
pub struct ListenerLimits {
    /// Maximum number of concurrent connections. For one more, the connection that has been idle longest is closed; if
    /// none is idle, the new one waits.
    pub connections: usize,
    /// Slots for clients that have not authenticated, shared fairly. `None`: no slots are needed.
    pub shares: Option<ClientShares>,
    /// Time from the opening of a connection, or from the last response on it, to the end of the next request's header.
    /// A slower connection is closed, and so is one that is idle for as long.
    pub header_timeout: Duration,
    /// Longest time for which written data may remain unread. On systems that cannot detect this, there is no limit.
    pub unread_timeout: Duration,
    pub reuse: ConnectionReuse,
}

/// Use of connections: for one request or for several.
#[derive(Debug, Clone)]
pub enum ConnectionReuse {
    Everyone,
    /// Only trusted proxies may send several requests on a connection, and an idle connection of theirs stays open for
    /// `PROXY_IDLE_TIMEOUT`. With any other proxy, reuse would lose messages: a proxy that keeps connections open longer
    /// than this server may send a request at the moment when the server closes the connection.
    TrustedProxies(TrustedProxies),
}

impl ListenerLimits {
    pub const CONSOLE: Self = Self {
        connections: 768,
        shares: None,
        header_timeout: Duration::from_secs(10),
        unread_timeout: Duration::from_secs(60),
        reuse: ConnectionReuse::Everyone,
    };

    /// Returns the limits of the webhooks. The connections beyond the slots are for senders who have authenticated, and
    /// for connections of proxies before their request names the client.
    pub fn for_webhooks(proxies: TrustedProxies) -> Self {
        let shares = ClientShares::new(UNAUTHENTICATED_CONNECTIONS, proxies.clone());
        Self { shares: Some(shares), reuse: ConnectionReuse::TrustedProxies(proxies), ..Self::CONSOLE }
    }

    /// Returns the settings of HTTP for the connections of a peer.
    fn http_builder(&self, peer: IpAddr) -> http1::Builder {
        let (idle_timeout, is_reused) = match &self.reuse {
            ConnectionReuse::Everyone => (self.header_timeout, true),
            ConnectionReuse::TrustedProxies(proxies) if proxies.includes_peer(peer) => {
                (PROXY_IDLE_TIMEOUT, true)
            }
            ConnectionReuse::TrustedProxies(_) => (self.header_timeout, false),
        };
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(idle_timeout)
            .max_buf_size(MAX_BUFFER_BYTES)
            .keep_alive(is_reused);
        builder
    }
}

/// Slots of the webhooks for clients that have not authenticated.
const UNAUTHENTICATED_CONNECTIONS: usize = 512;
/// Largest header, and the largest part of a body that is buffered before it is read.
const MAX_BUFFER_BYTES: usize = 32 << 10;
/// Time for which an idle connection of a trusted proxy stays open: longer than proxies keep theirs. By default nginx
/// keeps them for 60 s, Traefik for 90 s, and Caddy for 120 s.
const PROXY_IDLE_TIMEOUT: Duration = Duration::from_secs(150);
/// Time in which a connection that lost its slot can still get a response.
const DISPLACED_RESPONSE_TIME: Duration = Duration::from_millis(250);

/// Sufficient limit on open files while both listeners serve the maximum number of connections.
const MAX_OPEN_FILES: u64 = 4096;

/// Raises the limit on open files to `MAX_OPEN_FILES`, as far as the system allows: many systems default to 1,024 or
/// fewer.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(MAX_OPEN_FILES, |maximum| maximum.min(MAX_OPEN_FILES));
    if current.is_none_or(|current| current >= allowed) {
        return;
    }
    let raised = Rlimit { current: Some(allowed), maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, limit = current, "failed to raise the limit on open files");
    }
}

/// Serves until `stop`, then waits for in-flight requests. Dropping the future drops its connections.
pub async fn serve_sockets(
    listener: TcpListener,
    router: Router,
    limits: ListenerLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let unread_timeout = limits.unread_timeout;
    serve_listener(
        listener.tap_io(move |stream| configure_stream(stream, unread_timeout)),
        router,
        limits,
        stop,
    )
    .await
}

/// Serves like `serve_sockets`, on streams of any kind.
pub async fn serve_listener<L: Listener<Addr = SocketAddr>>(
    mut listener: L,
    router: Router,
    limits: ListenerLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    let idle = IdleConnections::default();
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            // Errors of accepting are logged by axum, which waits when no more files can be opened.
            accepted = listener.accept() => accepted,
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = make_room(&mut connections, limits.connections, &idle) => {}
        }
        let slot = match &limits.shares {
            None => None,
            Some(shares) => match shares.open_connection(peer.ip()) {
                // Dropping the stream refuses the client.
                None => continue,
                slot => slot,
            },
        };
        let (router, activity) = (router.clone(), idle.add_connection());
        let connection = OpenConnection { router, slot, activity, unread: UnreadBody::default() };
        connections.spawn(serve_connection(stream, connection, limits.http_builder(peer.ip()), stop.clone()));
    }
    // Clients that connect after this point are refused instead of waiting in the backlog.
    drop(listener);
    while let Some(result) = connections.join_next().await {
        log_failure(result);
    }
    Ok(())
}

/// Waits until there are fewer than `limit` connections, and closes idle ones to that end, the longest idle first.
async fn make_room(connections: &mut JoinSet<()>, limit: usize, idle: &IdleConnections) {
    while let Some(result) = connections.try_join_next() {
        log_failure(result);
    }
    while connections.len() >= limit {
        let closes_one = idle.close_longest_idle();
        tokio::select! {
            Some(result) = connections.join_next() => log_failure(result),
            () = idle.wait_for_idle(), if !closes_one => {}
            // The chosen connection had just received a request.
            () = sleep(DISPLACED_RESPONSE_TIME), if closes_one => {}
        }
    }
}

fn configure_stream(stream: &TcpStream, unread_timeout: Duration) {
    // With Nagle's algorithm small responses can wait 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    // Without this timeout a client that does not read, or that vanishes without closing, would keep its connection for
    // a quarter of an hour or forever.
    #[cfg(target_os = "linux")]
    {
        let unread_timeout = u32::try_from(unread_timeout.as_millis()).unwrap_or(u32::MAX);
        if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, unread_timeout) {
            tracing::debug!(%error, "failed to set TCP_USER_TIMEOUT");
        }
    }
}

/// State of one connection, shared by its requests.
#[derive(Clone)]
struct OpenConnection {
    router: Router,
    /// Slot of the connection; `None` if the listener has no slots.
    slot: Option<Arc<ConnectionSlot>>,
    activity: Arc<ConnectionActivity>,
    unread: UnreadBody,
}

impl OpenConnection {
    async fn handle_request(self, request: Request<Incoming>) -> Result<Response<TrackedBody>, Infallible> {
        let active = self.activity.begin_request();
        Ok(self.respond(request).await?.map(|body| TrackedBody::new(body, active)))
    }

    async fn respond(&self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let Some(slot) = &self.slot else { return self.route_request(request.map(Body::new)).await };
        if slot.begin_request(request.headers()) == SlotOutcome::Refused {
            return Ok(refusal_response().await);
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Arc::clone(slot));
        tokio::select! {
            biased;
            response = self.route_request(request) => response,
            () = slot.wait_displaced() => Ok(refusal_response().await),
        }
    }

    async fn route_request(&self, request: Request<Body>) -> Result<Response, Infallible> {
        let has_body = !request.body().is_end_stream();
        let response = self.router.clone().oneshot(request).await?;
        // After a timeout the rest of the body is not read.
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

/// Builds the response to a client that lost its slot to another client.
async fn refusal_response() -> Response {
    let mut response =
        auth::headers::add_security_headers(StatusCode::SERVICE_UNAVAILABLE.into_response()).await;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn serve_connection<S>(
    stream: S,
    state: OpenConnection,
    builder: http1::Builder,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stream = LingeringStream::new(stream, state.unread.clone());
    let service = service_fn(|request| state.clone().handle_request(request));
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = state.wait_displaced() => {
            connection.as_mut().graceful_shutdown();
            match timeout(DISPLACED_RESPONSE_TIME, connection).await {
                Ok(result) => result,
                Err(_) => return,
            }
        }
        () = state.activity.wait_closing() => {
            connection.as_mut().graceful_shutdown();
            match timeout(DISPLACED_RESPONSE_TIME, connection.as_mut()).await {
                Ok(result) => result,
                Err(_) if state.activity.is_idle() => return,
                // A request that arrived meanwhile is answered.
                Err(_) => connection.await,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended with an error");
    }
}

fn log_failure(result: Result<(), JoinError>) {
    if let Err(error) = result {
        tracing::error!(%error, "connection task failed");
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;
    use tokio::task::JoinHandle;
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;

    use super::{ListenerLimits, raise_file_limit, serve_sockets};
    use crate::access_rules::TrustedProxies;

    /// Time limit of the tests, reached only if something hangs.
    const TEST_TIMEOUT: Duration = Duration::from_secs(20);
    /// Timeout that no test reaches.
    const LONG_TIMEOUT: Duration = Duration::from_secs(60);

    struct TestServer {
        address: SocketAddr,
        stop: CancellationToken,
        server: JoinHandle<std::io::Result<()>>,
    }

    impl TestServer {
        async fn start(router: Router, limits: ListenerLimits) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stop = CancellationToken::new();
            let server = tokio::spawn(serve_sockets(listener, router, limits, stop.clone()));
            Self { address, stop, server }
        }

        async fn connect(&self) -> Client {
            Client(TcpStream::connect(self.address).await.unwrap())
        }

        async fn shut_down(self) {
            self.stop.cancel();
            timeout(TEST_TIMEOUT, self.server).await.unwrap().unwrap().unwrap();
        }
    }

    struct Client(TcpStream);

    impl Client {
        async fn send(&mut self, text: &str) {
            self.0.write_all(text.as_bytes()).await.unwrap();
        }

        async fn send_request(&mut self) {
            self.send("GET / HTTP/1.1\r\nHost: here\r\n\r\n").await;
        }

        /// Reads one response and returns its body.
        async fn read_response_body(&mut self) -> String {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                head.push(char::from(timeout(TEST_TIMEOUT, self.0.read_u8()).await.unwrap().unwrap()));
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            timeout(TEST_TIMEOUT, self.0.read_exact(&mut body)).await.unwrap().unwrap();
            String::from_utf8(body).unwrap()
        }

        /// Reads until the server closes the connection.
        async fn read_until_closed(&mut self) -> String {
            let mut rest = String::new();
            timeout(TEST_TIMEOUT, self.0.read_to_string(&mut rest)).await.unwrap().unwrap();
            rest
        }
    }

    /// Router that responds to each request with its number.
    fn counting_router() -> Router {
        let count = Arc::new(AtomicU32::new(0));
        Router::new()
            .route("/", get(move || async move { (count.fetch_add(1, Ordering::Relaxed) + 1).to_string() }))
    }

    /// Router that responds to each request when it is released.
    fn slow_router(entered: &Arc<Notify>, release: &Arc<Notify>) -> Router {
        let (entered, release) = (entered.clone(), release.clone());
        let respond = move || async move {
            entered.notify_one();
            release.notified().await;
            "1"
        };
        Router::new().route("/", get(respond))
    }

    #[tokio::test]
    async fn incomplete_header_and_idle_connection_time_out() {
        let limits = ListenerLimits { header_timeout: Duration::from_millis(50), ..ListenerLimits::CONSOLE };
        let server = TestServer::start(counting_router(), limits).await;
        let mut slow = server.connect().await;
        slow.send("GET / HTTP/1.1\r\nHost: he").await;
        assert_eq!(slow.read_until_closed().await, "");
        let mut unused = server.connect().await;
        assert_eq!(unused.read_until_closed().await, "");
        let mut idle = server.connect().await;
        idle.send_request().await;
        assert_eq!(idle.read_response_body().await, "1");
        assert_eq!(idle.read_until_closed().await, "");
        server.shut_down().await;
    }

    #[tokio::test]
    async fn connection_over_the_limit_replaces_the_longest_idle_one() {
        let limits =
            ListenerLimits { connections: 2, header_timeout: LONG_TIMEOUT, ..ListenerLimits::CONSOLE };
        let server = TestServer::start(counting_router(), limits).await;
        let (mut first, mut second) = (server.connect().await, server.connect().await);
        for (client, expected) in [(&mut first, "1"), (&mut second, "2")] {
            client.send_request().await;
            assert_eq!(client.read_response_body().await, expected);
        }
        first.send_request().await;
        assert_eq!(first.read_response_body().await, "3");
        let mut third = server.connect().await;
        third.send_request().await;
        assert_eq!(third.read_response_body().await, "4");
        assert_eq!(second.read_until_closed().await, "");
        first.send_request().await;
        assert_eq!(first.read_response_body().await, "5");
        server.shut_down().await;
    }

    #[tokio::test]
    async fn connection_over_the_limit_waits_while_none_is_idle() {
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let limits =
            ListenerLimits { connections: 1, header_timeout: LONG_TIMEOUT, ..ListenerLimits::CONSOLE };
        let server = TestServer::start(slow_router(&entered, &release), limits).await;
        let mut busy = server.connect().await;
        busy.send_request().await;
        entered.notified().await;
        let mut waiting = server.connect().await;
        waiting.send_request().await;
        release.notify_one();
        assert_eq!(busy.read_response_body().await, "1");
        entered.notified().await;
        release.notify_one();
        assert_eq!(waiting.read_response_body().await, "1");
        assert_eq!(busy.read_until_closed().await, "");
        server.shut_down().await;
    }

    #[tokio::test]
    async fn six_hundred_idle_connections_delay_no_message() {
        const IDLE: usize = 600;
        raise_file_limit();
        let loopback = TrustedProxies::from_networks(vec![IpAddr::from([127, 0, 0, 1]).into()]);
        let limits = ListenerLimits { connections: IDLE, ..ListenerLimits::for_webhooks(loopback) };
        let server = TestServer::start(counting_router(), limits).await;
        let mut idle = Vec::new();
        for number in 1..=IDLE {
            let mut client = server.connect().await;
            client.send_request().await;
            assert_eq!(client.read_response_body().await, number.to_string());
            idle.push(client);
        }
        let begun = Instant::now();
        for number in IDLE + 1..=IDLE + 10 {
            let mut client = server.connect().await;
            client.send_request().await;
            assert_eq!(client.read_response_body().await, number.to_string());
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(idle.remove(0).read_until_closed().await, "");
        let mut newest = idle.pop().unwrap();
        newest.send_request().await;
        assert_eq!(newest.read_response_body().await, (IDLE + 11).to_string());
    }

    #[tokio::test]
    async fn shutdown_completes_in_flight_requests_and_closes_idle_connections() {
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let limits = ListenerLimits { header_timeout: LONG_TIMEOUT, ..ListenerLimits::CONSOLE };
        let server = TestServer::start(slow_router(&entered, &release), limits).await;
        let mut idle = server.connect().await;
        let mut busy = server.connect().await;
        busy.send_request().await;
        entered.notified().await;
        server.stop.cancel();
        assert_eq!(idle.read_until_closed().await, "");
        release.notify_one();
        assert_eq!(busy.read_response_body().await, "1");
        server.shut_down().await;
    }

    #[tokio::test]
    async fn client_that_does_not_read_is_disconnected() {
        let large = get(|| async { vec![b'.'; 64 << 20] });
        let limits = ListenerLimits { unread_timeout: Duration::from_millis(200), ..ListenerLimits::CONSOLE };
        let server = TestServer::start(Router::new().route("/", large), limits).await;
        let mut stalled = server.connect().await;
        stalled.send_request().await;
        let mut first = [0];
        stalled.0.read_exact(&mut first).await.unwrap();
        // The server waits for all current requests.
        server.shut_down().await;
    }

    #[tokio::test]
    async fn only_trusted_proxies_reuse_connections_to_the_webhooks() {
        for (proxy, expected) in [([127, 0, 0, 1], "2"), ([127, 0, 0, 2], "")] {
            let proxies = TrustedProxies::from_networks(vec![IpAddr::from(proxy).into()]);
            let server = TestServer::start(counting_router(), ListenerLimits::for_webhooks(proxies)).await;
            let mut client = server.connect().await;
            client.send_request().await;
            assert_eq!(client.read_response_body().await, "1");
            let next = if expected.is_empty() {
                client.read_until_closed().await
            } else {
                client.send_request().await;
                client.read_response_body().await
            };
            assert_eq!(next, expected);
            server.shut_down().await;
        }
    }
}
