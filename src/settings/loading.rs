//! Reads all sources of the configuration.

use std::collections::BTreeMap;

use secrecy::ExposeSecret;

use super::secrets_file::{SecretsFile, SecretsFileError, StoredSecrets};
use crate::config::{ConfigSources, StoredValue, find_setting};
use crate::store::database::db::OpenError;
use crate::store::settings::{SettingRow, load_settings_of_file};

/// Adds the stored settings to the environment and `.env`, which name the files. The database is neither locked nor
/// migrated.
pub fn add_stored_settings(sources: ConfigSources) -> Result<ConfigSources, OpenError> {
    let (database, secrets_file) = sources.file_paths();
    let (database, secrets_file) = (database.to_string_lossy(), SecretsFile::new(secrets_file));
    let mut rows = load_settings_of_file(&database)?;
    loop {
        let secrets = secrets_file.load();
        // A change between the two reads may have removed a secret that its row named.
        let later_rows = load_settings_of_file(&database)?;
        if later_rows == rows {
            return Ok(sources.with_stored(resolve_rows(&rows, &secrets)));
        }
        rows = later_rows;
    }
}

/// Returns the values of the rows, with the secrets that they name.
pub(super) fn resolve_rows(
    rows: &[SettingRow],
    secrets: &Result<StoredSecrets, SecretsFileError>,
) -> BTreeMap<String, StoredValue> {
    let present = rows.iter().filter(|row| !row.is_removed());
    present.map(|row| (row.name.clone(), resolve_row(row, secrets))).collect()
}

fn resolve_row(row: &SettingRow, secrets: &Result<StoredSecrets, SecretsFileError>) -> StoredValue {
    let is_secret = find_setting(&row.name).is_ok_and(|variable| variable.is_secret());
    let unusable = |reason: &str| StoredValue::Unusable(reason.to_owned());
    match (row.secret_version, secrets) {
        (None, _) if is_secret => unusable("its value is in the database instead of the secrets file"),
        (None, _) => StoredValue::Text(row.value.clone().unwrap_or_default()),
        (Some(_), Err(error)) => StoredValue::Unusable(format!("failed to {error}")),
        (Some(version), Ok(secrets)) => match secrets.find(&row.name, version) {
            None => StoredValue::Unusable(format!("the secrets file has no version {version} of it")),
            Some(secret) if secret.value.expose_secret().trim().is_empty() => {
                unusable("it is empty in the secrets file")
            }
            Some(secret) => StoredValue::Secret(secret),
        },
    }
}
