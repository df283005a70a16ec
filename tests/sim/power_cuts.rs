//! Losses of power.

use std::path::Path;

use dialarr::store::database::db::Db;

/// Size of the header of a write-ahead log, and of one frame: a header and a page.
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_BYTES: u64 = 24 + 4096;

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
