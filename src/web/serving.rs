//! How requests are read from a socket: what a client may keep us waiting for, how many are served at a time, and how
//! that ends.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// What a listener bears of its clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time; further ones wait in the system's queue until one ends.
    pub connections: usize,
    /// From the opening of a connection, or from the last answer on it, to the end of the next request's header. What is
    /// slower is cut off, and so is a connection that rests for as long.
    pub header: Duration,
    /// How long what was written may wait to be read. Where the system cannot tell, it may wait for ever.
    pub unread: Duration,
    pub reuse: Reuse,
}

/// Whether a connection is for more than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    Many,
    /// A proxy keeps connections for longer than we do, and one that hands a text to a connection which we end in that
    /// moment loses it: so none is kept.
    One,
}

impl Limits {
    pub const PAGES: Self = Self {
        connections: 768,
        header: Duration::from_secs(10),
        unread: Duration::from_secs(60),
        reuse: Reuse::Many,
    };
    pub const WEBHOOKS: Self = Self { connections: 512, reuse: Reuse::One, ..Self::PAGES };
}

/// Files that are open while both listeners serve as many connections as they may, with much to spare.
const FILES: u64 = 4096;

/// Lets the program open as many files as that, as far as the system allows: many systems give 1,024 or fewer to whoever
/// does not ask.
pub fn ask_for_files() {
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

/// Serves until `stop`, then lets requests under way end. Dropping it drops its connections.
pub async fn serve(
    mut listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .keep_alive(limits.reuse == Reuse::Many);
    let mut connections = JoinSet::new();
    loop {
        while let Some(ended) = connections.try_join_next() {
            note(ended);
        }
        let has_room = connections.len() < limits.connections;
        tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next(), if !has_room => note(ended),
            // What goes wrong with accepting is logged by axum, which waits where files have run out.
            (stream, _) = Listener::accept(&mut listener), if has_room => {
                prepare(&stream, limits);
                connections.spawn(attend(stream, router.clone(), builder.clone(), stop.clone()));
            }
        }
    }
    // Whoever still knocks is turned away rather than left waiting.
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        note(ended);
    }
    Ok(())
}

fn prepare(stream: &TcpStream, limits: Limits) {
    // With Nagle's algorithm small answers can wait 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    // A client that does not read, or is gone without a word, would keep its connection for a quarter of an hour or for
    // ever.
    #[cfg(target_os = "linux")]
    {
        let unread = u32::try_from(limits.unread.as_millis()).unwrap_or(u32::MAX);
        if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, unread) {
            tracing::debug!(%error, "could not set TCP_USER_TIMEOUT");
        }
    }
}

async fn attend(stream: TcpStream, router: Router, builder: http1::Builder, stop: CancellationToken) {
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection was cut off");
    }
}

fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "serving a connection failed");
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

    use super::{Limits, Reuse, serve};

    /// Nothing here takes this long unless it hangs.
    const PATIENCE: Duration = Duration::from_secs(20);
    /// No test waits for it.
    const LONG: Duration = Duration::from_secs(60);

    struct Served {
        address: SocketAddr,
        stop: CancellationToken,
        server: JoinHandle<std::io::Result<()>>,
    }

    impl Served {
        async fn within(router: Router, limits: Limits) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stop = CancellationToken::new();
            let server = tokio::spawn(serve(listener, router, limits, stop.clone()));
            Self { address, stop, server }
        }

        async fn connect(&self) -> Client {
            Client(TcpStream::connect(self.address).await.unwrap())
        }

        async fn stops(self) {
            self.stop.cancel();
            timeout(PATIENCE, self.server).await.unwrap().unwrap().unwrap();
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

        /// One answer, whose body is a single character.
        async fn is_told(&mut self) -> String {
            let mut answer = String::new();
            while !answer.contains("\r\n\r\n") {
                answer.push(char::from(timeout(PATIENCE, self.0.read_u8()).await.unwrap().unwrap()));
            }
            char::from(timeout(PATIENCE, self.0.read_u8()).await.unwrap().unwrap()).to_string()
        }

        /// What comes until the server hangs up.
        async fn is_cut_off(&mut self) -> String {
            let mut rest = String::new();
            timeout(PATIENCE, self.0.read_to_string(&mut rest)).await.unwrap().unwrap();
            rest
        }
    }

    /// Tells each request its number.
    fn counting() -> Router {
        let count = Arc::new(AtomicU32::new(0));
        Router::new()
            .route("/", get(move || async move { (count.fetch_add(1, Ordering::Relaxed) + 1).to_string() }))
    }

    #[tokio::test]
    async fn half_a_header_is_not_waited_for_and_a_resting_connection_neither() {
        let limits = Limits { header: Duration::from_millis(50), ..Limits::PAGES };
        let served = Served::within(counting(), limits).await;
        let mut slow = served.connect().await;
        slow.writes("GET / HTTP/1.1\r\nHost: he").await;
        assert_eq!(slow.is_cut_off().await, "");
        let mut silent = served.connect().await;
        assert_eq!(silent.is_cut_off().await, "");
        let mut resting = served.connect().await;
        resting.asks().await;
        assert_eq!(resting.is_told().await, "1");
        assert_eq!(resting.is_cut_off().await, "");
        served.stops().await;
    }

    #[tokio::test]
    async fn a_connection_beyond_the_bound_waits_until_another_ends() {
        let limits = Limits { connections: 2, header: LONG, ..Limits::PAGES };
        let served = Served::within(counting(), limits).await;
        let (mut first, mut second) = (served.connect().await, served.connect().await);
        first.asks().await;
        assert_eq!(first.is_told().await, "1");
        second.asks().await;
        assert_eq!(second.is_told().await, "2");
        let mut third = served.connect().await;
        third.asks().await;
        for told in ["3", "4", "5"] {
            first.asks().await;
            assert_eq!(first.is_told().await, told);
        }
        drop(second);
        assert_eq!(third.is_told().await, "6");
        served.stops().await;
    }

    #[tokio::test]
    async fn at_the_stop_what_was_asked_is_answered_and_resting_connections_end() {
        let (asked, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (asked, release) = (asked.clone(), release.clone());
            get(move || async move {
                asked.notify_one();
                release.notified().await;
                "1"
            })
        };
        let limits = Limits { header: LONG, ..Limits::PAGES };
        let served = Served::within(Router::new().route("/", slow), limits).await;
        let mut resting = served.connect().await;
        let mut busy = served.connect().await;
        busy.asks().await;
        asked.notified().await;
        served.stop.cancel();
        assert_eq!(resting.is_cut_off().await, "");
        release.notify_one();
        assert_eq!(busy.is_told().await, "1");
        served.stops().await;
    }
    #[tokio::test]
    async fn a_client_that_does_not_read_what_it_asked_for_is_given_up() {
        let much = get(|| async { vec![b'.'; 64 << 20] });
        let limits = Limits { unread: Duration::from_millis(200), ..Limits::PAGES };
        let served = Served::within(Router::new().route("/", much), limits).await;
        let mut deaf = served.connect().await;
        deaf.asks().await;
        let mut first = [0];
        deaf.0.read_exact(&mut first).await.unwrap();
        // The server waits for whatever is under way.
        served.stops().await;
    }

    #[tokio::test]
    async fn where_connections_are_not_kept_an_answer_says_so_and_ends_its_own() {
        let limits = Limits { reuse: Reuse::One, header: LONG, ..Limits::PAGES };
        let served = Served::within(counting(), limits).await;
        let mut proxy = served.connect().await;
        proxy.asks().await;
        let told = proxy.is_cut_off().await;
        assert!(told.contains("\r\nconnection: close\r\n") && told.ends_with("\r\n\r\n1"), "{told}");
        served.stops().await;
    }
}
