//! `dialarr serve`: the service, from its configuration to its orderly end.

use anyhow::Context;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::wiring;
use crate::app::App;
use crate::config::Config;
use crate::web;

pub(super) async fn run(config: &Config) -> anyhow::Result<()> {
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("listen on {}; hint: set HOST and PORT", config.listen))?;
    let app = App::start(wiring::blueprint(config)?).await?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    wiring::tell_what_is_missing(config);
    serve_until_signalled(listener, app).await
}

/// Takes texts in until the very end: what arrives while turns end is answered by the next start.
pub(super) async fn serve_until_signalled(listener: TcpListener, app: App) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let server = tokio::spawn(web::serve(listener, app.webhooks.clone(), stop.clone()));
    signalled().await?;
    tracing::info!("stopping");
    app.drain().await;
    stop.cancel();
    server.await.context("serve")?.context("serve")?;
    app.close().await;
    Ok(())
}

/// Returns on SIGTERM or Ctrl-C.
pub(super) async fn signalled() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("listen for SIGTERM")?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.context("listen for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}
