//! Watcher of the requests at a Seerr. It reads them every minute, because a webhook is only a hint, and does nothing
//! without a Seerr.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::work_signal::WorkSignal;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::seerr::Seerr;
use crate::store::database::db::Db;

/// Interval at which the requests are read.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// Watcher of the requests at a Seerr.
pub struct RequestWatcher {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) live: LiveParts,
    pub(super) outbox: OutboxSignal,
    requests_changed: WorkSignal,
    /// Number of rounds, by which requests that did not change for long are read in turn.
    pub(super) rounds: AtomicUsize,
}

impl RequestWatcher {
    pub(crate) fn new(parts: &EngineParts, requests_changed: WorkSignal) -> Self {
        let EngineParts { db, clock, live, outbox, .. } = parts.clone();
        Self { db, clock, live, outbox, requests_changed, rounds: AtomicUsize::default() }
    }

    /// Lets the watcher read the requests at once.
    pub(crate) fn wake_worker(&self) {
        self.requests_changed.notify();
    }

    /// Reads the requests until the task is dropped. Without a Seerr, the watcher waits for a change of the
    /// configuration.
    pub(crate) async fn run(&self) {
        let mut is_failing = false;
        loop {
            let Some(seerr) = self.live.current().library.requests.clone() else {
                self.requests_changed.wait().await;
                continue;
            };
            match self.check_requests(&seerr).await {
                Ok(()) => is_failing = false,
                Err(error) => {
                    if !is_failing {
                        tracing::warn!(error = format!("{error:#}"), "failed to check the requests at Seerr");
                    }
                    is_failing = true;
                }
            }
            tokio::select! {
                () = self.requests_changed.wait() => {}
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    /// Passes decisions on, reports changed states, and offers new requests to the admins.
    async fn check_requests(&self, seerr: &Seerr) -> anyhow::Result<()> {
        self.pass_decisions_on(seerr).await?;
        self.report_states(seerr).await?;
        self.offer_requests(seerr).await
    }
}
