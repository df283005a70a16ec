//! Host names under which the console answers requests. A foreign page can point its own name at the console's address
//! and so read what the console serves to a browser inside the network; the name in the Host header gives that page
//! away.

use http::Request;
use http::header::{HOST, HeaderMap, HeaderValue};
use http::uri::{Authority, Uri};
use url::Host;

/// Host names that requests may be addressed to, with any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHosts(Vec<Host>);

impl AllowedHosts {
    /// Names by which this machine refers to itself. These names are always allowed.
    pub fn local() -> Self {
        let loopback = [Host::Ipv4(std::net::Ipv4Addr::LOCALHOST), Host::Ipv6(std::net::Ipv6Addr::LOCALHOST)];
        Self([Host::Domain("localhost".to_owned())].into_iter().chain(loopback).collect())
    }

    #[must_use]
    pub fn with_further_hosts(mut self, further: impl IntoIterator<Item = Host>) -> Self {
        for host in further {
            if !self.0.contains(&host) {
                self.0.push(host);
            }
        }
        self
    }

    /// Returns true if the request carries a name, and every name that the request carries is allowed.
    pub(crate) fn allows_request<B>(&self, request: &Request<B>) -> bool {
        let names: Option<Vec<Host>> = addressed_hosts(request.uri(), request.headers()).collect();
        names.is_some_and(|names| !names.is_empty() && names.iter().all(|name| self.0.contains(name)))
    }
}

/// Parses a host name as users write it: with or without a port, in any case. Returns `None` if the text is not a host
/// name.
pub fn parse_host(text: &str) -> Option<Host> {
    let authority: Authority = text.parse().ok()?;
    if text.contains('@') {
        return None;
    }
    Host::parse(authority.host().trim_end_matches('.')).ok()
}

fn addressed_hosts(uri: &Uri, headers: &HeaderMap) -> impl Iterator<Item = Option<Host>> {
    let target = uri.authority().map(|authority| parse_host(authority.as_str()));
    let header = |value: &HeaderValue| parse_host(value.to_str().ok()?);
    target.into_iter().chain(headers.get_all(HOST).iter().map(header))
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::HOST;

    use super::{AllowedHosts, parse_host};

    #[track_caller]
    fn check(hosts: &[&str], known: bool) {
        let ours = AllowedHosts::local().with_further_hosts(parse_host("Dialarr.home.lan:8443"));
        let request = hosts.iter().fold(Request::get("/"), |request, name| request.header(HOST, *name));
        assert_eq!(ours.allows_request(&request.body(()).unwrap()), known, "{hosts:?}");
    }

    #[test]
    fn own_names_match_in_any_case_and_with_any_port() {
        check(&["localhost:3001"], true);
        check(&["LOCALHOST"], true);
        check(&["127.0.0.1:3001"], true);
        check(&["[::1]:3001"], true);
        check(&["dialarr.home.lan"], true);
        check(&["dialarr.home.lan.:9"], true);
    }

    #[test]
    fn other_names_and_missing_names_are_refused() {
        check(&[], false);
        check(&[""], false);
        check(&["evil.example"], false);
        check(&["localhost.evil.example"], false);
        check(&["evil.example@localhost"], false);
        check(&["192.168.1.2:3001"], false);
        check(&["localhost", "evil.example"], false);
    }

    #[test]
    fn host_in_the_request_line_counts() {
        let request = Request::get("http://evil.example/").header(HOST, "localhost");
        assert!(!AllowedHosts::local().allows_request(&request.body(()).unwrap()));
    }
}
