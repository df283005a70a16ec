//! The persistent state, in one SQLite file. This is the only module that knows there is a database: sync functions
//! over a [`Conn`], a file per noun, run through [`db::Db`]'s closures.

pub mod audit;
pub mod boot;
pub mod clock_step;
mod codec;
pub mod confirmation;
pub mod console;
pub mod console_access;
pub mod conversation;
pub mod database;
pub mod library;
pub mod memory;
pub mod people;
pub mod privacy;
pub mod queue;
mod schema;
pub mod stream;
pub mod turns;

/// A connection inside a transaction (writes) or on a reader.
pub type Conn = diesel::SqliteConnection;

/// The result type of every function here.
pub use diesel::QueryResult;

/// Runs `work` so that a failure undoes only its own changes, not those of the whole transaction.
pub fn with_savepoint<T>(conn: &mut Conn, work: impl FnOnce(&mut Conn) -> QueryResult<T>) -> QueryResult<T> {
    diesel::Connection::transaction(conn, work)
}

#[cfg(test)]
fn scratch() -> Conn {
    use diesel::Connection;
    use diesel::connection::SimpleConnection;

    let mut conn = Conn::establish(":memory:").unwrap();
    conn.batch_execute("PRAGMA foreign_keys=ON").unwrap();
    diesel_migrations::MigrationHarness::run_pending_migrations(&mut conn, database::migration::MIGRATIONS)
        .unwrap();
    conn
}
