//! Startup and shutdown of the HTTP listeners.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::access_rules::TrustedProxies;
use crate::app::App;
use crate::web;
use crate::web::http_server::{self, ListenerLimits, serve_sockets};

/// Grace period for in-flight requests at shutdown.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Sockets that are bound first, so that startup fails early if an address is in use.
pub(super) struct BoundSockets {
    webhooks: TcpListener,
    console: Option<TcpListener>,
}

/// Listeners that serve until they are closed.
pub(super) struct RunningListeners {
    stop: CancellationToken,
    servers: Vec<JoinHandle<io::Result<()>>>,
}

impl BoundSockets {
    pub(super) fn new(webhooks: TcpListener, console: Option<TcpListener>) -> Self {
        Self { webhooks, console }
    }

    /// Starts to serve requests. The `X-Forwarded-For` header is trusted only from `proxies`.
    pub(super) fn start_serving(self, app: &App, proxies: TrustedProxies) -> RunningListeners {
        http_server::raise_file_limit();
        let stop = CancellationToken::new();
        let webhooks = web::webhook_router(app.webhooks.clone());
        let mut servers = vec![tokio::spawn(serve_sockets(
            self.webhooks,
            webhooks,
            ListenerLimits::for_webhooks(proxies),
            stop.clone(),
        ))];
        if let Some(listener) = self.console {
            let console = web::console_router(app.console.clone());
            servers.push(tokio::spawn(serve_sockets(
                listener,
                console,
                ListenerLimits::CONSOLE,
                stop.clone(),
            )));
        }
        RunningListeners { stop, servers }
    }

    pub(super) fn webhooks_address(&self) -> anyhow::Result<SocketAddr> {
        self.webhooks.local_addr().context("read the address of the webhook listener")
    }

    pub(super) fn console_address(&self) -> anyhow::Result<Option<SocketAddr>> {
        self.console
            .as_ref()
            .map(TcpListener::local_addr)
            .transpose()
            .context("read the address of the console listener")
    }
}

impl RunningListeners {
    /// Closes the listeners. In-flight requests may finish within the grace period.
    pub(super) async fn close_listeners(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let deadline = Instant::now() + SHUTDOWN_GRACE_PERIOD;
        for server in self.servers {
            let abort = server.abort_handle();
            match timeout_at(deadline, server).await {
                Ok(result) => result.context("join a listener task")?.context("serve requests")?,
                // A slow request is aborted. The carrier retries a message that was not acknowledged.
                Err(_) => abort.abort(),
            }
        }
        Ok(())
    }
}
