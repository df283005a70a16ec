//! Syncs of the write-ahead log to the disk.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

/// Syncs of the write-ahead log by this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LogSyncs(Arc<LogSyncsInner>);

#[derive(Debug, Default)]
struct LogSyncsInner {
    count: AtomicU64,
    synced_bytes: AtomicU64,
    failed: CancellationToken,
}

impl LogSyncs {
    /// Syncs the log, and counts the sync. After a failure, what the disk holds is unknown.
    pub(in crate::store) fn sync(&self, log: &File) -> io::Result<()> {
        let synced = log.metadata().and_then(|metadata| log.sync_data().map(|()| metadata.len()));
        match &synced {
            Ok(bytes) => {
                self.0.count.fetch_add(1, Ordering::Relaxed);
                self.0.synced_bytes.store(*bytes, Ordering::Relaxed);
            }
            Err(_) => self.0.failed.cancel(),
        }
        synced.map(drop)
    }

    /// Returns whether a sync has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.0.failed.is_cancelled()
    }

    /// Waits until a sync fails. The process must end then: the operating system reports a failed sync only once.
    pub async fn wait_for_failure(&self) {
        self.0.failed.cancelled().await;
    }

    /// Returns the number of syncs.
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Returns the size of the log at the last sync, in bytes. Later commits are behind this position, unless the log
    /// was started over since.
    pub fn synced_bytes(&self) -> u64 {
        self.0.synced_bytes.load(Ordering::Relaxed)
    }
}
