//! The service that runs on this machine, and what it says of itself.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Finding;

/// The service itself looks for two seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// More than any answer has.
const LONGEST_ANSWER: u64 = 64 << 10;

/// An answer of the service, in parts.
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

/// Each check of `/ready` that fails. Where no service answers there is no finding: doctor is run before a start, too.
pub(super) async fn check_service(listen: SocketAddr) -> Vec<Finding> {
    let Ok(Ok(response)) = tokio::time::timeout(PATIENCE, ask_service(listen, "/ready")).await else {
        return Vec::new();
    };
    // Something else may be listening there.
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

/// Asks what listens at `listen`, as seen from this machine. Without a client: that would read certificates, and take a
/// proxy for the way to this machine.
pub(crate) async fn ask_service(listen: SocketAddr, path: &str) -> io::Result<ServiceResponse> {
    let mut stream = TcpStream::connect(local_address(listen)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(LONGEST_ANSWER).read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default().to_owned();
    Ok(ServiceResponse { status, body: body.to_owned() })
}

/// Where to find on this machine what listens at `address`.
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
    fn who_listens_everywhere_is_asked_on_this_machine() {
        let asked = ["0.0.0.0:3000", "[::]:3000", "192.168.1.9:80"]
            .map(|at| local_address(at.parse().unwrap()).to_string());
        assert_eq!(asked, ["127.0.0.1:3000", "[::1]:3000", "192.168.1.9:80"]);
    }
}
