//! Uniform classification of the failure of any peer: whether the same request may be repeated, whether it may have
//! been carried out nevertheless, and the time to wait.

use std::time::Duration;

/// Class of a failure of a model, of Sonarr or Radarr, of the carrier or of the database, by the next step that it
/// allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureClass {
    pub retriable: bool,
    pub effect: PeerEffect,
    /// Pause that the peer asked for.
    pub retry_after: Option<Duration>,
}

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

/// Growth of the pauses between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffPolicy {
    pub first: Duration,
    pub factor: u32,
    /// Maximum pause, regardless of the pause that the peer asks for.
    pub longest: Duration,
}

impl BackoffPolicy {
    /// Returns the pause after failed attempt number `attempt`, from 1.
    pub fn pause_after(&self, attempt: u32, retry_after: Option<Duration>) -> Duration {
        let grown = self.first.saturating_mul(self.factor.saturating_pow(attempt.saturating_sub(1)));
        retry_after.unwrap_or(grown).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_a_cap_that_also_limits_the_peers_delay() {
        let policy =
            BackoffPolicy { first: Duration::from_secs(2), factor: 2, longest: Duration::from_secs(300) };
        let seconds = |attempt, retry_after: Option<u64>| {
            policy.pause_after(attempt, retry_after.map(Duration::from_secs)).as_secs()
        };
        assert_eq!([1, 2, 3, 8, 9, 100].map(|attempt| seconds(attempt, None)), [2, 4, 8, 256, 300, 300]);
        assert_eq!([Some(7), Some(4_000)].map(|retry_after| seconds(1, retry_after)), [7, 300]);
    }
}
