//! Check of the service that runs on this machine, by its own report.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Finding;

/// Time limit for an answer of the service, whose own checks take two seconds.
pub(crate) const SERVICE_TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit of a response, larger than any response of the service.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Response of the service, in parts.
pub(crate) struct ServiceResponse {
    pub(crate) status: String,
    pub(crate) body: String,
}

#[derive(Deserialize)]
struct ReadyReport {
    checks: Vec<ReadyCheck>,
}

#[derive(Deserialize)]
struct ReadyCheck {
    name: String,
    ok: bool,
    detail: String,
}

/// Returns each failing check of `/ready`. If no service answers, there is no finding: doctor also runs before a start.
pub(super) async fn check_service(listen: SocketAddr) -> Vec<Finding> {
    let Ok(Ok(response)) = tokio::time::timeout(SERVICE_TIMEOUT, ask_service(listen, "/ready")).await else {
        return Vec::new();
    };
    // A different program may be listening on that port.
    let Ok(report) = serde_json::from_str::<ReadyReport>(&response.body) else { return Vec::new() };
    let failing: Vec<Finding> =
        report.checks.iter().filter(|check| !check.ok).map(failed_check_finding).collect();
    if failing.is_empty() { vec![Finding::ok("service: it runs, and is ready")] } else { failing }
}

fn failed_check_finding(check: &ReadyCheck) -> Finding {
    let hint = match check.name.as_str() {
        "database file" => {
            "put the file back; or restart dialarr serve, which then uses the file that is there, or a new one"
        }
        _ => "see the log of dialarr serve, and \"Health\" in docs/OPERATIONS.md",
    };
    Finding::failure(format!("service: {}: {}", check.name, check.detail), hint)
}

/// Sends a request to the listener at `listen`, as seen from this machine. The function uses no HTTP client, which
/// would read certificates and use a proxy to reach this machine.
pub(crate) async fn ask_service(listen: SocketAddr, path: &str) -> io::Result<ServiceResponse> {
    let mut stream = TcpStream::connect(local_address(listen)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default().to_owned();
    Ok(ServiceResponse { status, body: body.to_owned() })
}

/// Returns the address on this machine of a listener at `address`.
pub(crate) fn local_address(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::local_address;

    #[test]
    fn wildcard_address_is_queried_on_loopback() {
        let asked = ["0.0.0.0:3000", "[::]:3000", "192.168.1.9:80"]
            .map(|at| local_address(at.parse().unwrap()).to_string());
        assert_eq!(asked, ["127.0.0.1:3000", "[::1]:3000", "192.168.1.9:80"]);
    }
}
