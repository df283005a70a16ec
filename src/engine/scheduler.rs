//! Scheduler with one task per busy user. A task is alive only while there is work. A wake-up carries no data: the
//! tables are the queue, so a lost or repeated wake-up is harmless.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::turn_start::TurnStartOutcome;
use super::{Engine, failed_work};
use crate::conversation::transcript::{EventId, TurnId, UserId};
use crate::store::Conn;
use crate::store::database::db::DbError;
use crate::store::queue::inbound_messages;
use crate::store::turns::turn_lifecycle;
use crate::store::turns::turn_stats::{self, TurnStats};

/// Pause after a failure of the database or an internal failure of a turn.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Scheduler {
    user_tasks: Mutex<HashMap<UserId, UserTask>>,
    /// Notified when a message is finished or a user's task has ended.
    work_done: Notify,
}

/// State of a user whose task is alive.
struct UserTask {
    /// Flag for a wake-up of the task since its last check.
    woken: bool,
    bell: Arc<Notify>,
}

impl Scheduler {
    /// Wakes the user's task. Returns true if a task has to be started.
    fn wake(&self, user: UserId) -> bool {
        let mut busy = self.user_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = busy.get_mut(&user) {
            task.woken = true;
            task.bell.notify_one();
            return false;
        }
        busy.insert(user, UserTask { woken: false, bell: Arc::new(Notify::new()) });
        true
    }

    fn bell(&self, user: UserId) -> Option<Arc<Notify>> {
        let busy = self.user_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        busy.get(&user).map(|task| task.bell.clone())
    }

    /// Ends the user's task unless the task was woken since its last check.
    fn retire(&self, user: UserId) -> bool {
        let mut busy = self.user_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        match busy.get_mut(&user) {
            Some(task) if task.woken => {
                task.woken = false;
                false
            }
            _ => {
                busy.remove(&user);
                self.work_done.notify_waiters();
                true
            }
        }
    }

    fn remove(&self, user: UserId) {
        self.user_tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(&user);
        self.work_done.notify_waiters();
    }

    fn is_busy(&self, user: UserId) -> bool {
        self.user_tasks.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&user)
    }

    fn is_idle(&self) -> bool {
        self.user_tasks.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Cause of the end of a user's task.
#[derive(PartialEq, Eq)]
enum TaskEnd {
    /// The task had nothing to do and removed itself from the map.
    Retired,
    Stopped,
}

/// Outcome of one check of a user's work.
enum WorkCheck {
    /// Work was done, and its turn, if there was one, has ended.
    Worked(Option<TurnId>),
    NotBefore(Timestamp),
    Nothing,
}

impl Engine {
    /// Starts or wakes the work on a user's messages, and returns at once.
    pub fn wake_user(&self, user: UserId) {
        if !self.0.scheduler.wake(user) {
            return;
        }
        let engine = self.clone();
        self.0.lifecycle.spawn(async move {
            let left = tokio::select! {
                biased;
                () = engine.0.lifecycle.wait_for_abort() => TaskEnd::Stopped,
                left = engine.run_user_task(user) => left,
            };
            // A retired task may already have a successor.
            if left == TaskEnd::Stopped {
                engine.0.scheduler.remove(user);
            }
        });
    }

    /// Continues all unfinished work and lets turns begin. No other function continues unfinished work.
    pub async fn recover_work(&self) -> Result<(), DbError> {
        let users = self.0.parts.db.read(inbound_messages::load_users_with_work).await?;
        self.0.lifecycle.accept_turns();
        for user in users {
            self.wake_user(user);
        }
        Ok(())
    }

    /// Waits until no user's task is alive.
    pub async fn wait_until_idle(&self) {
        loop {
            let settled = self.0.scheduler.work_done.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if self.0.scheduler.is_idle() {
                return;
            }
            settled.await;
        }
    }

    /// Waits until a message is finished, or until no more work is done on the message for now, because the assistant
    /// is paused or the program stops.
    pub async fn wait_for_message(&self, user: UserId, event: EventId) -> Result<(), DbError> {
        loop {
            let settled = self.0.scheduler.work_done.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            let is_busy = self.0.scheduler.is_busy(user);
            if self.0.parts.db.read(move |conn| inbound_messages::is_message_finished(conn, event)).await?
                || !is_busy
            {
                return Ok(());
            }
            settled.await;
        }
    }

    async fn run_user_task(&self, user: UserId) -> TaskEnd {
        // An engine that is being stopped may have accepted turns before, and then nothing more begins.
        tokio::select! {
            biased;
            () = self.0.lifecycle.wait_for_drain() => return TaskEnd::Stopped,
            () = self.0.lifecycle.wait_for_turns() => {}
        }
        // Turn that has ended and is not counted yet.
        let mut over = None;
        loop {
            let look = std::panic::AssertUnwindSafe(self.check_work(user, &mut over)).catch_unwind().await;
            match look {
                Ok(Ok(WorkCheck::Worked(turn))) => {
                    over = turn;
                    self.0.scheduler.work_done.notify_waiters();
                }
                Ok(Ok(WorkCheck::NotBefore(at))) => self.wait_until(user, at).await,
                Ok(Ok(WorkCheck::Nothing)) => {
                    if self.0.scheduler.retire(user) {
                        return TaskEnd::Retired;
                    }
                }
                Ok(Err(error)) if is_transient(&error) => {
                    tracing::warn!(%user, error = format!("{error:#}"), "postponed work on a user's messages");
                    self.0.parts.clock.sleep(PAUSE).await;
                }
                Ok(Err(error)) => {
                    tracing::error!(%user, error = format!("{error:#}"), "work on a user's messages failed");
                    self.count_failure(user).await;
                }
                Err(_) => {
                    tracing::error!(%user, "work on a user's messages panicked");
                    self.count_failure(user).await;
                }
            }
            if self.0.lifecycle.is_draining() {
                return TaskEnd::Stopped;
            }
        }
    }

    async fn check_work(&self, user: UserId, over: &mut Option<TurnId>) -> anyhow::Result<WorkCheck> {
        let ended = *over;
        let look = move |conn: &mut _| {
            let account = ended.map(|turn| load_turn_stats(conn, turn));
            Ok((
                account,
                turn_lifecycle::load_active_turn(conn, user)?,
                inbound_messages::load_due_time(conn, user)?,
            ))
        };
        let (account, live, due) = self.0.parts.db.read(look).await?;
        *over = None;
        if let Some(Some(account)) = account {
            self.0.parts.metrics.turn_ended(&account);
        }
        if let Some(live) = live {
            self.0.turns.run_turn(user, live, self.user_bell(user).unwrap_or_default()).await?;
            return Ok(WorkCheck::Worked(Some(live.id)));
        }
        let now = self.now();
        match due {
            None => Ok(WorkCheck::Nothing),
            Some(due) if due > now => Ok(WorkCheck::NotBefore(due)),
            Some(_) => match self.start_turn(user).await? {
                (TurnStartOutcome::Turn(live), _) => {
                    self.0.turns.run_turn(user, live, self.user_bell(user).unwrap_or_default()).await?;
                    Ok(WorkCheck::Worked(Some(live.id)))
                }
                (TurnStartOutcome::Answered, made) => Ok(WorkCheck::Worked(made)),
                (TurnStartOutcome::Resumed, made) => {
                    self.recover_work().await?;
                    Ok(WorkCheck::Worked(made))
                }
                (TurnStartOutcome::Unverified(event), _) => {
                    self.verify_message(event).await?;
                    Ok(WorkCheck::Worked(None))
                }
                (TurnStartOutcome::Held, _) => Ok(WorkCheck::Nothing),
            },
        }
    }

    pub(super) fn user_bell(&self, user: UserId) -> Option<Arc<Notify>> {
        self.0.scheduler.bell(user)
    }

    async fn wait_until(&self, user: UserId, at: Timestamp) {
        let wait = Duration::try_from(at.duration_since(self.now())).unwrap_or_default();
        let Some(bell) = self.user_bell(user) else { return };
        tokio::select! {
            () = self.0.parts.clock.sleep(wait) => {}
            () = bell.notified() => {}
            () = self.0.lifecycle.wait_for_drain() => {}
        }
    }

    /// Counts an internal failure. Work that keeps failing ends after a few tries, so that it cannot block the user's
    /// next message.
    async fn count_failure(&self, user: UserId) {
        let now = self.now();
        let settings = self.0.parts.settings.clone();
        let counted = self
            .0
            .parts
            .db
            .write(move |conn| match turn_lifecycle::load_active_turn(conn, user)? {
                Some(live) => failed_work::count_failed_turn(conn, user, live.id, &settings, now),
                None => failed_work::count_failed_start(conn, user, settings.limits.resumes.into(), now),
            })
            .await;
        self.0.parts.outbox.notify();
        if let Err(error) = counted {
            tracing::error!(%user, %error, "failed to count a failure");
        }
        self.0.parts.clock.sleep(PAUSE).await;
    }
}

/// Loads the statistics of an ended turn for the metrics. A failed read must not delay the next turn.
fn load_turn_stats(conn: &mut Conn, turn: TurnId) -> Option<TurnStats> {
    turn_stats::load_turn_stats(conn, turn).unwrap_or_else(|error| {
        tracing::warn!(%turn, %error, "failed to load the statistics of a turn");
        None
    })
}

/// Returns whether an error is transient. A busy or full database is not caused by the message.
fn is_transient(error: &anyhow::Error) -> bool {
    error.downcast_ref::<DbError>().is_some_and(|error| error.failure_class().retriable)
}
