//! Check of the running service by its `/ready` endpoint.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Finding;

/// Timeout of a request to the service, whose own checks take up to two seconds.
pub(crate) const SERVICE_TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit of a response.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Status line and body of a response.
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

/// Returns the failed checks of `/ready`. Returns no findings if the service is not running, since doctor may run before
/// it starts.
pub(super) async fn check_service(listen: SocketAddr) -> Vec<Finding> {
    let Ok(Ok(response)) = tokio::time::timeout(SERVICE_TIMEOUT, query_service(listen, "/ready")).await
    else {
        return Vec::new();
    };
    // A different program may be listening on that port.
    let Ok(report) = serde_json::from_str::<ReadyReport>(&response.body) else { return Vec::new() };
    let failing: Vec<Finding> =
        report.checks.iter().filter(|check| !check.ok).map(failed_check_finding).collect();
    if failing.is_empty() { vec![Finding::ok("service: running and ready")] } else { failing }
}

fn failed_check_finding(check: &ReadyCheck) -> Finding {
    let hint = match check.name.as_str() {
        "database file" => {
            "restore the file, or restart dialarr serve, which then opens the file at that path or creates one"
        }
        _ => "see the log of dialarr serve, and \"Health\" in docs/OPERATIONS.md",
    };
    Finding::failure(format!("service: {}: {}", check.name, check.detail), hint)
}

/// Sends a GET request to the local listener. Uses no HTTP client, which would load certificates and proxy settings.
pub(crate) async fn query_service(listen: SocketAddr, path: &str) -> io::Result<ServiceResponse> {
    let mut stream = TcpStream::connect(local_address(listen)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.lines().next().unwrap_or_default().to_owned();
    Ok(ServiceResponse { status, body: body.to_owned() })
}

/// Returns the address at which a listener is reached on this machine.
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
    fn wildcard_address_becomes_loopback() {
        let addresses = ["0.0.0.0:3000", "[::]:3000", "192.168.1.9:80"]
            .map(|address| local_address(address.parse().unwrap()).to_string());
        assert_eq!(addresses, ["127.0.0.1:3000", "[::1]:3000", "192.168.1.9:80"]);
    }
}
