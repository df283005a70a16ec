//! Host names under which the console accepts requests, as protection against DNS rebinding: a malicious page can
//! resolve its own host name to the console's address, and then read the console through a browser inside the network.
//! The `Host` header of such requests contains the foreign name.

use http::Request;
use http::header::{HOST, HeaderMap, HeaderValue};
use http::uri::{Authority, Uri};
use url::Host;

use super::SignIn;

/// Allowed host names of requests, with any port. A site cannot resolve an IP address to the console, so addresses are
/// allowed too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHosts(Vec<Host>);

impl AllowedHosts {
    /// Returns the name of the local machine, which is always allowed.
    pub fn local() -> Self {
        Self(vec![Host::Domain("localhost".to_owned())])
    }

    /// Returns these names and the given ones.
    #[must_use]
    pub fn with_hosts(mut self, hosts: impl IntoIterator<Item = Host>) -> Self {
        for host in hosts {
            if !self.0.contains(&host) {
                self.0.push(host);
            }
        }
        self
    }

    /// Returns whether the request contains at least one host name, and all of its host names are allowed. Without a
    /// sign-in, only browsers on this machine have access, so of the addresses only those of the machine are allowed.
    pub(crate) fn allows_request<B>(&self, request: &Request<B>, sign_in: &SignIn) -> bool {
        let is_allowed = |host: &Host| match (host, sign_in) {
            (Host::Domain(_), _) => self.0.contains(host),
            (Host::Ipv4(_) | Host::Ipv6(_), SignIn::Links | SignIn::Password(_)) => true,
            (Host::Ipv4(address), SignIn::Open) => address.is_loopback(),
            (Host::Ipv6(address), SignIn::Open) => address.is_loopback(),
        };
        let hosts: Option<Vec<Host>> = requested_hosts(request.uri(), request.headers()).collect();
        hosts.is_some_and(|hosts| !hosts.is_empty() && hosts.iter().all(is_allowed))
    }
}

/// Parses a host name with or without a port, ignoring case. Returns `None` if the text is not a host name.
pub fn parse_host(text: &str) -> Option<Host> {
    let authority: Authority = text.parse().ok()?;
    if text.contains('@') {
        return None;
    }
    Host::parse(authority.host().trim_end_matches('.')).ok()
}

/// Returns the host names in the request line and in the `Host` headers; `None` for each that is invalid.
fn requested_hosts(uri: &Uri, headers: &HeaderMap) -> impl Iterator<Item = Option<Host>> {
    let request_line = uri.authority().map(|authority| parse_host(authority.as_str()));
    let header = |value: &HeaderValue| parse_host(value.to_str().ok()?);
    request_line.into_iter().chain(headers.get_all(HOST).iter().map(header))
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::HOST;

    use super::{AllowedHosts, SignIn, parse_host};

    #[track_caller]
    fn check_for(sign_in: &SignIn, hosts: &[&str], expected: bool) {
        let allowed_hosts = AllowedHosts::local().with_hosts(parse_host("Dialarr.home.lan:8443"));
        let request = hosts.iter().fold(Request::get("/"), |request, name| request.header(HOST, *name));
        let is_allowed = allowed_hosts.allows_request(&request.body(()).unwrap(), sign_in);
        assert_eq!(is_allowed, expected, "{hosts:?}");
    }

    #[track_caller]
    fn check(hosts: &[&str], expected: bool) {
        check_for(&SignIn::Links, hosts, expected);
        check_for(&SignIn::Open, hosts, expected);
    }

    #[test]
    fn allowed_names_match_in_any_case_and_with_any_port() {
        check(&["localhost:3001"], true);
        check(&["LOCALHOST"], true);
        check(&["127.0.0.1:3001"], true);
        check(&["[::1]:3001"], true);
        check(&["dialarr.home.lan"], true);
        check(&["dialarr.home.lan.:9"], true);
    }

    #[test]
    fn other_and_missing_names_are_rejected() {
        check(&[], false);
        check(&[""], false);
        check(&["evil.example"], false);
        check(&["localhost.evil.example"], false);
        check(&["127.0.0.1.evil.example"], false);
        check(&["evil.example@localhost"], false);
        check(&["localhost", "evil.example"], false);
        check(&["192.168.1.2", "evil.example"], false);
    }

    #[test]
    fn address_of_another_machine_is_allowed_only_with_a_sign_in() {
        for host in ["192.168.1.2:3001", "[fd00::2]:3001", "203.0.113.7"] {
            check_for(&SignIn::Links, &[host], true);
            check_for(&SignIn::Open, &[host], false);
        }
    }

    #[test]
    fn host_in_the_request_line_is_checked() {
        let request = Request::get("http://evil.example/").header(HOST, "localhost");
        assert!(!AllowedHosts::local().allows_request(&request.body(()).unwrap(), &SignIn::Links));
    }
}
