//! Databases that earlier versions left behind, for tests of the upgrade.

use std::path::Path;

use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};
use diesel_migrations::{FileBasedMigrations, MigrationHarness};

/// Latest released version. Later migrations belong to the next release.
pub(crate) const LATEST_RELEASE: &str = "20261124120000";

/// Writes the database of a version: its tables, and the rows that its program wrote in one evening.
///
/// Ann had an open prompt about Dune and an earlier, ended conversation; a reply to Bob was deferred by the carrier, and
/// his next message had just arrived. From `PEOPLE` on, Sam was a newcomer. From `REQUESTS` on, Bob waited for Heat. In
/// `WORDS`, Bob had been notified of Alien.
pub(crate) fn write_database(file: &Path, version: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut conn = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    conn.batch_execute("PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON").unwrap();
    let migrations = FileBasedMigrations::from_path(root.join("migrations")).unwrap();
    while conn.run_next_migration(migrations.clone()).unwrap().to_string() != version {}
    let rows = root.join(format!("tests/data/upgrades/{version}.sql"));
    conn.batch_execute(&std::fs::read_to_string(rows).unwrap()).unwrap();
}
