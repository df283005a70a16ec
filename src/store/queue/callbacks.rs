//! Binding of a status callback to one outbound message. The URL of the callback contains a random token from the row
//! of the message, so that a recorded callback cannot be replayed for another message.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::conversation::transcript::OutboxId;

/// Random token of an outbox row: 96 bits, as 24 hexadecimal digits.
#[derive(Clone, Eq)]
pub struct CallbackToken(String);

impl CallbackToken {
    pub(in crate::store) fn random() -> Self {
        Self(format!("{:016x}{:08x}", rand::random::<u64>(), rand::random::<u32>()))
    }

    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Compares in constant time, so that the duration does not reveal how much of a guess is correct.
impl PartialEq for CallbackToken {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

/// Omits the token, so that no log contains it.
impl fmt::Debug for CallbackToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackToken")
    }
}

/// Parameters of a callback URL, unique for each attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackKey {
    pub outbox: OutboxId,
    pub attempt: u32,
    pub token: CallbackToken,
}

impl CallbackKey {
    /// Formats the query string. The token is last, so that a truncated URL is never valid.
    pub fn to_query(&self) -> String {
        format!("out={}&n={}&word={}", self.outbox, self.attempt, self.token.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::CallbackToken;

    #[test]
    fn callback_token_has_24_digits_and_equals_only_itself() {
        let (token, other) = (CallbackToken::random(), CallbackToken::random());
        assert!(token.as_str().len() == 24 && token.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(token, CallbackToken::from_stored(token.as_str()));
        assert_ne!(token, other);
        assert_ne!(token, CallbackToken::from_stored(&token.as_str()[..23]));
        assert_eq!(format!("{token:?}"), "CallbackToken");
    }
}
