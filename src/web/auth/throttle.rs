//! Limit on password attempts, with exponential backoff. All attempts count together, because a household has one
//! operator and a proxy hides the addresses of clients. Sign-in links work during a delay.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Number of attempts that may fail without a delay.
const FREE_ATTEMPTS: u32 = 5;
/// Period since the last allowed attempt after which failures below the limit expire.
const SHORT_LIFETIME: SignedDuration = SignedDuration::from_mins(15);
/// Period since the last allowed attempt after which failures at or above the limit expire. It is longer than any delay, so that
/// the end of a delay does not reset the count.
const LONG_LIFETIME: SignedDuration = SignedDuration::from_hours(1);
const FIRST_DELAY: SignedDuration = SignedDuration::from_secs(30);
const MAX_DELAY: SignedDuration = SignedDuration::from_mins(15);

/// Attempts since the last success.
#[derive(Debug, Default)]
pub(super) struct PasswordThrottle {
    failed: u32,
    last: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PasswordAttempt {
    Allowed,
    /// Refusal without a check of the password, even if it is correct.
    RetryAfter(Duration),
}

impl PasswordThrottle {
    /// Counts an attempt. It counts as failed until it succeeds, so that disconnecting before the response gives no
    /// advantage.
    pub(super) fn begin_attempt(&mut self, now: Timestamp) -> PasswordAttempt {
        if let Some(last) = &mut self.last {
            // After the clock was set back, the wait restarts in full at the current time, so that it neither ends
            // early nor lasts as long as the clock step.
            *last = now.min(*last);
            let idle = now.duration_since(*last);
            let lifetime = if self.failed < FREE_ATTEMPTS { SHORT_LIFETIME } else { LONG_LIFETIME };
            if idle >= lifetime {
                self.failed = 0;
            }
            let wait = backoff_delay(self.failed);
            if idle < wait {
                return PasswordAttempt::RetryAfter((wait - idle).unsigned_abs());
            }
        }
        self.failed = self.failed.saturating_add(1);
        self.last = Some(now);
        PasswordAttempt::Allowed
    }

    /// Clears the failures, and returns their number before the successful attempt.
    pub(super) fn record_success(&mut self) -> u32 {
        let failed = std::mem::take(self).failed;
        failed.saturating_sub(1)
    }

    pub(super) fn failure_count(&self) -> u32 {
        self.failed
    }
}

/// Returns whether a failure is audited: the first one that causes a delay, then each doubling of the count.
pub(super) fn is_audited(failed: u32) -> bool {
    failed.is_multiple_of(FREE_ATTEMPTS) && (failed / FREE_ATTEMPTS).is_power_of_two()
}

fn backoff_delay(failed: u32) -> SignedDuration {
    match failed.checked_sub(FREE_ATTEMPTS) {
        None => SignedDuration::ZERO,
        Some(excess) => MAX_DELAY.min(FIRST_DELAY * (1 << excess.min(10))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::{SignedDuration, Timestamp};

    use super::{PasswordAttempt, PasswordThrottle, is_audited};

    fn time_at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn after_five_failures() -> PasswordThrottle {
        let mut throttle = PasswordThrottle::default();
        for second in 0..5 {
            assert_eq!(throttle.begin_attempt(time_at(second)), PasswordAttempt::Allowed);
        }
        throttle
    }

    #[test]
    fn sixth_attempt_waits_and_retries_do_not_prolong_the_delay() {
        let mut throttle = after_five_failures();
        assert_eq!(throttle.begin_attempt(time_at(10)), PasswordAttempt::RetryAfter(Duration::from_secs(24)));
        assert_eq!(throttle.begin_attempt(time_at(33)), PasswordAttempt::RetryAfter(Duration::from_secs(1)));
        assert_eq!(throttle.begin_attempt(time_at(34)), PasswordAttempt::Allowed);
    }

    #[test]
    fn throttle_delays_double_up_to_a_quarter_of_an_hour() {
        let mut throttle = after_five_failures();
        let mut now = 4;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let PasswordAttempt::RetryAfter(wait) = throttle.begin_attempt(time_at(now)) else {
                panic!("attempt without a delay")
            };
            waits.push(wait.as_secs());
            now += i64::try_from(wait.as_secs()).unwrap();
            assert_eq!(throttle.begin_attempt(time_at(now)), PasswordAttempt::Allowed);
        }
        assert_eq!(waits, [30, 60, 120, 240, 480, 900, 900, 900]);
    }

    #[test]
    fn clock_step_back_neither_admits_earlier_nor_locks_out() {
        let mut throttle = PasswordThrottle::default();
        throttle.begin_attempt(time_at(1_000_000));
        assert_eq!(throttle.begin_attempt(time_at(0)), PasswordAttempt::Allowed);

        let mut throttle = after_five_failures();
        assert_eq!(
            throttle.begin_attempt(time_at(-1_000_000)),
            PasswordAttempt::RetryAfter(Duration::from_secs(30))
        );
        assert_eq!(
            throttle.begin_attempt(time_at(-1_000_000 + 29)),
            PasswordAttempt::RetryAfter(Duration::from_secs(1))
        );
        assert_eq!(throttle.begin_attempt(time_at(-1_000_000 + 30)), PasswordAttempt::Allowed);
        assert_eq!(throttle.failure_count(), 6);
    }

    #[test]
    fn failures_expire_after_an_idle_period_or_a_success() {
        let mut throttle = after_five_failures();
        assert_eq!(throttle.begin_attempt(time_at(4 + 3600)), PasswordAttempt::Allowed);
        assert_eq!(throttle.failure_count(), 1);

        let mut throttle = PasswordThrottle::default();
        throttle.begin_attempt(time_at(0));
        throttle.begin_attempt(time_at(900));
        assert_eq!(throttle.failure_count(), 1);

        let mut throttle = after_five_failures();
        throttle.begin_attempt(time_at(100));
        assert_eq!(throttle.record_success(), 5);
        assert_eq!(throttle.begin_attempt(time_at(101)), PasswordAttempt::Allowed);
    }

    #[test]
    fn audited_failures_become_rarer() {
        let audited: Vec<u32> = (1..100).filter(|failed| is_audited(*failed)).collect();
        assert_eq!(audited, [5, 10, 20, 40, 80]);
    }
}
