//! `dialarr serve`: the service, from its configuration to its orderly end.

use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::wiring;
use crate::app::App;
use crate::config::Config;
use crate::web;

/// Time that requests under way get at the end.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

pub(super) async fn run(config: &Config) -> anyhow::Result<()> {
    // From here on a signal ends the program in order, however far its start is.
    let mut signals = Signals::listen()?;
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("listen on {}; hint: set HOST and PORT", config.listen))?;
    let address = listener.local_addr().context("listen")?;
    let blueprint = wiring::blueprint(config)?;
    blueprint.library.read_ahead(blueprint.clock.now());
    let app = App::start(blueprint).await?;
    let stop = CancellationToken::new();
    let server = tokio::spawn(web::serve(listener, web::webhook_router(app.webhooks.clone()), stop.clone()));
    tracing::info!(%address, "listening");
    wiring::tell_what_is_missing(config);
    signals.arrive().await;
    tracing::info!("stopping");
    // Texts are taken in until the very end: what arrives while turns end is answered by the next start.
    app.drain().await;
    stop.cancel();
    let abort = server.abort_handle();
    match tokio::time::timeout(LAST_REQUESTS, server).await {
        Ok(served) => served.context("serve")?.context("serve")?,
        // Somebody drips a request. A text that was not acknowledged comes again.
        Err(_) => abort.abort(),
    }
    app.close().await;
    Ok(())
}

/// SIGTERM and Ctrl-C.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("listen for Ctrl-C")?,
        })
    }

    /// Returns when one of them arrives.
    pub(super) async fn arrive(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
