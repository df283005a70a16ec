//! Health endpoints for the services that restart or monitor the program. They are public, so each result is cached for
//! a moment: a flood of requests does not cause a flood of database checks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRef, State};
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::WebhookState;
use super::console_state::ConsoleState;
use crate::clock::Clock;
use crate::store::database::database_inspection;
use crate::store::database::db::{Db, DbError};
use crate::store::queue::backlog::{AssistantState, Backlog, QueueDepth, load_backlog};
use crate::store::queue::source_cursors;

/// Time limit for an empty operation. A slower database counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Shortest interval between two checks.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_secs(1);
/// Period for which a successful write is cached: each costs a disk sync.
const WRITE_CHECK_INTERVAL: SignedDuration = SignedDuration::from_secs(10);
/// Longest normal wait of an inbound message. A turn takes two minutes at most, and a user rarely has several messages
/// waiting.
const MAX_INBOUND_AGE: SignedDuration = SignedDuration::from_mins(10);
/// Longest normal delay of an outbound message: by then several attempts have failed.
const MAX_UNSENT_AGE: SignedDuration = SignedDuration::from_mins(15);

/// Health checks of the program; clones share the cached results.
#[derive(Clone)]
pub struct HealthChecker(Arc<HealthState>);

struct HealthState {
    db: Db,
    clock: Clock,
    alive: CachedReport,
    ready: CachedReport,
    /// Time of the last successful write.
    written_at: Mutex<Option<Timestamp>>,
}

/// Last report, and the permit to create the next one.
struct CachedReport {
    last: Mutex<Option<(Timestamp, HealthReport)>>,
    refresh_permit: Semaphore,
}

impl Default for CachedReport {
    fn default() -> Self {
        Self { last: Mutex::new(None), refresh_permit: Semaphore::new(1) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct HealthReport {
    status: &'static str,
    pub(super) checks: Vec<HealthCheckResult>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct HealthCheckResult {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    pub(super) detail: String,
}

impl HealthCheckResult {
    fn new(name: &'static str, outcome: Result<String, String>) -> Self {
        let ok = outcome.is_ok();
        Self { name, ok, detail: outcome.unwrap_or_else(|problem| problem) }
    }
}

impl HealthReport {
    /// Name of the check of the database file.
    pub(super) const DATABASE_FILE: &'static str = "database file";

    fn from_checks(checks: Vec<HealthCheckResult>) -> Self {
        let status = if checks.iter().all(|check| check.ok) { "ok" } else { "failing" };
        Self { status, checks }
    }
}

impl IntoResponse for HealthReport {
    fn into_response(self) -> Response {
        let status = match self.status {
            "ok" => StatusCode::OK,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, [(CACHE_CONTROL, "no-store")], Json(self)).into_response()
    }
}

impl FromRef<Arc<WebhookState>> for HealthChecker {
    fn from_ref(webhooks: &Arc<WebhookState>) -> Self {
        webhooks.health.clone()
    }
}

impl FromRef<ConsoleState> for HealthChecker {
    fn from_ref(console: &ConsoleState) -> Self {
        console.health.clone()
    }
}

/// Reports liveness: whether the process works at all. If not, a restart may help.
pub(super) async fn report_liveness(State(health): State<HealthChecker>) -> HealthReport {
    health
        .cached_report(&health.0.alive, async || {
            HealthReport::from_checks(vec![health.check_write_queue().await])
        })
        .await
}

/// Reports readiness: whether messages are received, answered and sent.
pub(super) async fn report_readiness(State(health): State<HealthChecker>) -> HealthReport {
    health.check_readiness().await
}

impl HealthChecker {
    pub fn new(db: Db, clock: Clock) -> Self {
        let (alive, ready) = (CachedReport::default(), CachedReport::default());
        Self(Arc::new(HealthState { db, clock, alive, ready, written_at: Mutex::new(None) }))
    }

    pub(super) async fn check_readiness(&self) -> HealthReport {
        let run_checks = async || {
            let (migrated, written, backlog) =
                tokio::join!(self.check_migrations(), self.check_disk_write(), self.check_backlog());
            HealthReport::from_checks(
                [self.check_database_file(), migrated, written].into_iter().chain(backlog).collect(),
            )
        };
        self.cached_report(&self.0.ready, run_checks).await
    }

    /// Returns the last report, or a new one. Concurrent callers wait for it and share it.
    async fn cached_report(
        &self,
        cached: &CachedReport,
        run_checks: impl AsyncFnOnce() -> HealthReport,
    ) -> HealthReport {
        // The semaphore is never closed.
        let _permit = cached.refresh_permit.acquire().await;
        let last = cached.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, report)) = last
            && self.is_fresh(at, CHECK_INTERVAL)
        {
            return report;
        }
        let report = run_checks().await;
        for check in report.checks.iter().filter(|check| !check.ok) {
            tracing::warn!(check = check.name, detail = check.detail, "health check failed");
        }
        *cached.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((self.0.clock.now(), report.clone()));
        report
    }

    fn is_fresh(&self, at: Timestamp, max_age: SignedDuration) -> bool {
        let age = self.0.clock.now().duration_since(at);
        !age.is_negative() && age < max_age
    }

    /// Checks that the write queue starts and completes a task. A task without changes causes no sync.
    async fn check_write_queue(&self) -> HealthCheckResult {
        let outcome = tokio::time::timeout(CHECK_TIMEOUT, self.0.db.write(|_| Ok(()))).await;
        HealthCheckResult::new("database", describe_failure(outcome).map(|()| "responds".to_owned()))
    }

    /// Checks that the database file is in place. A restart would not help, because without a file it would start with
    /// an empty database. So this check belongs to readiness, not liveness.
    fn check_database_file(&self) -> HealthCheckResult {
        let outcome = self.0.db.check_files().map_err(|displaced| displaced.to_string());
        HealthCheckResult::new(HealthReport::DATABASE_FILE, outcome.map(|()| "in place".to_owned()))
    }

    async fn check_migrations(&self) -> HealthCheckResult {
        let has_current_schema =
            tokio::time::timeout(CHECK_TIMEOUT, self.0.db.read(database_inspection::has_current_tables))
                .await;
        let outcome = match describe_failure(has_current_schema) {
            Ok(true) => Ok("schema is current".to_owned()),
            Ok(false) => Err("the schema is that of another version".to_owned()),
            Err(problem) => Err(problem),
        };
        HealthCheckResult::new("migrations", outcome)
    }

    async fn check_disk_write(&self) -> HealthCheckResult {
        let last = *self.0.written_at.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|at| self.is_fresh(at, WRITE_CHECK_INTERVAL)) {
            return HealthCheckResult::new("writing", Ok("works".to_owned()));
        }
        let now = self.0.clock.now();
        let probe = self.0.db.write(move |conn| source_cursors::probe_write(conn, now));
        let outcome = describe_failure(tokio::time::timeout(CHECK_TIMEOUT, probe).await);
        let written = outcome.as_ref().ok().map(|()| now);
        *self.0.written_at.lock().unwrap_or_else(PoisonError::into_inner) = written;
        HealthCheckResult::new("writing", outcome.map(|()| "works".to_owned()))
    }

    async fn check_backlog(&self) -> Vec<HealthCheckResult> {
        let now = self.0.clock.now();
        let load = self.0.db.read(move |conn| load_backlog(conn, now));
        match describe_failure(tokio::time::timeout(CHECK_TIMEOUT, load).await) {
            Ok(backlog) => {
                let reading = HealthCheckResult::new("reading", Ok("works".to_owned()));
                vec![reading, check_inbound(&backlog, now), check_outbound(&backlog, now)]
            }
            Err(problem) => vec![HealthCheckResult::new("reading", Err(problem))],
        }
    }
}

fn check_inbound(backlog: &Backlog, now: Timestamp) -> HealthCheckResult {
    let outcome = match (backlog.assistant, check_age(backlog.waiting, MAX_INBOUND_AGE, now)) {
        (AssistantState::Paused, _) => Ok(format!("{} waiting; replies are paused", backlog.waiting.length)),
        (AssistantState::Running, Ok(())) => Ok(format!("{} waiting", backlog.waiting.length)),
        (AssistantState::Running, Err(minutes)) => {
            Err(format!("{} waiting, the oldest for {minutes} minutes", backlog.waiting.length))
        }
    };
    HealthCheckResult::new("received texts", outcome)
}

fn check_outbound(backlog: &Backlog, now: Timestamp) -> HealthCheckResult {
    let outcome = match check_age(backlog.unsent, MAX_UNSENT_AGE, now) {
        Ok(()) => Ok(format!("{} to send", backlog.unsent.length)),
        Err(minutes) => Err(format!("{} to send, the oldest for {minutes} minutes", backlog.unsent.length)),
    };
    HealthCheckResult::new("texts to send", outcome)
}

/// Returns the age of the oldest entry in minutes as an error, if it is above `limit`.
fn check_age(queue: QueueDepth, limit: SignedDuration, now: Timestamp) -> Result<(), i64> {
    match queue.oldest.map(|at| now.duration_since(at)) {
        Some(age) if age > limit => Err(age.as_mins()),
        Some(_) | None => Ok(()),
    }
}

/// Describes a failure without the database's error message, which may contain a path or user data.
fn describe_failure<T>(
    outcome: Result<Result<T, DbError>, tokio::time::error::Elapsed>,
) -> Result<T, String> {
    match outcome {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            tracing::warn!(error = format!("{:#}", anyhow::Error::from(error)), "database check failed");
            Err("database check failed".to_owned())
        }
        Err(_) => Err(format!("no response within {} s", CHECK_TIMEOUT.as_secs())),
    }
}
