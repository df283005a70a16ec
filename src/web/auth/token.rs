//! Random secret tokens. The holder of a token has access; the database stores only its hash.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::store::console_access::TokenHash;

/// Number of letters and digits with 256 bits of entropy.
const TOKEN_LENGTH: usize = 43;

/// Secret token. The debug output does not show its value.
#[derive(Clone)]
pub(super) struct SecretToken(String);

impl SecretToken {
    pub(super) fn random() -> Self {
        Self(Alphanumeric.sample_string(&mut rand::rng(), TOKEN_LENGTH))
    }

    /// Parses a token. `None` if the format is wrong, so that no long string is hashed or queried.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_token = text.len() == TOKEN_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_token.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Returns the CSRF token of the session's forms. Other sites cannot read it, and the session token cannot be
    /// derived from it.
    pub(super) fn form_token(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(format!("form:{}", self.0)))
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretToken")
    }
}

/// Compares two strings in a time that does not depend on the position of their first difference.
pub(super) fn constant_time_eq(actual: &str, expected: &str) -> bool {
    bool::from(actual.as_bytes().ct_eq(expected.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::SecretToken;

    #[test]
    fn token_round_trips_and_is_never_logged() {
        let token = SecretToken::random();
        assert_eq!(SecretToken::parse(token.as_str()).map(|parsed| parsed.hash()), Some(token.hash()));
        assert_eq!(format!("{token:?}"), "SecretToken");
        assert_ne!(SecretToken::random().hash(), token.hash());
    }

    #[test]
    fn token_requires_exact_length_and_alphanumeric_characters() {
        let invalid = ["", "short", &"a".repeat(44), &format!("{}-", "a".repeat(42))];
        assert!(invalid.iter().all(|text| SecretToken::parse(text).is_none()));
    }
}
