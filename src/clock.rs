//! Clocks of the program. The rest of the code gets the time as an argument or from a [`Clock`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Minimum difference between the wall clock and the steady clock that counts as a step. The steady clock follows a
/// smaller difference immediately.
pub const MIN_STEP: SignedDuration = SignedDuration::from_secs(2);

#[derive(Debug, Clone)]
pub enum Clock {
    System,
    /// Clock that stands still until it is set. A sleep advances the clock and returns immediately.
    Manual(Arc<Mutex<Timestamp>>),
    /// Clock that advances steadily, and follows a step of the wall clock only in [`Clock::adopt_step`].
    Steady(Arc<SteadyClock>),
}

/// Clock of a running program: the wall clock at `anchor` plus the time that has elapsed on the monotonic clock since
/// then.
#[derive(Debug)]
pub struct SteadyClock {
    wall: WallClock,
    anchor: Mutex<ClockAnchor>,
}

#[derive(Debug)]
enum WallClock {
    System,
    /// Clock that starts at `start` and advances with the clock of the Tokio runtime, which a simulation pauses.
    /// `offset` is the sum of its steps.
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

/// Returns `start` plus the elapsed time, saturating at the last timestamp.
fn add_elapsed(start: Timestamp, elapsed: impl TryInto<SignedDuration>) -> Timestamp {
    start.saturating_add(elapsed.try_into().unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
}

impl Clock {
    pub fn stopped_at(start: Timestamp) -> Self {
        Self::Manual(Arc::new(Mutex::new(start)))
    }

    /// Creates the clock of a service: a steady clock that follows the system clock.
    pub fn for_service() -> Self {
        Self::Steady(Arc::new(SteadyClock::new(WallClock::System)))
    }

    /// Creates a clock that starts at `start` and advances with the clock of the Tokio runtime.
    pub fn from_runtime(start: Timestamp) -> Self {
        let offset = Mutex::new(SignedDuration::ZERO);
        let wall = WallClock::Simulated { start, since: Instant::now(), offset };
        Self::Steady(Arc::new(SteadyClock::new(wall)))
    }

    /// Returns the current time in whole milliseconds, which is the precision of stored times.
    pub fn now(&self) -> Timestamp {
        let now = match self {
            Self::System => Timestamp::now(),
            Self::Manual(now) => *now.lock().unwrap_or_else(PoisonError::into_inner),
            Self::Steady(clock) => clock.now(),
        };
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Returns the step of the wall clock that was not adopted yet. The clock follows a difference below [`MIN_STEP`]
    /// immediately.
    pub fn pending_step(&self) -> Option<SignedDuration> {
        let Self::Steady(clock) = self else { return None };
        let step = clock.wall.now().duration_since(clock.now());
        if step.abs() >= MIN_STEP {
            return Some(step);
        }
        clock.follow_wall();
        None
    }

    /// Follows the wall clock from now on, and returns by how much the time of this clock changed.
    pub fn adopt_step(&self) -> SignedDuration {
        let Self::Steady(clock) = self else { return SignedDuration::ZERO };
        let before = self.now();
        clock.follow_wall();
        self.now().duration_since(before)
    }

    /// Reverts an adopted step, so that the step is pending again.
    pub fn revert_step(&self, step: SignedDuration) {
        if let Self::Steady(clock) = self {
            let mut anchor = clock.anchor.lock().unwrap_or_else(PoisonError::into_inner);
            anchor.wall = add_elapsed(anchor.wall, -step);
        }
    }

    /// Moves a simulated wall clock forward or back, as an operator or a time server does.
    pub fn shift_wall_clock(&self, step: SignedDuration) {
        if let Self::Steady(clock) = self
            && let WallClock::Simulated { offset, .. } = &clock.wall
        {
            let mut offset = offset.lock().unwrap_or_else(PoisonError::into_inner);
            *offset = offset.saturating_add(step);
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

    /// Advances a manual clock, and does nothing to other clocks.
    pub fn advance(&self, duration: Duration) {
        if let (Self::Manual(now), Ok(step)) = (self, SignedDuration::try_from(duration)) {
            let mut now = now.lock().unwrap_or_else(PoisonError::into_inner);
            *now = now.saturating_add(step).unwrap_or(Timestamp::MAX);
        }
    }

    /// Sets a manual clock to a later time, and does nothing to other clocks.
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
    async fn steady_clock_follows_a_step_only_after_adoption() {
        let clock = Clock::from_runtime(Timestamp::UNIX_EPOCH);
        let timestamp = |seconds| Timestamp::from_second(seconds).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!((clock.now(), clock.pending_step()), (timestamp(10), None));

        let hour_back = SignedDuration::from_hours(-1);
        clock.shift_wall_clock(hour_back);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!((clock.now(), clock.pending_step()), (timestamp(15), Some(hour_back)));

        assert_eq!(clock.adopt_step(), hour_back);
        assert_eq!((clock.now(), clock.pending_step()), (timestamp(15 - 3600), None));
        clock.revert_step(hour_back);
        assert_eq!((clock.now(), clock.pending_step()), (timestamp(15), Some(hour_back)));
    }

    #[tokio::test(start_paused = true)]
    async fn small_difference_is_followed_without_a_step() {
        let clock = Clock::from_runtime(Timestamp::UNIX_EPOCH);
        clock.shift_wall_clock(SignedDuration::from_millis(1_500));
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        assert_eq!(clock.pending_step(), None);
        assert_eq!(clock.now().as_millisecond(), 1_500);
    }
}
