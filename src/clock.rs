//! Single source of time. Decisions take `now` as an argument; this module provides it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Smallest difference between the wall clock and the elapsed time that counts as a step. Below this difference, the
/// clock follows the wall clock at once.
pub const SMALLEST_STEP: SignedDuration = SignedDuration::from_secs(2);

#[derive(Debug, Clone)]
pub enum Clock {
    System,
    /// Clock that stands still until it is set; a wait moves the clock forward, so nothing really waits.
    Manual(Arc<Mutex<Timestamp>>),
    /// Clock that advances evenly, and follows a step of the wall clock only through [`Clock::adopt_step`].
    Steady(Arc<SteadyClock>),
}

/// Time of a running program: the wall clock as it was at `anchor`, and the time that the monotonic clock counted
/// since.
#[derive(Debug)]
pub struct SteadyClock {
    wall: WallClock,
    anchor: Mutex<ClockAnchor>,
}

#[derive(Debug)]
enum WallClock {
    System,
    /// Clock that advances with the runtime's clock, which a simulation pauses, from `start` on; `offset` is the sum of
    /// the steps it was set by since then.
    Simulated {
        start: Timestamp,
        since: Instant,
        offset: Mutex<SignedDuration>,
    },
}

#[derive(Debug, Clone, Copy)]
struct ClockAnchor {
    wall: Timestamp,
    at: Instant,
}

impl WallClock {
    fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Simulated { start, since, offset } => {
                let offset = *offset.lock().unwrap_or_else(PoisonError::into_inner);
                add_elapsed(add_elapsed(*start, since.elapsed()), offset)
            }
        }
    }
}

impl SteadyClock {
    fn new(wall: WallClock) -> Self {
        let anchor = ClockAnchor { wall: wall.now(), at: Instant::now() };
        Self { wall, anchor: Mutex::new(anchor) }
    }

    fn now(&self) -> Timestamp {
        let ClockAnchor { wall, at } = *self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        add_elapsed(wall, at.elapsed())
    }

    fn follow_wall(&self) {
        let anchor = ClockAnchor { wall: self.wall.now(), at: Instant::now() };
        *self.anchor.lock().unwrap_or_else(PoisonError::into_inner) = anchor;
    }
}

/// Returns `from` plus the passed time, as far as timestamps reach.
fn add_elapsed(from: Timestamp, passed: impl TryInto<SignedDuration>) -> Timestamp {
    from.saturating_add(passed.try_into().unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
}

impl Clock {
    pub fn stopped_at(start: Timestamp) -> Self {
        Self::Manual(Arc::new(Mutex::new(start)))
    }

    /// Creates the clock of a service: the system clock, whose steps are adopted one by one.
    pub fn for_service() -> Self {
        Self::Steady(Arc::new(SteadyClock::new(WallClock::System)))
    }

    /// Creates a clock that begins at `start` and advances with the runtime's clock.
    pub fn from_runtime(start: Timestamp) -> Self {
        let offset = Mutex::new(SignedDuration::ZERO);
        let wall = WallClock::Simulated { start, since: Instant::now(), offset };
        Self::Steady(Arc::new(SteadyClock::new(wall)))
    }

    /// Returns the current time in whole milliseconds: stored times and the times of decisions are the same instant.
    pub fn now(&self) -> Timestamp {
        let now = match self {
            Self::System => Timestamp::now(),
            Self::Manual(now) => *now.lock().unwrap_or_else(PoisonError::into_inner),
            Self::Steady(clock) => clock.now(),
        };
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Returns the step of the wall clock that was not adopted yet. A difference below [`SMALLEST_STEP`] is not a step:
    /// this function follows it.
    pub fn pending_step(&self) -> Option<SignedDuration> {
        let Self::Steady(clock) = self else { return None };
        let step = clock.wall.now().duration_since(clock.now());
        if step.abs() >= SMALLEST_STEP {
            return Some(step);
        }
        clock.follow_wall();
        None
    }

    /// Follows the wall clock from here on; returns the change of `now`.
    pub fn adopt_step(&self) -> SignedDuration {
        let Self::Steady(clock) = self else { return SignedDuration::ZERO };
        let before = self.now();
        clock.follow_wall();
        self.now().duration_since(before)
    }

    /// Reverts an adopted step, so that the step is pending again.
    pub fn take_back_step(&self, step: SignedDuration) {
        if let Self::Steady(clock) = self {
            let mut anchor = clock.anchor.lock().unwrap_or_else(PoisonError::into_inner);
            anchor.wall = add_elapsed(anchor.wall, -step);
        }
    }

    /// Sets a simulated wall clock forward or back, as an operator or a time server does.
    pub fn set_wall(&self, by: SignedDuration) {
        if let Self::Steady(clock) = self
            && let WallClock::Simulated { offset, .. } = &clock.wall
        {
            let mut offset = offset.lock().unwrap_or_else(PoisonError::into_inner);
            *offset = offset.saturating_add(by);
        }
    }

    pub async fn sleep(&self, duration: Duration) {
        match self {
            Self::System | Self::Steady(_) => tokio::time::sleep(duration).await,
            Self::Manual(_) => {
                self.advance(duration);
                tokio::task::yield_now().await;
            }
        }
    }

    /// Moves a manual clock; a system clock cannot be moved.
    pub fn advance(&self, duration: Duration) {
        if let (Self::Manual(now), Ok(step)) = (self, SignedDuration::try_from(duration)) {
            let mut now = now.lock().unwrap_or_else(PoisonError::into_inner);
            *now = now.saturating_add(step).unwrap_or(Timestamp::MAX);
        }
    }

    /// Sets a manual clock, never backwards.
    pub fn set(&self, to: Timestamp) {
        if let Self::Manual(now) = self {
            let mut now = now.lock().unwrap_or_else(PoisonError::into_inner);
            *now = (*now).max(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn steady_clock_follows_a_step_only_when_it_is_adopted() {
        let clock = Clock::from_runtime(Timestamp::UNIX_EPOCH);
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!((clock.now(), clock.pending_step()), (at(10), None));

        let hour_back = SignedDuration::from_hours(-1);
        clock.set_wall(hour_back);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!((clock.now(), clock.pending_step()), (at(15), Some(hour_back)));

        assert_eq!(clock.adopt_step(), hour_back);
        assert_eq!((clock.now(), clock.pending_step()), (at(15 - 3600), None));
        clock.take_back_step(hour_back);
        assert_eq!((clock.now(), clock.pending_step()), (at(15), Some(hour_back)));
    }

    #[tokio::test(start_paused = true)]
    async fn small_difference_is_followed_without_a_step() {
        let clock = Clock::from_runtime(Timestamp::UNIX_EPOCH);
        clock.set_wall(SignedDuration::from_millis(1_500));
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        assert_eq!(clock.pending_step(), None);
        assert_eq!(clock.now().as_millisecond(), 1_500);
    }
}
