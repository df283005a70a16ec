//! Access of shell commands to the database, whether or not a service is running.

use std::sync::Arc;

use diesel::Connection;
use diesel::result::Error as QueryError;

use super::database_inspection;
use super::database_lock::{DatabaseHandle, LockOutcome, LockedConnection, companion_path};
use super::db::{INSPECTION_PRAGMAS, OpenError, WRITER_PRAGMAS};
use super::migration::{self, MigrationError};
use crate::store::stream::event_numbers;
use crate::store::stream::recording::Recording;
use crate::store::{Conn, QueryResult};

#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    #[error("find {0}; hint: run this command in the directory of the service, with its configuration")]
    Missing(String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Migrate(#[from] MigrationError),
    #[error(
        "use {0}: the running service has another version; \
         hint: use the program of that version, or restart the service"
    )]
    VersionMismatch(String),
    #[error(
        "use {0}: the running service opened the file under another name, or is about to open it; \
         hint: use the DATABASE_URL of the service"
    )]
    OtherName(String),
    #[error("query the database")]
    Query(#[from] QueryError),
}

/// State of the service while a shell command uses the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// The service or a conversation in the terminal is running.
    Running,
    Stopped,
}

/// Runs `work` in one transaction for a shell command, whether or not a service is running. If no service is
/// running, the command holds the lock, so that no service can start until the work is done.
pub fn visit_database<R>(
    path: &str,
    work: impl FnOnce(&mut Conn) -> QueryResult<R>,
) -> Result<R, VisitError> {
    visit_with_service_state(path, work).map(|(value, _)| value)
}

/// Like [`visit_database`], but also returns the state of the service.
pub fn visit_with_service_state<R>(
    path: &str,
    work: impl FnOnce(&mut Conn) -> QueryResult<R>,
) -> Result<(R, ServiceState), VisitError> {
    let (mut conn, service) = open_for_visit(path)?;
    let mut recording = Recording::default();
    let value = conn.immediate_transaction(|conn| {
        let value = recording.record_during(|| work(conn))?;
        // The events are not published in this process. A running service resets its readers instead.
        if !recording.is_empty() {
            event_numbers::count_command_change(conn)?;
        }
        Ok::<R, QueryError>(value)
    })?;
    Ok((value, service))
}

/// Like [`visit_database`], for work that would block a running service; returns `None` if a service is running.
pub fn visit_exclusively<R>(
    path: &str,
    work: impl FnOnce(&mut Conn) -> QueryResult<R>,
) -> Result<Option<R>, VisitError> {
    let (mut conn, service) = open_for_visit(path)?;
    match service {
        ServiceState::Stopped => Ok(Some(conn.immediate_transaction(work)?)),
        ServiceState::Running => Ok(None),
    }
}

/// Like [`visit_database`], for work that only reads: it never blocks the writes of a service.
pub fn visit_read_only<R>(
    path: &str,
    work: impl FnOnce(&mut Conn) -> QueryResult<R>,
) -> Result<R, VisitError> {
    let (mut conn, _) = open_for_visit(path)?;
    Ok(conn.transaction(work)?)
}

/// Runs `work`, which only reads, without locking or migrating the file. Returns `None` if the file is missing or empty.
pub fn inspect<R>(
    path: &str,
    work: impl FnOnce(&mut Conn) -> QueryResult<R>,
) -> Result<Option<R>, OpenError> {
    if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        return Ok(None);
    }
    let mut conn = Arc::new(DatabaseHandle::open(path)?).connect(INSPECTION_PRAGMAS)?;
    migration::reject_unusable_file(&mut conn, path)?;
    let value = conn.transaction(work);
    Ok(Some(value.map_err(|source| MigrationError::Tables { path: path.to_owned(), source })?))
}

fn open_for_visit(path: &str) -> Result<(LockedConnection, ServiceState), VisitError> {
    migration::reject_log_without_database(path)?;
    if !std::path::Path::new(path).exists() {
        return Err(VisitError::Missing(path.to_owned()));
    }
    let handle = Arc::new(DatabaseHandle::open(path)?);
    let service = match handle.try_lock()? {
        LockOutcome::Acquired => ServiceState::Stopped,
        LockOutcome::InUse => ServiceState::Running,
    };
    // SQLite names the log after the path of the database, so each hard link would have its own log.
    if service == ServiceState::Running && !companion_path(path, "-wal").exists() {
        return Err(VisitError::OtherName(path.to_owned()));
    }
    migration::reject_unusable_file(&mut *handle.connect(INSPECTION_PRAGMAS)?, path)?;
    let mut conn = handle.connect(WRITER_PRAGMAS)?;
    match service {
        ServiceState::Stopped => migration::migrate_database(&mut conn, path)?,
        ServiceState::Running if database_inspection::has_current_tables(&mut conn)? => {}
        ServiceState::Running => return Err(VisitError::VersionMismatch(path.to_owned())),
    }
    Ok((conn, service))
}
