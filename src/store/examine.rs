//! Inspection of a database file on disk, beside a service that may be using it. An inspection neither migrates nor
//! locks.

use diesel::prelude::*;
use diesel::sql_types::Text;
use jiff::{SignedDuration, Timestamp};

use super::codec::ms;
use super::ledger::PENDING;
use super::memory::stats::{Stats, stats};
use super::outbox::OPEN;
use super::schema::{inbound_events, outbox};
pub use super::upgrade::Tables;
use super::upgrade::tables;
use super::{Conn, QueryResult};

#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    #[error("open it: {0}")]
    Open(#[from] ConnectionError),
    #[error("query it: {0}")]
    Query(#[from] diesel::result::Error),
}

/// Result of inspecting a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    pub tables: Tables,
    /// The first fault that SQLite finds in the file.
    pub damage: Option<String>,
    /// `None` if the tables are not those of this program.
    pub contents: Option<Contents>,
}

/// Contents of a database of this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub backlog: Backlog,
    pub memory: Stats,
}

/// Overdue work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Received messages without an outcome.
    pub unanswered: i64,
    /// Messages that were due for sending and were neither accepted nor given up.
    pub unsent: i64,
}

/// Period within which waiting work may still be on its way. A notification may wait for the morning.
const A_WHILE: SignedDuration = SignedDuration::from_mins(10);

#[derive(QueryableByName)]
struct Checked {
    #[diesel(sql_type = Text)]
    quick_check: String,
}

pub fn examine(path: &str, now: Timestamp) -> Result<Examined, ExamineError> {
    let mut conn = Conn::establish(path)?;
    for pragma in ["PRAGMA busy_timeout=5000", "PRAGMA query_only=ON"] {
        diesel::sql_query(pragma).execute(&mut conn)?;
    }
    let tables = tables(&mut conn)?;
    let checked: Vec<Checked> = diesel::sql_query("PRAGMA quick_check(1)").load(&mut conn)?;
    let damage = checked.into_iter().map(|row| row.quick_check).find(|found| found != "ok");
    let contents = match tables {
        Tables::AsHere => {
            let backlog = backlog(&mut conn, now - A_WHILE)?;
            Some(Contents { backlog, memory: stats(&mut conn)? })
        }
        Tables::None | Tables::Foreign | Tables::Older { .. } | Tables::Newer { .. } => None,
    };
    Ok(Examined { tables, damage, contents })
}

/// Returns whether the tables are those that this program works on.
pub fn is_as_here(conn: &mut Conn) -> QueryResult<bool> {
    Ok(tables(conn)? == Tables::AsHere)
}

fn backlog(conn: &mut Conn, before: Timestamp) -> QueryResult<Backlog> {
    let waiting = PENDING.and(inbound_events::received_at.lt(ms(before)));
    let unsent = OPEN.and(outbox::created_at.lt(ms(before))).and(outbox::not_before.lt(ms(before)));
    Ok(Backlog {
        unanswered: inbound_events::table.filter(waiting).count().get_result(conn)?,
        unsent: outbox::table.filter(unsent).count().get_result(conn)?,
    })
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;

    use super::*;
    use crate::store::db::{Db, visit};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn the_version_of_a_file_is_told_also_while_a_program_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let path = path.to_str().unwrap();
        let mut told = vec![examine(path, NOW).unwrap().tables];
        let _used = Db::open(path).unwrap();
        told.push(examine(path, NOW).unwrap().tables);
        for change in [
            "INSERT INTO __diesel_schema_migrations (version) VALUES ('99999999999999')",
            "DELETE FROM __diesel_schema_migrations WHERE version >= '20261121'",
        ] {
            Conn::establish(path).unwrap().batch_execute(change).unwrap();
            told.push(examine(path, NOW).unwrap().tables);
        }
        let newer = Tables::Newer { to: "99999999999999".to_owned() };
        let older = Tables::Older { from: "20261121000000".to_owned() };
        assert_eq!(told, [Tables::None, Tables::AsHere, newer, older]);
    }

    #[test]
    fn a_file_that_was_written_over_is_damaged() {
        use std::io::{Seek, SeekFrom, Write};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        visit_new(path.to_str().unwrap());
        assert_eq!(examine(path.to_str().unwrap(), NOW).unwrap().damage, None);
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        // A page beyond those that the first check reads.
        let root = "(SELECT rootpage FROM sqlite_schema WHERE name = 'ix_outbox_turn')";
        let root = diesel::dsl::sql::<diesel::sql_types::BigInt>(root);
        let page: i64 =
            diesel::select(root).get_result(&mut Conn::establish(path.to_str().unwrap()).unwrap()).unwrap();
        file.seek(SeekFrom::Start((page.unsigned_abs() - 1) * 4096)).unwrap();
        file.write_all(&[0x5a; 4096]).unwrap();
        assert!(examine(path.to_str().unwrap(), NOW).unwrap().damage.is_some());
    }

    #[test]
    fn what_waits_for_long_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let path = path.to_str().unwrap();
        visit_new(path);
        let waiting = "INSERT INTO users (id, phone, role, status, created_at, updated_at)
                VALUES (1, '+15550100001', 'member', 'active', 0, 0);
            INSERT INTO outbox (dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at,
                created_at, updated_at) VALUES ('a', 1, 'reply', '+1', '+2', 'Hello.', 1, 0, 0, 0)";
        visit(path, |conn| conn.batch_execute(waiting)).unwrap();
        let backlog = |minutes| {
            let examined = examine(path, NOW + SignedDuration::from_mins(minutes)).unwrap();
            examined.contents.map(|contents| contents.backlog)
        };
        let unsent = |unsent| Some(Backlog { unanswered: 0, unsent });
        assert_eq!([backlog(9), backlog(11)], [unsent(0), unsent(1)]);
    }

    /// Creates the file, and closes it again.
    fn visit_new(path: &str) {
        drop(Db::open_simulated(path, 0).unwrap());
    }
}
