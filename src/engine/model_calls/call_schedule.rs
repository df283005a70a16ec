//! Schedule of model calls: which call starts next. Calls for which a user waits start before notes. Users take turns,
//! and the calls of one user start in their order.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::concurrency_limit::{CallOutcome, ConcurrencyLimit, Round};
use crate::conversation::transcript::UserId;
use crate::metrics::ModelQueueCounts;

/// Purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    /// Next step of a user's turn.
    Answer(UserId),
    /// Decision whether a user's message needs a reply.
    Triage(UserId),
    /// Metadata of stored answers, for which nobody waits.
    Notes,
}

impl CallPurpose {
    fn waiting_user(self) -> Option<UserId> {
        match self {
            Self::Answer(user) | Self::Triage(user) => Some(user),
            Self::Notes => None,
        }
    }
}

/// Position of a call in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallPosition {
    priority: CallPriority,
    /// Lap of the user's turn to start a call. In each lap, every waiting user starts one call.
    lap: u64,
    number: u64,
}

/// Priority of a call. The variants are in the order in which calls start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CallPriority {
    User,
    Background,
}

/// Waiting and running calls. `W` notifies the caller of a waiting call.
#[derive(Debug)]
pub(super) struct CallSchedule<W> {
    limit: ConcurrencyLimit,
    running: BTreeMap<CallPosition, Round>,
    waiting: BTreeMap<CallPosition, WaitingCall<W>>,
    last_number: u64,
    /// Lap of the user call that started last.
    lap: u64,
}

#[derive(Debug)]
struct WaitingCall<W> {
    user: Option<UserId>,
    waiter: W,
}

impl<W> CallSchedule<W> {
    pub(super) fn new(ceiling: usize) -> Self {
        Self {
            limit: ConcurrencyLimit::new(ceiling),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            last_number: 0,
            lap: 0,
        }
    }

    pub(super) fn add_call(&mut self, purpose: CallPurpose, waiter: W) -> CallPosition {
        self.last_number += 1;
        let user = purpose.waiting_user();
        let priority = if user.is_some() { CallPriority::User } else { CallPriority::Background };
        let position = CallPosition { priority, lap: self.next_lap(user), number: self.last_number };
        self.waiting.insert(position, WaitingCall { user, waiter });
        position
    }

    /// Returns the lap after the user's last waiting call, or the current lap if the user has none.
    fn next_lap(&self, user: Option<UserId>) -> u64 {
        let Some(user) = user else { return 0 };
        let last_call = self.waiting.iter().rev().find(|(_, call)| call.user == Some(user));
        last_call.map_or(self.lap, |(position, _)| position.lap + 1)
    }

    /// Starts the next call, if the limit allows one more. Notes leave one slot free, so that the next answer need not
    /// wait for them, except if there is only one slot.
    pub(super) fn start_next_call(&mut self) -> Option<W> {
        let next = self.waiting.first_entry()?;
        let position = *next.key();
        let free = self.limit.current().saturating_sub(self.running.len());
        let needed = match position.priority {
            CallPriority::Background if !self.running.is_empty() => 2,
            CallPriority::Background | CallPriority::User => 1,
        };
        if free < needed {
            return None;
        }
        let call = next.remove();
        if position.priority == CallPriority::User {
            self.lap = position.lap;
        }
        let round = self.limit.start_call(self.running.len() + 1);
        self.running.insert(position, round);
        Some(call.waiter)
    }

    /// Removes a call that ended, or whose caller stopped waiting.
    pub(super) fn remove_call(&mut self, position: CallPosition, outcome: CallOutcome, now: Instant) {
        self.waiting.remove(&position);
        if let Some(round) = self.running.remove(&position) {
            self.limit.end_call(round, outcome, now);
        }
    }

    pub(super) fn counts(&self) -> ModelQueueCounts {
        let has_user = |position: &&CallPosition| position.priority == CallPriority::User;
        let waiting_for_users = self.waiting.keys().filter(has_user).count();
        ModelQueueCounts {
            limit: self.limit.current(),
            running: self.running.len(),
            waiting_for_users,
            waiting_in_background: self.waiting.len() - waiting_for_users,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    use super::*;

    const ANN: CallPurpose = CallPurpose::Answer(UserId(1));
    const BOB: CallPurpose = CallPurpose::Answer(UserId(2));
    const CAL: CallPurpose = CallPurpose::Triage(UserId(3));

    /// Schedule with one slot, which is in use, so that every added call waits.
    fn busy_schedule() -> (CallSchedule<&'static str>, CallPosition) {
        let mut schedule = CallSchedule::new(1);
        let first = schedule.add_call(CallPurpose::Answer(UserId(9)), "first");
        assert_eq!(schedule.start_next_call(), Some("first"));
        (schedule, first)
    }

    /// Ends each running call, and returns the waiting calls in the order of their starts.
    fn drain_schedule(
        mut schedule: CallSchedule<&'static str>,
        mut running: CallPosition,
    ) -> Vec<&'static str> {
        let mut started = Vec::new();
        loop {
            schedule.remove_call(running, CallOutcome::Unmeasured, Instant::now());
            let Some(next) = schedule.start_next_call() else { return started };
            started.push(next);
            running = *schedule.running.first_key_value().unwrap().0;
        }
    }

    #[test]
    fn users_take_turns_and_their_calls_stay_in_order() {
        let (mut schedule, running) = busy_schedule();
        for (purpose, name) in
            [(ANN, "ann 1"), (ANN, "ann 2"), (ANN, "ann 3"), (BOB, "bob 1"), (CAL, "cal 1"), (BOB, "bob 2")]
        {
            schedule.add_call(purpose, name);
        }
        let expected = ["ann 1", "bob 1", "cal 1", "ann 2", "bob 2", "ann 3"];
        assert_eq!(drain_schedule(schedule, running), expected);
    }

    #[test]
    fn user_who_returns_waits_for_no_more_than_one_call_of_another() {
        let (mut schedule, running) = busy_schedule();
        for name in ["ann 1", "ann 2", "ann 3"] {
            schedule.add_call(ANN, name);
        }
        schedule.remove_call(running, CallOutcome::Unmeasured, Instant::now());
        assert_eq!(schedule.start_next_call(), Some("ann 1"));
        let running = *schedule.running.first_key_value().unwrap().0;
        schedule.add_call(BOB, "bob 1");
        assert_eq!(drain_schedule(schedule, running), ["bob 1", "ann 2", "ann 3"]);
    }

    #[test]
    fn answers_start_before_earlier_notes() {
        let (mut schedule, running) = busy_schedule();
        for (purpose, name) in [(CallPurpose::Notes, "notes"), (ANN, "ann"), (CAL, "cal")] {
            schedule.add_call(purpose, name);
        }
        assert_eq!(drain_schedule(schedule, running), ["ann", "cal", "notes"]);
    }

    #[test]
    fn notes_leave_one_slot_free() {
        let mut schedule = CallSchedule::new(2);
        schedule.add_call(CallPurpose::Notes, "notes 1");
        schedule.add_call(CallPurpose::Notes, "notes 2");
        assert_eq!([schedule.start_next_call(), schedule.start_next_call()], [Some("notes 1"), None]);
        schedule.add_call(ANN, "ann");
        assert_eq!(schedule.start_next_call(), Some("ann"));
        let counts =
            ModelQueueCounts { limit: 2, running: 2, waiting_for_users: 0, waiting_in_background: 1 };
        assert_eq!(schedule.counts(), counts);
    }

    #[test]
    fn canceled_call_leaves_the_queue() {
        let (mut schedule, running) = busy_schedule();
        let canceled = schedule.add_call(ANN, "ann");
        schedule.add_call(BOB, "bob");
        schedule.remove_call(canceled, CallOutcome::Unmeasured, Instant::now());
        assert_eq!(schedule.counts().waiting_for_users, 1);
        assert_eq!(drain_schedule(schedule, running), ["bob"]);
    }

    /// Event in the life of calls; a number selects one of the calls.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Add(u8),
        End(usize, bool),
        Cancel(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (0..5_u8).prop_map(Event::Add),
            3 => (any::<usize>(), any::<bool>()).prop_map(|(call, is_answered)| Event::End(call, is_answered)),
            1 => any::<usize>().prop_map(Event::Cancel),
        ]
    }

    fn select_call<V>(calls: &BTreeMap<CallPosition, V>, index: usize) -> Option<CallPosition> {
        calls.keys().nth(index.checked_rem(calls.len())?).copied()
    }

    proptest! {
        #[test]
        fn slots_are_never_idle_while_a_user_waits(events in proptest::collection::vec(event(), 1..200)) {
            let mut schedule = CallSchedule::new(6);
            for event in events {
                let (call, outcome) = match event {
                    Event::Add(0) => (Some(schedule.add_call(CallPurpose::Notes, ())).filter(|_| false), CallOutcome::Unmeasured),
                    Event::Add(user) => {
                        schedule.add_call(CallPurpose::Answer(UserId(user.into())), ());
                        (None, CallOutcome::Unmeasured)
                    }
                    Event::End(call, is_answered) => {
                        let latency = CallOutcome::Answered(std::time::Duration::from_secs(1));
                        let outcome = if is_answered { latency } else { CallOutcome::Overloaded };
                        (select_call(&schedule.running, call), outcome)
                    }
                    Event::Cancel(call) => (select_call(&schedule.waiting, call), CallOutcome::Unmeasured),
                };
                if let Some(call) = call {
                    schedule.remove_call(call, outcome, Instant::now());
                }
                let running_before = schedule.running.len();
                while schedule.start_next_call().is_some() {}
                let counts = schedule.counts();
                assert!((1..=6).contains(&counts.limit));
                // After a halving, the running calls may exceed the limit until they end.
                assert!(counts.running <= counts.limit.max(running_before));
                assert!(counts.waiting_for_users == 0 || counts.running >= counts.limit);
            }
        }
    }
}
