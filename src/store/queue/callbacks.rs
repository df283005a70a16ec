//! Binding of a status callback to one outbound message. The URL of the callback contains a random word of the
//! message's row, so that a party who recorded the callback of another message cannot forge one for this message.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::conversation::transcript::OutboxId;

/// Random word of an outbox row: 32 hexadecimal digits.
#[derive(Clone, Eq)]
pub struct CallbackWord(String);

impl CallbackWord {
    pub(in crate::store) fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Compares in constant time: the duration must not reveal how much of a guess is correct.
impl PartialEq for CallbackWord {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

/// Omits the word, so that no log contains it.
impl fmt::Debug for CallbackWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackWord")
    }
}

/// Query of a callback URL, unique for each attempt at each message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackKey {
    pub outbox: OutboxId,
    pub attempt: u32,
    pub word: CallbackWord,
}

impl CallbackKey {
    /// Formats the query. The word is last, so that a truncated URL loses a part of the word.
    pub fn to_query(&self) -> String {
        format!("out={}&n={}&word={}", self.outbox, self.attempt, self.word.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::CallbackWord;

    #[test]
    fn callback_word_has_32_digits_and_equals_only_itself() {
        let (one, two) = (CallbackWord::random(), CallbackWord::random());
        assert!(one.as_str().len() == 32 && one.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(one, CallbackWord::from_stored(one.as_str()));
        assert_ne!(one, two);
        assert_ne!(one, CallbackWord::from_stored(&one.as_str()[..31]));
        assert_eq!(format!("{one:?}"), "CallbackWord");
    }
}
