//! Open database: one writer thread with group commit, and a few readers. No task can await inside a transaction,
//! because work is passed as synchronous closures.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error as QueryError;
use tokio::sync::Semaphore;

use super::database_lock::{DatabaseHandle, LockOutcome, LockedConnection};
use super::file_watch::{DisplacedFile, FileWatch};
use super::job_queue::{self, JobReceiver, JobSender};
use super::log_syncs::LogSyncs;
use super::machine_boot;
use super::migration::{self, MigrationError};
use super::simulated_queue::SimulatedQueue;
use super::transaction;
use super::write_connection::WriteConnection;
pub use super::write_job::Durability;
use super::write_job::create_job;
use crate::conversation::retry_policy::FailureClass;
use crate::conversation::transcript::ConversationId;
use crate::store::Conn;
use crate::store::conversation::history_cache::HistoryCache;
use crate::store::queue::claimed_messages::ClaimedMessages;
use crate::store::stream::event_log::{EventLog, LogPosition};

const READER_COUNT: u32 = 4;
/// Maximum number of concurrent background reads.
const MAX_BACKGROUND_READS: usize = 2;

/// Error of a read or write.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    // The message contains the cause instead of a source, because many places log only the message.
    #[error("query the database: {0}")]
    Query(QueryError),
    #[error("commit to the database: {0}")]
    Commit(String),
    /// The queue of the writer is full.
    #[error("queue for the database")]
    Busy,
    #[error("use the database after it was closed")]
    Closed,
    /// A file of the database was moved or replaced: data committed from now on would be lost at the next start.
    #[error("commit to the database file: {0}")]
    Displaced(DisplacedFile),
}

impl From<QueryError> for DbError {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl DbError {
    /// Returns whether the cause is an unreadable stored value, so that a retry would fail too.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Query(QueryError::DeserializationError(_)))
    }

    pub fn failure_class(&self) -> FailureClass {
        match self {
            Self::Busy | Self::Commit(_) | Self::Displaced(_) => FailureClass::TRANSIENT,
            Self::Query(_) | Self::Closed => FailureClass::PERMANENT,
        }
    }
}

/// Error while the database is opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("open {path}: another Dialarr process is using it; hint: stop that process first")]
    InUse { path: String },
    #[error("lock {path}; hint: the file must be on a local disk and owned by the user who runs Dialarr")]
    Lock { path: String, source: std::io::Error },
    #[error("open {path}: the file was replaced while it was opened; hint: try again")]
    Replaced { path: String },
    #[error("open {path}")]
    Connect { path: String, source: ConnectionError },
    #[error("configure the connection to {path}")]
    Configure { path: String, source: QueryError },
    #[error("inspect {path} and its write-ahead log")]
    Watch { path: String, source: std::io::Error },
    #[error(transparent)]
    Migrate(#[from] MigrationError),
    #[error("start the writer")]
    Thread(#[source] std::io::Error),
}

/// Handle to the open database. Clones share the database.
#[derive(Clone)]
pub struct Db {
    writer: WriteExecutor,
    readers: ReaderPool,
    event_log: EventLog,
    claimed_messages: ClaimedMessages,
    history_cache: HistoryCache,
    file_watch: Arc<FileWatch>,
    log_syncs: LogSyncs,
    boot_id: Option<Arc<str>>,
}

/// Executor of the writes, which run one after the other.
#[derive(Clone)]
enum WriteExecutor {
    /// Dedicated thread, which commits all queued jobs in one transaction.
    Thread {
        jobs: JobSender,
        /// Flag that ends the thread once the queue is empty.
        closing: Arc<AtomicBool>,
        thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    },
    /// The caller, for a simulation: a paused clock does not wait for a thread.
    Caller { connection: Arc<Mutex<WriteConnection>>, queue: Arc<SimulatedQueue> },
}

#[derive(Clone)]
struct ReaderPool {
    permits: Arc<Semaphore>,
    background_permits: Arc<Semaphore>,
    free: Arc<Mutex<Vec<LockedConnection>>>,
}

impl ReaderPool {
    /// Closes every connection, even if handles of the database remain.
    fn close(&self) {
        self.permits.close();
        self.background_permits.close();
        self.free.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Db {
    /// Opens and migrates the file, and locks it against every other process.
    pub fn open(path: &str) -> Result<Self, OpenError> {
        let (conn, readers, file_watch) = open_connections(path)?;
        let connection = WriteConnection::new(conn, path)?;
        let (event_log, log_syncs) = (connection.event_log.clone(), connection.log_syncs().clone());
        let (claimed_messages, history_cache) =
            (connection.claimed_messages.clone(), connection.history_cache.clone());
        let (jobs, queue) = job_queue::open_queue();
        let closing = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("db-writer".into())
            .spawn({
                let closing = closing.clone();
                move || write_until_closed(connection, queue, &closing)
            })
            .map_err(OpenError::Thread)?;
        let writer = WriteExecutor::Thread { jobs, closing, thread: Arc::new(Mutex::new(Some(thread))) };
        let boot_id = machine_boot::read_boot_id().map(Arc::from);
        Ok(Self {
            writer,
            readers,
            event_log,
            claimed_messages,
            history_cache,
            file_watch,
            log_syncs,
            boot_id,
        })
    }

    /// Opens the database for a simulation with a paused clock: the caller runs the work, after a delay that depends on
    /// `seed`.
    pub fn open_simulated(path: &str, seed: u64) -> Result<Self, OpenError> {
        let (conn, readers, file_watch) = open_connections(path)?;
        let connection = WriteConnection::new(conn, path)?;
        let (event_log, log_syncs) = (connection.event_log.clone(), connection.log_syncs().clone());
        let (claimed_messages, history_cache) =
            (connection.claimed_messages.clone(), connection.history_cache.clone());
        let connection = Arc::new(Mutex::new(connection));
        let queue = Arc::new(SimulatedQueue::new(seed));
        let writer = WriteExecutor::Caller { connection, queue };
        Ok(Self {
            writer,
            readers,
            event_log,
            claimed_messages,
            history_cache,
            file_watch,
            log_syncs,
            boot_id: None,
        })
    }

    /// Returns the folder of the database.
    pub fn folder(&self) -> &Path {
        self.file_watch.folder()
    }

    /// Checks that the files are still at their paths, with two system calls.
    pub fn check_files(&self) -> Result<(), DisplacedFile> {
        self.file_watch.check_paths()
    }

    /// Returns the syncs of the write-ahead log by this process.
    pub fn log_syncs(&self) -> &LogSyncs {
        &self.log_syncs
    }

    /// Returns the identifier of the machine's current boot; `None` if it is unknown, as in a simulation.
    pub fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }

    /// Returns the log of the events that this process has committed.
    pub fn event_log(&self) -> &EventLog {
        &self.event_log
    }

    /// Returns the cache of finished turns.
    pub fn history_cache(&self) -> &HistoryCache {
        &self.history_cache
    }

    /// Returns the messages that transactions have claimed for the outbox relay.
    pub fn claimed_messages(&self) -> &ClaimedMessages {
        &self.claimed_messages
    }

    /// Runs `work` in a transaction, which other work may share. The changes are on disk when this function returns, and
    /// so are all earlier changes. An `Err` rolls back only this work. The work runs a second time if other work of its
    /// transaction fails. The call waits for a free place in the queue.
    pub async fn write<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        self.write_with(|_| Durability::Synced, work).await
    }

    /// Like [`Db::write`], but the changes are only committed when this function returns: they survive an end of the
    /// process, and a loss of power may undo them, with all later changes. For records that nothing outside the program
    /// has seen: before anything is sent or acknowledged, [`Db::write`] or [`Db::sync`] must return.
    pub async fn write_unsynced<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        self.write_with(|_| Durability::Unsynced, work).await
    }

    /// Waits until all earlier changes are on disk.
    pub async fn sync(&self) -> Result<(), DbError> {
        self.write(|_| Ok(())).await
    }

    /// Like [`Db::write`] or [`Db::write_unsynced`], depending on the result.
    pub async fn write_with<R: Send + 'static>(
        &self,
        durability: impl Fn(&R) -> Durability + Send + 'static,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        let (job, result) = create_job(durability, work);
        match &self.writer {
            WriteExecutor::Thread { jobs, .. } => jobs.send(job).await?,
            WriteExecutor::Caller { connection, queue } => {
                let queued = queue.count_write();
                queue.wait_briefly().await;
                drop(queued);
                connection.lock().unwrap_or_else(PoisonError::into_inner).commit_jobs(&mut vec![job]);
                queue.wait_briefly().await;
            }
        }
        result.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `prepare` when `work` gets its place in the queue: writes that were requested before `prepare` run before
    /// `work`, later writes after it.
    pub async fn write_in_order<P: Copy + Send + 'static, R: Send + 'static>(
        &self,
        durability: Durability,
        prepare: impl FnOnce() -> P,
        work: impl Fn(&mut Conn, P) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        let result = match &self.writer {
            WriteExecutor::Thread { jobs, .. } => {
                let place = jobs.reserve().await?;
                let prepared = prepare();
                let (job, result) = create_job(move |_| durability, move |conn| work(conn, prepared));
                place.send_in_order(job)?;
                result
            }
            WriteExecutor::Caller { connection, queue } => {
                queue.wait_until_empty().await;
                let prepared = prepare();
                let (job, result) = create_job(move |_| durability, move |conn| work(conn, prepared));
                connection.lock().unwrap_or_else(PoisonError::into_inner).commit_jobs(&mut vec![job]);
                result
            }
        };
        result.await.map_err(|_| DbError::Closed)?
    }

    /// Like [`Db::write`], for work that is acknowledged to its sender. It overtakes other waiting work. Returns an error
    /// immediately if the queue has no place for it or a file is displaced. The files are checked before the work, so that
    /// rejected work has no effect, and again after its commit, since a file may have been moved during the work.
    pub async fn write_or_busy<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        self.check_files().map_err(DbError::Displaced)?;
        let value = self.try_write(work).await?;
        self.check_files().map_err(DbError::Displaced)?;
        Ok(value)
    }

    async fn try_write<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        let WriteExecutor::Thread { jobs, .. } = &self.writer else { return self.write(work).await };
        let (job, result) = create_job(|_| Durability::Synced, work);
        jobs.send_acknowledged(job)?;
        result.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `work` on a reader, in one snapshot of the database.
    pub async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        self.run_on_reader(|conn| transaction::read_snapshot(conn, work)).await
    }

    /// Like [`Db::read`], without a transaction: each statement of `work` reads a state of its own.
    pub async fn read_without_snapshot<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        self.run_on_reader(|conn| transaction::fail_on_panic(conn, work)).await
    }

    async fn run_on_reader<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        let permit = self.readers.permits.clone().acquire_owned().await.map_err(|_| DbError::Closed)?;
        let free = self.readers.free.clone();
        let work = move || {
            let conn = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut conn = conn.ok_or(DbError::Closed)?;
            let result = work(&mut conn);
            free.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
            drop(permit);
            result.map_err(DbError::from)
        };
        match &self.writer {
            WriteExecutor::Thread { .. } => {
                tokio::task::spawn_blocking(work).await.map_err(|_| DbError::Closed)?
            }
            WriteExecutor::Caller { queue, .. } => {
                queue.wait_briefly().await;
                work()
            }
        }
    }

    /// Like [`Db::read`], for clients that only watch: few of their reads run concurrently, regardless of the number of
    /// clients, so that readers remain free for the tasks that answer messages.
    pub async fn read_in_background<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        let permit =
            self.readers.background_permits.clone().acquire_owned().await.map_err(|_| DbError::Closed)?;
        // The permit is moved into the work, which continues even if its caller stops waiting.
        let work = move |conn: &mut Conn| {
            let result = work(conn);
            drop(permit);
            result
        };
        self.read(work).await
    }

    /// Like [`Db::read_in_background`], with the position in the event log that fits the state of the database that
    /// `work` reads: exactly the events up to its cursor have happened.
    pub async fn read_with_position<R: Send + 'static>(
        &self,
        conversation: ConversationId,
        work: impl FnOnce(&mut Conn, &LogPosition) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        let event_log = self.event_log.clone();
        let work = move |conn: &mut Conn| {
            let position = event_log.load_position(conn, conversation)?;
            work(conn, &position)
        };
        self.read_in_background(work).await
    }

    /// Waits until all queued work is on disk and the write-ahead log is merged into the file. Remaining handles are
    /// unusable afterwards.
    pub async fn close(self) {
        let Self { writer, readers, .. } = self;
        let WriteExecutor::Thread { jobs, closing, thread } = writer else { return readers.close() };
        // A read whose caller stopped waiting continues in its thread and keeps the file locked.
        let all_permits = readers.permits.clone().acquire_many_owned(READER_COUNT).await;
        readers.close();
        drop((all_permits, readers));
        closing.store(true, Ordering::Release);
        // A client connection may hold a handle forever, so an empty job wakes the thread to check the flag.
        let _ = jobs.send(create_job(|_| Durability::Unsynced, |_| Ok(())).0).await;
        drop(jobs);
        let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the database writer panicked");
            }
        }
    }
}

/// Opens and migrates the database, and returns the connection of the writer and the readers.
fn open_connections(path: &str) -> Result<(LockedConnection, ReaderPool, Arc<FileWatch>), OpenError> {
    migration::reject_log_without_database(path)?;
    let handle = Arc::new(DatabaseHandle::open_or_create(path)?);
    match handle.try_lock()? {
        LockOutcome::Acquired => {}
        LockOutcome::InUse => return Err(OpenError::InUse { path: path.to_owned() }),
    }
    migration::reject_unusable_file(&mut *handle.connect(INSPECTION_PRAGMAS)?, path)?;
    let mut writer = handle.connect(WRITER_PRAGMAS)?;
    migration::migrate_database(&mut writer, path)?;
    // The last process may have ended because the log could not be synced, so its content is moved to the file and synced
    // there. A backup tool that reads the log may prevent this.
    writer
        .batch_execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .map_err(|source| OpenError::Configure { path: path.to_owned(), source })?;
    let free = (0..READER_COUNT).map(|_| handle.connect(READER_PRAGMAS)).collect::<Result<Vec<_>, _>>()?;
    let permits = Arc::new(Semaphore::new(free.len()));
    let background_permits = Arc::new(Semaphore::new(MAX_BACKGROUND_READS));
    let file_watch = FileWatch::from_handle(&handle)
        .map_err(|source| OpenError::Watch { path: path.to_owned(), source })?;
    Ok((
        writer,
        ReaderPool { permits, background_permits, free: Arc::new(Mutex::new(free)) },
        Arc::new(file_watch),
    ))
}

/// Pragmas of an inspection, which must not change the file, not even its journal mode.
pub(super) const INSPECTION_PRAGMAS: &str = "PRAGMA query_only=ON;";
/// Pragmas of the writer. Erased data is also overwritten in the file.
pub(super) const WRITER_PRAGMAS: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; \
     PRAGMA temp_store=MEMORY; PRAGMA secure_delete=ON;";
/// Pragmas of a reader. The cache of a reader is empty after each commit, so a small cache suffices.
const READER_PRAGMAS: &str =
    "PRAGMA query_only=ON; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-512;";

fn write_until_closed(mut connection: WriteConnection, mut queue: JobReceiver, closing: &AtomicBool) {
    loop {
        let mut jobs = queue.take_jobs();
        if jobs.is_empty() {
            break;
        }
        connection.commit_jobs(&mut jobs);
        if closing.load(Ordering::Acquire) {
            // Queued jobs still run; no further jobs are accepted.
            queue.close();
        }
    }
    // A replication tool such as Litestream reads the file continuously. The checkpoint does not wait long for such a
    // reader, because the next start reads the log.
    let final_checkpoint = "PRAGMA busy_timeout=500; PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);";
    if let Err(error) = connection.conn.batch_execute(final_checkpoint) {
        tracing::warn!(%error, "failed to merge the write-ahead log into the database");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use diesel::sql_types::BigInt;
    use diesel_migrations::MigrationHarness;

    use super::super::migration::MIGRATIONS;
    use super::super::shell_access::{VisitError, visit_database};
    use super::*;
    use crate::store::with_savepoint;

    #[derive(QueryableByName)]
    struct CountRow {
        #[diesel(sql_type = BigInt)]
        n: i64,
    }

    #[derive(QueryableByName)]
    struct CompileOption {
        #[diesel(sql_type = diesel::sql_types::Text)]
        compile_options: String,
    }

    /// Checks the build settings of `.cargo/config.toml`, without which the program would only be slower.
    #[test]
    fn sqlite_is_compiled_as_configured() {
        let mut conn = Conn::establish(":memory:").unwrap();
        let options = diesel::sql_query("PRAGMA compile_options").load::<CompileOption>(&mut conn).unwrap();
        let has = |option: &str| options.iter().any(|row| row.compile_options == option);
        for option in ["THREADSAFE=2", "DEFAULT_MEMSTATUS=0", "DEFAULT_PCACHE_INITSZ=0", "ENABLE_QPSG"] {
            assert!(has(option), "{option}");
        }
        assert!(!has("ENABLE_MEMORY_MANAGEMENT"));
    }

    fn insert_epoch(conn: &mut Conn, epoch: i64) -> QueryResult<usize> {
        let sql = format!("INSERT INTO instance (id, epoch, started_at) VALUES (1, {epoch}, 0)");
        diesel::sql_query(sql).execute(conn)
    }

    async fn count_rows(db: &Db) -> i64 {
        db.read(|conn| {
            diesel::sql_query("SELECT count(*) AS n FROM instance")
                .get_result::<CountRow>(conn)
                .map(|row| row.n)
        })
        .await
        .unwrap()
    }

    fn open_database() -> (tempfile::TempDir, Db) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("a.db").to_str().unwrap()).unwrap();
        (dir, db)
    }

    #[tokio::test]
    async fn failed_or_panicking_write_rolls_back_only_itself() {
        let (_dir, db) = open_database();
        let failed = db.write(|conn| insert_epoch(conn, 1).and(Err::<(), _>(QueryError::NotFound)));
        let panicked =
            db.write(|conn| insert_epoch(conn, 2).map(|_| assert!(conn.batch_execute("").is_err())));
        let succeeded = db.write(|conn| insert_epoch(conn, 3));
        let (failed, panicked, succeeded) = tokio::join!(failed, panicked, succeeded);
        assert!(matches!(failed, Err(DbError::Query(QueryError::NotFound))), "{failed:?}");
        assert_eq!(failed.unwrap_err().to_string(), "query the database: Record not found");
        assert!(matches!(panicked, Err(DbError::Query(QueryError::RollbackTransaction))), "{panicked:?}");
        assert_eq!(succeeded.unwrap(), 1);
        assert_eq!(count_rows(&db).await, 1);
    }

    #[tokio::test]
    async fn failed_batch_commits_the_jobs_that_succeed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db").to_str().unwrap().to_owned();
        let (conn, ..) = open_connections(&path).unwrap();
        let mut connection = WriteConnection::new(conn, &path).unwrap();
        let (first, mut inserted) = create_job(|_| Durability::Synced, |conn| insert_epoch(conn, 1));
        let (second, mut failed) = create_job(
            |_| Durability::Synced,
            |conn| {
                diesel::sql_query("UPDATE instance SET epoch = 2").execute(conn)?;
                Err::<(), _>(QueryError::NotFound)
            },
        );
        let (third, mut panicked) = create_job(
            |_| Durability::Synced,
            |conn| {
                with_savepoint(conn, |conn| {
                    diesel::sql_query("UPDATE instance SET epoch = 3").execute(conn)?;
                    assert!(conn.batch_execute("").is_err(), "the job panics in an inner savepoint");
                    Ok(())
                })
            },
        );
        let (fourth, mut counted) = create_job(
            |_| Durability::Synced,
            |conn| {
                let rows = diesel::sql_query("UPDATE instance SET started_at = epoch").execute(conn)?;
                let epoch =
                    diesel::sql_query("SELECT started_at AS n FROM instance").get_result::<CountRow>(conn)?;
                Ok((rows, epoch.n))
            },
        );
        connection.commit_jobs(&mut vec![first, second, third, fourth]);
        assert_eq!(inserted.try_recv().unwrap().unwrap(), 1);
        assert!(matches!(failed.try_recv().unwrap(), Err(DbError::Query(QueryError::NotFound))));
        assert!(matches!(panicked.try_recv().unwrap(), Err(DbError::Query(QueryError::RollbackTransaction))));
        assert_eq!(counted.try_recv().unwrap().unwrap(), (1, 1));
        // The connection is outside a transaction.
        connection.commit_jobs(&mut vec![create_job(|_| Durability::Synced, |conn| insert_epoch(conn, 9)).0]);
        let epochs =
            diesel::sql_query("SELECT epoch AS n FROM instance").load::<CountRow>(&mut *connection.conn);
        assert_eq!(epochs.unwrap().into_iter().map(|row| row.n).collect::<Vec<_>>(), [1]);
    }

    #[tokio::test]
    async fn readers_cannot_write() {
        let (_dir, db) = open_database();
        assert!(matches!(db.read(|conn| insert_epoch(conn, 1)).await, Err(DbError::Query(_))));
    }

    #[tokio::test]
    async fn background_reads_leave_a_reader_for_messages() {
        let (_dir, db) = open_database();
        let (gate_holder, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let read_in_background = |_| {
            let (db, gate) = (db.clone(), gate.clone());
            // Blocks until the other end of the channel is dropped.
            let wait = move |_: &mut Conn| Ok(gate.lock().unwrap().recv().is_err());
            tokio::spawn(async move { db.read_in_background(wait).await })
        };
        let background_reads: Vec<_> = (0..3 * READER_COUNT).map(read_in_background).collect();
        // Wait until the background reads use all their permits.
        while db.readers.background_permits.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let read = tokio::time::timeout(Duration::from_secs(20), count_rows(&db)).await;
        drop(gate_holder);
        assert_eq!(read, Ok(0), "a reader must remain free");
        for background_read in background_reads {
            assert!(background_read.await.unwrap().unwrap());
        }
    }

    #[tokio::test]
    async fn second_process_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db").to_str().unwrap().to_owned();
        let db = Db::open(&path).unwrap();
        assert!(matches!(Db::open(&path), Err(OpenError::InUse { .. })));
        db.close().await;
        assert!(Db::open(&path).is_ok());
    }

    #[tokio::test]
    async fn second_process_is_rejected_under_every_file_name() {
        let (dir, db) = open_database();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::os::unix::fs::symlink(path("a.db"), path("symlink.db")).unwrap();
        std::fs::hard_link(path("a.db"), path("hardlink.db")).unwrap();
        for other in ["a.db", "symlink.db", "hardlink.db"] {
            assert!(matches!(Db::open(&path(other)), Err(OpenError::InUse { .. })), "{other}");
        }
        db.close().await;
    }

    #[tokio::test]
    async fn command_opens_a_used_database_by_symlink_but_not_by_hard_link() {
        let (dir, db) = open_database();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::os::unix::fs::symlink(path("a.db"), path("symlink.db")).unwrap();
        std::fs::hard_link(path("a.db"), path("hardlink.db")).unwrap();
        assert_eq!(visit_database(&path("symlink.db"), |conn| insert_epoch(conn, 1)).unwrap(), 1);
        let result = visit_database(&path("hardlink.db"), |conn| insert_epoch(conn, 1));
        assert!(matches!(result, Err(VisitError::OtherName(_))), "{result:?}");
        assert_eq!(count_rows(&db).await, 1);
        db.close().await;
    }

    /// Checks that SQLite still holds its locks: closing any other descriptor of the file would release them.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn sqlite_locks_are_held_while_the_program_runs() {
        use std::os::unix::fs::MetadataExt;

        let (dir, db) = open_database();
        assert_eq!(count_rows(&db).await, 0);
        let inode = std::fs::metadata(dir.path().join("a.db")).unwrap().ino();
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let kinds: Vec<&str> = locks
            .lines()
            .filter(|lock| lock.contains(&format!(":{inode} ")))
            .filter_map(|lock| lock.split_whitespace().nth(1))
            .collect();
        assert!(kinds.contains(&"FLOCK") && kinds.contains(&"POSIX"), "{locks}");
        db.close().await;
    }

    #[tokio::test]
    async fn closed_database_reopens_while_handles_remain() {
        let (dir, db) = open_database();
        let remaining = db.clone();
        db.close().await;
        assert!(Db::open(dir.path().join("a.db").to_str().unwrap()).is_ok());
        assert!(matches!(remaining.read(|_| Ok(())).await, Err(DbError::Closed)));
    }

    #[tokio::test]
    async fn command_writes_while_the_program_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db").to_str().unwrap().to_owned();
        assert!(matches!(visit_database(&path, |conn| insert_epoch(conn, 1)), Err(VisitError::Missing(_))));
        let db = Db::open(&path).unwrap();
        assert_eq!(visit_database(&path, |conn| insert_epoch(conn, 1)).unwrap(), 1);
        assert_eq!(count_rows(&db).await, 1);
        db.close().await;
    }

    #[tokio::test]
    async fn command_of_another_version_is_rejected_while_the_program_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db").to_str().unwrap().to_owned();
        let db = Db::open_simulated(&path, 1).unwrap();
        let WriteExecutor::Caller { connection, .. } = &db.writer else { panic!("a simulated database") };
        connection.lock().unwrap().conn.revert_last_migration(MIGRATIONS).unwrap();
        assert!(matches!(
            visit_database(&path, |conn| insert_epoch(conn, 1)),
            Err(VisitError::VersionMismatch(_))
        ));
        db.close().await;
        assert_eq!(visit_database(&path, |conn| insert_epoch(conn, 1)).unwrap(), 1);
    }

    #[test]
    fn failed_visit_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db").to_str().unwrap().to_owned();
        std::fs::write(&path, "").unwrap();
        let failed =
            visit_database(&path, |conn| insert_epoch(conn, 1).and(Err::<(), _>(QueryError::NotFound)));
        assert!(matches!(failed, Err(VisitError::Query(QueryError::NotFound))));
        assert_eq!(visit_database(&path, |conn| insert_epoch(conn, 1)).unwrap(), 1);
    }

    #[test]
    fn all_migrations_can_be_reverted() {
        let mut conn = Conn::establish(":memory:").unwrap();
        conn.run_pending_migrations(MIGRATIONS).unwrap();
        conn.revert_all_migrations(MIGRATIONS).unwrap();
        conn.run_pending_migrations(MIGRATIONS).unwrap();
    }
}
