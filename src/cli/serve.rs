//! `dialarr serve`: startup, run and shutdown of the service.

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::console;
use super::listeners::BoundSockets;
use crate::app::App;
use crate::clock::Clock;
use crate::config::Config;
use crate::wiring;

pub(super) async fn run_service(config: &Config) -> anyhow::Result<()> {
    tracing::info!(version = env!("DIALARR_VERSION"), "starting");
    // From here on, a signal shuts the program down in order, even during startup.
    let mut signals = StopSignals::listen()?;
    let webhooks = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("listen on {}; hint: set HOST and PORT", config.listen))?;
    let console = match config.console.bind {
        None => None,
        Some(bind) => Some(TcpListener::bind(bind).await.with_context(|| {
            format!("listen on {bind} for the console; hint: set CONSOLE_BIND, or leave it empty for none")
        })?),
    };
    let bound = BoundSockets::new(webhooks, console);
    let (address, console) = (bound.webhooks_address()?, bound.console_address()?);
    let (db, clock) = (wiring::open_database(config)?, Clock::for_service());
    let blueprint = wiring::build_blueprint(config, None)?;
    blueprint.library.preload_caches(clock.now());
    let app = App::start(db, clock, blueprint).await?;
    let listeners = bound.start_serving(&app, config.trusted_proxies.clone());
    tracing::info!(%address, "listening");
    match console {
        Some(bind) => tracing::info!(address = %console::console_url(bind), "console listening"),
        None => tracing::info!("console disabled: CONSOLE_BIND is empty"),
    }
    wiring::log_configuration_warnings(config);
    tokio::select! {
        () = signals.wait_for_signal() => tracing::info!("stopping"),
        () = app.db.log_syncs().wait_for_failure() => {
            // What the disk holds is unknown, so nothing is finished in order. The next start continues the work.
            anyhow::bail!("sync the database to the disk; hint: check the disk, then start the program again");
        }
    }
    // Messages are accepted until the end. The next start answers those that arrive while turns drain.
    app.drain_turns().await;
    listeners.close_listeners().await?;
    app.close().await;
    Ok(())
}

/// Listener for SIGTERM and Ctrl-C.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("listen for Ctrl-C")?,
        })
    }

    /// Returns when one of the signals arrives.
    pub(super) async fn wait_for_signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
