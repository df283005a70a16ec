//! Pause of metadata extraction while the model does not respond.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::conversation::retry_policy::BackoffPolicy;

/// Backoff between failed calls.
const METADATA_BACKOFF: BackoffPolicy = BackoffPolicy {
    first_pause: Duration::from_secs(5 * 60),
    factor: 2,
    max_pause: Duration::from_secs(6 * 3600),
};

/// Pause that grows with each consecutive failed call. The pause is not stored, so a restart ends it.
#[derive(Debug, Default)]
pub(super) struct MetadataPause(Mutex<ModelOutage>);

#[derive(Debug, Default)]
struct ModelOutage {
    failures: u32,
    until: Option<Timestamp>,
}

impl MetadataPause {
    pub(super) fn is_active(&self, now: Timestamp) -> bool {
        self.with_outage(|outage| outage.until.is_some_and(|until| now < until))
    }

    /// Extends the pause after a failed call, by the backoff or by the time that the model server requests.
    pub(super) fn extend(&self, now: Timestamp, retry_after: Option<Duration>) {
        self.with_outage(|outage| {
            outage.failures = outage.failures.saturating_add(1);
            let pause = SignedDuration::try_from(METADATA_BACKOFF.pause_after(outage.failures, retry_after));
            outage.until = Some(now.saturating_add(pause.unwrap_or_default()).unwrap_or(Timestamp::MAX));
        });
    }

    pub(super) fn end(&self) {
        self.with_outage(|outage| *outage = ModelOutage::default());
    }

    pub(super) fn apply_clock_step(&self, step: SignedDuration) {
        self.with_outage(|outage| {
            outage.until = outage.until.map(|until| until.saturating_add(step).unwrap_or(Timestamp::MAX));
        });
    }

    fn with_outage<T>(&self, change: impl FnOnce(&mut ModelOutage) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_grows_to_six_hours_and_ends_with_a_response() {
        let pause = MetadataPause::default();
        let mut now = Timestamp::UNIX_EPOCH;
        assert!(!pause.is_active(now));
        for minutes in [5, 10, 20, 40, 80, 160, 320, 360, 360] {
            pause.extend(now, None);
            now += SignedDuration::from_mins(minutes);
            assert!(
                pause.is_active(now - SignedDuration::from_secs(1)) && !pause.is_active(now),
                "{minutes}"
            );
        }
        pause.end();
        pause.extend(now, None);
        pause.apply_clock_step(SignedDuration::from_mins(-1));
        assert!(!pause.is_active(now + SignedDuration::from_mins(4)));
        pause.extend(now, Some(Duration::from_secs(7)));
        assert!(pause.is_active(now) && !pause.is_active(now + SignedDuration::from_secs(7)));
    }
}
