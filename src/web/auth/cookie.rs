//! The cookie that carries a session.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

use super::origin::is_encrypted;
use super::token::Token;

/// Over TLS: a browser keeps it for this very host, and takes it from nobody else.
const SECURE: &str = "__Host-dialarr";
const PLAIN: &str = "dialarr";
/// How long a browser keeps it after it was last given.
pub(super) const SECONDS: i64 = 7 * 24 * 3600;

/// What a browser is given. Lax, not strict: whoever comes by a link in a message is to be signed in.
pub(super) fn give(token: &Token, request: &HeaderMap) -> String {
    let (name, secure) = if is_encrypted(request) { (SECURE, "; Secure") } else { (PLAIN, "") };
    let value = token.as_str();
    format!("{name}={value}; Path=/; Max-Age={SECONDS}; HttpOnly; SameSite=Lax{secure}")
}

/// What makes a browser forget it, by whichever name.
pub(super) fn take_back() -> [String; 2] {
    [(PLAIN, ""), (SECURE, "; Secure")]
        .map(|(name, secure)| format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{secure}"))
}

/// The session that a request comes with.
pub(super) fn held(headers: &HeaderMap) -> Option<Token> {
    let cookies = || {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='))
    };
    let named = |wanted: &str| cookies().find(|(name, _)| *name == wanted).map(|(_, value)| value);
    Token::read(named(SECURE).or_else(|| named(PLAIN))?)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::http::header::{COOKIE, HeaderValue, ORIGIN};

    use super::{give, held};
    use crate::web::auth::token::Token;

    #[test]
    fn a_cookie_is_secure_wherever_tls_is() {
        let token = Token::read(&"a".repeat(43)).unwrap();
        let given = |origin: &'static str| {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
            give(&token, &headers).replace(token.as_str(), "TOKEN")
        };
        assert_eq!(
            [given("http://localhost:3001"), given("https://dialarr.example.org")],
            [
                "dialarr=TOKEN; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax",
                "__Host-dialarr=TOKEN; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure",
            ]
        );
    }

    #[test]
    fn the_cookie_that_only_this_host_can_set_goes_first() {
        let (ours, theirs) = ("b".repeat(43), "c".repeat(43));
        let line = format!("other=1; dialarr={theirs}; __Host-dialarr={ours}");
        let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&line).unwrap())]);
        assert_eq!(held(&headers).unwrap().as_str(), ours);
    }
}
