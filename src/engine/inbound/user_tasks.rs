//! Tasks of busy users, at most one per user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::conversation::transcript::UserId;

/// Map of the running tasks.
#[derive(Default)]
pub(super) struct UserTasks {
    tasks: Mutex<HashMap<UserId, UserTask>>,
    /// Notified when a message is finished or a user's task has ended.
    work_done: Notify,
}

/// Running task of one user.
struct UserTask {
    /// The task was woken since its last check.
    was_woken: bool,
    wakeup: Arc<Notify>,
}

impl UserTasks {
    /// Wakes the user's task. Returns the wakeup handle of a new task if one has to be started.
    pub(super) fn wake_task(&self, user: UserId) -> Option<Arc<Notify>> {
        let mut tasks = self.lock_tasks();
        if let Some(task) = tasks.get_mut(&user) {
            task.was_woken = true;
            task.wakeup.notify_one();
            return None;
        }
        let wakeup = Arc::new(Notify::new());
        tasks.insert(user, UserTask { was_woken: false, wakeup: wakeup.clone() });
        Some(wakeup)
    }

    /// Ends the user's task unless the task was woken since its last check.
    pub(super) fn retire_task(&self, user: UserId) -> bool {
        let mut tasks = self.lock_tasks();
        match tasks.get_mut(&user) {
            Some(task) if task.was_woken => {
                task.was_woken = false;
                false
            }
            _ => {
                tasks.remove(&user);
                self.work_done.notify_waiters();
                true
            }
        }
    }

    pub(super) fn remove_task(&self, user: UserId) {
        self.lock_tasks().remove(&user);
        self.work_done.notify_waiters();
    }

    pub(super) fn is_busy(&self, user: UserId) -> bool {
        self.lock_tasks().contains_key(&user)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.lock_tasks().is_empty()
    }

    /// Wakes the waiters of [`Self::next_work_done`].
    pub(super) fn signal_work_done(&self) {
        self.work_done.notify_waiters();
    }

    /// Returns a future that completes when any message is finished or any task has ended.
    pub(super) fn next_work_done(&self) -> Notified<'_> {
        self.work_done.notified()
    }

    fn lock_tasks(&self) -> MutexGuard<'_, HashMap<UserId, UserTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
