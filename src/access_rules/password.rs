//! Configured console password: its two forms, and the lengths that are accepted.

use argon2::Params;
use argon2::password_hash::phc::PasswordHash;
use secrecy::SecretString;

/// Longest password that is checked, in bytes.
pub(crate) const MAX_PASSWORD_BYTES: usize = 1024;
/// Shortest password, in characters.
const MIN_PASSWORD_CHARS: usize = 10;

/// Configured console password. Its debug output shows neither the password nor its hash.
#[derive(Debug, Clone)]
pub enum ConsolePassword {
    Plain(SecretString),
    /// Argon2id hash in PHC form.
    Hash(SecretString),
}

impl ConsolePassword {
    /// Parses the configured password or hash. The error is a fragment that fits after the variable's name and a colon.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_PASSWORD_BYTES {
            return Err("longer than 1024 bytes");
        }
        if !text.starts_with("$argon2") {
            return Self::from_plain_text(text);
        }
        let hash = PasswordHash::new(text).ok().filter(|hash| {
            hash.algorithm.as_str() == "argon2id"
                && hash.salt.is_some()
                && hash.hash.is_some()
                && Params::try_from(hash).is_ok()
        });
        hash.map(|_| Self::Hash(text.into())).ok_or("not a complete argon2id hash")
    }

    fn from_plain_text(text: &str) -> Result<Self, &'static str> {
        // If a shell replaces `$` and the word after it, every user's hash leaves the same remainder.
        let is_of_a_hash = text.contains("argon2i") || text.contains("argon2d");
        if is_of_a_hash || (text.contains(",t=") && text.contains(",p=")) {
            return Err("a part of an argon2id hash; put the whole hash in single quotes");
        }
        if text.chars().count() < MIN_PASSWORD_CHARS {
            return Err("shorter than 10 characters, and so too easy to guess");
        }
        Ok(Self::Plain(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::ConsolePassword;

    #[test]
    fn password_is_plain_or_a_complete_argon2id_hash() {
        let hash =
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzYWx0$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let kind = |text: &str| {
            ConsolePassword::parse(text).map(|password| match password {
                ConsolePassword::Plain(_) => "plain",
                ConsolePassword::Hash(_) => "hash",
            })
        };
        assert_eq!(kind("correct horse"), Ok("plain"));
        assert_eq!(kind("$ecret horse"), Ok("plain"));
        assert_eq!(kind(hash), Ok("hash"));
        assert_eq!(kind(&hash.replace("argon2id", "argon2i")), Err("not a complete argon2id hash"));
        assert_eq!(kind("$argon2id$v=19$m=19456,t=2,p=1"), Err("not a complete argon2id hash"));
        assert_eq!(kind(&"a".repeat(1025)), Err("longer than 1024 bytes"));
    }

    #[test]
    fn truncated_hash_is_no_password() {
        let hash =
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzYWx0$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let left = "a part of an argon2id hash; put the whole hash in single quotes";
        for cut in ["=19=19456,t=2,p=1", "=19=65536,t=3,p=4+salt/hash", &hash[1..], &hash[9..]] {
            assert_eq!(ConsolePassword::parse(cut).unwrap_err(), left, "{cut}");
        }
        let before_the_last_part = hash.rfind('$').unwrap();
        for end in 7..=before_the_last_part {
            assert_eq!(
                ConsolePassword::parse(&hash[..end]).unwrap_err(),
                "not a complete argon2id hash",
                "{end}"
            );
        }
    }

    #[test]
    fn plain_password_needs_ten_characters() {
        let short = "shorter than 10 characters, and so too easy to guess";
        assert_eq!(ConsolePassword::parse("nine char").unwrap_err(), short);
        assert_eq!(ConsolePassword::parse("ääääääääa").unwrap_err(), short);
        assert!(ConsolePassword::parse("ten chars!").is_ok());
    }
}
