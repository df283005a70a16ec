//! Whole copies of the database. A copy gets its final name only after it is on disk, so that a file of that name is
//! always complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diesel::prelude::*;
use diesel::sql_types::Text;

use super::database_lock::{DatabaseHandle, LockOutcome, companion_path};
use super::db::OpenError;
use super::migration::{SchemaState, load_schema_state};
use crate::store::Conn;

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("name the copy: its path is not UTF-8")]
    Name,
    #[error("write the copy; hint: see whether its disk is full")]
    Write(#[from] diesel::result::Error),
    #[error("put the copy on disk")]
    Store(#[from] io::Error),
}

/// A copy under its temporary name, which ends in `.part`. The file is removed unless the copy is finished. If the
/// program is killed, the next run removes the file.
pub(in crate::store) struct PartialCopy {
    part: PathBuf,
    whole: PathBuf,
}

impl PartialCopy {
    pub(in crate::store) fn write(conn: &mut Conn, whole: &Path) -> Result<Self, CopyError> {
        let mut part = whole.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        remove_if_present(&part)?;
        let copy = Self { part, whole: whole.to_owned() };
        let name = copy.part.to_str().ok_or(CopyError::Name)?;
        diesel::sql_query("VACUUM INTO ?").bind::<Text, _>(name).execute(conn)?;
        Ok(copy)
    }

    pub(in crate::store) fn path(&self) -> &Path {
        &self.part
    }

    /// Renames the copy to its final name, replacing a file of that name. SQLite lets the operating system decide when
    /// a copy is written to disk, which may be after the rename, so the copy is synced first.
    pub(in crate::store) fn finish(self) -> Result<(), CopyError> {
        File::open(&self.part)?.sync_all()?;
        fs::rename(&self.part, &self.whole)?;
        sync_folder(&self.whole)?;
        Ok(())
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        if let Err(error) = remove_if_present(&self.part) {
            tracing::warn!(%error, path = %self.part.display(), "failed to remove a partial copy");
        }
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        // Some file systems, such as network file systems, cannot sync a folder.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("find {0}")]
    Missing(String),
    #[error("write {0}: the file exists")]
    Exists(String),
    #[error("copy {0}: it is empty, or the database of another program; hint: see DATABASE_URL")]
    Unusable(String),
    #[error(
        "copy {0}: the running service opened it under another name; hint: use the DATABASE_URL of the service"
    )]
    OtherName(String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("read the database")]
    Read(#[from] diesel::result::Error),
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// Writes a consistent copy of the database at `path` to the new file `to`, even while a program is using the database.
pub fn back_up(path: &str, to: &str) -> Result<(), BackupError> {
    let refuse_existing = || {
        if Path::new(to).exists() { Err(BackupError::Exists(to.to_owned())) } else { Ok(()) }
    };
    if !Path::new(path).exists() {
        return Err(BackupError::Missing(path.to_owned()));
    }
    refuse_existing()?;
    let handle = Arc::new(DatabaseHandle::open(path)?);
    // The lock is tried only for a file with other names and no log: a service that starts while it is held would be
    // refused.
    if handle.has_other_names()?
        && !companion_path(path, "-wal").exists()
        && handle.try_lock()? == LockOutcome::InUse
    {
        return Err(BackupError::OtherName(path.to_owned()));
    }
    let mut conn = handle.connect("")?;
    match load_schema_state(&mut conn)? {
        SchemaState::Current | SchemaState::Older { .. } | SchemaState::Newer { .. } => {}
        SchemaState::Empty | SchemaState::Foreign => return Err(BackupError::Unusable(path.to_owned())),
    }
    let copy = PartialCopy::write(&mut conn, Path::new(to))?;
    refuse_existing()?;
    Ok(copy.finish()?)
}

#[cfg(test)]
mod tests {
    use super::super::db::Db;
    use super::*;

    #[test]
    fn backup_replaces_only_leftovers_of_a_killed_one() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        drop(Db::open_simulated(&name("a.db"), 0).unwrap());
        fs::write(name("copy.db.part"), "half of a copy").unwrap();
        back_up(&name("a.db"), &name("copy.db")).unwrap();
        let copy = fs::read(name("copy.db")).unwrap();
        assert!(copy.starts_with(b"SQLite format 3\0") && !Path::new(&name("copy.db.part")).exists());

        assert!(matches!(back_up(&name("a.db"), &name("copy.db")), Err(BackupError::Exists(_))));
        assert_eq!(fs::read(name("copy.db")).unwrap(), copy);
    }

    #[test]
    fn missing_or_empty_database_is_not_backed_up() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(name("a.db"), "").unwrap();
        let refused = back_up(&name("a.db"), &name("copy.db"));
        assert!(matches!(refused, Err(BackupError::Unusable(_))), "{refused:?}");
        assert!(!Path::new(&name("copy.db")).exists());
    }

    #[test]
    fn used_database_is_not_backed_up_by_a_hard_link() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let _used = Db::open_simulated(&name("a.db"), 0).unwrap();
        fs::hard_link(name("a.db"), name("b.db")).unwrap();
        let refused = back_up(&name("b.db"), &name("copy.db"));
        assert!(matches!(refused, Err(BackupError::OtherName(_))), "{refused:?}");
        back_up(&name("a.db"), &name("copy.db")).unwrap();
    }
}
