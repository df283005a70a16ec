//! Whether a request that changes something was made by one of our own pages. A browser says where it comes from, and a
//! foreign page cannot make it say otherwise.

use axum::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::{Method, Uri};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A method that may change something.
pub(super) fn is_unsafe(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

/// A browser tells the site only where the connection is safe from eavesdroppers; on plain HTTP inside the network
/// there is only the origin.
pub(super) fn is_ours(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    match (value(&SEC_FETCH_SITE), value(&ORIGIN)) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => value(&HOST).is_some_and(|host| is_at(origin, host)),
        (None, None) => false,
    }
}

/// Whether the request came over TLS, which in front of us somebody else ends.
pub(super) fn is_encrypted(headers: &HeaderMap) -> bool {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = value("x-forwarded-proto").split(',').next().unwrap_or_default();
    first.trim().eq_ignore_ascii_case("https") || value("origin").starts_with("https://")
}

/// Whether somebody between the browser and us says that they passed the request on. The browser may then be anywhere,
/// whatever the Host header says: a proxy can rewrite it.
pub(super) fn is_forwarded(headers: &HeaderMap) -> bool {
    let tells =
        |name: &str| matches!(name, "forwarded" | "via" | "x-real-ip") || name.starts_with("x-forwarded-");
    headers.keys().any(|name| tells(name.as_str()))
}

fn is_at(origin: &str, host: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    origin.authority().is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::http::header::{HeaderName, HeaderValue};

    use super::{is_encrypted, is_forwarded, is_ours};

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    #[track_caller]
    fn check(lines: &[(&'static str, &'static str)], ours: bool) {
        assert_eq!(is_ours(&headers(lines)), ours, "{lines:?}");
    }

    #[test]
    fn what_the_browser_says_of_the_site_decides() {
        check(&[("sec-fetch-site", "same-origin")], true);
        check(&[("sec-fetch-site", "none")], true);
        check(&[("sec-fetch-site", "same-site")], false);
        check(
            &[("sec-fetch-site", "cross-site"), ("origin", "http://nas:3001"), ("host", "nas:3001")],
            false,
        );
    }

    #[test]
    fn without_it_the_origin_must_be_where_the_request_went() {
        check(&[("origin", "http://nas:3001"), ("host", "nas:3001")], true);
        check(&[("origin", "https://nas"), ("host", "NAS")], true);
        check(&[("origin", "http://nas:8080"), ("host", "nas:3001")], false);
        check(&[("origin", "https://evil.example"), ("host", "nas:3001")], false);
        check(&[("origin", "null"), ("host", "nas:3001")], false);
        check(&[("host", "nas:3001")], false);
    }

    #[test]
    fn a_proxy_that_says_so_is_noticed() {
        for name in ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "via"] {
            assert!(is_forwarded(&headers(&[("host", "localhost"), (name, "")])), "{name}");
        }
        assert!(!is_forwarded(&headers(&[
            ("host", "localhost"),
            ("x-api-key", "1"),
            ("origin", "http://localhost")
        ])));
    }

    #[test]
    fn a_request_over_tls_is_known_by_the_proxy_s_word_or_by_its_origin() {
        assert!(is_encrypted(&headers(&[("x-forwarded-proto", "https, http")])));
        assert!(is_encrypted(&headers(&[("origin", "https://nas")])));
        assert!(!is_encrypted(&headers(&[("x-forwarded-proto", "http"), ("origin", "http://nas")])));
    }
}
