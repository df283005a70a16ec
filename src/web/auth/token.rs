//! Random words that open something. Whoever holds one may enter; the database knows only its hash.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::store::access::TokenHash;

/// Letters and digits that hold 256 bits.
const LENGTH: usize = 43;

/// Its debug output does not show it.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn random() -> Self {
        Self(Alphanumeric.sample_string(&mut rand::rng(), LENGTH))
    }

    /// `None` for what never was one, so that nothing long is hashed or looked up.
    pub(super) fn read(text: &str) -> Option<Self> {
        let is_one = text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_one.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// What the forms of a session carry. Another site cannot read it, and the session cannot be told from it.
    pub(super) fn of_forms(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(format!("form:{}", self.0)))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Takes the same time wherever the two differ.
pub(super) fn is_same(given: &str, expected: &str) -> bool {
    bool::from(given.as_bytes().ct_eq(expected.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn what_is_made_can_be_read_again_and_is_never_shown_in_a_log() {
        let token = Token::random();
        assert_eq!(Token::read(token.as_str()).map(|read| read.hash()), Some(token.hash()));
        assert_eq!(format!("{token:?}"), "Token");
        assert_ne!(Token::random().hash(), token.hash());
    }

    #[test]
    fn only_letters_and_digits_of_the_right_number_are_a_token() {
        let wrong = ["", "short", &"a".repeat(44), &format!("{}-", "a".repeat(42))];
        assert!(wrong.iter().all(|text| Token::read(text).is_none()));
    }
}
