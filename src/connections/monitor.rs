//! Task that checks every connection each minute, without a model call.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Mutex, Notify, watch};
use tokio_util::sync::CancellationToken;

use super::day_history::{DAY_QUARTERS, DayHistory, quarter_number};
use super::states::{ConnectionState, ConnectionStates};
use crate::clock::Clock;
use crate::doctor::connection_test::{ConnectionKind, ConnectionTester};
use crate::doctor::{Finding, FindingGrade, host};
use crate::engine::Engine;
use crate::heartbeat::HeartbeatError;
use crate::live::Live;
use crate::maintenance::Maintenance;
use crate::store::Conn;
use crate::store::connection_history::{self, StoredHistory};
use crate::store::database::database_file;
use crate::store::database::db::{Db, DbError};

/// Delay of the first round, in which services that start together with the program become available.
const START_DELAY: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_mins(1);
/// Interval of the checks with several requests per connection, and a shorter one while they fail.
const THOROUGH_INTERVAL: SignedDuration = SignedDuration::from_hours(1);
const SHORT_THOROUGH_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

/// Monitor of all connections. Clones share its progress.
#[derive(Clone)]
pub struct ConnectionMonitor {
    pub(crate) engine: Arc<Engine>,
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) tester: Live<ConnectionTester>,
    /// Signal that a connection was tested, after which all are checked at once.
    pub(crate) test_ended: Arc<Notify>,
    pub(crate) heartbeat_error: HeartbeatError,
    pub(crate) states: ConnectionStates,
    /// `None` before the first round.
    pub(crate) progress: Arc<Mutex<Option<MonitorProgress>>>,
}

/// Results of earlier rounds.
pub(crate) struct MonitorProgress {
    /// Histories in the database, by connection.
    stored: BTreeMap<String, DayHistory>,
    database_path: PathBuf,
    thorough: Option<ThoroughCheck>,
}

/// Failures that only the checks with several requests find.
struct ThoroughCheck {
    checked_at: Timestamp,
    tester: Arc<ConnectionTester>,
    failures: Vec<(ConnectionKind, Finding)>,
}

impl ThoroughCheck {
    /// Returns whether the check still holds: it is recent, and of the newest connections.
    fn holds(&self, tester: &Arc<ConnectionTester>, now: Timestamp) -> bool {
        let interval = if self.failures.is_empty() { THOROUGH_INTERVAL } else { SHORT_THOROUGH_INTERVAL };
        Arc::ptr_eq(&self.tester, tester) && now.duration_since(self.checked_at) < interval
    }
}

impl ConnectionMonitor {
    pub(crate) fn new(
        Maintenance { engine, db, clock, .. }: &Maintenance,
        (tester, test_ended): (Live<ConnectionTester>, Arc<Notify>),
    ) -> Self {
        Self {
            engine: engine.clone(),
            db: db.clone(),
            clock: clock.clone(),
            tester,
            test_ended,
            heartbeat_error: Live::new(None),
            states: Live::new(Vec::new()),
            progress: Arc::default(),
        }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut replaced = self.tester.subscribe();
        let mut delay = START_DELAY;
        loop {
            let round = async {
                self.wait_for_round(delay, &mut replaced).await;
                if let Err(error) = self.run_once().await {
                    tracing::warn!(%error, "failed to load or store the states of the connections");
                }
            };
            tokio::select! {
                () = round => {}
                () = stop.cancelled() => return,
            }
            delay = INTERVAL;
        }
    }

    /// Waits until the next round is due: after the delay, or when a connection was changed or tested.
    async fn wait_for_round(&self, delay: Duration, replaced: &mut watch::Receiver<Arc<ConnectionTester>>) {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = replaced.changed() => {}
            () = self.test_ended.notified() => {
                if let Some(progress) = &mut *self.progress.lock().await {
                    progress.thorough = None;
                }
            }
        }
    }

    /// Checks all connections once.
    pub(crate) async fn run_once(&self) -> Result<(), DbError> {
        let mut guard = self.progress.lock().await;
        let progress = match &mut *guard {
            Some(progress) => progress,
            empty => empty.insert(self.load_progress().await?),
        };
        let tester = self.tester.current();
        let mut findings = tester.check_quickly().await;
        let write_error = self.heartbeat_error.current();
        let database = host::open_database_finding(self.db.check_files(), write_error.as_deref());
        findings.extend([
            (ConnectionKind::Database, Some(database)),
            (ConnectionKind::Disk, Some(host::disk_finding(&progress.database_path))),
        ]);
        let now = self.clock.now();
        if !progress.thorough.as_ref().is_some_and(|thorough| thorough.holds(&tester, now)) {
            let mut failures = tester.find_failures().await;
            // What the quick check finds too ends with it.
            failures.retain(|(kind, _)| working_finding(&mut findings, *kind).is_some());
            progress.thorough = Some(ThoroughCheck { checked_at: now, tester, failures });
        }
        for (kind, failure) in progress.thorough.iter().flat_map(|thorough| &thorough.failures) {
            if let Some(finding) = working_finding(&mut findings, *kind) {
                *finding = failure.clone();
            }
        }
        self.replace_states(findings, &progress.stored, now);
        self.save_histories(&mut progress.stored, now).await
    }

    fn replace_states(
        &self,
        findings: Vec<(ConnectionKind, Option<Finding>)>,
        stored: &BTreeMap<String, DayHistory>,
        now: Timestamp,
    ) {
        let earlier = self.states.current();
        let next = findings.into_iter().map(|(kind, finding)| {
            let earlier = earlier.iter().find(|state| state.kind == kind).cloned();
            let earlier = earlier.unwrap_or_else(|| {
                let history = stored.get(kind.as_str()).cloned().unwrap_or_default();
                let has_worked = history.has_worked(now);
                ConnectionState { kind, finding: None, history, failing_since: None, has_worked }
            });
            next_state(earlier, finding, now)
        });
        let next: Vec<ConnectionState> = next.collect();
        if *self.states.current() != next {
            self.states.replace(next);
        }
    }

    async fn load_progress(&self) -> Result<MonitorProgress, DbError> {
        let load = |conn: &mut Conn| {
            Ok((connection_history::load_histories(conn)?, database_file::load_database_file_size(conn)?))
        };
        let (rows, file) = self.db.read(load).await?;
        let history = |row: StoredHistory| (row.name, DayHistory::from_stored(row.last_quarter, &row.states));
        let stored = rows.into_iter().map(history).collect();
        Ok(MonitorProgress { stored, database_path: file.path.into(), thorough: None })
    }

    /// Stores the changed histories: at most every quarter hour, unless a state becomes worse.
    async fn save_histories(
        &self,
        stored: &mut BTreeMap<String, DayHistory>,
        now: Timestamp,
    ) -> Result<(), DbError> {
        let states = self.states.current();
        let changed: Vec<(&str, &DayHistory)> = states
            .iter()
            .filter(|state| state.finding.is_some())
            .map(|state| (state.kind.as_str(), &state.history))
            .filter(|(name, history)| stored.get(*name) != Some(*history))
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        let rows: Vec<StoredHistory> = changed
            .iter()
            .map(|(name, history)| {
                let (last_quarter, states) = history.to_stored();
                StoredHistory { name: (*name).to_owned(), last_quarter, states }
            })
            .collect();
        let oldest = quarter_number(now) - DAY_QUARTERS as i64;
        self.db.write_unsynced(move |conn| connection_history::save_histories(conn, &rows, oldest)).await?;
        stored.extend(changed.into_iter().map(|(name, history)| (name.to_owned(), history.clone())));
        Ok(())
    }
}

/// Returns the finding of a connection, unless it is a failure.
fn working_finding(
    findings: &mut [(ConnectionKind, Option<Finding>)],
    kind: ConnectionKind,
) -> Option<&mut Finding> {
    let (_, finding) = findings.iter_mut().find(|(found, _)| *found == kind)?;
    finding.as_mut().filter(|finding| finding.grade != FindingGrade::Failure)
}

/// Adds the finding of a check to the state before it.
fn next_state(earlier: ConnectionState, finding: Option<Finding>, now: Timestamp) -> ConnectionState {
    let ConnectionState { kind, mut history, failing_since, has_worked, .. } = earlier;
    let finding = finding.map(|finding| match kind {
        // Some routers block access to their own public address, so only an address that worked before fails.
        ConnectionKind::Webhook if finding.grade == FindingGrade::Warning && has_worked => {
            Finding { grade: FindingGrade::Failure, ..finding }
        }
        _ => finding,
    });
    let grade = finding.as_ref().map(|finding| finding.grade);
    if let Some(grade) = grade {
        history.add_state(grade, now);
    }
    let is_failing = grade == Some(FindingGrade::Failure);
    ConnectionState {
        kind,
        finding,
        history,
        failing_since: is_failing.then(|| failing_since.unwrap_or(now)),
        has_worked: has_worked || grade == Some(FindingGrade::Ok),
    }
}
