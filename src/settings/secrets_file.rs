//! File of the stored secrets. Each secret has versions, of which the database names the one in use: a new version is
//! added to the file before the database names it, and removed after the database names another.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use crate::config::BoundSecret;
use crate::store::database::backup::sync_parent_directory;

/// Permissions of the file: only its owner reads and writes it.
const MODE: u32 = 0o600;
/// Permissions of other accounts, of which the file has none.
const OTHER_ACCOUNTS: u32 = 0o077;

/// Path of the file. The file exists once a secret is stored.
#[derive(Debug, Clone)]
pub struct SecretsFile(PathBuf);

#[derive(Debug, thiserror::Error)]
pub enum SecretsFileError {
    #[error("read the secrets file {path}")]
    Read { path: PathBuf, source: io::Error },
    /// The message contains no part of the file.
    #[error("read the secrets file {path}: it is damaged")]
    Damaged { path: PathBuf },
    #[error("write the secrets file {path}; hint: run this command as the user of the service")]
    Write { path: PathBuf, source: io::Error },
}

/// Content of the file: the versions of each secret.
#[derive(Default, Serialize, Deserialize)]
pub struct StoredSecrets(BTreeMap<String, BTreeMap<i64, SecretEntry>>);

#[derive(Serialize, Deserialize)]
struct SecretEntry {
    origin: Option<String>,
    value: String,
}

impl SecretsFile {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the file, which is empty if it does not exist.
    pub fn load(&self) -> Result<StoredSecrets, SecretsFileError> {
        let mut text = Vec::new();
        match File::open(&self.0).and_then(|mut file| file.read_to_end(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredSecrets::default()),
            Err(source) => return Err(SecretsFileError::Read { path: self.0.clone(), source }),
        }
        serde_json::from_slice(&text).map_err(|_| SecretsFileError::Damaged { path: self.0.clone() })
    }

    /// Replaces the file. It is on disk when this function returns.
    pub fn save(&self, secrets: &StoredSecrets) -> Result<(), SecretsFileError> {
        self.replace(secrets).map_err(|source| SecretsFileError::Write { path: self.0.clone(), source })
    }

    /// Returns the permissions of the file if other accounts have some.
    pub fn exposed_mode(&self) -> io::Result<Option<u32>> {
        match fs::metadata(&self.0) {
            Ok(metadata) => Ok(Some(metadata.mode() & 0o777).filter(|mode| mode & OTHER_ACCOUNTS != 0)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the permissions of other accounts, with a warning in the log.
    pub fn restrict_mode(&self) -> Result<(), SecretsFileError> {
        let restricted = self.exposed_mode().and_then(|mode| {
            let Some(mode) = mode else { return Ok(()) };
            fs::set_permissions(&self.0, fs::Permissions::from_mode(MODE))?;
            let (path, mode) = (self.0.display(), format!("{mode:o}"));
            tracing::warn!(%path, %mode, "other accounts could read the secrets file; removed their permissions");
            Ok(())
        });
        restricted.map_err(|source| SecretsFileError::Write { path: self.0.clone(), source })
    }

    fn replace(&self, secrets: &StoredSecrets) -> io::Result<()> {
        // A symlink stays, and its target is replaced.
        let path = fs::canonicalize(&self.0).unwrap_or_else(|_| self.0.clone());
        let mut partial = OsString::from(&path);
        partial.push(".part");
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // A killed process may have left the file.
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&partial)?;
        adopt_owner(&file, &path)?;
        file.write_all(&serde_json::to_vec_pretty(secrets)?)?;
        file.sync_all()?;
        fs::rename(&partial, &path)?;
        sync_parent_directory(&path)
    }
}

/// Gives a new file to the owner of the file that it replaces, or of the folder: a command may run as root, and the
/// service does not.
fn adopt_owner(file: &File, path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let owner = fs::metadata(path).or_else(|_| fs::metadata(folder))?;
    if rustix::process::geteuid().is_root() && owner.uid() != file.metadata()?.uid() {
        fchown(file, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

impl StoredSecrets {
    pub fn find(&self, name: &str, version: i64) -> Option<BoundSecret> {
        let SecretEntry { origin, value } = self.0.get(name)?.get(&version)?;
        Some(BoundSecret { value: value.as_str().into(), origin: origin.clone() })
    }

    /// Adds a version above all others of this secret, and above `last`, and returns it.
    pub fn add(&mut self, name: &str, secret: &BoundSecret, last: Option<i64>) -> i64 {
        let versions = self.0.entry(name.to_owned()).or_default();
        let highest = versions.keys().next_back().copied().max(last).unwrap_or(0);
        let value = secret.value.expose_secret().to_owned();
        versions.insert(highest + 1, SecretEntry { origin: secret.origin.clone(), value });
        highest + 1
    }

    /// Removes the versions for which `is_named` is false. Returns whether there were any.
    pub fn remove_unnamed(&mut self, is_named: impl Fn(&str, i64) -> bool) -> bool {
        let count = |secrets: &Self| secrets.0.values().map(BTreeMap::len).sum::<usize>();
        let before = count(self);
        for (name, versions) in &mut self.0 {
            versions.retain(|version, _| is_named(name, *version));
        }
        self.0.retain(|_, versions| !versions.is_empty());
        count(self) < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(value: &str) -> BoundSecret {
        BoundSecret { value: value.into(), origin: Some("https://api.openai.com".to_owned()) }
    }

    fn value(secrets: &StoredSecrets, version: i64) -> Option<String> {
        secrets.find("LLM_API_KEY", version).map(|secret| secret.value.expose_secret().to_owned())
    }

    #[test]
    fn file_is_created_for_its_owner_only_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = SecretsFile::new(folder.path().join("a.secrets.json"));
        let mut secrets = file.load().unwrap();
        assert_eq!(secrets.add("LLM_API_KEY", &secret("sk-1"), None), 1);
        // A killed process left a partial file that anyone may read.
        fs::write(folder.path().join("a.secrets.json.part"), "{").unwrap();
        file.save(&secrets).unwrap();
        let mode = fs::metadata(file.path()).unwrap().mode() & 0o777;
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!((mode, names), (0o600, vec![OsString::from("a.secrets.json")]));
        let read = file.load().unwrap();
        assert_eq!(value(&read, 1).as_deref(), Some("sk-1"));
        assert_eq!(read.find("LLM_API_KEY", 1).unwrap().origin, secret("").origin);
    }

    #[test]
    fn permissions_of_other_accounts_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = SecretsFile::new(folder.path().join("secrets.json"));
        assert_eq!(file.exposed_mode().unwrap(), None);
        fs::write(file.path(), "{}").unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(file.exposed_mode().unwrap(), Some(0o640));
        file.restrict_mode().unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn new_version_is_above_every_known_one() {
        let mut secrets = StoredSecrets::default();
        assert_eq!(secrets.add("LLM_API_KEY", &secret("a"), Some(6)), 7);
        assert_eq!(secrets.add("LLM_API_KEY", &secret("b"), Some(6)), 8);
        assert!(secrets.remove_unnamed(|_, version| version == 8));
        assert_eq!([value(&secrets, 7), value(&secrets, 8)], [None, Some("b".to_owned())]);
        assert!(!secrets.remove_unnamed(|_, version| version == 8));
    }

    #[test]
    fn damaged_file_is_an_error_without_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = SecretsFile::new(folder.path().join("secrets.json"));
        fs::write(file.path(), "{\"LLM_API_KEY\": \"hunter2\"}").unwrap();
        let error = anyhow::Error::from(file.load().err().unwrap());
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}
