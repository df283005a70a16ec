//! Listeners of the program, and their shutdown.

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

/// Time that running requests get at shutdown.
const REQUEST_SHUTDOWN_TIME: Duration = Duration::from_secs(1);

/// Sockets bound before anything else starts, so that nothing starts if a socket is not available.
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

    /// Starts to serve. The `X-Forwarded-For` header of `proxies` is trusted to name the client of a webhook.
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
        self.webhooks.local_addr().context("listen")
    }

    pub(super) fn console_address(&self) -> anyhow::Result<Option<SocketAddr>> {
        self.console.as_ref().map(TcpListener::local_addr).transpose().context("listen")
    }
}

impl RunningListeners {
    /// Closes the listeners and lets running requests end, within a time limit.
    pub(super) async fn close_listeners(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let deadline = Instant::now() + REQUEST_SHUTDOWN_TIME;
        for server in self.servers {
            let abort = server.abort_handle();
            match timeout_at(deadline, server).await {
                Ok(served) => served.context("serve")?.context("serve")?,
                // A client sends a request very slowly. The carrier repeats a message that was not acknowledged.
                Err(_) => abort.abort(),
            }
        }
        Ok(())
    }
}
