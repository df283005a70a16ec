//! Job of the writer: repeatable work, and its result for the caller.

use diesel::result::Error as QueryError;
use tokio::sync::oneshot;

use super::db::DbError;
use super::transaction;
use crate::store::{Conn, QueryResult};

/// Condition of the disk under which the caller of a job gets its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The changes are committed, and survive an end of the process. A loss of power may undo them, with all later ones.
    Unsynced,
    /// The changes, and all earlier ones, are on disk.
    Synced,
}

/// Work of a caller in the queue of the writer. The work may run twice, if another job of its transaction fails.
pub(super) trait WriteJob: Send {
    /// Runs the work, and keeps its result. An error means that its changes must be rolled back.
    fn run(&mut self, conn: &mut Conn) -> Result<(), JobFailed>;

    /// Drops the result of a run whose changes were rolled back. It may hold something that would count twice in another
    /// run, such as a reservation.
    fn drop_result(&mut self);

    /// Returns the durability that the caller of a finished run waits for.
    fn durability(&self) -> Durability;

    /// Returns the result to the caller. `committed` is the outcome of the transaction.
    fn answer(self: Box<Self>, committed: Result<(), String>);
}

/// Failure of the work of a job, whose error is kept for its caller.
pub(super) struct JobFailed;

/// A job whose caller waits for the result.
struct WaitedJob<R, W, D> {
    work: W,
    durability: D,
    result: Option<QueryResult<R>>,
    caller: oneshot::Sender<Result<R, DbError>>,
}

/// Creates a job for `work`, and the receiver of its result. The result decides the durability.
pub(super) fn create_job<R: Send + 'static>(
    durability: impl Fn(&R) -> Durability + Send + 'static,
    work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
) -> (Box<dyn WriteJob>, oneshot::Receiver<Result<R, DbError>>) {
    let (caller, result) = oneshot::channel();
    (Box::new(WaitedJob { work, durability, result: None, caller }), result)
}

impl<R, W, D> WriteJob for WaitedJob<R, W, D>
where
    R: Send,
    W: Fn(&mut Conn) -> QueryResult<R> + Send,
    D: Fn(&R) -> Durability + Send,
{
    fn run(&mut self, conn: &mut Conn) -> Result<(), JobFailed> {
        let result = transaction::fail_on_panic(conn, &self.work);
        let outcome = result.as_ref().map(drop).map_err(|_| JobFailed);
        self.result = Some(result);
        outcome
    }

    fn drop_result(&mut self) {
        self.result = None;
    }

    fn durability(&self) -> Durability {
        match &self.result {
            Some(Ok(result)) => (self.durability)(result),
            // The changes were rolled back.
            Some(Err(_)) | None => Durability::Unsynced,
        }
    }

    fn answer(self: Box<Self>, committed: Result<(), String>) {
        let result = match (committed, self.result) {
            (Ok(()), Some(result)) => result.map_err(DbError::Query),
            (Ok(()), None) => Err(DbError::Query(QueryError::RollbackTransaction)),
            (Err(message), _) => Err(DbError::Commit(message)),
        };
        // The caller may have stopped waiting for the result.
        let _ = self.caller.send(result);
    }
}
