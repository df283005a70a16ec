//! Lock that prevents a second program from using a database file, and the connections that are opened under the lock.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diesel::Connection;
use diesel::connection::SimpleConnection;

use super::db::OpenError;
use crate::store::Conn;

/// Device and inode of a file, which are the same for all of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(in crate::store) fn from_metadata(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Open handle of a database file.
///
/// The lock (`flock`) of the handle is on the file itself, so it applies to every name of the file and ends with the
/// process. On a local file system the lock does not interfere with the locks of SQLite (`fcntl`). SQLite's locks have
/// a pitfall: closing any descriptor of a file releases all the locks that the process holds on the file, and another
/// process may then delete the write-ahead log that this process writes to. Therefore the handle is opened before the
/// first connection of the process and closed after the last one, and nothing else opens the file. Each connection owns
/// a share of the handle, which enforces this order.
#[derive(Debug)]
pub(in crate::store) struct DatabaseHandle {
    file: File,
    path: String,
    identity: FileIdentity,
}

/// Outcome of acquiring the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum LockOutcome {
    Acquired,
    /// A service, a conversation in the terminal or a command at the shell holds the lock.
    InUse,
}

impl DatabaseHandle {
    /// Opens an existing file.
    pub(in crate::store) fn open(path: &str) -> Result<Self, OpenError> {
        Self::from_file(File::open(path), path)
    }

    /// Opens the file, or creates an empty one.
    pub(in crate::store) fn open_or_create(path: &str) -> Result<Self, OpenError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        Self::from_file(file, path)
    }

    fn from_file(file: io::Result<File>, path: &str) -> Result<Self, OpenError> {
        let lock_error = |source| OpenError::Lock { path: path.to_owned(), source };
        let file = file.map_err(lock_error)?;
        let identity = FileIdentity::from_metadata(&file.metadata().map_err(lock_error)?);
        Ok(Self { file, path: path.to_owned(), identity })
    }

    pub(in crate::store) fn path(&self) -> &str {
        &self.path
    }

    pub(in crate::store) fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns whether the file has more than one hard link.
    pub(in crate::store) fn has_other_hard_links(&self) -> Result<bool, OpenError> {
        let metadata = self.file.metadata();
        let links = metadata.map_err(|source| OpenError::Lock { path: self.path.clone(), source })?.nlink();
        Ok(links > 1)
    }

    /// Acquires the lock unless another handle holds it, in this process or another.
    pub(in crate::store) fn try_lock(&self) -> Result<LockOutcome, OpenError> {
        match self.file.try_lock() {
            Ok(()) => Ok(LockOutcome::Acquired),
            Err(TryLockError::WouldBlock) => Ok(LockOutcome::InUse),
            Err(TryLockError::Error(source)) => Err(OpenError::Lock { path: self.path.clone(), source }),
        }
    }

    /// Opens a connection. Returns an error if the path now leads to another file.
    pub(in crate::store) fn connect(self: &Arc<Self>, pragmas: &str) -> Result<LockedConnection, OpenError> {
        let path = || self.path.clone();
        let conn =
            Conn::establish(&self.path).map_err(|source| OpenError::Connect { path: path(), source })?;
        // SQLite opened the file by its path, and the file may have been replaced since the handle was opened.
        let metadata = fs::metadata(&self.path).map_err(|source| OpenError::Lock { path: path(), source })?;
        if FileIdentity::from_metadata(&metadata) != self.identity {
            return Err(OpenError::Replaced { path: path() });
        }
        let mut conn = LockedConnection { conn, _handle: self.clone() };
        // The timeout comes first: switching to WAL can itself find the database busy.
        for sql in ["PRAGMA busy_timeout=5000;", pragmas] {
            conn.batch_execute(sql).map_err(|source| OpenError::Configure { path: path(), source })?;
        }
        Ok(conn)
    }
}

impl Drop for DatabaseHandle {
    /// Releases the lock. Closing the descriptor is not enough: a child process that another thread has forked inherits
    /// the descriptor, and holds the lock until it executes its program.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(path = %self.path, %error, "failed to release the database lock");
        }
    }
}

/// Connection that keeps its file open, and locked if the file was locked, until the connection is closed.
pub(in crate::store) struct LockedConnection {
    // Fields are dropped in declaration order: the connection must close before the handle.
    conn: Conn,
    _handle: Arc<DatabaseHandle>,
}

impl Deref for LockedConnection {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for LockedConnection {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

/// Returns the path of a file that SQLite creates beside the database. SQLite resolves symlinks first.
pub(in crate::store) fn companion_path(database: &str, suffix: &str) -> PathBuf {
    let database = fs::canonicalize(database).unwrap_or_else(|_| Path::new(database).to_owned());
    let mut path = database.into_os_string();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_released_despite_an_inherited_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let open_handle = || DatabaseHandle::open_or_create(path.to_str().unwrap()).unwrap();
        let first = open_handle();
        assert_eq!(first.try_lock().unwrap(), LockOutcome::Acquired);
        let _inherited = first.file.try_clone().unwrap();
        assert_eq!(open_handle().try_lock().unwrap(), LockOutcome::InUse);

        drop(first);

        assert_eq!(open_handle().try_lock().unwrap(), LockOutcome::Acquired);
    }

    #[test]
    fn file_replaced_before_sqlite_opens_it_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let handle = Arc::new(DatabaseHandle::open_or_create(path.to_str().unwrap()).unwrap());
        assert_eq!(handle.try_lock().unwrap(), LockOutcome::Acquired);
        fs::write(folder.path().join("b.db"), "").unwrap();
        fs::rename(folder.path().join("b.db"), &path).unwrap();
        assert!(matches!(handle.connect(""), Err(OpenError::Replaced { .. })));
    }
}
