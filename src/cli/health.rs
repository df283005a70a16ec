//! `dialarr health`: whether the service on this machine works, for a container, which has nothing else to ask with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::print;
use crate::config::Config;

/// The service itself looks for two seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than any answer has.
const LONGEST_ANSWER: u64 = 64 << 10;

pub(super) async fn run(config: &Config) -> anyhow::Result<()> {
    let address = here(config.listen);
    let answer = tokio::time::timeout(PATIENCE, ask(address)).await;
    let answer = answer
        .with_context(|| format!("get an answer from {address} within {} s", PATIENCE.as_secs()))?
        .with_context(|| format!("ask the service at {address}; hint: see whether it runs"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("find the service at {address} well: {status} {body}");
    }
    print(&format!("{body}\n"))
}

/// Where to find on this machine what listens at `address`.
fn here(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Without a client: that would read certificates, and take a proxy for the way to this machine.
async fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.take(LONGEST_ANSWER).read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::here;

    #[test]
    fn who_listens_everywhere_is_asked_on_this_machine() {
        let asked =
            ["0.0.0.0:3000", "[::]:3000", "192.168.1.9:80"].map(|at| here(at.parse().unwrap()).to_string());
        assert_eq!(asked, ["127.0.0.1:3000", "[::1]:3000", "192.168.1.9:80"]);
    }
}
