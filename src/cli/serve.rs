//! `dialarr serve`: startup, run and shutdown of the service.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::console;
use super::listeners::{BoundSockets, RunningListeners};
use super::load_config;
use crate::app::App;
use crate::clock::Clock;
use crate::config::{Config, ConfigSources};
use crate::reconfiguration::SettingsApplier;
use crate::settings::LiveSettings;
use crate::settings::change::SettingsContext;
use crate::settings::setup_step::{SetupStep, is_setup_unfinished};
use crate::store::audit::Actor;
use crate::store::people::users;
use crate::web::auth;
use crate::wiring;

pub(super) async fn run_service(sources: ConfigSources) -> anyhow::Result<()> {
    let config = load_config(&sources)?;
    // From here on, a signal shuts the program down in order, even during startup.
    let mut signals = StopSignals::listen()?;
    let mut service = RunningProgram::start(sources, config).await?;
    if let Some(bind) = service.console {
        announce_setup(&service.app, &service.sources, bind).await?;
    }
    service.run_until(async |_: &App| signals.wait_for_signal().await).await?;
    tracing::info!("stopping");
    service.close().await
}

/// Program that serves requests.
pub(super) struct RunningProgram {
    pub(super) app: App,
    /// Address of the webhooks.
    pub(super) webhooks: SocketAddr,
    /// Address of the console, if it is on.
    pub(super) console: Option<SocketAddr>,
    sources: ConfigSources,
    listeners: RunningListeners,
    applier: SettingsApplier,
}

impl RunningProgram {
    pub(super) async fn start(sources: ConfigSources, config: Config) -> anyhow::Result<Self> {
        tracing::info!(version = env!("DIALARR_VERSION"), "starting");
        let bound = bind_sockets(&config).await?;
        let (webhooks, console) = (bound.webhooks_address()?, bound.console_address()?);
        let (db, clock) = (wiring::open_database(&config)?, Clock::for_service());
        let blueprint = wiring::build_blueprint(&config, None)?;
        blueprint.library.preload_caches(clock.now());
        let settings = LiveSettings::new(db.clone(), SettingsContext::from_sources(sources.clone()));
        let app = App::start(db, clock, blueprint).await?.with_settings(settings.clone());
        let listeners = bound.start_serving(&app, config.trusted_proxies.clone());
        tracing::info!(address = %webhooks, "listening");
        match console {
            Some(bind) => tracing::info!(address = %console::console_url(bind), "console listening"),
            None => tracing::info!("console disabled: CONSOLE_BIND is empty"),
        }
        wiring::log_configuration_warnings(&config);
        let applier = SettingsApplier::new(settings, sources.clone(), config);
        Ok(Self { app, webhooks, console, sources, listeners, applier })
    }

    /// Applies changed settings until `stop` returns. Returns an error if the disk fails.
    pub(super) async fn run_until<T>(&mut self, stop: impl AsyncFnOnce(&App) -> T) -> anyhow::Result<T> {
        let Self { app, applier, .. } = self;
        tokio::select! {
            never = applier.run(app) => match never {},
            value = stop(app) => Ok(value),
            () = app.db.log_syncs().wait_for_failure() => {
                // What the disk holds is unknown, so nothing is finished in order. The next start continues the work.
                anyhow::bail!("sync the database to the disk; hint: check the disk, then start the program again");
            }
        }
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        // Messages are accepted until the end. The next start answers those that arrive while turns drain.
        self.app.drain_turns().await;
        self.listeners.close_listeners().await?;
        self.app.close().await;
        Ok(())
    }
}

async fn bind_sockets(config: &Config) -> anyhow::Result<BoundSockets> {
    let webhooks = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("listen on {}; hint: set HOST and PORT", config.listen))?;
    let console = match config.console.bind {
        None => None,
        Some(bind) => Some(TcpListener::bind(bind).await.with_context(|| {
            format!("listen on {bind} for the console; hint: set CONSOLE_BIND, or leave it empty for none")
        })?),
    };
    Ok(BoundSockets::new(webhooks, console))
}

/// Logs how the operator opens the setup assistant while the setup is unfinished: with a sign-in link until there is a
/// password. The link is logged only here.
async fn announce_setup(app: &App, sources: &ConfigSources, bind: SocketAddr) -> anyhow::Result<()> {
    if !is_setup_unfinished(sources, app.db.read(users::has_admin).await?) {
        return Ok(());
    }
    let url = console::console_url(bind);
    if SetupStep::Password.is_done(sources) {
        tracing::warn!("the setup is unfinished; continue at {url}/setup");
        return Ok(());
    }
    let now = app.console.clock.now();
    let link = app.db.write(move |conn| auth::create_link(conn, Actor::Dialarr, now)).await?;
    let hint = match bind.ip().is_loopback() {
        true => "only this machine can open it; for others, set CONSOLE_BIND=0.0.0.0:3001 and restart",
        false => "on another machine, use this machine's address",
    };
    tracing::warn!(
        "nothing is configured; set up Dialarr at {url}{link} (works once, for ten minutes; hint: {hint})"
    );
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
