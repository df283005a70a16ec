//! Connection of the writer: it runs jobs in transactions, syncs the write-ahead log and publishes events.
//!
//! SQLite itself syncs nothing at a commit (`synchronous=NORMAL`). The connection syncs the log after each commit with a
//! job that asks for it, which makes all earlier commits durable too: the log is written in order, so the disk always
//! holds a prefix of the commits.

use std::fs::File;
use std::io;

use diesel::connection::SimpleConnection;
use diesel::result::Error as QueryError;

use super::database_lock::{LockedConnection, companion_path};
use super::db::OpenError;
use super::log_syncs::LogSyncs;
use super::transaction;
use super::write_job::{Durability, WriteJob};
use crate::store::conversation::history_cache::HistoryCache;
use crate::store::queue::claimed_messages::ClaimedMessages;
use crate::store::stream::event_log::EventLog;
use crate::store::stream::recording::{RecordedEntries, Recording};
use crate::store::{Conn, QueryResult};

/// Connection for writes, and the log in which their events are published.
pub(super) struct WriteConnection {
    pub(super) conn: LockedConnection,
    /// Handle of the write-ahead log. SQLite holds no locks on this file, so a second handle is safe.
    log_file: File,
    log_syncs: LogSyncs,
    pub(super) event_log: EventLog,
    pub(super) claimed_messages: ClaimedMessages,
    pub(super) history_cache: HistoryCache,
    recording: Recording,
}

/// Failure of a commit.
#[derive(Debug, thiserror::Error)]
enum CommitError {
    /// The transaction was rolled back.
    #[error("{0}")]
    Transaction(#[from] QueryError),
    #[error("sync the write-ahead log: {0}")]
    Sync(io::Error),
    #[error("use the database after a failed sync")]
    Unusable,
}

impl WriteConnection {
    /// Prepares the connection, whose write-ahead log must exist.
    pub(super) fn new(mut conn: LockedConnection, path: &str) -> Result<Self, OpenError> {
        let log_file = File::open(companion_path(path, "-wal"))
            .map_err(|source| OpenError::Watch { path: path.to_owned(), source })?;
        let configure_error = |source| OpenError::Configure { path: path.to_owned(), source };
        conn.batch_execute("PRAGMA synchronous=NORMAL;").map_err(configure_error)?;
        let event_log = EventLog::load(&mut conn).map_err(configure_error)?;
        let claimed_messages = ClaimedMessages::default();
        let recording = Recording::new(event_log.clone(), claimed_messages.clone());
        Ok(Self {
            conn,
            log_file,
            log_syncs: LogSyncs::default(),
            history_cache: HistoryCache::new(event_log.clone()),
            event_log,
            claimed_messages,
            recording,
        })
    }

    pub(super) fn log_syncs(&self) -> &LogSyncs {
        &self.log_syncs
    }

    /// Runs the jobs in one transaction, and returns each result to its caller.
    pub(super) fn commit_jobs(&mut self, jobs: &mut Vec<Box<dyn WriteJob>>) {
        let committed = self.run_transaction(jobs).map_err(|error| error.to_string());
        for job in jobs.drain(..) {
            job.answer(committed.clone());
        }
    }

    fn run_transaction(&mut self, jobs: &mut [Box<dyn WriteJob>]) -> Result<(), CommitError> {
        if self.log_syncs.has_failed() {
            return Err(CommitError::Unusable);
        }
        transaction::begin_write(&mut self.conn)?;
        let result = match self.run_jobs(jobs) {
            Ok(()) => self.commit_and_publish(strongest_durability(jobs)),
            Err(error) => Err(error.into()),
        };
        if let Err(CommitError::Transaction(_)) = result {
            transaction::roll_back(&mut self.conn);
            self.recording.truncate(0);
        }
        result
    }

    fn run_jobs(&mut self, jobs: &mut [Box<dyn WriteJob>]) -> QueryResult<()> {
        let Self { conn, recording, .. } = self;
        let conn = &mut **conn;
        if recording.record_during(|| jobs.iter_mut().all(|job| job.run(conn).is_ok())) {
            return Ok(());
        }
        // Which changes belong to the failed job is unknown: the jobs share the transaction without savepoints.
        transaction::roll_back(conn);
        recording.truncate(0);
        transaction::begin_write(conn)?;
        // The error of a single job is known.
        if jobs.len() == 1 {
            return Ok(());
        }
        jobs.iter_mut().for_each(|job| job.drop_result());
        recording.record_during(|| run_with_savepoints(conn, jobs))
    }

    /// Commits the open transaction, syncs it if necessary, and publishes its events and claimed messages. No reader sees
    /// the commit without its events, and nothing is published before the sync.
    fn commit_and_publish(&mut self, durability: Durability) -> Result<(), CommitError> {
        let Self { conn, event_log, recording, .. } = self;
        let RecordedEntries { mut log, claimed_messages, has_waiting_message, has_changed_history } =
            recording.take_entries();
        // Numbers that readers have seen must stay reserved.
        let has_reserved = event_log.reserve_numbers(conn, &mut log)?;
        let _visibility = event_log.lock_visibility();
        transaction::commit(conn)?;
        if durability == Durability::Synced || has_reserved || !claimed_messages.is_empty() {
            self.log_syncs.sync(&self.log_file).map_err(CommitError::Sync)?;
        }
        if has_changed_history {
            self.history_cache.clear();
        }
        self.history_cache.apply_changes(&log);
        event_log.publish(log);
        self.claimed_messages.publish(claimed_messages);
        if has_waiting_message {
            self.claimed_messages.mark_others_waiting();
        }
        Ok(())
    }
}

fn strongest_durability(jobs: &[Box<dyn WriteJob>]) -> Durability {
    jobs.iter().map(|job| job.durability()).max().unwrap_or(Durability::Unsynced)
}

/// Runs each job in a savepoint of the open transaction, so that the jobs that succeed can be committed without the
/// others.
fn run_with_savepoints(conn: &mut Conn, jobs: &mut [Box<dyn WriteJob>]) -> QueryResult<()> {
    for job in jobs {
        // The job keeps its own error.
        let _ = transaction::with_job_savepoint(conn, |conn| job.run(conn))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use diesel::prelude::*;
    use tempfile::TempDir;

    use super::super::database_lock::DatabaseHandle;
    use super::super::db::{DbError, WRITER_PRAGMAS};
    use super::super::migration;
    use super::super::write_job::create_job;
    use super::*;
    use crate::conversation::transcript::{Address, OutboxId};
    use crate::store::queue::callbacks::CallbackToken;
    use crate::store::queue::outbox::{DueMessage, OutboundKind};
    use crate::store::stream::recording;

    fn open_connection() -> (TempDir, WriteConnection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db").to_str().unwrap().to_owned();
        let handle = Arc::new(DatabaseHandle::open_or_create(&path).unwrap());
        let mut conn = handle.connect(WRITER_PRAGMAS).unwrap();
        migration::migrate_database(&mut conn, &path).unwrap();
        (folder, WriteConnection::new(conn, &path).unwrap())
    }

    fn insert_instance(conn: &mut Conn) -> QueryResult<usize> {
        diesel::sql_query("INSERT INTO instance (id, epoch, started_at) VALUES (1, 1, 0)").execute(conn)
    }

    #[test]
    fn write_without_changes_syncs_earlier_commits() {
        let (folder, mut connection) = open_connection();
        let syncs = connection.log_syncs().clone();
        let (insert, mut inserted) = create_job(|_| Durability::Unsynced, insert_instance);
        connection.commit_jobs(&mut vec![insert]);
        assert_eq!((inserted.try_recv().unwrap().unwrap(), syncs.count(), syncs.synced_bytes()), (1, 0, 0));

        let (nothing, mut done) = create_job(|_| Durability::Synced, |_| Ok(()));
        connection.commit_jobs(&mut vec![nothing]);
        done.try_recv().unwrap().unwrap();
        let log = std::fs::metadata(folder.path().join("a.db-wal")).unwrap();
        assert!(log.len() > 0);
        assert_eq!((syncs.count(), syncs.synced_bytes()), (1, log.len()));
    }

    #[test]
    fn one_sync_covers_all_jobs_of_a_commit() {
        let (_folder, mut connection) = open_connection();
        let (insert, _inserted) = create_job(|_| Durability::Unsynced, insert_instance);
        let (first, _first) = create_job(|_| Durability::Synced, |_| Ok(()));
        let (second, _second) = create_job(|_| Durability::Synced, |_| Ok(()));
        connection.commit_jobs(&mut vec![insert, first, second]);
        assert_eq!(connection.log_syncs().count(), 1);
    }

    #[test]
    fn results_of_rolled_back_jobs_are_dropped_before_they_run_again() {
        let (_folder, mut connection) = open_connection();
        let held = Arc::new(());
        let counts = Arc::new(Mutex::new(Vec::new()));
        let mut jobs = Vec::new();
        for _ in 0..2 {
            let (held, counts) = (held.clone(), counts.clone());
            let hold = move |_: &mut Conn| {
                counts.lock().unwrap().push(Arc::strong_count(&held));
                Ok(held.clone())
            };
            jobs.push(create_job(|_| Durability::Unsynced, hold).0);
        }
        let fail = |_: &mut Conn| QueryResult::<()>::Err(QueryError::RollbackTransaction);
        jobs.push(create_job(|_| Durability::Unsynced, fail).0);
        let idle = Arc::strong_count(&held);
        connection.commit_jobs(&mut jobs);
        assert_eq!(*counts.lock().unwrap(), [idle, idle + 1, idle, idle + 1]);
    }

    #[test]
    fn claimed_message_is_published_after_a_sync() {
        let (_folder, mut connection) = open_connection();
        let due = DueMessage {
            id: OutboxId(1),
            kind: OutboundKind::Reply,
            attempt: 1,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: "Hello.".to_owned(),
            media: None,
            reacts_to: None,
            quotes: None,
            token: CallbackToken::from_stored("1"),
        };
        let claimed = due.clone();
        let claim = move |conn: &mut Conn| {
            recording::record_claimed_message(claimed.clone());
            insert_instance(conn)
        };
        connection.commit_jobs(&mut vec![create_job(|_| Durability::Unsynced, claim).0]);
        assert_eq!((connection.claimed_messages.take(), connection.log_syncs().count()), (Some(due), 1));
    }

    #[test]
    fn failed_sync_fails_every_later_write() {
        let (_folder, mut connection) = open_connection();
        // A pipe cannot be synced.
        let (reader, _writer) = std::io::pipe().unwrap();
        connection.log_file = File::from(std::os::fd::OwnedFd::from(reader));
        let (insert, mut inserted) = create_job(|_| Durability::Synced, insert_instance);
        connection.commit_jobs(&mut vec![insert]);
        assert!(matches!(inserted.try_recv().unwrap(), Err(DbError::Commit(_))));
        assert!(connection.log_syncs().has_failed());

        let (later, mut failed) = create_job(|_| Durability::Unsynced, |_| Ok(()));
        connection.commit_jobs(&mut vec![later]);
        assert!(matches!(failed.try_recv().unwrap(), Err(DbError::Commit(_))));
    }
}
