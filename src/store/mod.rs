//! Persistent state, in one SQLite file. No other module accesses the database: the functions here are synchronous,
//! take a [`Conn`], and run in closures that are passed to [`database::db::Db`].

pub mod agent_calls;
pub mod agent_tickets;
pub mod audit;
pub mod boot;
pub mod clock_step;
mod codec;
mod column_types;
pub mod confirmation;
pub mod connection_history;
pub mod console;
pub mod console_access;
pub mod conversation;
pub mod database;
pub mod demo_history;
pub mod digests;
pub mod library;
pub mod library_samples;
pub mod memory;
pub mod people;
pub mod privacy;
pub mod queue;
#[cfg_attr(
    not(test),
    expect(clippy::wildcard_imports, reason = "the generated tables name their column types")
)]
mod schema;
pub mod service_identities;
pub mod settings;
pub mod stream;
pub mod text_index;
pub mod turns;
pub mod votes;

/// Connection to the database: in a transaction for writes, or of a reader.
pub type Conn = diesel::SqliteConnection;

/// Result type of every function in this module.
pub use diesel::QueryResult;

pub use database::transaction::with_savepoint;

/// Returns a parsed value, or `None` after a log entry if the stored value cannot be read. For views that can show the
/// rest without the value.
pub fn skip_unreadable<T>(parsed: QueryResult<T>) -> Option<T> {
    codec::none_if_unreadable(parsed).ok().flatten()
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
