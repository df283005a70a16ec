//! Adaptive limit of concurrent model calls. It grows while the latency stays near its floor, and is halved when the
//! model server is overloaded.

use std::time::Duration;

use tokio::time::Instant;

/// Limit at the start of the program.
const INITIAL_LIMIT: usize = 4;
/// Ratio of the highest latency at which the limit grows to the floor, as numerator and denominator.
const LATENCY_TOLERANCE: (u32, u32) = (3, 2);
/// Half of the time for which a latency counts toward the floor. A model that becomes slower, or is replaced by a slower
/// one, is thus measured against itself after ten minutes at most.
const FLOOR_PERIOD: Duration = Duration::from_secs(300);

/// Outcome of a model call, as far as it concerns the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// Time until the first output of an answer.
    Answered(Duration),
    /// The server was overloaded or unavailable, or did not respond in time.
    Overloaded,
    /// Any other outcome. The latency of a call for another purpose is not comparable to that of an answer, because its
    /// prompt has another length.
    Unmeasured,
}

/// Number of the round in which a call started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Round(u64);

/// Adaptive limit. It changes at most once per round, in which as many calls start and end as the limit allows
/// concurrently. The latency of a round is the median of the times to first output: unlike the time of a whole response,
/// this time does not depend on the length of the answer, and a median tolerates single slow calls.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    limit: usize,
    ceiling: usize,
    growth: LimitGrowth,
    round: Round,
    /// Round that began with the last halving. Calls of earlier rounds have already been answered by that halving.
    halved_round: Round,
    /// True if the calls of this round used the whole limit. Otherwise their latency is no reason to raise it.
    was_reached: bool,
    latencies: Vec<Duration>,
    floor: LatencyFloor,
}

/// Growth of the limit after a round with a latency near the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitGrowth {
    /// The limit doubles, as long as no limit of the server is known.
    Doubling,
    /// The limit grows by one. The server's limit is then known to lie between half of an earlier limit and that limit,
    /// so doubling would overload the server every second round.
    Additive,
}

impl ConcurrencyLimit {
    pub(super) fn new(ceiling: usize) -> Self {
        let ceiling = ceiling.max(1);
        Self {
            limit: INITIAL_LIMIT.min(ceiling),
            ceiling,
            growth: LimitGrowth::Doubling,
            round: Round::default(),
            halved_round: Round::default(),
            was_reached: false,
            latencies: Vec::new(),
            floor: LatencyFloor::default(),
        }
    }

    pub(super) fn current(&self) -> usize {
        self.limit
    }

    /// Records the start of a call, which is one of `running` calls. Returns its round.
    pub(super) fn start_call(&mut self, running: usize) -> Round {
        self.was_reached |= running >= self.limit;
        self.round
    }

    /// Adapts the limit to the outcome of a call that started in `round`.
    pub(super) fn end_call(&mut self, round: Round, outcome: CallOutcome, now: Instant) {
        match outcome {
            CallOutcome::Overloaded if round >= self.halved_round => {
                self.growth = LimitGrowth::Additive;
                self.begin_round(self.limit / 2);
                self.halved_round = self.round;
            }
            CallOutcome::Answered(latency) if round == self.round => {
                self.latencies.push(latency);
                if self.latencies.len() >= self.limit {
                    self.end_round(now);
                }
            }
            CallOutcome::Answered(_) | CallOutcome::Overloaded | CallOutcome::Unmeasured => {}
        }
    }

    fn end_round(&mut self, now: Instant) {
        self.latencies.sort_unstable();
        let median = self.latencies[self.latencies.len() / 2];
        let floor = self.floor.record_latency(median, now);
        let (numerator, denominator) = LATENCY_TOLERANCE;
        let is_near_floor = median * denominator <= floor * numerator;
        let next_limit = match self.growth {
            _ if !self.was_reached => self.limit,
            _ if !is_near_floor => {
                self.growth = LimitGrowth::Additive;
                self.limit
            }
            LimitGrowth::Doubling => self.limit * 2,
            LimitGrowth::Additive => self.limit + 1,
        };
        self.begin_round(next_limit);
    }

    fn begin_round(&mut self, limit: usize) {
        self.limit = limit.clamp(1, self.ceiling);
        self.round.0 += 1;
        self.was_reached = false;
        self.latencies.clear();
    }
}

/// Minimum latency of the last five to ten minutes.
#[derive(Debug, Default)]
struct LatencyFloor {
    period_start: Option<Instant>,
    current: Option<Duration>,
    previous: Option<Duration>,
}

impl LatencyFloor {
    /// Records a latency and returns the minimum.
    fn record_latency(&mut self, latency: Duration, now: Instant) -> Duration {
        let elapsed = self.period_start.map_or(Duration::ZERO, |start| now.duration_since(start));
        if self.period_start.is_none() || elapsed >= FLOOR_PERIOD {
            let is_recent = elapsed < 2 * FLOOR_PERIOD;
            self.previous = self.current.take().filter(|_| is_recent);
            self.period_start = Some(now);
        }
        let current = self.current.map_or(latency, |current| current.min(latency));
        self.current = Some(current);
        self.previous.map_or(current, |previous| previous.min(current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_millis(300);

    /// Limit at a point in time, with calls that all run concurrently.
    struct LimitTest {
        limit: ConcurrencyLimit,
        now: Instant,
    }

    impl LimitTest {
        fn with_ceiling(ceiling: usize) -> Self {
            Self { limit: ConcurrencyLimit::new(ceiling), now: Instant::now() }
        }

        /// Runs as many calls as the limit allows, all with the same outcome, and returns the limit afterward.
        fn run_round(&mut self, outcome: CallOutcome) -> usize {
            let count = self.limit.current();
            let rounds: Vec<Round> = (1..=count).map(|running| self.limit.start_call(running)).collect();
            for round in rounds {
                self.limit.end_call(round, outcome, self.now);
            }
            self.limit.current()
        }

        fn run_rounds<const N: usize>(&mut self, outcome: CallOutcome) -> [usize; N] {
            [(); N].map(|()| self.run_round(outcome))
        }
    }

    fn answered(latency: Duration) -> CallOutcome {
        CallOutcome::Answered(latency)
    }

    #[test]
    fn limit_doubles_up_to_its_ceiling_while_latency_is_stable() {
        assert_eq!(LimitTest::with_ceiling(50).run_rounds(answered(FAST)), [8, 16, 32, 50, 50]);
        assert_eq!(LimitTest::with_ceiling(2).run_rounds(answered(FAST)), [2, 2]);
        assert_eq!(LimitTest::with_ceiling(0).run_rounds(answered(FAST)), [1]);
    }

    #[test]
    fn latency_above_the_tolerance_stops_the_growth() {
        let mut test = LimitTest::with_ceiling(64);
        assert_eq!(test.run_rounds(answered(FAST)), [8, 16]);
        assert_eq!(test.run_round(answered(FAST * 3 / 2)), 32);
        assert_eq!(test.run_rounds(answered(FAST * 8 / 5)), [32, 32]);
        assert_eq!(test.run_rounds(answered(FAST)), [33, 34]);
    }

    #[test]
    fn few_slow_calls_do_not_stop_the_growth() {
        let mut test = LimitTest::with_ceiling(64);
        assert_eq!(test.run_round(answered(FAST)), 8);
        for number in 0..8 {
            let round = test.limit.start_call(8);
            let latency = if number % 3 == 0 { FAST * 20 } else { FAST };
            test.limit.end_call(round, answered(latency), test.now);
        }
        assert_eq!(test.limit.current(), 16);
    }

    #[test]
    fn limit_grows_only_when_it_is_reached() {
        let mut test = LimitTest::with_ceiling(64);
        for _ in 0..100 {
            let round = test.limit.start_call(3);
            test.limit.end_call(round, answered(FAST), test.now);
        }
        assert_eq!(test.limit.current(), 4);
    }

    #[test]
    fn overload_of_concurrent_calls_halves_the_limit_once() {
        let mut test = LimitTest::with_ceiling(64);
        test.run_rounds::<3>(answered(FAST));
        let early = test.limit.start_call(1);
        assert_eq!(test.run_round(CallOutcome::Overloaded), 16);
        test.limit.end_call(early, CallOutcome::Overloaded, test.now);
        assert_eq!(test.limit.current(), 16);
        assert_eq!(test.run_rounds(CallOutcome::Overloaded), [8, 4, 2, 1, 1]);
        assert_eq!(test.run_rounds(answered(FAST)), [2, 3, 4]);
    }

    #[test]
    fn overloaded_call_from_before_a_doubling_still_halves_the_limit() {
        let mut test = LimitTest::with_ceiling(64);
        let early = test.limit.start_call(1);
        assert_eq!(test.run_round(answered(FAST)), 8);
        test.limit.end_call(early, CallOutcome::Overloaded, test.now);
        assert_eq!(test.limit.current(), 4);
    }

    #[test]
    fn floor_adapts_to_a_model_that_becomes_slower() {
        let mut test = LimitTest::with_ceiling(64);
        test.run_round(answered(FAST));
        assert_eq!(test.run_rounds(answered(FAST * 4)), [8, 8]);
        test.now += 2 * FLOOR_PERIOD;
        assert_eq!(test.run_rounds(answered(FAST * 4)), [9, 10]);
    }

    #[test]
    fn unmeasured_calls_do_not_change_the_limit() {
        let mut test = LimitTest::with_ceiling(64);
        assert_eq!(test.run_rounds(CallOutcome::Unmeasured), [4, 4]);
    }
}
