//! The persistent state, in one SQLite file. This is the only module that knows there is a database: sync functions
//! over a [`Conn`], a file per noun, run through [`db::Db`]'s closures.

pub mod access;
pub mod account;
pub mod agenda;
pub mod answers;
pub mod approvals;
pub mod arr_events;
pub mod asked;
pub mod audit;
pub mod backlog;
pub mod backup;
pub mod boot;
pub mod callbacks;
pub mod calls;
pub mod clock_step;
pub mod code_misses;
mod codec;
pub mod console;
pub mod conversations;
mod database_lock;
pub mod db;
pub mod deletion_items;
pub mod deliveries;
pub mod ended_question;
pub mod examine;
pub mod file;
pub mod file_watch;
pub mod follows;
pub mod history;
pub mod household;
pub mod joining;
mod kept;
pub mod ledger;
pub mod lookups;
pub mod memory;
pub mod notices;
pub mod offsets;
pub mod outbox;
pub mod pending;
pub mod privacy;
pub mod progress;
pub mod quotas;
pub mod reactions;
pub mod request_groups;
pub mod requests;
pub mod resending;
pub mod resuming;
pub mod roster;
mod schema;
mod simulated_queue;
mod span;
pub mod spend;
pub mod steps;
pub mod stream;
pub mod testing;
pub mod turns;
pub mod upgrade;
pub mod users;
#[cfg(test)]
mod way_back;
mod written;

/// A connection inside a transaction (writes) or on a reader.
pub type Conn = diesel::SqliteConnection;

/// The result type of every function here.
pub use diesel::QueryResult;

/// Runs `work` so that a failure undoes only its own changes, not those of the whole transaction.
pub fn undone_if_failed<T>(
    conn: &mut Conn,
    work: impl FnOnce(&mut Conn) -> QueryResult<T>,
) -> QueryResult<T> {
    diesel::Connection::transaction(conn, work)
}

#[cfg(test)]
fn scratch() -> Conn {
    use diesel::Connection;
    use diesel::connection::SimpleConnection;

    let mut conn = Conn::establish(":memory:").unwrap();
    conn.batch_execute("PRAGMA foreign_keys=ON").unwrap();
    diesel_migrations::MigrationHarness::run_pending_migrations(&mut conn, upgrade::MIGRATIONS).unwrap();
    conn
}
