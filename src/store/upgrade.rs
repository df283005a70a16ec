//! Whose tables a file has, and how it gets those of this program: after a copy was put beside it, and never where a
//! later program has worked with it.

use std::collections::BTreeSet;
use std::fs::{self, File};
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

use super::{Conn, file};

pub(super) const MIGRATIONS: EmbeddedMigrations = embed_migrations!();

/// The tables of a file, compared with those that this program works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tables {
    AsHere,
    /// A new file.
    None,
    /// To be brought up to date.
    Older {
        /// The first change that is still to be made.
        from: String,
    },
    /// It has some that this program does not know.
    Newer {
        /// The last of them.
        to: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    #[error(
        "use {path}: a later version of dialarr has changed it ({to}), and this is {}; \
         hint: run that version again, or put back a copy from before it",
        env!("DIALARR_VERSION")
    )]
    Newer { path: String, to: String },
    #[error("read which tables {path} has")]
    Tables { path: String, source: QueryError },
    #[error(
        "copy {path} before its tables are changed; hint: make room on its disk, or go on with the version before"
    )]
    Copy { path: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("change the tables of {path}")]
    Migrate { path: String, source: Box<dyn std::error::Error + Send + Sync> },
}

#[derive(QueryableByName)]
struct Applied {
    #[diesel(sql_type = Text)]
    version: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

pub(super) fn tables(conn: &mut Conn) -> QueryResult<Tables> {
    let known = MigrationSource::<Sqlite>::migrations(&MIGRATIONS).map_err(QueryError::QueryBuilderError)?;
    let known: BTreeSet<String> =
        known.iter().map(|migration| migration.name().version().to_string()).collect();
    let list = "SELECT count(*) AS n FROM sqlite_master WHERE name = '__diesel_schema_migrations'";
    if diesel::sql_query(list).get_result::<Count>(conn)?.n == 0 {
        return Ok(Tables::None);
    }
    let applied: BTreeSet<String> = diesel::sql_query("SELECT version FROM __diesel_schema_migrations")
        .load::<Applied>(conn)?
        .into_iter()
        .map(|row| row.version)
        .collect();
    if let Some(unknown) = applied.difference(&known).max() {
        return Ok(Tables::Newer { to: unknown.clone() });
    }
    Ok(match known.difference(&applied).next() {
        None => Tables::AsHere,
        Some(_) if applied.is_empty() => Tables::None,
        Some(missing) => Tables::Older { from: missing.clone() },
    })
}

/// Looks into the file before anything is changed in it.
pub(super) fn refuse_newer(conn: &mut Conn, path: &str) -> Result<(), UpgradeError> {
    match tables(conn).map_err(|source| UpgradeError::Tables { path: path.to_owned(), source })? {
        Tables::Newer { to } => Err(UpgradeError::Newer { path: path.to_owned(), to }),
        Tables::AsHere | Tables::None | Tables::Older { .. } => Ok(()),
    }
}

/// Makes the changes that the file lacks. Nobody else may be using it.
pub(super) fn bring_up_to_date(conn: &mut Conn, path: &str) -> Result<(), UpgradeError> {
    let found = tables(conn).map_err(|source| UpgradeError::Tables { path: path.to_owned(), source })?;
    match found {
        Tables::AsHere => return Ok(()),
        Tables::None => {}
        Tables::Older { from } => {
            let copy = copy(conn, path, &from)
                .map_err(|source| UpgradeError::Copy { path: path.to_owned(), source })?;
            tracing::info!(%path, copy = %copy.display(), "changing the tables of an earlier version; a copy stands beside them");
        }
        Tables::Newer { to } => return Err(UpgradeError::Newer { path: path.to_owned(), to }),
    }
    let migrate = |source| UpgradeError::Migrate { path: path.to_owned(), source };
    conn.run_pending_migrations(MIGRATIONS).map(drop).map_err(migrate)
}

/// Between the name of a database and the change that its copy lacks.
const BEFORE: &str = ".before-";

/// Puts a whole copy beside the file, which only its reader may read. An earlier copy from before the same change was
/// gone back to, so that what is here now is what to go back to next.
fn copy(
    conn: &mut Conn,
    path: &str,
    from: &str,
) -> Result<PathBuf, Box<dyn std::error::Error + Send + Sync>> {
    let (whole, part) = (format!("{path}{BEFORE}{from}"), format!("{path}{BEFORE}{from}.part"));
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    diesel::sql_query("VACUUM INTO ?").bind::<Text, _>(&part).execute(conn)?;
    fs::set_permissions(&part, fs::metadata(path)?.permissions())?;
    // SQLite leaves this to the system, and the change comes next.
    File::open(&part)?.sync_all()?;
    fs::rename(&part, &whole)?;
    Ok(whole.into())
}

/// Removes the copies that were made before a time: they hold words that were erased since.
pub fn forget_copies(conn: &mut Conn, before: Timestamp) -> QueryResult<()> {
    let path = PathBuf::from(file::of(conn)?.path);
    if let Err(error) = remove_copies(&path, before.into()) {
        tracing::warn!(%error, path = %path.display(), "copies from before an upgrade could not be removed");
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

    use super::*;
    use crate::store::db::Db;

    /// A file that lacks the last change.
    fn earlier(folder: &Path) -> (Conn, String, String) {
        let path = folder.join("a.db").to_str().unwrap().to_owned();
        drop(Db::open_simulated(&path, 0).unwrap());
        let mut conn = Conn::establish(&path).unwrap();
        let from = conn.revert_last_migration(MIGRATIONS).unwrap().to_string();
        (conn, path, from)
    }

    #[test]
    fn the_copy_lacks_what_was_changed_and_is_as_private_as_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = earlier(folder.path());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        bring_up_to_date(&mut conn, &path).unwrap();
        assert_eq!(tables(&mut conn).unwrap(), Tables::AsHere);

        let copy = format!("{path}.before-{from}");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
        let mut copied = Conn::establish(&copy).unwrap();
        assert_eq!(tables(&mut copied).unwrap(), Tables::Older { from });
    }

    #[test]
    fn a_copy_from_before_the_same_change_gives_way_to_a_newer_one() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = earlier(folder.path());
        for leftover in ["", ".part"] {
            fs::write(format!("{path}.before-{from}{leftover}"), "of the last time").unwrap();
        }
        bring_up_to_date(&mut conn, &path).unwrap();
        let mut copied = Conn::establish(&format!("{path}.before-{from}")).unwrap();
        assert_eq!(tables(&mut copied).unwrap(), Tables::Older { from: from.clone() });
        assert!(!Path::new(&format!("{path}.before-{from}.part")).exists());
    }

    #[test]
    fn where_no_copy_can_be_made_nothing_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, path, from) = earlier(folder.path());
        fs::create_dir(format!("{path}.before-{from}.part")).unwrap();
        let failed = bring_up_to_date(&mut conn, &path);
        assert!(matches!(failed, Err(UpgradeError::Copy { .. })), "{failed:?}");
        assert_eq!(tables(&mut conn).unwrap(), Tables::Older { from });
    }
}
