//! Comparison and storage of the console's password: only an argon2id hash of it is stored, and sign-ins never compute
//! hashes concurrently, since each takes 19 MiB.

use std::sync::Arc;

use argon2::password_hash;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::access_rules::{ConsolePassword, MAX_PASSWORD_BYTES, SignIn, hash_password, matches_hash};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::console_access;
use crate::store::database::db::{Db, DbError};

/// Result of checking an entered password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PasswordCheck {
    Correct,
    Wrong,
}

/// Failure to store or compare the password.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("hash the console's password: {0}")]
    Hash(password_hash::Error),
    #[error("hash the console's password")]
    TaskFailed(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Store(#[from] DbError),
}

/// Queue that computes one hash at a time.
#[derive(Debug, Clone)]
pub(super) struct HashingQueue(Arc<Semaphore>);

impl Default for HashingQueue {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl HashingQueue {
    pub(super) async fn compare_password(
        &self,
        entered: SecretString,
        hash: String,
    ) -> Result<PasswordCheck, PasswordError> {
        if entered.expose_secret().len() > MAX_PASSWORD_BYTES {
            return Ok(PasswordCheck::Wrong);
        }
        let matches = self.run_exclusive(move || matches_hash(&entered, &hash)).await?;
        Ok(if matches.map_err(PasswordError::Hash)? { PasswordCheck::Correct } else { PasswordCheck::Wrong })
    }

    async fn hash_password(&self, password: SecretString) -> Result<String, PasswordError> {
        let hash = self.run_exclusive(move || hash_password(&password)).await?;
        Ok(hash.map_err(PasswordError::Hash)?.expose_secret().to_owned())
    }

    /// Runs `work` with the permit, which moves into the task: the work continues even if its caller no longer waits.
    async fn run_exclusive<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, PasswordError> {
        // The semaphore is never closed; without a permit the work would only run concurrently with another.
        let permit = self.0.clone().acquire_owned().await.ok();
        let work = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(permit);
            result
        });
        Ok(work.await?)
    }
}

/// Replaces the stored hash with that of the configured password. A different password ends all sessions, and so does
/// the removal of the configured password.
pub(super) async fn store_configured_password(
    db: &Db,
    hashing: &HashingQueue,
    sign_in: &SignIn,
    now: Timestamp,
) -> Result<(), PasswordError> {
    let stored = db.read(console_access::load_password_hash).await?;
    let new_hash = match (sign_in, stored) {
        (SignIn::Open, _) | (SignIn::Links, None) => return Ok(()),
        (SignIn::Links, Some(_)) => None,
        (SignIn::Password(ConsolePassword::Hash(hash)), stored) => {
            if stored.as_deref() == Some(hash.expose_secret()) {
                return Ok(());
            }
            Some(hash.expose_secret().to_owned())
        }
        (SignIn::Password(ConsolePassword::Plain(plain)), Some(stored))
            if hashing.compare_password(plain.clone(), stored.clone()).await? == PasswordCheck::Correct =>
        {
            return Ok(());
        }
        (SignIn::Password(ConsolePassword::Plain(plain)), _) => {
            Some(hashing.hash_password(plain.clone()).await?)
        }
    };
    let replace = move |conn: &mut _| {
        let detail = json!({ "set": new_hash.is_some() });
        let entry =
            NewAuditEntry { actor: Actor::Dialarr, kind: "password", subject: AuditSubject::Console, detail };
        audit::record_change(conn, &entry, now)?;
        console_access::replace_password(conn, new_hash.as_deref(), now)
    };
    db.write(replace).await?;
    tracing::info!("changed the console password and ended all of its sessions");
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

    use super::{HashingQueue, PasswordCheck};

    #[tokio::test]
    async fn concurrent_sign_ins_compute_hashes_sequentially() {
        let hashing = HashingQueue::default();
        let (running, max_running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let sign_ins = (0..8).map(|_| {
            let (running, max_running) = (running.clone(), max_running.clone());
            hashing.run_exclusive(move || {
                max_running.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let hash = Argon2::default().hash_password(b"correct horse");
                running.fetch_sub(1, Ordering::SeqCst);
                hash.is_ok()
            })
        });
        let computed = join_all(sign_ins).await;
        assert!(computed.into_iter().all(|computed| computed.is_ok_and(|is_hashed| is_hashed)));
        assert_eq!(max_running.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn hash_matches_only_its_password() {
        let hashing = HashingQueue::default();
        let hash = hashing.hash_password(SecretString::from("correct horse")).await.unwrap();
        let compare = |entered: &str| hashing.compare_password(entered.into(), hash.clone());
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_eq!(compare("correct horse").await.unwrap(), PasswordCheck::Correct);
        assert_eq!(compare("battery staple").await.unwrap(), PasswordCheck::Wrong);
    }
}
