//! Address of the console, and `dialarr console-link`: a link that signs in to the console of the running service.

use std::net::SocketAddr;

use anyhow::Context;

use super::print_text;
use crate::clock::Clock;
use crate::config::Config;
use crate::store::audit::Actor;
use crate::store::database::db::{self, ServiceState};
use crate::web::auth;

/// Returns the address that a browser on this machine opens.
pub(super) fn console_address(bind: SocketAddr) -> String {
    if bind.ip().is_unspecified() {
        return format!("http://localhost:{}", bind.port());
    }
    format!("http://{bind}")
}

pub(super) fn print_link(config: &Config) -> anyhow::Result<()> {
    let bind = config
        .console
        .bind
        .context("make a link: CONSOLE_BIND is empty, so there is no console; hint: set it and restart")?;
    let database = config.database.to_str().context("use a database path that is not UTF-8")?;
    let now = Clock::System.now();
    let (path, beside) =
        db::visit_with_service_state(database, |conn| auth::create_link(conn, Actor::Shell, now))?;
    let address = console_address(bind);
    print_text(&format!("{address}{path}\n"))?;
    eprintln!(
        "It signs in once, within ten minutes; hint: from elsewhere, put the console's address there before /sign-in"
    );
    if beside == ServiceState::Stopped {
        eprintln!("No service is running now, and the link works once one does; hint: dialarr serve");
    }
    Ok(())
}
