//! Inspection of a database file that a service may be using. An inspection neither migrates nor locks the file.

use diesel::prelude::*;
use diesel::sql_types::Text;
use jiff::{SignedDuration, Timestamp};

pub use super::migration::SchemaState;
use super::migration::load_schema_state;
use crate::conversation::transcript::{User, UserStatus};
use crate::conversation::viewer_accounts::ViewerAccount;
use crate::store::codec::ms;
use crate::store::memory::stats::{StoredAnswerStats, load_answer_stats};
use crate::store::people::{users, viewer_accounts};
use crate::store::queue::inbound_messages::PENDING;
use crate::store::queue::outbox::OPEN;
use crate::store::schema::{inbound_events, outbox};
use crate::store::{Conn, QueryResult};

/// Error of an inspection.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    #[error("open the database: {0}")]
    Open(#[from] ConnectionError),
    #[error("query the database: {0}")]
    Query(#[from] diesel::result::Error),
}

/// Result of the inspection of a database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseInspection {
    pub tables: SchemaState,
    /// First fault that SQLite finds in the file, if any.
    pub damage: Option<String>,
    /// Contents of the database; `None` if its schema is not current.
    pub contents: Option<DatabaseContents>,
}

/// Contents of a database with the current schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseContents {
    pub overdue: OverdueWork,
    pub memory: StoredAnswerStats,
}

/// Person with the accounts at media servers and in Seerr that are linked to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonWithAccounts {
    pub name: Option<String>,
    /// The person may ask for titles.
    pub may_add: bool,
    pub accounts: Vec<ViewerAccount>,
}

/// Counts of overdue work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverdueWork {
    /// Received messages without an outcome.
    pub unanswered: i64,
    /// Messages that were due for sending and have been neither accepted nor given up.
    pub unsent: i64,
}

/// Age from which due work counts as overdue.
const OVERDUE_AGE: SignedDuration = SignedDuration::from_mins(10);

#[derive(QueryableByName)]
struct QuickCheckRow {
    #[diesel(sql_type = Text)]
    quick_check: String,
}

pub fn inspect_database(path: &str, now: Timestamp) -> Result<DatabaseInspection, InspectionError> {
    let mut conn = open_for_reading(path)?;
    let tables = load_schema_state(&mut conn)?;
    let results: Vec<QuickCheckRow> = diesel::sql_query("PRAGMA quick_check(1)").load(&mut conn)?;
    let damage = results.into_iter().map(|row| row.quick_check).find(|result| result != "ok");
    let contents = match tables {
        SchemaState::Current => {
            let overdue = load_overdue_work(&mut conn, now - OVERDUE_AGE)?;
            Some(DatabaseContents { overdue, memory: load_answer_stats(&mut conn)? })
        }
        SchemaState::Empty | SchemaState::Foreign | SchemaState::Older { .. } | SchemaState::Newer { .. } => {
            None
        }
    };
    Ok(DatabaseInspection { tables, damage, contents })
}

fn open_for_reading(path: &str) -> Result<Conn, InspectionError> {
    let mut conn = Conn::establish(path)?;
    for pragma in ["PRAGMA busy_timeout=5000", "PRAGMA query_only=ON"] {
        diesel::sql_query(pragma).execute(&mut conn)?;
    }
    Ok(conn)
}

/// Loads the active people with their linked accounts. Without the current schema there are none.
pub fn load_people_with_accounts(path: &str) -> Result<Vec<PersonWithAccounts>, InspectionError> {
    let mut conn = open_for_reading(path)?;
    if !has_current_tables(&mut conn)? {
        return Ok(Vec::new());
    }
    let people = users::load_known_users(&mut conn)?;
    let active = people.into_iter().filter(|user| user.status == UserStatus::Active && !user.test);
    let to_person = |user: User| {
        let accounts = viewer_accounts::load_accounts(&mut conn, user.id)?;
        Ok(PersonWithAccounts { name: user.name, may_add: user.rights.may_add(), accounts })
    };
    active.map(to_person).collect()
}

/// Returns whether the tables are at the schema version of this program.
pub fn has_current_tables(conn: &mut Conn) -> QueryResult<bool> {
    Ok(load_schema_state(conn)? == SchemaState::Current)
}

fn load_overdue_work(conn: &mut Conn, before: Timestamp) -> QueryResult<OverdueWork> {
    let unanswered = PENDING.and(inbound_events::received_at.lt(ms(before)));
    let unsent = OPEN.and(outbox::created_at.lt(ms(before))).and(outbox::not_before.lt(ms(before)));
    Ok(OverdueWork {
        unanswered: inbound_events::table.filter(unanswered).count().get_result(conn)?,
        unsent: outbox::table.filter(unsent).count().get_result(conn)?,
    })
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;

    use super::super::db::Db;
    use super::super::shell_access::visit_database;
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn schema_state_can_be_inspected_while_the_program_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let path = path.to_str().unwrap();
        let mut schemas = vec![inspect_database(path, NOW).unwrap().tables];
        let _open_database = Db::open(path).unwrap();
        schemas.push(inspect_database(path, NOW).unwrap().tables);
        for change in [
            "INSERT INTO __diesel_schema_migrations (version) VALUES ('99999999999999')",
            "DELETE FROM __diesel_schema_migrations WHERE version >= '20261121'",
        ] {
            Conn::establish(path).unwrap().batch_execute(change).unwrap();
            schemas.push(inspect_database(path, NOW).unwrap().tables);
        }
        let newer = SchemaState::Newer { to: "99999999999999".to_owned() };
        let older = SchemaState::Older { from: "20261121000000".to_owned() };
        assert_eq!(schemas, [SchemaState::Empty, SchemaState::Current, newer, older]);
    }

    #[test]
    fn overwritten_file_is_damaged() {
        use std::io::{Seek, SeekFrom, Write};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        create_database(path.to_str().unwrap());
        assert_eq!(inspect_database(path.to_str().unwrap(), NOW).unwrap().damage, None);
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        // This page is not read when the schema is checked.
        let root = "(SELECT rootpage FROM sqlite_schema WHERE name = 'ix_outbox_turn')";
        let root = diesel::dsl::sql::<diesel::sql_types::BigInt>(root);
        let page: i64 =
            diesel::select(root).get_result(&mut Conn::establish(path.to_str().unwrap()).unwrap()).unwrap();
        file.seek(SeekFrom::Start((page.unsigned_abs() - 1) * 4096)).unwrap();
        file.write_all(&[0x5a; 4096]).unwrap();
        assert!(inspect_database(path.to_str().unwrap(), NOW).unwrap().damage.is_some());
    }

    #[test]
    fn overdue_work_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let path = path.to_str().unwrap();
        create_database(path);
        let sql = "INSERT INTO users (id, role, status, created_at, updated_at)
                VALUES (1, 'member', 'active', 0, 0);
            INSERT INTO outbox (dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at,
                created_at, updated_at) VALUES ('a', 1, 'reply', '+1', '+2', 'Hello.', 1, 0, 0, 0)";
        visit_database(path, |conn| conn.batch_execute(sql)).unwrap();
        let overdue_after = |minutes| {
            let inspection = inspect_database(path, NOW + SignedDuration::from_mins(minutes)).unwrap();
            inspection.contents.map(|contents| contents.overdue)
        };
        let unsent = |unsent| Some(OverdueWork { unanswered: 0, unsent });
        assert_eq!([overdue_after(9), overdue_after(11)], [unsent(0), unsent(1)]);
    }

    /// Creates a database file, and closes it.
    fn create_database(path: &str) {
        drop(Db::open_simulated(path, 0).unwrap());
    }
}
