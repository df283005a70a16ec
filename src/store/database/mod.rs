//! Database file: connections, the lock, migrations, inspection and backup.

pub mod backup;
pub mod database_file;
pub mod database_inspection;
pub(in crate::store) mod database_lock;
pub mod db;
#[cfg(test)]
pub(in crate::store) mod down_migration_tests;
pub mod file_watch;
mod job_queue;
pub(in crate::store) mod literal_sql;
pub mod log_syncs;
mod machine_boot;
pub mod migration;
#[cfg(test)]
mod schema_condition_tests;
pub mod shell_access;
pub(in crate::store) mod simulated_queue;
pub(in crate::store) mod statement_cache;
pub mod transaction;
mod write_connection;
mod write_job;
