//! `dialarr health`: reports whether the service on this machine works, for a container that has no other client.

use anyhow::{Context, bail};

use super::print_text;
use crate::config::Config;
use crate::doctor::service::{SERVICE_TIMEOUT, ServiceResponse, ask_service, local_address};

pub(super) async fn run_health_check(config: &Config) -> anyhow::Result<()> {
    let address = local_address(config.listen);
    let answer = tokio::time::timeout(SERVICE_TIMEOUT, ask_service(address, "/health")).await;
    let ServiceResponse { status, body } = answer
        .with_context(|| format!("get an answer from {address} within {} s", SERVICE_TIMEOUT.as_secs()))?
        .with_context(|| format!("ask the service at {address}; hint: see whether it runs"))?;
    if status.split(' ').nth(1) != Some("200") {
        bail!("find the service at {address} well: {status} {body}");
    }
    print_text(&format!("{body}\n"))
}
