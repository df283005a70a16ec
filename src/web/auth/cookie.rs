//! Session cookie: its names, its attributes and its parsing.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

use super::same_origin::is_encrypted;
use super::token::SecretToken;

/// Seconds for which a browser stores the cookie after it was last set.
pub(super) const MAX_AGE_SECONDS: i64 = 7 * 24 * 3600;

/// Security attributes of the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CookieSecurity {
    /// Cookie of a TLS connection: the browser sends it only to this host, and no other host can set it.
    Secure,
    Plain,
}

impl CookieSecurity {
    pub(super) fn from_headers(request: &HeaderMap) -> Self {
        if is_encrypted(request) { Self::Secure } else { Self::Plain }
    }

    fn cookie_name(self) -> &'static str {
        match self {
            Self::Secure => "__Host-dialarr",
            Self::Plain => "dialarr",
        }
    }

    fn secure_attribute(self) -> &'static str {
        match self {
            Self::Secure => "; Secure",
            Self::Plain => "",
        }
    }
}

/// Returns the `Set-Cookie` value of a session. `SameSite` is lax, not strict: an operator who follows a link in a
/// message must be signed in.
pub(super) fn session_cookie(token: &SecretToken, security: CookieSecurity) -> String {
    let (name, value, attribute) = (security.cookie_name(), token.as_str(), security.secure_attribute());
    format!("{name}={value}; Path=/; Max-Age={MAX_AGE_SECONDS}; HttpOnly; SameSite=Lax{attribute}")
}

/// Returns the `Set-Cookie` values that make a browser delete the cookie under either name.
pub(super) fn expired_cookies() -> [String; 2] {
    [CookieSecurity::Plain, CookieSecurity::Secure].map(|security| {
        let (name, attribute) = (security.cookie_name(), security.secure_attribute());
        format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{attribute}")
    })
}

/// Parses the session token of a request from its cookies.
pub(super) fn parse_session(headers: &HeaderMap) -> Option<(SecretToken, CookieSecurity)> {
    let cookies = || {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='))
    };
    let (value, security) =
        [CookieSecurity::Secure, CookieSecurity::Plain].into_iter().find_map(|security| {
            let (_, value) = cookies().find(|(name, _)| *name == security.cookie_name())?;
            Some((value, security))
        })?;
    Some((SecretToken::parse(value)?, security))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::http::header::{COOKIE, HeaderValue, ORIGIN};

    use super::{CookieSecurity, parse_session, session_cookie};
    use crate::web::auth::token::SecretToken;

    #[test]
    fn cookie_is_secure_over_tls() {
        let token = SecretToken::parse(&"a".repeat(43)).unwrap();
        let cookie_for_origin = |origin: &'static str| {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
            session_cookie(&token, CookieSecurity::from_headers(&headers)).replace(token.as_str(), "TOKEN")
        };
        assert_eq!(
            [cookie_for_origin("http://localhost:3001"), cookie_for_origin("https://dialarr.example.org")],
            [
                "dialarr=TOKEN; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax",
                "__Host-dialarr=TOKEN; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure",
            ]
        );
    }

    #[test]
    fn host_cookie_takes_precedence() {
        let (host_value, plain_value) = ("b".repeat(43), "c".repeat(43));
        let line = format!("other=1; dialarr={plain_value}; __Host-dialarr={host_value}");
        let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&line).unwrap())]);
        let (token, security) = parse_session(&headers).unwrap();
        assert_eq!((token.as_str(), security), (host_value.as_str(), CookieSecurity::Secure));
    }
}
