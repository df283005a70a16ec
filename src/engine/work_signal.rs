//! Wake-ups of the engine's workers.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wake-up of one worker. It carries no data, since the tables are the queue. Clones wake the same worker.
#[derive(Clone, Default)]
pub(crate) struct WorkSignal(Arc<Notify>);

impl WorkSignal {
    pub(crate) fn notify(&self) {
        self.0.notify_one();
    }

    /// Waits for a wake-up. Returns at once if there was a wake-up since the last wait.
    pub(crate) async fn wait(&self) {
        self.0.notified().await;
    }
}
