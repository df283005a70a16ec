//! Task that watches the wall clock, and adopts a step within a second.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::store::database::db::DbError;

const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct ClockWatch {
    pub engine: Arc<Engine>,
    pub clock: Clock,
}

impl ClockWatch {
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            if let Err(error) = self.check_clock().await {
                tracing::error!(%error, "failed to check the clock");
            }
        }
    }

    async fn check_clock(&self) -> Result<(), DbError> {
        if self.clock.pending_step().is_some() {
            let step = self.engine.adopt_clock_step().await?;
            tracing::warn!(seconds = step.as_secs(), "wall clock stepped, shifted pending deadlines");
        }
        Ok(())
    }
}
