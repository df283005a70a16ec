//! Schema check of a database file, and its migration to the schema of this program. Before a migration, a copy is
//! stored beside the file. A file that a newer version of the program has migrated is rejected.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use diesel::migration::MigrationSource;
use diesel::prelude::*;
use diesel::result::Error as QueryError;
use diesel::sql_types::{BigInt, Text};
use diesel::sqlite::Sqlite;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use jiff::Timestamp;

use super::backup::{CopyError, PartialCopy};
use super::database_file;
use super::database_lock::companion_path;
use crate::store::Conn;

pub(in crate::store) const MIGRATIONS: EmbeddedMigrations = embed_migrations!();

/// Schema of a file, compared with the schema of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    Current,
    /// A new file.
    Empty,
    /// Tables of another program.
    Foreign,
    /// Tables that need to be migrated.
    Older {
        /// The first pending migration.
        from: String,
    },
    /// Tables with migrations that this program does not know.
    Newer {
        /// The last of these migrations.
        to: String,
    },
}

/// Error that prevents the use or the migration of a database.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error(
        "use {path}: a later version of dialarr has migrated it ({to}), and this is {}; \
         hint: run that version again, or restore a copy from before the migration",
        env!("DIALARR_VERSION")
    )]
    Newer { path: String, to: String },
    #[error(
        "use {path}: {fault}; hint: check that DATABASE_URL names the database of Dialarr, or restore a backup"
    )]
    Unusable { path: String, fault: FileFault },
    #[error("read the tables of {path}")]
    Tables { path: String, source: QueryError },
    #[error("copy {path} before its migration; hint: free up disk space, or keep using the previous version")]
    Copy { path: String, source: CopyError },
    #[error("migrate the tables of {path}")]
    Migrate { path: String, source: Box<dyn std::error::Error + Send + Sync> },
}

/// Permanent fault that makes a file unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    #[error("it is not an SQLite database")]
    NotSqlite,
    #[error("it is the database of another program")]
    Foreign,
    #[error("it is damaged or incomplete")]
    Damaged,
    /// The database is empty or missing, but its log exists: SQLite would delete the log and start with an empty
    /// database.
    #[error("it is missing or empty, but its write-ahead log is not (restore both files, or remove the log)")]
    LogWithoutDatabase,
}

impl FileFault {
    /// Classifies the error that SQLite returns when it first reads a file.
    fn from_error(error: &QueryError) -> Option<Self> {
        let QueryError::DatabaseError(_, information) = error else { return None };
        match information.message() {
            "file is not a database" => Some(Self::NotSqlite),
            "database disk image is malformed" => Some(Self::Damaged),
            _ => None,
        }
    }
}

/// Application id in the header of the file: "Dial" in ASCII. Files of earlier builds have no such id.
const APPLICATION_ID: i64 = 0x4469_616c;
/// Value of a header without an application id.
const NO_APPLICATION_ID: i64 = 0;

/// Query for the number of tables, without those of SQLite and of Litestream, which may exist in an empty database.
const TABLE_COUNT_QUERY: &str = "SELECT count(*) AS n FROM sqlite_master WHERE type = 'table'
    AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_litestream_*' AND name <> '__diesel_schema_migrations'";

#[derive(QueryableByName)]
struct AppliedMigrationRow {
    #[diesel(sql_type = Text)]
    version: String,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

pub(in crate::store) fn load_schema_state(conn: &mut Conn) -> QueryResult<SchemaState> {
    let known = MigrationSource::<Sqlite>::migrations(&MIGRATIONS).map_err(QueryError::QueryBuilderError)?;
    let known: BTreeSet<String> =
        known.iter().map(|migration| migration.name().version().to_string()).collect();
    let count =
        |conn: &mut Conn, query| diesel::sql_query(query).get_result::<CountRow>(conn).map(|row| row.n);
    let id = count(conn, "SELECT application_id AS n FROM pragma_application_id")?;
    if ![APPLICATION_ID, NO_APPLICATION_ID].contains(&id) {
        return Ok(SchemaState::Foreign);
    }
    let state_without_migrations = |conn: &mut Conn| {
        Ok(if count(conn, TABLE_COUNT_QUERY)? == 0 { SchemaState::Empty } else { SchemaState::Foreign })
    };
    let migration_tables =
        "SELECT count(*) AS n FROM sqlite_master WHERE name = '__diesel_schema_migrations'";
    if count(conn, migration_tables)? == 0 {
        return state_without_migrations(conn);
    }
    let applied: BTreeSet<String> = diesel::sql_query("SELECT version FROM __diesel_schema_migrations")
        .load::<AppliedMigrationRow>(conn)?
        .into_iter()
        .map(|row| row.version)
        .collect();
    if applied.is_empty() {
        return state_without_migrations(conn);
    }
    // Another program may use a migration table with the same name.
    if id == NO_APPLICATION_ID && applied.is_disjoint(&known) {
        return Ok(SchemaState::Foreign);
    }
    if let Some(unknown) = applied.difference(&known).max() {
        return Ok(SchemaState::Newer { to: unknown.clone() });
    }
    Ok(match known.difference(&applied).next() {
        None => SchemaState::Current,
        Some(missing) => SchemaState::Older { from: missing.clone() },
    })
}

/// Returns an error if a write-ahead log exists without its database. The sizes are checked before any file is opened:
/// SQLite deletes the log of an empty database, even if the database was emptied or lost by accident and the log holds
/// the latest commits.
pub(in crate::store) fn reject_log_without_database(path: &str) -> Result<(), MigrationError> {
    let size = |path: &Path| fs::metadata(path).ok().map(|file| file.len());
    let database = size(Path::new(path));
    if database.unwrap_or(0) > 0 {
        return Ok(());
    }
    if size(&companion_path(path, "-wal")).unwrap_or(0) > 0 {
        return Err(MigrationError::Unusable { path: path.to_owned(), fault: FileFault::LogWithoutDatabase });
    }
    if database.is_some() {
        // A start that was killed leaves such a file, so the file is not rejected.
        tracing::warn!(%path, "the database is an empty file; hint: a backup restored to this path is incomplete");
    }
    Ok(())
}

/// Returns an error if the file is unusable, before any change is made to the file.
pub(in crate::store) fn reject_unusable_file(conn: &mut Conn, path: &str) -> Result<(), MigrationError> {
    match read_schema_state(conn, path)? {
        SchemaState::Newer { to } => Err(MigrationError::Newer { path: path.to_owned(), to }),
        SchemaState::Foreign => {
            Err(MigrationError::Unusable { path: path.to_owned(), fault: FileFault::Foreign })
        }
        SchemaState::Current | SchemaState::Empty | SchemaState::Older { .. } => Ok(()),
    }
}

fn read_schema_state(conn: &mut Conn, path: &str) -> Result<SchemaState, MigrationError> {
    load_schema_state(conn).map_err(|source| match FileFault::from_error(&source) {
        Some(fault) => MigrationError::Unusable { path: path.to_owned(), fault },
        None => MigrationError::Tables { path: path.to_owned(), source },
    })
}

/// Runs the pending migrations of the file. No other process may be using the file.
pub(in crate::store) fn migrate_database(conn: &mut Conn, path: &str) -> Result<(), MigrationError> {
    let migrated = match read_schema_state(conn, path)? {
        SchemaState::Current => return Ok(()),
        SchemaState::Empty => {
            tracing::info!(%path, "creating the tables of an empty database");
            conn.run_pending_migrations(MIGRATIONS).map(drop)
        }
        SchemaState::Foreign => {
            return Err(MigrationError::Unusable { path: path.to_owned(), fault: FileFault::Foreign });
        }
        SchemaState::Older { from } => {
            let copy = copy_before_migration(conn, path, &from)
                .map_err(|source| MigrationError::Copy { path: path.to_owned(), source })?;
            tracing::info!(%path, copy = %copy.display(), "stored a copy of the database before its migration");
            upgrade_database(conn, path)
        }
        SchemaState::Newer { to } => return Err(MigrationError::Newer { path: path.to_owned(), to }),
    };
    migrated.map_err(|source| MigrationError::Migrate { path: path.to_owned(), source })
}

/// Runs the pending migrations. Each is logged before it starts, because it may take a while.
fn upgrade_database(conn: &mut Conn, path: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let pending = conn.pending_migrations(MIGRATIONS)?;
    for (index, migration) in pending.iter().enumerate() {
        let step = format!("{} of {}", index + 1, pending.len());
        tracing::info!(%path, %step, migration = %migration.name(), "migrating the database");
        conn.run_migration(migration)?;
    }
    Ok(())
}

/// Text between the file name of a database and the first migration that its copy lacks.
const COPY_INFIX: &str = ".before-";

/// Stores a copy beside the file, with the permissions of the file. An existing copy from before the same migration is
/// replaced: it was already restored, so the current file is newer.
fn copy_before_migration(conn: &mut Conn, path: &str, from: &str) -> Result<PathBuf, CopyError> {
    let copy_path = PathBuf::from(format!("{path}{COPY_INFIX}{from}"));
    let copy = PartialCopy::write(conn, &copy_path)?;
    fs::set_permissions(copy.path(), fs::metadata(path)?.permissions())?;
    copy.finish()?;
    Ok(copy_path)
}

/// Removes the copies that were made before `before`, because they contain text that has since been erased.
pub fn remove_old_copies(conn: &mut Conn, before: Timestamp) -> QueryResult<()> {
    let path = PathBuf::from(database_file::load_database_file_size(conn)?.path);
    if let Err(error) = remove_copies(&path, before.into()) {
        tracing::warn!(%error, path = %path.display(), "failed to remove old copies of the database");
    }
    Ok(())
}

fn remove_copies(path: &Path, before: SystemTime) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(());
    };
    let prefix = format!("{name}{COPY_INFIX}");
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) && entry.metadata()?.modified()? < before
        {
            fs::remove_file(entry.path())?;
            tracing::info!(copy = %entry.path().display(), "removed an old copy of the database");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use diesel::connection::SimpleConnection;

    use super::super::db::Db;
    use super::*;

    /// Creates a database without the last migration.
    fn create_older_database(folder: &Path) -> (Conn, String, String) {
        let path = folder.join("a.db").to_str().unwrap().to_owned();
        drop(Db::open_simulated(&path, 0).unwrap());
        let mut conn = Conn::establish(&path).unwrap();
        let from = conn.revert_last_migration(MIGRATIONS).unwrap().to_string();
        (conn, path, from)
    }

    #[test]
    fn copy_predates_the_migration_and_has_the_permissions_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = create_older_database(folder.path());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        migrate_database(&mut conn, &path).unwrap();
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Current);

        let copy = format!("{path}.before-{from}");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
        let mut copy_conn = Conn::establish(&copy).unwrap();
        assert_eq!(load_schema_state(&mut copy_conn).unwrap(), SchemaState::Older { from });
    }

    #[test]
    fn copy_from_before_the_same_migration_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = create_older_database(folder.path());
        for leftover in ["", ".part"] {
            fs::write(format!("{path}.before-{from}{leftover}"), "old copy").unwrap();
        }
        migrate_database(&mut conn, &path).unwrap();
        let mut copy_conn = Conn::establish(&format!("{path}.before-{from}")).unwrap();
        assert_eq!(load_schema_state(&mut copy_conn).unwrap(), SchemaState::Older { from: from.clone() });
        assert!(!Path::new(&format!("{path}.before-{from}.part")).exists());
    }

    #[test]
    fn failed_copy_leaves_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = create_older_database(folder.path());
        // The copy can be written but not renamed.
        fs::create_dir_all(format!("{path}.before-{from}/directory")).unwrap();
        let failed = migrate_database(&mut conn, &path);
        assert!(matches!(failed, Err(MigrationError::Copy { .. })), "{failed:?}");
        assert!(!Path::new(&format!("{path}.before-{from}.part")).exists());
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Older { from });
    }

    #[test]
    fn foreign_database_is_recognized_by_its_id_or_tables() {
        let foreign = [
            "PRAGMA application_id = 252006674",
            "CREATE TABLE songs (id INTEGER)",
            "CREATE TABLE __diesel_schema_migrations (version TEXT); CREATE TABLE songs (id INTEGER)",
            "CREATE TABLE __diesel_schema_migrations (version TEXT);
             INSERT INTO __diesel_schema_migrations VALUES ('20200101000000')",
        ];
        let empty = [
            "",
            "PRAGMA user_version = 1",
            "CREATE TABLE _litestream_seq (id INTEGER)",
            "CREATE TABLE __diesel_schema_migrations (version TEXT)",
        ];
        let schema_state = |sql: &str| {
            let mut conn = Conn::establish(":memory:").unwrap();
            conn.batch_execute(sql).unwrap();
            load_schema_state(&mut conn).unwrap()
        };
        assert!(foreign.into_iter().all(|sql| schema_state(sql) == SchemaState::Foreign));
        assert!(empty.into_iter().all(|sql| schema_state(sql) == SchemaState::Empty));
    }

    #[test]
    fn database_of_the_first_release_is_accepted_without_an_id() {
        let mut conn = crate::store::scratch();
        conn.batch_execute("PRAGMA application_id = 0").unwrap();
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Current);
    }

    #[test]
    fn failed_copy_prevents_the_migration() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = create_older_database(folder.path());
        fs::create_dir(format!("{path}.before-{from}.part")).unwrap();
        let failed = migrate_database(&mut conn, &path);
        assert!(matches!(failed, Err(MigrationError::Copy { .. })), "{failed:?}");
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Older { from });
    }
}
