//! Same-origin check against CSRF, and detection of proxies. A browser reports the origin of a request, and a foreign
//! page cannot forge it.

use axum::http::header::{HOST, HeaderMap, HeaderName, ORIGIN, REFERER};
use axum::http::{Method, Uri, Version};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Returns whether a method is unsafe as defined in RFC 9110: it may change state.
pub(super) fn is_unsafe(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

/// Returns whether one of our own pages sent the request. Browsers send `Sec-Fetch-Site` only in secure contexts; on
/// plain HTTP in the local network only `Origin` is available.
pub(super) fn is_same_origin(headers: &HeaderMap) -> bool {
    match (header_text(headers, &SEC_FETCH_SITE), header_text(headers, &ORIGIN)) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => header_text(headers, &HOST).is_some_and(|host| has_authority(origin, host)),
        (None, None) => false,
    }
}

/// Returns whether the request came over TLS, which a proxy in front of Dialarr terminates.
pub(super) fn is_encrypted(headers: &HeaderMap) -> bool {
    let header = |name: &HeaderName| header_text(headers, name).unwrap_or_default();
    let first = header(&FORWARDED_PROTO).split(',').next().unwrap_or_default();
    first.trim().eq_ignore_ascii_case("https") || header(&ORIGIN).starts_with("https://")
}

/// Returns whether a proxy between the browser and Dialarr forwarded the request, as far as that can be detected. The
/// browser may then be anywhere, regardless of the Host header: a proxy can rewrite the header.
pub(super) fn is_forwarded(version: Version, headers: &HeaderMap) -> bool {
    let is_proxy_header =
        |name: &str| matches!(name, "forwarded" | "via" | "x-real-ip") || name.starts_with("x-forwarded-");
    // No browser sends HTTP/1.0, but nginx does by default.
    version < Version::HTTP_11
        || headers.keys().any(|name| is_proxy_header(name.as_str()))
        || is_host_rewritten(headers)
}

/// Returns whether a proxy rewrote the Host header: the page that sent the request has another host. A foreign page
/// with a link to ours also has another host, but `Sec-Fetch-Site` identifies that case.
fn is_host_rewritten(headers: &HeaderMap) -> bool {
    if matches!(header_text(headers, &SEC_FETCH_SITE), Some("cross-site" | "same-site")) {
        return false;
    }
    let Some(host) = header_text(headers, &HOST) else { return false };
    let pages = [ORIGIN, REFERER].into_iter().filter_map(|name| headers.get(name));
    pages
        .map(|page| page.to_str().unwrap_or_default())
        .any(|page| page != "null" && !has_authority(page, host))
}

/// Returns the value of a header; `None` also if the value is not text.
fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn has_authority(origin: &str, host: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    origin.authority().is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use axum::http::header::{HeaderName, HeaderValue};
    use axum::http::{HeaderMap, Version};

    use super::{is_encrypted, is_forwarded, is_same_origin};

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    #[track_caller]
    fn check(fields: &[(&'static str, &'static str)], expected: bool) {
        assert_eq!(is_same_origin(&headers(fields)), expected, "{fields:?}");
    }

    #[test]
    fn fetch_site_header_decides() {
        check(&[("sec-fetch-site", "same-origin")], true);
        check(&[("sec-fetch-site", "none")], true);
        check(&[("sec-fetch-site", "same-site")], false);
        check(
            &[("sec-fetch-site", "cross-site"), ("origin", "http://nas:3001"), ("host", "nas:3001")],
            false,
        );
    }

    #[test]
    fn origin_must_equal_the_host_without_a_fetch_site_header() {
        check(&[("origin", "http://nas:3001"), ("host", "nas:3001")], true);
        check(&[("origin", "https://nas"), ("host", "NAS")], true);
        check(&[("origin", "http://nas:8080"), ("host", "nas:3001")], false);
        check(&[("origin", "https://evil.example"), ("host", "nas:3001")], false);
        check(&[("origin", "null"), ("host", "nas:3001")], false);
        check(&[("host", "nas:3001")], false);
    }

    #[test]
    fn declared_proxy_is_detected() {
        for name in ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "via"] {
            assert!(is_forwarded(Version::HTTP_11, &headers(&[("host", "localhost"), (name, "")])), "{name}");
        }
        let direct = headers(&[("host", "localhost"), ("x-api-key", "1"), ("origin", "http://localhost")]);
        assert!(!is_forwarded(Version::HTTP_11, &direct));
    }

    #[test]
    fn silent_proxy_is_detected_by_version_or_referer() {
        let host = ("host", "localhost:3001");
        let (fetch, own_page) =
            (("sec-fetch-site", "same-origin"), ("referer", "http://localhost:3001/users?a=1"));
        assert!(is_forwarded(Version::HTTP_10, &headers(&[host])));
        for other_page in ["https://dialarr.example/users", "http://localhost/", "about:blank", "/users"] {
            assert!(
                is_forwarded(Version::HTTP_11, &headers(&[host, ("referer", other_page)])),
                "{other_page}"
            );
            assert!(
                is_forwarded(Version::HTTP_11, &headers(&[host, fetch, own_page, ("origin", other_page)])),
                "{other_page}"
            );
        }
        assert!(!is_forwarded(
            Version::HTTP_11,
            &headers(&[host, fetch, own_page, ("origin", "http://localhost:3001")])
        ));
        assert!(!is_forwarded(Version::HTTP_11, &headers(&[host, fetch, ("origin", "null")])));
    }

    #[test]
    fn link_from_another_site_is_not_a_proxy() {
        for site in ["cross-site", "same-site"] {
            let link =
                [("host", "localhost:3001"), ("sec-fetch-site", site), ("referer", "http://localhost:80/")];
            assert!(!is_forwarded(Version::HTTP_11, &headers(&link)), "{site}");
        }
    }

    #[test]
    fn encryption_is_detected_by_the_proxy_header_or_the_origin() {
        assert!(is_encrypted(&headers(&[("x-forwarded-proto", "https, http")])));
        assert!(is_encrypted(&headers(&[("origin", "https://nas")])));
        assert!(!is_encrypted(&headers(&[("x-forwarded-proto", "http"), ("origin", "http://nas")])));
    }
}
