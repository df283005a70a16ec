//! Configured console password, in plain text or as an Argon2id hash, its length limits, and hashes of passwords.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{self, PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};
use secrecy::{ExposeSecret, SecretString};

/// Maximum length of a password or hash, in bytes.
pub(crate) const MAX_PASSWORD_BYTES: usize = 1024;
/// Minimum length of a plain-text password, in characters.
const MIN_PASSWORD_CHARS: usize = 10;

/// Configured console password. Its debug output shows neither the password nor its hash.
#[derive(Debug, Clone)]
pub enum ConsolePassword {
    Plain(SecretString),
    /// Argon2id hash in PHC string format.
    Hash(SecretString),
}

impl PartialEq for ConsolePassword {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(one), Self::Plain(other)) | (Self::Hash(one), Self::Hash(other)) => {
                one.expose_secret() == other.expose_secret()
            }
            (Self::Plain(_), Self::Hash(_)) | (Self::Hash(_), Self::Plain(_)) => false,
        }
    }
}

impl ConsolePassword {
    /// Parses the configured password or hash. The error is the end of a message that starts with the variable's name
    /// and a colon.
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
        // If a shell expands the `$` parts of a hash, these fragments of it are left.
        let is_hash_fragment = text.contains("argon2i") || text.contains("argon2d");
        if is_hash_fragment || (text.contains(",t=") && text.contains(",p=")) {
            return Err("only a part of an argon2id hash; put the complete hash in single quotes");
        }
        if text.chars().count() < MIN_PASSWORD_CHARS {
            return Err("shorter than 10 characters, which is too easy to guess");
        }
        Ok(Self::Plain(text.into()))
    }
}

/// Computes the argon2id hash of a password, which takes 19 MiB and some time.
pub(crate) fn hash_password(password: &SecretString) -> password_hash::Result<SecretString> {
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes())?;
    Ok(hash.to_string().into())
}

/// Returns whether a hash is of this password, which takes as much as a hash.
pub(crate) fn matches_hash(password: &SecretString, hash: &str) -> password_hash::Result<bool> {
    match Argon2::default().verify_password(password.expose_secret().as_bytes(), hash) {
        Ok(()) => Ok(true),
        Err(password_hash::Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(error),
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
    fn truncated_hash_is_rejected() {
        let hash =
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzYWx0$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let error = "only a part of an argon2id hash; put the complete hash in single quotes";
        for fragment in ["=19=19456,t=2,p=1", "=19=65536,t=3,p=4+salt/hash", &hash[1..], &hash[9..]] {
            assert_eq!(ConsolePassword::parse(fragment).unwrap_err(), error, "{fragment}");
        }
        let last_separator = hash.rfind('$').unwrap();
        for end in 7..=last_separator {
            assert_eq!(
                ConsolePassword::parse(&hash[..end]).unwrap_err(),
                "not a complete argon2id hash",
                "{end}"
            );
        }
    }

    #[test]
    fn plain_password_needs_ten_characters() {
        let error = "shorter than 10 characters, which is too easy to guess";
        assert_eq!(ConsolePassword::parse("nine char").unwrap_err(), error);
        assert_eq!(ConsolePassword::parse("ääääääääa").unwrap_err(), error);
        assert!(ConsolePassword::parse("ten chars!").is_ok());
    }
}
