//! Check that the files of an open database are still at their paths. Only the metadata of the files is read: opening
//! and closing a file would release SQLite's locks.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::database_lock::{DatabaseHandle, FileIdentity, companion_path};
use super::db::Db;

/// Interval at which the paths are checked while no webhook is received.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// File that SQLite uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseFile {
    Main,
    /// The write-ahead log, which alone holds the latest commits.
    Log,
}

/// Fault at the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathFault {
    Missing,
    /// Another file is at this path.
    Replaced,
    /// The file at the path cannot be inspected.
    Unreadable,
}

/// File that is no longer at its path, so that data committed from now on would be lost at the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisplacedFile {
    pub file: DatabaseFile,
    pub fault: PathFault,
}

impl Display for DisplacedFile {
    /// Formats the fault without the path, because `/ready` is public.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let file = match self.file {
            DatabaseFile::Main => "database",
            DatabaseFile::Log => "write-ahead log",
        };
        match self.fault {
            PathFault::Missing => write!(formatter, "the {file} is missing"),
            PathFault::Replaced => write!(formatter, "the {file} was replaced by another file"),
            PathFault::Unreadable => write!(formatter, "the {file} cannot be inspected"),
        }
    }
}

/// Identities of the files when the database was opened.
#[derive(Debug)]
pub(in crate::store) struct FileWatch([WatchedFile; 2]);

#[derive(Debug)]
struct WatchedFile {
    file: DatabaseFile,
    path: PathBuf,
    identity: FileIdentity,
}

impl FileWatch {
    /// Records the files of a database. Its connections must be open, so that the log exists too.
    pub(in crate::store) fn from_handle(handle: &DatabaseHandle) -> io::Result<Self> {
        let main =
            WatchedFile { file: DatabaseFile::Main, path: handle.path().into(), identity: handle.identity() };
        let path = companion_path(handle.path(), "-wal");
        let identity = FileIdentity::from_metadata(&fs::metadata(&path)?);
        Ok(Self([main, WatchedFile { file: DatabaseFile::Log, path, identity }]))
    }

    /// Returns the folder of the database.
    pub(in crate::store) fn folder(&self) -> &Path {
        let [WatchedFile { path, .. }, _] = &self.0;
        path.parent().unwrap_or(Path::new("."))
    }

    pub(in crate::store) fn check_paths(&self) -> Result<(), DisplacedFile> {
        for WatchedFile { file, path, identity } in &self.0 {
            let fault = match fs::metadata(path) {
                Ok(metadata) if FileIdentity::from_metadata(&metadata) == *identity => continue,
                Ok(_) => PathFault::Replaced,
                Err(error) if error.kind() == io::ErrorKind::NotFound => PathFault::Missing,
                Err(_) => PathFault::Unreadable,
            };
            return Err(DisplacedFile { file: *file, fault });
        }
        Ok(())
    }
}

/// Logs once when a file is displaced, and once when it is back, until `stop` is canceled.
pub async fn log_displaced_files(db: Db, stop: CancellationToken) {
    let mut last_result = Ok(());
    loop {
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
        let result = db.check_files();
        if result == last_result {
            continue;
        }
        match result {
            Ok(()) => tracing::warn!("database files are back at their paths"),
            Err(displaced) => tracing::error!(
                %displaced,
                "webhooks are rejected; hint: restore the file, or restart Dialarr with the current one"
            ),
        }
        last_result = result;
    }
}
