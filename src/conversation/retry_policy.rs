//! Classification of failed requests to any peer: whether the request may be retried, whether it may have had an effect
//! nevertheless, and the backoff.

use std::time::Duration;

/// Class of a failure of the model, Sonarr, Radarr, the carrier or the database, which determines how it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureClass {
    pub retriable: bool,
    pub effect: PeerEffect,
    /// Delay that the peer asked for.
    pub retry_after: Option<Duration>,
}

/// Effect of a failed request at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerEffect {
    /// The request certainly had no effect at the peer.
    None,
    /// The request may have had an effect. A change is checked before it is repeated, regardless of `retriable`.
    Unknown,
}

impl FailureClass {
    pub const PERMANENT: Self = Self { retriable: false, effect: PeerEffect::None, retry_after: None };
    pub const TRANSIENT: Self = Self { retriable: true, effect: PeerEffect::None, retry_after: None };
    pub const UNKNOWN: Self = Self { retriable: true, effect: PeerEffect::Unknown, retry_after: None };

    pub fn with_retry_after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }
}

/// Exponential backoff between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffPolicy {
    pub first_pause: Duration,
    pub factor: u32,
    /// Maximum pause, even if the peer asks for a longer one.
    pub max_pause: Duration,
}

impl BackoffPolicy {
    /// Returns the pause after the failed attempt with this number, from 1.
    pub fn pause_after(&self, attempt: u32, retry_after: Option<Duration>) -> Duration {
        let backoff = self.first_pause.saturating_mul(self.factor.saturating_pow(attempt.saturating_sub(1)));
        retry_after.unwrap_or(backoff).min(self.max_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_a_maximum_that_also_limits_retry_after() {
        let policy = BackoffPolicy {
            first_pause: Duration::from_secs(2),
            factor: 2,
            max_pause: Duration::from_secs(300),
        };
        let seconds = |attempt, retry_after: Option<u64>| {
            policy.pause_after(attempt, retry_after.map(Duration::from_secs)).as_secs()
        };
        assert_eq!([1, 2, 3, 8, 9, 100].map(|attempt| seconds(attempt, None)), [2, 4, 8, 256, 300, 300]);
        assert_eq!([Some(7), Some(4_000)].map(|retry_after| seconds(1, retry_after)), [7, 300]);
    }
}
