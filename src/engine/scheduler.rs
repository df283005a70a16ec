//! Scheduler with one task per busy user, alive only while there is work. A wake-up carries no data: the tables are the
//! queue, so losing or repeating one is harmless.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::Engine;
use super::begin::Begun;
use super::failed_work;
use crate::conversation::transcript::{EventId, TurnId, UserId};
use crate::store::account::{self, Account};
use crate::store::db::DbError;
use crate::store::{Conn, ledger, turns};

/// Pause after the database or a turn failed on our side.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Scheduler {
    busy: Mutex<HashMap<UserId, Busy>>,
    /// Rings when a message is done, or when a user's task has ended.
    settled: Notify,
}

/// User whose task is alive.
struct Busy {
    /// The task was woken since its last check.
    woken: bool,
    bell: Arc<Notify>,
}

impl Scheduler {
    /// Wakes the user's task. True if a task has to be started.
    fn wake(&self, user: UserId) -> bool {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = busy.get_mut(&user) {
            task.woken = true;
            task.bell.notify_one();
            return false;
        }
        busy.insert(user, Busy { woken: false, bell: Arc::new(Notify::new()) });
        true
    }

    fn bell(&self, user: UserId) -> Option<Arc<Notify>> {
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.get(&user).map(|task| task.bell.clone())
    }

    /// Ends the user's task, unless it was woken since its last check.
    fn retire(&self, user: UserId) -> bool {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        match busy.get_mut(&user) {
            Some(task) if task.woken => {
                task.woken = false;
                false
            }
            _ => {
                busy.remove(&user);
                self.settled.notify_waiters();
                true
            }
        }
    }

    fn forget(&self, user: UserId) {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&user);
        self.settled.notify_waiters();
    }

    fn is_busy(&self, user: UserId) -> bool {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&user)
    }

    fn is_idle(&self) -> bool {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Cause for which a user's task ended.
#[derive(PartialEq, Eq)]
enum Left {
    /// The task had nothing to do and removed itself from the map.
    Retired,
    Stopped,
}

/// Outcome of one check of a user's work.
enum Look {
    /// Work was done, and its turn, if there was one, is over.
    Worked(Option<TurnId>),
    NotBefore(Timestamp),
    Nothing,
}

impl Engine {
    /// Starts or wakes the work on a user's messages. Returns at once.
    pub fn wake(&self, user: UserId) {
        if !self.0.scheduler.wake(user) {
            return;
        }
        let engine = self.clone();
        self.0.tasks.spawn(async move {
            let stopped = engine.0.aborting.clone();
            let left = tokio::select! {
                biased;
                () = stopped.cancelled() => Left::Stopped,
                left = engine.attend(user) => left,
            };
            // A task that retired may have a successor already.
            if left == Left::Stopped {
                engine.0.scheduler.forget(user);
            }
        });
    }

    /// Continues all unfinished work, and lets turns begin. Unfinished work continues here and in no other place.
    pub async fn recover(&self) -> Result<(), DbError> {
        let users = self.0.parts.db.read(ledger::users_with_work).await?;
        self.0.open.cancel();
        for user in users {
            self.wake(user);
        }
        Ok(())
    }

    /// Waits until no user's task is alive.
    pub async fn settled(&self) {
        loop {
            let settled = self.0.scheduler.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if self.0.scheduler.is_idle() {
                return;
            }
            settled.await;
        }
    }

    /// Waits until a message is over, or until no more work is done on it for now: while the assistant is paused, or
    /// while the program stops.
    pub async fn over_or_left(&self, user: UserId, event: EventId) -> Result<(), DbError> {
        loop {
            let settled = self.0.scheduler.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            let is_busy = self.0.scheduler.is_busy(user);
            if self.0.parts.db.read(move |conn| ledger::is_over(conn, event)).await? || !is_busy {
                return Ok(());
            }
            settled.await;
        }
    }

    async fn attend(&self, user: UserId) -> Left {
        // Both tokens are canceled in an engine that has opened and is being stopped, and then nothing more begins.
        tokio::select! {
            biased;
            () = self.0.draining.cancelled() => return Left::Stopped,
            () = self.0.open.cancelled() => {}
        }
        // Turn that has ended and is not counted yet.
        let mut over = None;
        loop {
            let look = std::panic::AssertUnwindSafe(self.look(user, &mut over)).catch_unwind().await;
            match look {
                Ok(Ok(Look::Worked(turn))) => {
                    over = turn;
                    self.0.scheduler.settled.notify_waiters();
                }
                Ok(Ok(Look::NotBefore(at))) => self.wait_until(user, at).await,
                Ok(Ok(Look::Nothing)) => {
                    if self.0.scheduler.retire(user) {
                        return Left::Retired;
                    }
                }
                Ok(Err(error)) if is_passing(&error) => {
                    tracing::warn!(%user, error = format!("{error:#}"), "work on a user's texts has to wait");
                    self.0.parts.clock.sleep(PAUSE).await;
                }
                Ok(Err(error)) => {
                    tracing::error!(%user, error = format!("{error:#}"), "work on a user's texts failed");
                    self.count_failure(user).await;
                }
                Err(_) => {
                    tracing::error!(%user, "work on a user's texts panicked");
                    self.count_failure(user).await;
                }
            }
            if self.0.draining.is_cancelled() {
                return Left::Stopped;
            }
        }
    }

    async fn look(&self, user: UserId, over: &mut Option<TurnId>) -> anyhow::Result<Look> {
        let ended = *over;
        let look = move |conn: &mut _| {
            let account = ended.map(|turn| account_of(conn, turn));
            Ok((account, turns::live(conn, user)?, ledger::due_at(conn, user)?))
        };
        let (account, live, due) = self.0.parts.db.read(look).await?;
        *over = None;
        if let Some(Some(account)) = account {
            self.0.parts.metrics.turn_ended(&account);
        }
        if let Some(live) = live {
            self.run(user, live).await?;
            return Ok(Look::Worked(Some(live.id)));
        }
        let now = self.now();
        match due {
            None => Ok(Look::Nothing),
            Some(due) if due > now => Ok(Look::NotBefore(due)),
            Some(_) => match self.begin(user).await? {
                (Begun::Turn(live), _) => {
                    self.run(user, live).await?;
                    Ok(Look::Worked(Some(live.id)))
                }
                (Begun::Answered, made) => Ok(Look::Worked(made)),
                (Begun::Resumed, made) => {
                    self.recover().await?;
                    Ok(Look::Worked(made))
                }
                (Begun::Unverified(event), _) => {
                    self.verify(event).await?;
                    Ok(Look::Worked(None))
                }
                (Begun::Held, _) => Ok(Look::Nothing),
            },
        }
    }

    pub(super) fn bell(&self, user: UserId) -> Option<Arc<Notify>> {
        self.0.scheduler.bell(user)
    }

    async fn wait_until(&self, user: UserId, at: Timestamp) {
        let wait = Duration::try_from(at.duration_since(self.now())).unwrap_or_default();
        let Some(bell) = self.bell(user) else { return };
        tokio::select! {
            () = self.0.parts.clock.sleep(wait) => {}
            () = bell.notified() => {}
            () = self.0.draining.cancelled() => {}
        }
    }

    /// Counts a failure on our side. Work that keeps failing ends after a few tries, so that it cannot block the user's
    /// next message.
    async fn count_failure(&self, user: UserId) {
        let now = self.now();
        let settings = self.0.parts.settings.clone();
        let counted = self
            .0
            .parts
            .db
            .write(move |conn| match turns::live(conn, user)? {
                Some(live) => failed_work::count_failed_turn(conn, user, live.id, &settings, now),
                None => failed_work::count_failed_beginning(conn, user, settings.limits.resumes.into(), now),
            })
            .await;
        self.0.parts.outbox.ring();
        if let Err(error) = counted {
            tracing::error!(%user, %error, "a failure could not be counted");
        }
        self.0.parts.clock.sleep(PAUSE).await;
    }
}

/// Loads the statistics of an ended turn for counting it. A failed read is no reason to hold up the next turn.
fn account_of(conn: &mut Conn, turn: TurnId) -> Option<Account> {
    account::of(conn, turn).unwrap_or_else(|error| {
        tracing::warn!(%turn, %error, "a turn could not be counted");
        None
    })
}

/// True for errors that pass. A database that is busy or full is not the message's fault.
fn is_passing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<DbError>().is_some_and(|error| error.trouble().retriable)
}
