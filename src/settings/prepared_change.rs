//! Preparation of a change of settings: the work that takes too long for a write transaction.

use argon2::password_hash;
use secrecy::{ExposeSecret, SecretString};

use super::change::SettingsChange;
use crate::access_rules::{ConsolePassword, hash_password, matches_hash};
use crate::config::variables::CONSOLE_PASSWORD;
use crate::config::{ConfigSources, StoredValue};

/// Change without a plain console password.
#[derive(Debug)]
pub struct PreparedChange(SettingsChange);

impl PreparedChange {
    /// Replaces a plain console password with its hash: with the stored one if that is of the same password.
    pub fn new(mut change: SettingsChange, current: &ConfigSources) -> password_hash::Result<Self> {
        if let Some(password) = change.plain_password() {
            let hash = match find_stored_hash(current, &password)? {
                Some(stored) => stored,
                None => hash_password(&password)?,
            };
            let values = change.set.iter_mut().filter(|(variable, _)| *variable == CONSOLE_PASSWORD);
            values.for_each(|(_, value)| *value = hash.clone());
        }
        Ok(Self(change))
    }

    pub(super) fn change(&self) -> &SettingsChange {
        &self.0
    }
}

impl SettingsChange {
    /// Returns the console password that the change sets in plain text.
    pub fn plain_password(&self) -> Option<SecretString> {
        let (_, value) = self.set.iter().rfind(|(variable, _)| *variable == CONSOLE_PASSWORD)?;
        match ConsolePassword::parse(value.expose_secret().trim()) {
            Ok(ConsolePassword::Plain(plain)) => Some(plain),
            // The change is refused because of an invalid password.
            Ok(ConsolePassword::Hash(_)) | Err(_) => None,
        }
    }
}

/// Returns the stored hash if it is of this password.
fn find_stored_hash(
    current: &ConfigSources,
    password: &SecretString,
) -> password_hash::Result<Option<SecretString>> {
    let Some(StoredValue::Secret(stored)) = current.stored().get(CONSOLE_PASSWORD.name) else {
        return Ok(None);
    };
    match ConsolePassword::parse(stored.value.expose_secret()) {
        Ok(ConsolePassword::Hash(hash)) => Ok(matches_hash(password, hash.expose_secret())?.then_some(hash)),
        Ok(ConsolePassword::Plain(_)) | Err(_) => Ok(None),
    }
}
