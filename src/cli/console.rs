//! `dialarr console-link`: prints a sign-in link for the console of the running service.

use std::net::SocketAddr;

use anyhow::Context;

use super::print_text;
use crate::clock::Clock;
use crate::config::Bootstrap;
use crate::store::audit::Actor;
use crate::store::database::shell_access::{self, ServiceState};
use crate::web::auth;

/// Returns the URL at which a browser on this machine opens the console.
pub(super) fn console_url(bind: SocketAddr) -> String {
    if bind.ip().is_unspecified() {
        return format!("http://localhost:{}", bind.port());
    }
    format!("http://{bind}")
}

pub(super) fn print_link(bootstrap: &Bootstrap) -> anyhow::Result<()> {
    let bind = bootstrap.console_bind.context(
        "create a sign-in link: the console is off because CONSOLE_BIND is empty; hint: set it and restart",
    )?;
    let database = bootstrap.database.to_str().context("use a database path that is not UTF-8")?;
    let now = Clock::System.now();
    let (path, service_state) =
        shell_access::visit_with_service_state(database, |conn| auth::create_link(conn, Actor::Shell, now))?;
    let url = console_url(bind);
    print_text(&format!("{url}{path}\n"))?;
    eprintln!(
        "The link works once, for ten minutes; hint: on another machine, replace the part before /sign-in with the console's URL there"
    );
    if service_state == ServiceState::Stopped {
        eprintln!("The service is not running; start it before opening the link; hint: dialarr serve");
    }
    Ok(())
}
