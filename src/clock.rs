//! The one source of time. Decisions take `now` as an argument; this is where it comes from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone)]
pub enum Clock {
    System,
    /// Stands still until told otherwise; waiting moves it forward, so nothing really waits.
    Manual(Arc<Mutex<Timestamp>>),
    /// Follows the runtime's clock, which a simulation pauses.
    Runtime {
        start: Timestamp,
        since: tokio::time::Instant,
    },
}

impl Clock {
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(Mutex::new(start)))
    }

    /// `start`, and from there as the runtime's clock goes.
    pub fn runtime(start: Timestamp) -> Self {
        Self::Runtime { start, since: tokio::time::Instant::now() }
    }

    /// Now, in whole milliseconds: what is stored and what is decided upon are the same instant.
    pub fn now(&self) -> Timestamp {
        let now = match self {
            Self::System => Timestamp::now(),
            Self::Manual(now) => *now.lock().unwrap_or_else(PoisonError::into_inner),
            Self::Runtime { start, since } => {
                let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        };
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    pub async fn sleep(&self, duration: Duration) {
        match self {
            Self::System | Self::Runtime { .. } => tokio::time::sleep(duration).await,
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
