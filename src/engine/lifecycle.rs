//! Phases of the engine from startup to shutdown, and the tasks that shutdown waits for.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Phase of the engine, and its tasks. Clones share both.
#[derive(Clone, Default)]
pub(crate) struct EngineLifecycle {
    /// Canceled when turns may start. Messages are accepted before that.
    accepting_turns: CancellationToken,
    /// Canceled when no new turn may start.
    draining: CancellationToken,
    /// Canceled when running work is dropped immediately.
    aborting: CancellationToken,
    tasks: TaskTracker,
}

impl EngineLifecycle {
    pub(crate) fn accept_turns(&self) {
        self.accepting_turns.cancel();
    }

    pub(crate) fn accepts_turns(&self) -> bool {
        self.accepting_turns.is_cancelled()
    }

    /// Waits until turns may start.
    pub(crate) async fn wait_for_turns(&self) {
        self.accepting_turns.cancelled().await;
    }

    /// Returns whether no new work may start.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(crate) async fn wait_for_drain(&self) {
        self.draining.cancelled().await;
    }

    pub(crate) async fn wait_for_abort(&self) {
        self.aborting.cancelled().await;
    }

    /// Starts a task that shutdown waits for.
    pub(crate) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tasks.spawn(work)
    }

    /// Starts no new turn, and waits until the running turns end or `timeout` has passed. Interrupted work continues
    /// from its last record at the next start.
    pub(crate) async fn drain(&self, timeout: Duration) {
        self.draining.cancel();
        self.tasks.close();
        if tokio::time::timeout(timeout, self.tasks.wait()).await.is_err() {
            self.aborting.cancel();
            self.tasks.wait().await;
        }
    }

    /// Drops running work immediately.
    pub(crate) async fn abort(&self) {
        self.draining.cancel();
        self.aborting.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
