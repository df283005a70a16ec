//! Scheduler of turns, with one task per busy user. A task lives only while there is work. A wake-up carries no data:
//! the tables are the queue, so a lost or repeated wake-up is harmless.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::failed_work;
use super::user_tasks::UserTasks;
use super::verification::MessageVerifier;
use crate::clock::Clock;
use crate::conversation::transcript::{EventId, TurnId, UserId};
use crate::engine::lifecycle::EngineLifecycle;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::routing::turn_start::{TurnStartOutcome, TurnStarter};
use crate::engine::turns::first_call::FirstCall;
use crate::engine::turns::turn_runner::{TurnRunner, TurnRunners};
use crate::messaging::outbox_relay::OutboxSignal;
use crate::metrics::Metrics;
use crate::store::database::db::{Db, DbError};
use crate::store::people::rooms;
use crate::store::queue::inbound_messages;
use crate::store::queue::next_work::{self, NextWork};
use crate::store::stream::event_log::HistoryVersion;
use crate::store::turns::turn_stats::{self, TurnStats};
use crate::store::turns::{model_steps, turn_lifecycle};
use crate::store::{Conn, QueryResult};

/// Delay before work is retried after a database error or an internal error.
const ERROR_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Handle to the scheduler; clones share it.
#[derive(Clone)]
pub struct TurnScheduler(Arc<SchedulerInner>);

struct SchedulerInner {
    user_tasks: UserTasks,
    db: Db,
    clock: Clock,
    live: LiveParts,
    metrics: Metrics,
    outbox: OutboxSignal,
    lifecycle: EngineLifecycle,
    verifier: MessageVerifier,
    starter: TurnStarter,
    turns: TurnRunners,
}

/// Reason why a user's task ended.
#[derive(PartialEq, Eq)]
enum TaskEnd {
    /// The task had no more work and removed itself from the map.
    Retired,
    /// The engine stops.
    Stopped,
}

/// What a user's task has to do after a turn.
#[derive(Default)]
struct WorkLeftBehind {
    /// Turn that has ended and is not yet counted in the metrics.
    uncounted_turn: Option<TurnId>,
    /// Room of the last turn, in which messages of others may wait.
    room: Option<UserId>,
}

/// Outcome of one check of a user's work.
enum WorkCheck {
    /// Work was done. If it was a turn, the turn has ended.
    Done(Option<TurnId>),
    /// The next work is due at this time.
    NotBefore(Timestamp),
    NoWork,
}

impl TurnScheduler {
    pub(crate) fn new(
        parts: &EngineParts,
        lifecycle: EngineLifecycle,
        starter: TurnStarter,
        turns: TurnRunners,
    ) -> Self {
        let EngineParts { db, clock, metrics, outbox, live, .. } = parts.clone();
        Self(Arc::new(SchedulerInner {
            user_tasks: UserTasks::default(),
            db,
            clock,
            live,
            metrics,
            outbox,
            lifecycle,
            verifier: MessageVerifier::new(parts),
            starter,
            turns,
        }))
    }

    /// Drops the parts of an earlier configuration that no turn uses any more.
    pub(crate) fn drop_earlier_parts(&self) {
        // The runner with the newest parts replaces the kept one.
        self.0.turns.current_runner();
    }

    /// Starts or wakes the work on a user's messages, and returns at once.
    pub fn wake_user(&self, user: UserId) {
        let Some(wakeup) = self.0.user_tasks.wake_task(user) else { return };
        let scheduler = self.clone();
        self.0.lifecycle.spawn(async move {
            let end = tokio::select! {
                biased;
                () = scheduler.0.lifecycle.wait_for_abort() => TaskEnd::Stopped,
                end = scheduler.run_user_task(user, &wakeup) => end,
            };
            // A retired task may already have a successor.
            if end == TaskEnd::Stopped {
                scheduler.0.user_tasks.remove_task(user);
            }
        });
    }

    /// Resumes all unfinished work and allows turns to start. No other function resumes unfinished work.
    pub async fn recover_work(&self) -> Result<(), DbError> {
        let users = self.0.db.read(next_work::load_users_with_work).await?;
        self.0.lifecycle.accept_turns();
        for user in users {
            self.wake_user(user);
        }
        Ok(())
    }

    /// Waits until no user has a running task.
    pub async fn wait_until_idle(&self) {
        loop {
            let work_done = self.0.user_tasks.next_work_done();
            tokio::pin!(work_done);
            work_done.as_mut().enable();
            if self.0.user_tasks.is_idle() {
                return;
            }
            work_done.await;
        }
    }

    /// Waits until a message is finished, or until its user's task has ended, because the assistant is paused or the
    /// program stops.
    pub async fn wait_for_message(&self, user: UserId, event: EventId) -> Result<(), DbError> {
        self.wait_for_work(user, move |conn| inbound_messages::is_message_finished(conn, event)).await
    }

    /// Waits until some work for a user is finished, or until the user's task has ended.
    pub async fn wait_for_work(
        &self,
        user: UserId,
        is_finished: impl Fn(&mut Conn) -> QueryResult<bool> + Clone + Send + 'static,
    ) -> Result<(), DbError> {
        loop {
            let work_done = self.0.user_tasks.next_work_done();
            tokio::pin!(work_done);
            work_done.as_mut().enable();
            let is_busy = self.0.user_tasks.is_busy(user);
            if self.0.db.read(is_finished.clone()).await? || !is_busy {
                return Ok(());
            }
            work_done.await;
        }
    }

    async fn run_user_task(&self, user: UserId, wakeup: &Arc<Notify>) -> TaskEnd {
        // If the engine already drains, no more work starts, even if turns may start.
        tokio::select! {
            biased;
            () = self.0.lifecycle.wait_for_drain() => return TaskEnd::Stopped,
            () = self.0.lifecycle.wait_for_turns() => {}
        }
        let mut left = WorkLeftBehind::default();
        loop {
            let check = self.check_work(user, wakeup, &mut left);
            match std::panic::AssertUnwindSafe(check).catch_unwind().await {
                Ok(Ok(WorkCheck::Done(turn))) => {
                    left.uncounted_turn = turn;
                    self.0.user_tasks.signal_work_done();
                }
                Ok(Ok(WorkCheck::NotBefore(at))) => self.wait_until(wakeup, at).await,
                Ok(Ok(WorkCheck::NoWork)) => {
                    if self.0.user_tasks.retire_task(user) {
                        return TaskEnd::Retired;
                    }
                }
                Ok(Err(error)) if is_transient(&error) => {
                    tracing::warn!(%user, error = format!("{error:#}"), "postponed work on a user's messages");
                    self.0.clock.sleep(ERROR_RETRY_DELAY).await;
                }
                Ok(Err(error)) => {
                    tracing::error!(%user, error = format!("{error:#}"), "work on a user's messages failed");
                    self.record_failure(user).await;
                }
                Err(_) => {
                    tracing::error!(%user, "work on a user's messages panicked");
                    self.record_failure(user).await;
                }
            }
            if self.0.lifecycle.is_draining() {
                return TaskEnd::Stopped;
            }
        }
    }

    /// Checks for work of a user, and does it if it is due. Before that, finishes what the last check left behind.
    async fn check_work(
        &self,
        user: UserId,
        wakeup: &Arc<Notify>,
        left: &mut WorkLeftBehind,
    ) -> anyhow::Result<WorkCheck> {
        if let Some(room) = left.room {
            self.wake_people_in(room).await?;
            left.room = None;
        }
        let runner = self.0.turns.current_runner();
        let (NextWork { active_turn, due_at }, first_call) =
            self.load_next_work(user, &runner, &mut left.uncounted_turn).await?;
        let now = self.0.clock.now();
        let history_version = self.0.db.history_cache().version();
        if let Some(active_turn) = active_turn {
            // The turn was left by a restart, or by an error that may have prevented a record.
            left.room = active_turn.room;
            self.0
                .db
                .write(move |conn| model_steps::abandon_unfinished_attempt(conn, active_turn.id, now))
                .await?;
            self.0.turns.current_runner().resume_turn(user, active_turn, wakeup.clone()).await?;
            return Ok(WorkCheck::Done(Some(active_turn.id)));
        }
        match due_at {
            None => Ok(WorkCheck::NoWork),
            Some(due) if due > now => Ok(WorkCheck::NotBefore(due)),
            Some(_) => {
                self.start_next_turn(user, (runner, first_call), (history_version, wakeup), left).await
            }
        }
    }

    /// Starts a turn with the due messages of a user, and runs it. `runner` has prepared its first call.
    async fn start_next_turn(
        &self,
        user: UserId,
        (runner, first_call): (Arc<TurnRunner>, Option<FirstCall>),
        (history_version, wakeup): (HistoryVersion, &Arc<Notify>),
        left: &mut WorkLeftBehind,
    ) -> anyhow::Result<WorkCheck> {
        match self.0.starter.start_turn(user, first_call).await? {
            (TurnStartOutcome::Turn(active_turn), turn) => {
                left.room = active_turn.room;
                self.0.turns.current_runner().resume_turn(user, active_turn, wakeup.clone()).await?;
                Ok(WorkCheck::Done(turn))
            }
            (TurnStartOutcome::Chat(started), turn) => {
                left.room = started.context.active_turn.room;
                // A turn whose first call has started ends on the parts of this call.
                let runner = match started.first_call {
                    Some(_) => runner,
                    None => self.0.turns.current_runner(),
                };
                runner.run_started_turn(*started, history_version, wakeup.clone()).await?;
                Ok(WorkCheck::Done(turn))
            }
            (TurnStartOutcome::Answered, turn) => Ok(WorkCheck::Done(turn)),
            (TurnStartOutcome::Resumed, turn) => {
                self.recover_work().await?;
                Ok(WorkCheck::Done(turn))
            }
            (TurnStartOutcome::Unverified(event), _) => {
                self.0.verifier.verify_message(event).await?;
                Ok(WorkCheck::Done(None))
            }
            (TurnStartOutcome::Paused, _) => Ok(WorkCheck::NoWork),
        }
    }

    /// Wakes the people whose messages wait for the end of a turn in their room.
    async fn wake_people_in(&self, room: UserId) -> Result<(), DbError> {
        let authors = self.0.db.read(move |conn| rooms::load_waiting_authors(conn, room)).await?;
        authors.into_iter().for_each(|author| self.wake_user(author));
        Ok(())
    }

    /// Loads the next work of a user, with the first call of the turn that it probably starts, and counts `ended_turn` in the
    /// metrics.
    async fn load_next_work(
        &self,
        user: UserId,
        runner: &Arc<TurnRunner>,
        ended_turn: &mut Option<TurnId>,
    ) -> Result<(NextWork, Option<FirstCall>), DbError> {
        let (turn, runner, clock) = (*ended_turn, runner.clone(), self.0.clock.clone());
        let load = move |conn: &mut Conn| {
            let stats = turn.and_then(|turn| load_turn_stats(conn, turn));
            let work = next_work::load_next_work(conn, user)?;
            let now = clock.now();
            let first_call = match work {
                NextWork { active_turn: None, due_at: Some(due) } if due <= now => {
                    runner.prepare_first_call(conn, user, now)
                }
                _ => None,
            };
            Ok((stats, (work, first_call)))
        };
        let (stats, work) = self.0.db.read_without_snapshot(load).await?;
        *ended_turn = None;
        if let Some(stats) = stats {
            self.0.metrics.turn_ended(&stats);
        }
        Ok(work)
    }

    async fn wait_until(&self, wakeup: &Notify, at: Timestamp) {
        let wait = Duration::try_from(at.duration_since(self.0.clock.now())).unwrap_or_default();
        tokio::select! {
            () = self.0.clock.sleep(wait) => {}
            () = wakeup.notified() => {}
            () = self.0.lifecycle.wait_for_drain() => {}
        }
    }

    /// Records an internal failure. Work that keeps failing is ended after a few attempts, so that it does not block the
    /// user's next message.
    async fn record_failure(&self, user: UserId) {
        let now = self.0.clock.now();
        let settings = self.0.live.settings();
        let recorded = self
            .0
            .db
            .write(move |conn| match turn_lifecycle::load_active_turn(conn, user)? {
                Some(active_turn) => failed_work::count_failed_turn(conn, user, active_turn, &settings, now),
                None => failed_work::count_failed_start(conn, user, settings.limits.resumes.into(), now),
            })
            .await;
        self.0.outbox.notify();
        if let Err(error) = recorded {
            tracing::error!(%user, %error, "failed to record a failed attempt");
        }
        self.0.clock.sleep(ERROR_RETRY_DELAY).await;
    }
}

/// Loads the statistics of an ended turn for the metrics. A failed read must not delay the next turn.
fn load_turn_stats(conn: &mut Conn, turn: TurnId) -> Option<TurnStats> {
    turn_stats::load_turn_stats(conn, turn).unwrap_or_else(|error| {
        tracing::warn!(%turn, %error, "failed to load the statistics of a turn");
        None
    })
}

/// Returns whether an error is transient, such as a busy or full database. Transient errors are not counted as failures
/// of the message.
fn is_transient(error: &anyhow::Error) -> bool {
    error.downcast_ref::<DbError>().is_some_and(|error| error.failure_class().retriable)
}
