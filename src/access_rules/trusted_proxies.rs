//! Trusted proxies of the webhooks, and the client addresses by which connections and requests are limited.

use std::net::{IpAddr, Ipv6Addr};

use http::HeaderMap;
use ipnet::IpNet;

use super::private_networks::is_private_address;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// Networks whose `X-Forwarded-For` header is trusted (`TRUSTED_PROXIES`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// Address of a client: an IPv4 address, or a /64 prefix of IPv6, the size that a household or server is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientAddress(IpAddr);

impl ClientAddress {
    pub fn from_ip(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        })
    }
}

impl TrustedProxies {
    pub fn from_networks(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the peer of a connection is a trusted proxy.
    pub(crate) fn includes_peer(&self, peer: IpAddr) -> bool {
        self.contains(peer.to_canonical())
    }

    /// Returns the client of a connection before its first request. Returns `None` for a trusted proxy, whose client is
    /// not known yet, and for a local peer, which is not limited.
    pub(crate) fn connection_client(&self, peer: IpAddr) -> Option<ClientAddress> {
        let peer = peer.to_canonical();
        (!self.contains(peer) && !is_private_address(peer)).then(|| ClientAddress::from_ip(peer))
    }

    /// Returns the client of a request; `None` if the peer is local and not a trusted proxy. Such a peer may be a proxy
    /// that is not configured, so a limit for it would be one limit for all of its clients.
    pub(crate) fn request_client(&self, peer: IpAddr, headers: &HeaderMap) -> Option<ClientAddress> {
        let peer = peer.to_canonical();
        if self.contains(peer) {
            return Some(ClientAddress::from_ip(self.forwarded_client(peer, headers)));
        }
        self.connection_client(peer)
    }

    /// Returns the rightmost entry that is not a trusted proxy. The client can forge the entries to its left, and those
    /// to the left of an entry that is not an address.
    fn forwarded_client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        let mut client = peer;
        for entry in entries.map(<[u8]>::trim_ascii).filter(|entry| !entry.is_empty()) {
            let Some(address) = parse_entry(entry) else { break };
            client = address;
            if !self.contains(address) {
                break;
            }
        }
        client
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Parses a network such as `10.0.0.0/8`, or a single address.
pub fn parse_network(text: &str) -> Option<IpNet> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }
    text.parse::<IpNet>().ok().map(|network| network.trunc())
}

/// Parses an address with or without port and brackets.
fn parse_entry(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?;
    let unbracketed = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(entry);
    let address = unbracketed.parse::<IpAddr>().ok();
    let address = address.or_else(|| entry.parse().ok().map(|address: std::net::SocketAddr| address.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::{any, proptest};

    use super::*;

    fn proxies() -> TrustedProxies {
        let networks = ["127.0.0.1", "10.1.0.0/16", "fd00::/8"];
        TrustedProxies::from_networks(networks.map(|text| parse_network(text).unwrap()).into())
    }

    fn headers(lines: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, http::HeaderValue::from_bytes(line).unwrap());
        }
        headers
    }

    #[track_caller]
    fn check(peer: &str, lines: &[&[u8]], expected: Option<&str>) {
        let client = proxies().request_client(peer.parse().unwrap(), &headers(lines));
        assert_eq!(client, expected.map(|text| ClientAddress::from_ip(text.parse().unwrap())));
    }

    #[test]
    fn rightmost_untrusted_entry_is_the_client() {
        check("127.0.0.1", &[b"6.6.6.6, 203.0.113.9"], Some("203.0.113.9"));
        check("127.0.0.1", &[b"6.6.6.6, 203.0.113.9, 10.1.2.3"], Some("203.0.113.9"));
        check("::ffff:127.0.0.1", &[b"6.6.6.6", b"203.0.113.9 ,10.1.2.3,"], Some("203.0.113.9"));
        check("10.1.0.7", &[b"10.1.0.8"], Some("10.1.0.8"));
        check("127.0.0.1", &[], Some("127.0.0.1"));
    }

    #[test]
    fn entries_left_of_a_malformed_entry_are_ignored() {
        check("127.0.0.1", &[b"203.0.113.9, unknown"], Some("127.0.0.1"));
        check("127.0.0.1", &[b"203.0.113.9, \xff, 10.1.2.3"], Some("10.1.2.3"));
        check("127.0.0.1", &[b"\xff\xfe, 203.0.113.9"], Some("203.0.113.9"));
    }

    #[test]
    fn ports_and_brackets_do_not_matter_and_ipv6_counts_by_64_bits() {
        check("127.0.0.1", &[b"203.0.113.9:4711"], Some("203.0.113.9"));
        check("127.0.0.1", &[b"[2001:db8:1:2::5]:443"], Some("2001:db8:1:2::"));
        check("127.0.0.1", &[b"[2001:db8:1:2::6]"], Some("2001:db8:1:2:ffff::"));
        check("127.0.0.1", &[b"::ffff:203.0.113.9"], Some("203.0.113.9"));
    }

    #[test]
    fn unlisted_peer_cannot_name_another_client() {
        check("198.51.100.7", &[b"203.0.113.9"], Some("198.51.100.7"));
        for local in ["192.168.1.5", "172.18.0.3", "100.100.1.1", "169.254.1.1", "::1", "fe80::1"] {
            check(local, &[b"203.0.113.9"], None);
        }
    }

    proptest! {
        #[test]
        fn client_cannot_imitate_another(forged in "[0-9a-f.:, \\[\\]x]{0,60}", own in any::<u32>()) {
            let own = Ipv4Addr::from_bits(own | 0xC000_0000);
            let line = format!("{forged}, {own}");
            let client = proxies().request_client(IpAddr::from([127, 0, 0, 1]), &headers(&[line.as_bytes()]));
            assert_eq!(client, Some(ClientAddress::from_ip(own.into())));
        }
    }
}
