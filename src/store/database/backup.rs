//! Copies of the database. A copy gets its final name only after it is synced to disk, so that a file with that name is
//! always complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diesel::prelude::*;
use diesel::sql_types::Text;
use jiff::Timestamp;

use super::database_file::load_database_file_size;
use super::database_lock::{DatabaseHandle, LockOutcome, companion_path};
use super::db::OpenError;
use super::migration::{SchemaState, load_schema_state};
use crate::store::Conn;

/// Suffix of the file beside the database that marks a failed backup. The command that makes a backup cannot change
/// tables while the service runs, and only the service sends alerts.
const FAILURE_MARK: &str = ".backup-failed";
/// Content of the mark, for the operator who finds it.
const FAILURE_TEXT: &str =
    "The last `dialarr backup` of this database failed. The next one that succeeds removes this file.\n";

/// Error while a copy of the database is written.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("write the copy: its path is not valid UTF-8")]
    Name,
    #[error("write the copy; hint: check whether the disk is full")]
    Write(#[from] diesel::result::Error),
    #[error("sync the copy to disk")]
    Store(#[from] io::Error),
}

/// Copy under its temporary name, which ends in `.part`. Unless the copy is finished, the file is removed on drop, or
/// by the next run if the program is killed.
pub(in crate::store) struct PartialCopy {
    partial_path: PathBuf,
    final_path: PathBuf,
}

impl PartialCopy {
    pub(in crate::store) fn write(conn: &mut Conn, final_path: &Path) -> Result<Self, CopyError> {
        let mut partial_path = final_path.as_os_str().to_owned();
        partial_path.push(".part");
        let partial_path = PathBuf::from(partial_path);
        remove_if_present(&partial_path)?;
        let copy = Self { partial_path, final_path: final_path.to_owned() };
        let name = copy.partial_path.to_str().ok_or(CopyError::Name)?;
        diesel::sql_query("VACUUM INTO ?").bind::<Text, _>(name).execute(conn)?;
        Ok(copy)
    }

    pub(in crate::store) fn path(&self) -> &Path {
        &self.partial_path
    }

    /// Renames the copy to its final name, replacing any existing file. SQLite does not sync the copy, so it is synced
    /// before the rename.
    pub(in crate::store) fn finish(self) -> Result<(), CopyError> {
        File::open(&self.partial_path)?.sync_all()?;
        fs::rename(&self.partial_path, &self.final_path)?;
        sync_parent_directory(&self.final_path)?;
        Ok(())
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        if let Err(error) = remove_if_present(&self.partial_path) {
            tracing::warn!(%error, path = %self.partial_path.display(), "failed to remove a partial copy");
        }
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Syncs the directory of a file, so that a new name of the file is on disk.
pub fn sync_parent_directory(file: &Path) -> io::Result<()> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match File::open(parent.unwrap_or(Path::new(".")))?.sync_all() {
        // Some file systems, such as network file systems, cannot sync a directory.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Error of a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("find {0}")]
    Missing(String),
    #[error("write {0}: the file exists")]
    Exists(String),
    #[error("copy {0}: it is empty, or the database of another program; hint: check DATABASE_URL")]
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
/// The service reports a failure.
pub fn back_up(path: &str, to: &str) -> Result<(), BackupError> {
    let outcome = write_backup(path, to);
    if let Err(error) = mark_outcome(path, &outcome) {
        tracing::warn!(%error, "failed to record the outcome of the backup for the running service");
    }
    outcome
}

fn write_backup(path: &str, to: &str) -> Result<(), BackupError> {
    let reject_existing = || {
        if Path::new(to).exists() { Err(BackupError::Exists(to.to_owned())) } else { Ok(()) }
    };
    if !Path::new(path).exists() {
        return Err(BackupError::Missing(path.to_owned()));
    }
    reject_existing()?;
    let handle = Arc::new(DatabaseHandle::open(path)?);
    // The lock is tried only for a file with other hard links and without a log, because a service that starts while
    // the lock is held fails.
    if handle.has_other_hard_links()?
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
    reject_existing()?;
    Ok(copy.finish()?)
}

/// Leaves the mark after a failed backup, and removes it after another one. Without a database, no service would read
/// it.
fn mark_outcome(database: &str, outcome: &Result<(), BackupError>) -> io::Result<()> {
    let mark = companion_path(database, FAILURE_MARK);
    match outcome {
        Ok(()) => remove_if_present(&mark),
        Err(_) if Path::new(database).exists() => fs::write(mark, FAILURE_TEXT),
        Err(_) => Ok(()),
    }
}

/// Returns the time of the last backup of the open database, if it failed.
pub fn load_backup_failure(conn: &mut Conn) -> QueryResult<Option<Timestamp>> {
    let mark = companion_path(&load_database_file_size(conn)?.path, FAILURE_MARK);
    // In a folder in which the mark cannot be read, the database cannot be used either.
    let written_at = fs::metadata(mark).and_then(|mark| mark.modified()).ok();
    Ok(written_at.and_then(|at| Timestamp::try_from(at).ok()))
}

#[cfg(test)]
mod tests {
    use super::super::db::Db;
    use super::*;

    #[test]
    fn backup_replaces_only_a_partial_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        drop(Db::open_simulated(&path("a.db"), 0).unwrap());
        fs::write(path("copy.db.part"), "half of a copy").unwrap();
        back_up(&path("a.db"), &path("copy.db")).unwrap();
        let copy = fs::read(path("copy.db")).unwrap();
        assert!(copy.starts_with(b"SQLite format 3\0") && !Path::new(&path("copy.db.part")).exists());
        assert!(!Path::new(&path("a.db.backup-failed")).exists());

        assert!(matches!(back_up(&path("a.db"), &path("copy.db")), Err(BackupError::Exists(_))));
        assert_eq!(fs::read(path("copy.db")).unwrap(), copy);
        assert!(Path::new(&path("a.db.backup-failed")).exists());
        back_up(&path("a.db"), &path("other.db")).unwrap();
        assert!(!Path::new(&path("a.db.backup-failed")).exists());
    }

    #[test]
    fn missing_or_empty_database_is_not_backed_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("a.db"), "").unwrap();
        let result = back_up(&path("missing.db"), &path("copy.db"));
        assert!(matches!(result, Err(BackupError::Missing(_))), "{result:?}");
        assert!(!Path::new(&path("missing.db.backup-failed")).exists());
        let result = back_up(&path("a.db"), &path("copy.db"));
        assert!(matches!(result, Err(BackupError::Unusable(_))), "{result:?}");
        assert!(!Path::new(&path("copy.db")).exists());
    }

    #[test]
    fn database_in_use_is_not_backed_up_through_a_hard_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let _open_database = Db::open_simulated(&path("a.db"), 0).unwrap();
        fs::hard_link(path("a.db"), path("b.db")).unwrap();
        let result = back_up(&path("b.db"), &path("copy.db"));
        assert!(matches!(result, Err(BackupError::OtherName(_))), "{result:?}");
        back_up(&path("a.db"), &path("copy.db")).unwrap();
    }
}
