//! Where the program listens, and how that ends.

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
use crate::web::serving::{self, Limits, serve};

/// Time that requests under way get at the end.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Sockets that are taken before anything else begins, so that nothing does where one cannot be had.
pub(super) struct Bound {
    webhooks: TcpListener,
    console: Option<TcpListener>,
}

/// What is served until it is closed.
pub(super) struct Serving {
    stop: CancellationToken,
    servers: Vec<JoinHandle<io::Result<()>>>,
}

impl Bound {
    pub(super) fn new(webhooks: TcpListener, console: Option<TcpListener>) -> Self {
        Self { webhooks, console }
    }

    /// `proxies` are believed where they name the client of a webhook.
    pub(super) fn serve(self, app: &App, proxies: TrustedProxies) -> Serving {
        serving::ask_for_files();
        let stop = CancellationToken::new();
        let webhooks = web::webhook_router(app.webhooks.clone());
        let mut servers =
            vec![tokio::spawn(serve(self.webhooks, webhooks, Limits::webhooks(proxies), stop.clone()))];
        if let Some(listener) = self.console {
            let console = web::console_router(app.console.clone());
            servers.push(tokio::spawn(serve(listener, console, Limits::PAGES, stop.clone())));
        }
        Serving { stop, servers }
    }

    pub(super) fn webhooks_address(&self) -> anyhow::Result<SocketAddr> {
        self.webhooks.local_addr().context("listen")
    }

    pub(super) fn console_address(&self) -> anyhow::Result<Option<SocketAddr>> {
        self.console.as_ref().map(TcpListener::local_addr).transpose().context("listen")
    }
}

impl Serving {
    /// Lets requests under way end, within bounds.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let patience = Instant::now() + LAST_REQUESTS;
        for server in self.servers {
            let abort = server.abort_handle();
            match timeout_at(patience, server).await {
                Ok(served) => served.context("serve")?.context("serve")?,
                // Somebody drips a request. A text that was not acknowledged comes again.
                Err(_) => abort.abort(),
            }
        }
        Ok(())
    }
}
