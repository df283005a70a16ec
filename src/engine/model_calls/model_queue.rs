//! Queue of model calls: lets calls wait until the schedule starts them.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call_schedule::{CallPosition, CallPurpose, CallSchedule};
use super::concurrency_limit::CallOutcome;
use crate::metrics::Metrics;

/// Queue of all calls of the configured model.
pub(super) struct ModelQueue {
    schedule: Mutex<CallSchedule<oneshot::Sender<()>>>,
    metrics: Metrics,
}

/// Slot of a call. Dropping it ends the call, or removes it from the queue.
pub(super) struct CallSlot<'a> {
    queue: &'a ModelQueue,
    position: CallPosition,
    outcome: CallOutcome,
}

impl ModelQueue {
    pub(super) fn new(ceiling: usize, metrics: Metrics) -> Self {
        let schedule = CallSchedule::new(ceiling);
        metrics.model_queue_changed(schedule.counts());
        Self { schedule: Mutex::new(schedule), metrics }
    }

    pub(super) async fn wait_for_slot(&self, purpose: CallPurpose) -> CallSlot<'_> {
        let (waiter, started) = oneshot::channel();
        let position = self.change_schedule(|schedule| schedule.add_call(purpose, waiter));
        let slot = CallSlot { queue: self, position, outcome: CallOutcome::Unmeasured };
        // The schedule keeps the sender until the call starts, so this cannot fail.
        let _ = started.await;
        slot
    }

    /// Changes the schedule, then starts the calls for which there are slots.
    fn change_schedule<R>(&self, change: impl FnOnce(&mut CallSchedule<oneshot::Sender<()>>) -> R) -> R {
        let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut schedule);
        while let Some(waiter) = schedule.start_next_call() {
            // If the caller has stopped waiting, its slot is about to be dropped.
            let _ = waiter.send(());
        }
        self.metrics.model_queue_changed(schedule.counts());
        result
    }
}

impl CallSlot<'_> {
    /// Releases the slot after the call.
    pub(super) fn end_call(mut self, outcome: CallOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for CallSlot<'_> {
    fn drop(&mut self) {
        let (position, outcome) = (self.position, self.outcome);
        self.queue.change_schedule(|schedule| schedule.remove_call(position, outcome, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use jiff::Timestamp;
    use tokio::time::timeout;

    use super::*;
    use crate::conversation::transcript::UserId;

    const LATENCY: Duration = Duration::from_millis(300);

    fn queue(ceiling: usize) -> ModelQueue {
        ModelQueue::new(ceiling, Metrics::new(Vec::new(), Timestamp::UNIX_EPOCH))
    }

    impl ModelQueue {
        /// Makes a call that takes 0.3 s.
        async fn call(&self, purpose: CallPurpose) {
            let slot = self.wait_for_slot(purpose).await;
            let response_time = std::future::pending::<()>();
            let _ = timeout(LATENCY, response_time).await;
            slot.end_call(CallOutcome::Answered(LATENCY));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_notes_do_not_delay_answers() {
        let queue = queue(4);
        let notes = join_all((0..100).map(|_| queue.call(CallPurpose::Notes)));
        let answers = async {
            for _ in 0..10 {
                queue.call(CallPurpose::Answer(UserId(1))).await;
            }
            Instant::now()
        };
        let start = Instant::now();
        let (_, answered_at) = tokio::join!(notes, answers);
        assert_eq!(answered_at - start, 10 * LATENCY);
    }

    #[tokio::test(start_paused = true)]
    async fn canceled_call_gives_its_slot_to_the_next() {
        let queue = queue(1);
        let running = queue.wait_for_slot(CallPurpose::Answer(UserId(1))).await;
        let answer = |user| queue.call(CallPurpose::Answer(UserId(user)));
        assert!(timeout(LATENCY, answer(2)).await.is_err());
        let next = async {
            answer(3).await;
            Instant::now()
        };
        let (released_at, answered_at) = tokio::join!(
            async {
                drop(running);
                Instant::now()
            },
            next
        );
        assert_eq!(answered_at - released_at, LATENCY);
        let counts = queue.change_schedule(|schedule| schedule.counts());
        assert_eq!((counts.running, counts.waiting_for_users), (0, 0));
    }
}
