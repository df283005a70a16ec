//! Transactions and savepoints whose statements are prepared once per connection. Diesel parses BEGIN, COMMIT and
//! SAVEPOINT at every use, and counts open transactions, so its own transaction functions must not be mixed with these
//! on one connection.

use std::panic::{AssertUnwindSafe, catch_unwind};

use diesel::result::Error as QueryError;
use diesel::sql_query;

use super::statement_cache::CacheStatement;
use crate::store::stream::recording;
use crate::store::{Conn, QueryResult};

/// Name of the savepoint of a job. Work inside the job uses other savepoints, which a rollback to this one discards.
const JOB_SAVEPOINT: SavepointStatements =
    SavepointStatements { begin: "SAVEPOINT job", release: "RELEASE job", rollback: "ROLLBACK TO job" };
/// Savepoint within a job. Savepoints of this name may be nested: statements refer to the innermost.
const INNER_SAVEPOINT: SavepointStatements =
    SavepointStatements { begin: "SAVEPOINT part", release: "RELEASE part", rollback: "ROLLBACK TO part" };

struct SavepointStatements {
    begin: &'static str,
    release: &'static str,
    rollback: &'static str,
}

pub(super) fn begin_write(conn: &mut Conn) -> QueryResult<()> {
    sql_query("BEGIN IMMEDIATE").cached().run(conn)
}

pub(super) fn commit(conn: &mut Conn) -> QueryResult<()> {
    sql_query("COMMIT").cached().run(conn)
}

/// Rolls back the transaction. SQLite has already rolled it back after some errors, such as a full disk, so a failed
/// rollback is only logged; if a transaction remains open, the next one cannot begin.
pub(super) fn roll_back(conn: &mut Conn) {
    if let Err(error) = sql_query("ROLLBACK").cached().run(conn) {
        tracing::warn!(%error, "failed to roll back a transaction");
    }
}

/// Runs `work` in a transaction of a reader, in one snapshot of the database.
pub(super) fn read_snapshot<R>(
    conn: &mut Conn,
    work: impl FnOnce(&mut Conn) -> QueryResult<R>,
) -> QueryResult<R> {
    sql_query("BEGIN").cached().run(conn)?;
    let result = fail_on_panic(conn, work);
    match &result {
        Ok(_) => commit(conn)?,
        Err(_) => roll_back(conn),
    }
    result
}

/// Runs `work` in a savepoint, so that a failure rolls back its changes and discards its events, not those of the whole
/// transaction.
pub fn with_savepoint<R>(conn: &mut Conn, work: impl FnOnce(&mut Conn) -> QueryResult<R>) -> QueryResult<R> {
    run_in_savepoint(conn, &INNER_SAVEPOINT, work)?
}

/// Runs a job in a savepoint, and returns its result. An outer error means that the state of the transaction is
/// unknown.
pub(super) fn with_job_savepoint<R, E>(
    conn: &mut Conn,
    job: impl FnOnce(&mut Conn) -> Result<R, E>,
) -> QueryResult<Result<R, E>> {
    run_in_savepoint(conn, &JOB_SAVEPOINT, job)
}

/// Returns the result of `work`, or the error of a savepoint statement.
fn run_in_savepoint<R, E>(
    conn: &mut Conn,
    savepoint: &SavepointStatements,
    work: impl FnOnce(&mut Conn) -> Result<R, E>,
) -> QueryResult<Result<R, E>> {
    let position = recording::entry_count();
    sql_query(savepoint.begin).cached().run(conn)?;
    let result = work(conn);
    if result.is_err() {
        recording::discard_from(position);
        sql_query(savepoint.rollback).cached().run(conn)?;
    }
    sql_query(savepoint.release).cached().run(conn)?;
    Ok(result)
}

/// Runs `work`, and returns an error if it panics.
pub(super) fn fail_on_panic<R>(
    conn: &mut Conn,
    work: impl FnOnce(&mut Conn) -> QueryResult<R>,
) -> QueryResult<R> {
    catch_unwind(AssertUnwindSafe(|| work(conn))).unwrap_or_else(|_| {
        tracing::error!("database work panicked and is rolled back");
        Err(QueryError::RollbackTransaction)
    })
}
