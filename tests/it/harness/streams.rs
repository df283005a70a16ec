//! Listener whose connections are streams in memory: it works under a clock that stands still, and a client may have
//! any address.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::serve::Listener;
use dialarr::web::http_server::{ListenerLimits, serve_listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Number of bytes that a client can write before any of them are read.
const BUFFER_BYTES: usize = 16 << 10;

pub(crate) struct MemoryServer(mpsc::UnboundedSender<(DuplexStream, SocketAddr)>);

struct MemoryListener(mpsc::UnboundedReceiver<(DuplexStream, SocketAddr)>);

pub(crate) struct MemoryClient(DuplexStream);

impl Listener for MemoryListener {
    type Io = DuplexStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (DuplexStream, SocketAddr) {
        match self.0.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([127, 0, 0, 1], 3000)))
    }
}

impl MemoryServer {
    /// Serves until the test ends.
    pub(crate) fn start(router: Router, limits: ListenerLimits) -> Self {
        let (connect, connections) = mpsc::unbounded_channel();
        tokio::spawn(serve_listener(MemoryListener(connections), router, limits, CancellationToken::new()));
        Self(connect)
    }

    /// Opens a connection on which `text` was already written.
    pub(crate) async fn connect(&self, peer: &str, text: &str) -> MemoryClient {
        let (client, server) = duplex(BUFFER_BYTES);
        let mut client = MemoryClient(client);
        // The client writes before the server sees the connection, since the server may refuse it at once.
        client.write(text).await;
        self.0.send((server, SocketAddr::new(peer.parse().unwrap(), 4711))).unwrap();
        client
    }
}

impl MemoryClient {
    pub(crate) async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Returns the status of the response, once the server has closed the connection; 0 if it closed without a
    /// response.
    pub(crate) async fn status(mut self) -> u16 {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).await.unwrap();
        answer.strip_prefix("HTTP/1.1 ").map_or(0, |rest| rest[..3].parse().unwrap())
    }
}
