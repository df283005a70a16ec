//! Random secret tokens. The holder of a token has access; the database stores only its hash.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::store::console_access::TokenHash;

/// Number of letters and digits that contain 256 bits.
const LENGTH: usize = 43;

/// Secret token. The debug output does not show its value.
#[derive(Clone)]
pub(super) struct SecretToken(String);

impl SecretToken {
    pub(super) fn random() -> Self {
        Self(Alphanumeric.sample_string(&mut rand::rng(), LENGTH))
    }

    /// Parses a token. `None` for a string that cannot be one, so that no long string is hashed or looked up.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_one.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Returns the token that the forms of a session send back. Other sites cannot read this token, and the session
    /// token cannot be derived from it.
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
pub(super) fn constant_time_eq(given: &str, expected: &str) -> bool {
    bool::from(given.as_bytes().ct_eq(expected.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::SecretToken;

    #[test]
    fn token_survives_parsing_and_is_never_logged() {
        let token = SecretToken::random();
        assert_eq!(SecretToken::parse(token.as_str()).map(|read| read.hash()), Some(token.hash()));
        assert_eq!(format!("{token:?}"), "SecretToken");
        assert_ne!(SecretToken::random().hash(), token.hash());
    }

    #[test]
    fn token_has_an_exact_length_of_letters_and_digits() {
        let wrong = ["", "short", &"a".repeat(44), &format!("{}-", "a".repeat(42))];
        assert!(wrong.iter().all(|text| SecretToken::parse(text).is_none()));
    }
}
