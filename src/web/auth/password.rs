//! The console's password: only an argon2id hash of it is kept, and one hash is computed at a time, since each takes
//! 19 MiB.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{self, PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::Semaphore;

use super::SignIn;
use crate::store::access;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::db::{Db, DbError};

/// Longest password that is checked, in bytes.
const LONGEST: usize = 1024;
/// Shortest password, in characters.
const SHORTEST: usize = 10;

/// The configured password. Its debug output shows neither it nor its hash.
#[derive(Debug, Clone)]
pub enum Password {
    Plain(SecretString),
    /// An argon2id hash in PHC form.
    Hash(SecretString),
}

/// What somebody typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    Right,
    Wrong,
}

/// The password could be neither stored nor compared.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("hash the console's password: {0}")]
    Hash(password_hash::Error),
    #[error("hash the console's password")]
    Ended(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Store(#[from] DbError),
}

impl Password {
    /// The error is a fragment that fits after the variable's name and a colon.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        if text.len() > LONGEST {
            return Err("longer than 1024 bytes");
        }
        if !text.starts_with("$argon2") {
            return Self::plain(text);
        }
        let hash = PasswordHash::new(text).ok().filter(|hash| {
            hash.algorithm.as_str() == "argon2id"
                && hash.salt.is_some()
                && hash.hash.is_some()
                && Params::try_from(hash).is_ok()
        });
        hash.map(|_| Self::Hash(text.into())).ok_or("not a whole argon2id hash")
    }

    fn plain(text: &str) -> Result<Self, &'static str> {
        // Where `$` and the word behind it are replaced, the same rest is left of everybody's hash.
        let is_of_a_hash = text.contains("argon2i") || text.contains("argon2d");
        if is_of_a_hash || (text.contains(",t=") && text.contains(",p=")) {
            return Err("a part of an argon2id hash; put the whole hash in single quotes");
        }
        if text.chars().count() < SHORTEST {
            return Err("shorter than 10 characters, and so too easy to guess");
        }
        Ok(Self::Plain(text.into()))
    }
}

/// Computes hashes, one at a time.
#[derive(Debug, Clone)]
pub(super) struct Hashing(Arc<Semaphore>);

impl Default for Hashing {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Hashing {
    pub(super) async fn compare(&self, typed: SecretString, hash: String) -> Result<Typed, PasswordError> {
        if typed.expose_secret().len() > LONGEST {
            return Ok(Typed::Wrong);
        }
        let compared = self
            .compute(move || Argon2::default().verify_password(typed.expose_secret().as_bytes(), &*hash))
            .await?;
        match compared {
            Ok(()) => Ok(Typed::Right),
            Err(password_hash::Error::PasswordInvalid) => Ok(Typed::Wrong),
            Err(error) => Err(PasswordError::Hash(error)),
        }
    }

    async fn hash(&self, password: SecretString) -> Result<String, PasswordError> {
        let hash = self
            .compute(move || Argon2::default().hash_password(password.expose_secret().as_bytes()))
            .await?
            .map_err(PasswordError::Hash)?;
        Ok(hash.to_string())
    }

    /// The permit goes along: the work does not end when nobody waits for it any more.
    async fn compute<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, PasswordError> {
        // Nobody closes it, and without a permit the work is only done beside another.
        let permit = self.0.clone().acquire_owned().await.ok();
        let work = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(permit);
            result
        });
        Ok(work.await?)
    }
}

/// Makes the stored hash that of the configured password. Another password than before ends all sessions, and so does
/// one that is configured no longer.
pub(super) async fn adopt(
    db: &Db,
    hashing: &Hashing,
    sign_in: &SignIn,
    now: Timestamp,
) -> Result<(), PasswordError> {
    let stored = db.read(access::password).await?;
    let wanted = match (sign_in, stored) {
        (SignIn::Open, _) | (SignIn::Links, None) => return Ok(()),
        (SignIn::Links, Some(_)) => None,
        (SignIn::Password(Password::Hash(hash)), stored) => {
            if stored.as_deref() == Some(hash.expose_secret()) {
                return Ok(());
            }
            Some(hash.expose_secret().to_owned())
        }
        (SignIn::Password(Password::Plain(plain)), Some(stored))
            if hashing.compare(plain.clone(), stored.clone()).await? == Typed::Right =>
        {
            return Ok(());
        }
        (SignIn::Password(Password::Plain(plain)), _) => Some(hashing.hash(plain.clone()).await?),
    };
    let replace = move |conn: &mut _| {
        let detail = json!({ "set": wanted.is_some() });
        let entry = Entry { by: By::Dialarr, kind: "password", subject: Subject::Console, detail };
        audit::record(conn, &entry, now)?;
        access::replace_password(conn, wanted.as_deref(), now)
    };
    db.write(replace).await?;
    tracing::info!("the console's password changed: all of its sessions are ended");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use argon2::Argon2;
    use argon2::password_hash::PasswordHasher;
    use futures_util::future::join_all;
    use secrecy::SecretString;

    use super::{Hashing, Password, Typed};

    #[test]
    fn a_password_is_plain_or_a_whole_argon2id_hash() {
        let hash =
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzYWx0$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let kind = |text: &str| {
            Password::read(text).map(|password| match password {
                Password::Plain(_) => "plain",
                Password::Hash(_) => "hash",
            })
        };
        assert_eq!(kind("correct horse"), Ok("plain"));
        assert_eq!(kind("$ecret horse"), Ok("plain"));
        assert_eq!(kind(hash), Ok("hash"));
        assert_eq!(kind(&hash.replace("argon2id", "argon2i")), Err("not a whole argon2id hash"));
        assert_eq!(kind("$argon2id$v=19$m=19456,t=2,p=1"), Err("not a whole argon2id hash"));
        assert_eq!(kind(&"a".repeat(1025)), Err("longer than 1024 bytes"));
    }

    #[test]
    fn what_is_left_of_a_hash_is_no_password() {
        let hash =
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzYWx0$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let left = "a part of an argon2id hash; put the whole hash in single quotes";
        for cut in ["=19=19456,t=2,p=1", "=19=65536,t=3,p=4+salt/hash", &hash[1..], &hash[9..]] {
            assert_eq!(Password::read(cut).unwrap_err(), left, "{cut}");
        }
        let before_the_last_part = hash.rfind('$').unwrap();
        for end in 7..=before_the_last_part {
            assert_eq!(Password::read(&hash[..end]).unwrap_err(), "not a whole argon2id hash", "{end}");
        }
    }

    #[test]
    fn a_password_has_ten_characters_and_a_hash_is_not_measured() {
        let short = "shorter than 10 characters, and so too easy to guess";
        assert_eq!(Password::read("nine char").unwrap_err(), short);
        assert_eq!(Password::read("ääääääääa").unwrap_err(), short);
        assert!(Password::read("ten chars!").is_ok());
    }

    #[tokio::test]
    async fn however_many_sign_in_one_hash_is_computed_at_a_time() {
        let hashing = Hashing::default();
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let sign_ins = (0..8).map(|_| {
            let (under_way, most) = (under_way.clone(), most.clone());
            hashing.compute(move || {
                most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let hash = Argon2::default().hash_password(b"correct horse");
                under_way.fetch_sub(1, Ordering::SeqCst);
                hash.is_ok()
            })
        });
        let computed = join_all(sign_ins).await;
        assert!(computed.into_iter().all(|computed| computed.is_ok_and(|is_a_hash| is_a_hash)));
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_hash_fits_its_password_alone() {
        let hashing = Hashing::default();
        let hash = hashing.hash(SecretString::from("correct horse")).await.unwrap();
        let compare = |typed: &str| hashing.compare(typed.into(), hash.clone());
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_eq!(compare("correct horse").await.unwrap(), Typed::Right);
        assert_eq!(compare("battery staple").await.unwrap(), Typed::Wrong);
    }
}
