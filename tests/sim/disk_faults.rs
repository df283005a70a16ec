//! Faults of the disk: losses of power, and writes that fail because the disk is full.

use std::path::Path;

use dialarr::store::database::db::Db;
use diesel::connection::SimpleConnection;

use crate::plan::DiskFault;

/// Size of the header of a write-ahead log, and of one frame: a header and a page.
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_BYTES: u64 = 24 + 4096;
/// Tables whose changes fail while the disk is full.
const TABLES: [&str; 6] = ["inbound_events", "turns", "llm_steps", "tool_calls", "outbox", "pending_actions"];

/// Files of a database as a loss of power leaves them on the disk.
pub(crate) struct DiskImage {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl DiskImage {
    /// Copies the files of a running program. `kept_percent` of the frames behind the last sync reach the disk.
    pub(crate) fn of(path: &Path, db: &Db, kept_percent: u64) -> Self {
        let mut log = std::fs::read(path.with_extension("db-wal")).unwrap();
        let bytes = u64::try_from(log.len()).unwrap();
        let synced = db.log_syncs().synced_bytes().max(LOG_HEADER_BYTES).min(bytes);
        let kept_frames = (bytes - synced) / FRAME_BYTES * kept_percent / 100;
        log.truncate(usize::try_from(synced + kept_frames * FRAME_BYTES).unwrap());
        Self { database: std::fs::read(path).unwrap(), log }
    }

    /// Restores the files after the program has ended.
    pub(crate) fn restore(&self, path: &Path) {
        std::fs::write(path, &self.database).unwrap();
        std::fs::write(path.with_extension("db-wal"), &self.log).unwrap();
        // The file does not exist after a clean end.
        let _ = std::fs::remove_file(path.with_extension("db-shm"));
    }
}

/// Makes the program's writes fail until [`free_disk`].
pub(crate) async fn fill_disk(db: &Db, fault: DiskFault) {
    let body = match fault {
        DiskFault::AtStatement => "SELECT RAISE(ABORT, 'database or disk is full')",
        // The missing parent row is found at the commit.
        DiskFault::AtCommit => "INSERT INTO full_disk VALUES (-1)",
    };
    let triggers: String = TABLES
        .iter()
        .flat_map(|table| ["INSERT", "UPDATE"].map(|change| (table, change)))
        .map(|(table, change)| {
            format!("CREATE TEMP TRIGGER full_{table}_{change} AFTER {change} ON {table} BEGIN {body}; END;")
        })
        .collect();
    let table = "CREATE TABLE IF NOT EXISTS full_disk \
                 (parent INTEGER REFERENCES users(id) DEFERRABLE INITIALLY DEFERRED);";
    db.write(move |conn| conn.batch_execute(&format!("{table}{triggers}"))).await.unwrap();
}

/// Lets the program's writes succeed again.
pub(crate) async fn free_disk(db: &Db) {
    let drops: String = TABLES
        .iter()
        .flat_map(|table| {
            ["INSERT", "UPDATE"].map(|change| format!("DROP TRIGGER IF EXISTS full_{table}_{change};"))
        })
        .collect();
    db.write(move |conn| conn.batch_execute(&drops)).await.unwrap();
}
