//! `dialarr health`: health check of the running service, for containers without an HTTP client.

use std::net::SocketAddr;

use anyhow::{Context, bail};

use super::print_text;
use crate::doctor::service::{SERVICE_TIMEOUT, ServiceResponse, local_address, query_service};

pub(super) async fn run_health_check(listen: SocketAddr) -> anyhow::Result<()> {
    let address = local_address(listen);
    let response = tokio::time::timeout(SERVICE_TIMEOUT, query_service(address, "/health")).await;
    let ServiceResponse { status, body } = response
        .with_context(|| format!("get a response from {address} within {} s", SERVICE_TIMEOUT.as_secs()))?
        .with_context(|| format!("query the service at {address}; hint: check that it is running"))?;
    if status.split(' ').nth(1) != Some("200") {
        bail!("pass the health check of {address}: {status} {body}");
    }
    print_text(&format!("{body}\n"))
}
