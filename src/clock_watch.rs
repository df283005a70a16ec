//! Task that watches the wall clock: it adopts a step within a second, and records a heartbeat every minute, which is a
//! lower bound of the time at the next start.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::store::boot;
use crate::store::database::db::{Db, DbError};

const INTERVAL: Duration = Duration::from_secs(1);
/// Number of clock checks between two heartbeats.
const CHECKS_PER_HEARTBEAT: u32 = 60;

pub(crate) struct ClockWatch {
    pub engine: Arc<Engine>,
    pub db: Db,
    pub clock: Clock,
}

impl ClockWatch {
    pub(crate) async fn run(self, stop: CancellationToken) {
        for check_number in 1_u32.. {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            if let Err(error) = self.check_clock(check_number).await {
                tracing::error!(%error, "failed to check the clock");
            }
        }
    }

    async fn check_clock(&self, check_number: u32) -> Result<(), DbError> {
        if self.clock.pending_step().is_some() {
            let step = self.engine.adopt_clock_step().await?;
            tracing::warn!(seconds = step.as_secs(), "wall clock stepped, shifted pending deadlines");
        }
        if !check_number.is_multiple_of(CHECKS_PER_HEARTBEAT) {
            return Ok(());
        }
        self.db.write_in_order(|| self.clock.now(), boot::record_heartbeat).await
    }
}
