//! Addresses and host names inside the household's network, which are not reachable from the internet.

use std::net::{IpAddr, Ipv4Addr};

use url::Host;

/// Shared address space of carrier-grade NAT and overlay networks (RFC 6598), which is not routed on the internet.
const SHARED_PREFIX: [u8; 2] = [100, 64];
/// Domain suffixes that resolve only in a home network.
const PRIVATE_SUFFIXES: [&str; 6] = [".localhost", ".local", ".lan", ".home", ".internal", ".home.arpa"];

/// Returns whether the address is of this machine or of a private network.
pub(crate) fn is_private_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_link_local() || is_shared(address)
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

/// Returns whether the host is of this machine or of a private network. A name without a dot is one, such as that of
/// another container.
pub(crate) fn is_private_host(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => is_private_address((*address).into()),
        Host::Ipv6(address) => is_private_address((*address).into()),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            !name.contains('.') || PRIVATE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        }
    }
}

/// Returns whether the host is this machine itself.
pub(crate) fn is_loopback_host<S: AsRef<str>>(host: &Host<S>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
        Host::Domain(name) => name.as_ref() == "localhost",
    }
}

fn is_shared(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    [first, second & 0b1100_0000] == SHARED_PREFIX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_home_network_are_private() {
        let is_private = |url: &str| is_private_host(&url::Url::parse(url).unwrap().host().unwrap());
        for url in [
            "http://localhost:11434/v1",
            "http://127.0.0.1",
            "http://[::1]:8080",
            "http://[::ffff:192.168.1.5]",
            "http://192.168.1.5",
            "http://100.100.1.1",
            "http://ollama:11434",
            "http://gpu.lan",
            "http://host.docker.internal",
        ] {
            assert!(is_private(url), "{url}");
        }
        for url in
            ["https://api.openai.com/v1", "http://203.0.113.9", "http://100.128.0.1", "http://[2001:db8::1]"]
        {
            assert!(!is_private(url), "{url}");
        }
    }

    #[test]
    fn only_this_machine_is_a_loopback_host() {
        let is_loopback = |url: &str| is_loopback_host(&url::Url::parse(url).unwrap().host().unwrap());
        let local =
            ["http://localhost:8989", "http://127.0.0.2", "http://[::1]", "http://[::ffff:127.0.0.1]"];
        assert_eq!(local.map(is_loopback), [true; 4]);
        assert_eq!(["http://sonarr:8989", "http://192.168.1.5"].map(is_loopback), [false; 2]);
    }
}
