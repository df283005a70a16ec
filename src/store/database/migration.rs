//! Check of the tables in a database file, and their migration to the schema of this program. A migration requires that
//! a copy was stored beside the file, and is refused if a later version of the program has used the file.

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

#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error(
        "use {path}: a later version of dialarr has changed it ({to}), and this is {}; \
         hint: run that version again, or put back a copy from before it",
        env!("DIALARR_VERSION")
    )]
    Newer { path: String, to: String },
    #[error(
        "use {path}: {fault}; hint: see that DATABASE_URL names the database of Dialarr, or restore a backup"
    )]
    Unusable { path: String, fault: FileFault },
    #[error("read which tables {path} has")]
    Tables { path: String, source: QueryError },
    #[error(
        "copy {path} before its tables are changed; hint: make room on its disk, or go on with the version before"
    )]
    Copy { path: String, source: CopyError },
    #[error("change the tables of {path}")]
    Migrate { path: String, source: Box<dyn std::error::Error + Send + Sync> },
}

/// Error that makes a file unusable, now and after any further start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    #[error("it is not an SQLite database")]
    NotSqlite,
    #[error("it is the database of another program")]
    Foreign,
    #[error("SQLite finds it damaged, or only a part of it is there")]
    Damaged,
    /// The database is empty or missing, but its log exists: SQLite would delete the log and start with an empty
    /// database.
    #[error(
        "it is missing or empty, but its write-ahead log is not (put the two back together, or remove the log)"
    )]
    LogAlone,
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
const NO_APPLICATION_ID: i64 = 0;

/// Query for the number of tables, without those of SQLite and of Litestream, which may exist before Dialarr's.
const TABLES: &str = "SELECT count(*) AS n FROM sqlite_master WHERE type = 'table'
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
    let without_migrations = |conn: &mut Conn| {
        Ok(if count(conn, TABLES)? == 0 { SchemaState::Empty } else { SchemaState::Foreign })
    };
    let list = "SELECT count(*) AS n FROM sqlite_master WHERE name = '__diesel_schema_migrations'";
    if count(conn, list)? == 0 {
        return without_migrations(conn);
    }
    let applied: BTreeSet<String> = diesel::sql_query("SELECT version FROM __diesel_schema_migrations")
        .load::<AppliedMigrationRow>(conn)?
        .into_iter()
        .map(|row| row.version)
        .collect();
    if applied.is_empty() {
        return without_migrations(conn);
    }
    // Another program may store its versions in a table of the same name.
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

/// Checks the sizes before any file is opened: SQLite deletes the log of an empty database, even if the database was
/// emptied or lost by accident and the log holds the latest commits.
pub(in crate::store) fn refuse_log_alone(path: &str) -> Result<(), MigrationError> {
    let size = |path: &Path| fs::metadata(path).ok().map(|file| file.len());
    let database = size(Path::new(path));
    if database.unwrap_or(0) > 0 {
        return Ok(());
    }
    if size(&companion_path(path, "-wal")).unwrap_or(0) > 0 {
        return Err(MigrationError::Unusable { path: path.to_owned(), fault: FileFault::LogAlone });
    }
    if database.is_some() {
        // A killed start leaves such a file, so the file is not refused.
        tracing::warn!(%path, "the database is an empty file; hint: if a backup was put there, it is incomplete");
    }
    Ok(())
}

/// Returns an error if the file is unusable, before any change is made to the file.
pub(in crate::store) fn refuse_unusable(conn: &mut Conn, path: &str) -> Result<(), MigrationError> {
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
    match read_schema_state(conn, path)? {
        SchemaState::Current => return Ok(()),
        SchemaState::Empty => tracing::info!(%path, "beginning with an empty database"),
        SchemaState::Foreign => {
            return Err(MigrationError::Unusable { path: path.to_owned(), fault: FileFault::Foreign });
        }
        SchemaState::Older { from } => {
            let copy = copy_before_migration(conn, path, &from)
                .map_err(|source| MigrationError::Copy { path: path.to_owned(), source })?;
            tracing::info!(%path, copy = %copy.display(), "migrating an older database; a copy is stored");
        }
        SchemaState::Newer { to } => return Err(MigrationError::Newer { path: path.to_owned(), to }),
    }
    let migrate = |source| MigrationError::Migrate { path: path.to_owned(), source };
    conn.run_pending_migrations(MIGRATIONS).map(drop).map_err(migrate)
}

/// Text between the name of a database and the migration that its copy lacks.
const BEFORE: &str = ".before-";

/// Stores a whole copy beside the file, readable only by users who may read the file. An existing copy from before the
/// same migration is replaced: that copy was already restored, so the present file is the next one to restore.
fn copy_before_migration(conn: &mut Conn, path: &str, from: &str) -> Result<PathBuf, CopyError> {
    let whole = PathBuf::from(format!("{path}{BEFORE}{from}"));
    let copy = PartialCopy::write(conn, &whole)?;
    fs::set_permissions(copy.path(), fs::metadata(path)?.permissions())?;
    copy.finish()?;
    Ok(whole)
}

/// Removes the copies that were made before `before`: they contain text that has since been erased.
pub fn remove_old_copies(conn: &mut Conn, before: Timestamp) -> QueryResult<()> {
    let path = PathBuf::from(database_file::load_database_file_size(conn)?.path);
    if let Err(error) = remove_copies(&path, before.into()) {
        tracing::warn!(%error, path = %path.display(), "failed to remove the copies from before an upgrade");
    }
    Ok(())
}

fn remove_copies(path: &Path, before: SystemTime) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    let copies = format!("{name}{BEFORE}");
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&copies) && entry.metadata()?.modified()? < before
        {
            fs::remove_file(entry.path())?;
            tracing::info!(copy = %entry.path().display(), "removed a copy from before an upgrade");
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

    /// Creates a file without the last migration.
    fn earlier(folder: &Path) -> (Conn, String, String) {
        let path = folder.join("a.db").to_str().unwrap().to_owned();
        drop(Db::open_simulated(&path, 0).unwrap());
        let mut conn = Conn::establish(&path).unwrap();
        let from = conn.revert_last_migration(MIGRATIONS).unwrap().to_string();
        (conn, path, from)
    }

    #[test]
    fn copy_predates_the_change_and_is_as_private_as_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = earlier(folder.path());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        migrate_database(&mut conn, &path).unwrap();
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Current);

        let copy = format!("{path}.before-{from}");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
        let mut copied = Conn::establish(&copy).unwrap();
        assert_eq!(load_schema_state(&mut copied).unwrap(), SchemaState::Older { from });
    }

    #[test]
    fn copy_of_the_same_migration_is_replaced_by_a_newer_one() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = earlier(folder.path());
        for leftover in ["", ".part"] {
            fs::write(format!("{path}.before-{from}{leftover}"), "of the last time").unwrap();
        }
        migrate_database(&mut conn, &path).unwrap();
        let mut copied = Conn::establish(&format!("{path}.before-{from}")).unwrap();
        assert_eq!(load_schema_state(&mut copied).unwrap(), SchemaState::Older { from: from.clone() });
        assert!(!Path::new(&format!("{path}.before-{from}.part")).exists());
    }

    #[test]
    fn failed_copy_leaves_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = earlier(folder.path());
        // The copy can be written but not renamed.
        fs::create_dir_all(format!("{path}.before-{from}/taken")).unwrap();
        let failed = migrate_database(&mut conn, &path);
        assert!(matches!(failed, Err(MigrationError::Copy { .. })), "{failed:?}");
        assert!(!Path::new(&format!("{path}.before-{from}.part")).exists());
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Older { from });
    }

    #[test]
    fn foreign_file_is_recognized_by_its_id_or_tables() {
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
        let found = |sql: &str| {
            let mut conn = Conn::establish(":memory:").unwrap();
            conn.batch_execute(sql).unwrap();
            load_schema_state(&mut conn).unwrap()
        };
        assert!(foreign.into_iter().all(|sql| found(sql) == SchemaState::Foreign));
        assert!(empty.into_iter().all(|sql| found(sql) == SchemaState::Empty));
    }

    #[test]
    fn database_of_the_first_release_is_accepted_without_an_id() {
        let mut conn = crate::store::scratch();
        conn.batch_execute("PRAGMA application_id = 0").unwrap();
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Current);
    }

    #[test]
    fn migration_without_a_copy_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = earlier(folder.path());
        fs::create_dir(format!("{path}.before-{from}.part")).unwrap();
        let failed = migrate_database(&mut conn, &path);
        assert!(matches!(failed, Err(MigrationError::Copy { .. })), "{failed:?}");
        assert_eq!(load_schema_state(&mut conn).unwrap(), SchemaState::Older { from });
    }
}
