//! Queue of a simulated database, which has no writer thread: the caller of a write waits for a short time and runs the
//! write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Upper bound of a wait, in milliseconds.
const MAX_WAIT_MS: u64 = 4;

/// Queue that waits for a short time before and after each write, so that a kill can occur on either side of a commit.
/// The same seed gives the same waits.
#[derive(Debug)]
pub(in crate::store) struct SimulatedQueue {
    seed: AtomicU64,
    /// Number of requested writes that have not run yet.
    queued: AtomicUsize,
}

impl SimulatedQueue {
    pub(in crate::store) fn new(seed: u64) -> Self {
        Self { seed: AtomicU64::new(seed), queued: AtomicUsize::new(0) }
    }

    pub(in crate::store) async fn wait_briefly(&self) {
        let mixed =
            self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        tokio::time::sleep(Duration::from_millis((mixed >> 33) % MAX_WAIT_MS)).await;
    }

    /// Counts one write until the guard is dropped, even if the write never runs.
    pub(in crate::store) fn count_write(self: &Arc<Self>) -> QueuedWrite {
        self.queued.fetch_add(1, Ordering::Relaxed);
        QueuedWrite(self.clone())
    }

    /// Waits until no write is queued.
    pub(in crate::store) async fn wait_until_empty(&self) {
        while self.queued.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Guard that counts one queued write.
pub(in crate::store) struct QueuedWrite(Arc<SimulatedQueue>);

impl Drop for QueuedWrite {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::Relaxed);
    }
}
