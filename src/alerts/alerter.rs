//! Task that finds events for the operator every minute, stores alerts about them, and sends the stored alerts.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::detection;
use crate::clock::Clock;
use crate::connections::monitor::ConnectionMonitor;
use crate::connections::states::ConnectionStates;
use crate::conversation::retry_policy::BackoffPolicy;
use crate::engine::Engine;
use crate::live::Live;
use crate::messaging::alert_sender::{AlertError, AlertMessage, AlertSender};
use crate::store::Conn;
use crate::store::database::db::{Db, DbError};
use crate::store::queue::alerts::{self, AlertState, DueAlert};
use crate::store::turns::daily_budget::Day;
use crate::telemetry;

const INTERVAL: Duration = Duration::from_mins(1);
const BACKOFF: BackoffPolicy =
    BackoffPolicy { first_pause: Duration::from_mins(1), factor: 2, max_pause: Duration::from_hours(1) };
/// Longest pause of [`BACKOFF`].
const MAX_PAUSE: SignedDuration = SignedDuration::from_hours(1);
/// Age after which an alert that was not sent is given up.
const MAX_ALERT_AGE: SignedDuration = SignedDuration::from_hours(24);

#[derive(Clone)]
pub struct Alerter {
    pub db: Db,
    pub clock: Clock,
    pub engine: Arc<Engine>,
    pub connections: ConnectionStates,
    /// `None` without a target.
    pub sender: Live<Option<AlertSender>>,
}

impl Alerter {
    /// Creates an alerter for the connections of a monitor.
    pub(crate) fn new(monitor: &ConnectionMonitor, sender: Live<Option<AlertSender>>) -> Self {
        Self {
            db: monitor.db.clone(),
            clock: monitor.clock.clone(),
            engine: monitor.engine.clone(),
            connections: monitor.states.clone(),
            sender,
        }
    }

    pub async fn run(self, stop: CancellationToken) {
        loop {
            let round = async {
                tokio::time::sleep(INTERVAL).await;
                if let Err(error) = self.run_once().await {
                    tracing::warn!(%error, "failed to store or load alerts");
                }
            };
            tokio::select! {
                // A request that is interrupted here is repeated after the next start.
                () = round => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Runs one round.
    pub async fn run_once(&self) -> Result<(), DbError> {
        let current = self.sender.current();
        let Some(sender) = current.as_ref() else { return Ok(()) };
        self.store_new_alerts(sender).await?;
        let now = self.clock.now();
        let due = self.db.read(move |conn| alerts::load_due_alerts(conn, MAX_PAUSE, now)).await?;
        for alert in due {
            self.send_due_alert(sender, alert).await?;
        }
        Ok(())
    }

    /// Stores the alerts, which are on disk when this function returns.
    async fn store_new_alerts(&self, sender: &AlertSender) -> Result<(), DbError> {
        let now = self.clock.now();
        let today = Day::from_timestamp(now, &self.engine.settings().zone);
        let connections = self.connections.current();
        let find = move |conn: &mut Conn| detection::find_new_alerts(conn, &connections, &today, now);
        let new = self.db.read(find).await?;
        if new.is_empty() {
            return Ok(());
        }
        let targets = sender.targets();
        let store = move |conn: &mut Conn| {
            new.iter().try_for_each(|alert| alerts::queue_alert(conn, alert, &targets, now))
        };
        self.db.write(store).await
    }

    /// Sends an alert once, and records the outcome. After a crash in between, the alert is sent again.
    async fn send_due_alert(&self, sender: &AlertSender, alert: DueAlert) -> Result<(), DbError> {
        let DueAlert { id, kind, target, body, attempts, created_at } = alert;
        let message = AlertMessage { id: Some(id), event: kind.as_str(), message: &body, created_at };
        let age = self.clock.now().duration_since(created_at);
        let outcome = match age < MAX_ALERT_AGE {
            true => sender.send_alert(target, &message).await,
            false => Err(AlertError::TooOld),
        };
        let now = self.clock.now();
        let retry_at =
            outcome.as_ref().err().and_then(|error| retry_time(error, attempts + 1, created_at, now));
        let state = if outcome.is_ok() { AlertState::Sent } else { AlertState::Failed };
        if let (Err(error), None) = (&outcome, retry_at) {
            let error = telemetry::error_chain(error);
            tracing::warn!(target = target.as_str(), error, "gave up sending an alert");
        }
        let record = move |conn: &mut Conn| match retry_at {
            Some(due_at) => alerts::schedule_retry(conn, id, due_at),
            None => alerts::end_alert(conn, id, state),
        };
        self.db.write_unsynced(record).await
    }
}

/// Returns the time of the next attempt after the failed attempt with this number; `None` to give up.
fn retry_time(error: &AlertError, attempt: u32, created_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let due_at = now + BACKOFF.pause_after(attempt, None);
    (error.is_retriable() && due_at.duration_since(created_at) < MAX_ALERT_AGE).then_some(due_at)
}
