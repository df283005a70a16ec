//! Statistics of scenario runs: pass rates, latencies, tokens and segments.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::conversation::model_cost::{ModelPrices, TokenUsage};
use crate::store::turns::calls::CallStatus;

/// Run of a scenario. It has passed if there are no problems.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ScenarioRun {
    pub(super) problems: Vec<String>,
    pub(super) messages: Vec<MessageStats>,
}

/// Latency, tokens, segments and tool calls of one message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MessageStats {
    /// Time until the last reply was sent. `None` if no real model was called.
    pub(super) latency: Option<Duration>,
    pub(super) tokens: TokenUsage,
    /// Number of segments of each resulting message, to any user.
    pub(super) segments: Vec<usize>,
    /// Tool calls and their results.
    pub(super) calls: Vec<(String, CallStatus)>,
    pub(super) model_requests: usize,
    /// True if the message did not have its expected effects.
    pub(super) is_lost: bool,
    /// True if a fallback reply of code was sent instead of an answer.
    pub(super) is_dead_end: bool,
}

/// All runs of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScenarioRuns {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) outcome: ScenarioOutcome,
    pub(super) runs: Vec<ScenarioRun>,
}

/// Combined outcome on the runs of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScenarioOutcome {
    /// Every run passed.
    Passed,
    Failed,
    /// The scenario was not run with a real model, for this reason.
    Skipped(String),
}

impl ScenarioRun {
    pub(super) fn has_passed(&self) -> bool {
        self.problems.is_empty()
    }
}

impl ScenarioRuns {
    pub(super) fn pass_count(&self) -> usize {
        self.runs.iter().filter(|run| run.has_passed()).count()
    }
}

/// Statistics over several runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RunStats {
    /// Latencies, shortest first.
    latencies: Vec<Duration>,
    pub(super) tokens: TokenUsage,
    segments: Vec<usize>,
    /// Success rate of the calls of each tool.
    pub(super) tools: BTreeMap<String, PassRate>,
    messages: usize,
    lost: usize,
    dead_ends: usize,
    /// Number of model requests, and of messages with at least one.
    model_requests: (usize, usize),
}

impl RunStats {
    pub(super) fn from_runs<'a>(runs: impl IntoIterator<Item = &'a ScenarioRun>) -> Self {
        let mut stats = Self::default();
        for message in runs.into_iter().flat_map(|run| &run.messages) {
            stats.latencies.extend(message.latency);
            stats.tokens = stats.tokens.plus(message.tokens);
            stats.segments.extend(&message.segments);
            stats.messages += 1;
            stats.lost += usize::from(message.is_lost);
            stats.dead_ends += usize::from(message.is_dead_end);
            stats.model_requests.0 += message.model_requests;
            stats.model_requests.1 += usize::from(message.model_requests > 0);
            for (tool, status) in &message.calls {
                let rate = stats.tools.entry(tool.clone()).or_default();
                rate.total += 1;
                rate.passed += usize::from(*status == CallStatus::Succeeded);
            }
        }
        stats.latencies.sort_unstable();
        stats
    }

    /// Formats the latency that `percent` of the turns did not exceed, such as `1.2 s`.
    pub(super) fn format_latency(&self, percent: usize) -> String {
        let index = (self.latencies.len() * percent).div_ceil(100).max(1) - 1;
        self.latencies.get(index).map_or("-".to_owned(), |latency| format!("{:.1} s", latency.as_secs_f64()))
    }

    /// Formats the token counts: `8210 in (4096 cached), 312 out`.
    pub(super) fn format_tokens(&self) -> String {
        match self.tokens {
            TokenUsage { input: 0, output: 0, .. } => "-".to_owned(),
            TokenUsage { input, cached: 0, output } => format!("{input} in, {output} out"),
            TokenUsage { input, cached, output } => format!("{input} in ({cached} cached), {output} out"),
        }
    }

    /// Formats the cost. Returns `None` if no prices are configured.
    pub(super) fn format_cost(&self, prices: ModelPrices) -> Option<String> {
        (prices != ModelPrices::default()).then(|| format!("{:.4}", prices.cost(self.tokens) as f64 / 1e6))
    }

    /// Returns the texts without their expected effects.
    pub(super) fn lost_rate(&self) -> PassRate {
        PassRate { passed: self.lost, total: self.messages }
    }

    /// Returns the texts that got a fallback reply.
    pub(super) fn dead_end_rate(&self) -> PassRate {
        PassRate { passed: self.dead_ends, total: self.messages }
    }

    /// Formats the model requests per text, such as `2.3`.
    pub(super) fn format_requests_per_text(&self) -> String {
        let (requests, texts) = self.model_requests;
        if texts == 0 { "-".to_owned() } else { format!("{:.1}", requests as f64 / texts as f64) }
    }

    /// Returns the average number of segments of a text.
    #[cfg(test)]
    pub(super) fn segments_per_text(&self) -> f64 {
        self.segments.iter().sum::<usize>() as f64 / self.segments.len().max(1) as f64
    }

    /// Formats the segment counts: `7 in 5 texts, at most 3 in one`.
    pub(super) fn format_segments(&self) -> String {
        let (total, texts) = (self.segments.iter().sum::<usize>(), self.segments.len());
        let texts = if texts == 1 { "1 text".to_owned() } else { format!("{texts} texts") };
        match self.segments.iter().max() {
            None => "-".to_owned(),
            Some(1) => format!("{total} in {texts}"),
            Some(max) => format!("{total} in {texts}, at most {max} in one"),
        }
    }
}

/// Number of runs, scenarios or calls, and the number of them that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PassRate {
    pub(super) passed: usize,
    pub(super) total: usize,
}

/// Returns the pass rate of the scenarios, in which all runs must pass, and the pass rate of the runs.
pub(super) fn pass_rates(results: &[ScenarioRuns]) -> (PassRate, PassRate) {
    let counted: Vec<&ScenarioRuns> = results
        .iter()
        .filter(|result| matches!(result.outcome, ScenarioOutcome::Passed | ScenarioOutcome::Failed))
        .collect();
    let scenarios = counted.iter().filter(|result| result.outcome == ScenarioOutcome::Passed).count();
    let runs = counted.iter().map(|result| result.runs.len()).sum();
    let passes = counted.iter().map(|result| result.pass_count()).sum();
    (PassRate { passed: scenarios, total: counted.len() }, PassRate { passed: passes, total: runs })
}

impl std::fmt::Display for PassRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = if self.total == 0 { 0.0 } else { 100.0 * self.passed as f64 / self.total as f64 };
        write!(f, "{} of {} ({percent:.0}%)", self.passed, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(latencies: &[u64]) -> ScenarioRun {
        let message = |ms: &u64| MessageStats {
            latency: Some(Duration::from_millis(*ms)),
            tokens: TokenUsage { input: 1000, cached: 400, output: 20 },
            segments: vec![1, 2],
            calls: vec![
                ("upcoming".to_owned(), CallStatus::Succeeded),
                ("upcoming".to_owned(), CallStatus::Failed),
            ],
            model_requests: 3,
            is_lost: *ms > 500,
            is_dead_end: false,
        };
        ScenarioRun { problems: Vec::new(), messages: latencies.iter().map(message).collect() }
    }

    #[test]
    fn percentiles_are_observed_latencies() {
        let stats = RunStats::from_runs(&[run(&[900, 100]), run(&[500])]);
        assert_eq!(
            (stats.format_latency(50), stats.format_latency(95)),
            ("0.5 s".to_owned(), "0.9 s".to_owned())
        );
        let one = RunStats::from_runs(&[run(&[1240])]);
        assert_eq!(
            (one.format_latency(50), one.format_latency(95)),
            ("1.2 s".to_owned(), "1.2 s".to_owned())
        );
    }

    #[test]
    fn tokens_cost_and_segments_add_up() {
        let stats = RunStats::from_runs(&[run(&[900, 100])]);
        assert_eq!(stats.format_tokens(), "2000 in (800 cached), 40 out");
        assert_eq!(stats.format_segments(), "6 in 4 texts, at most 2 in one");
        assert_eq!(stats.tools, BTreeMap::from([("upcoming".to_owned(), PassRate { passed: 2, total: 4 })]));
        let prices = ModelPrices { input: 2_000_000, cached: 1_000_000, output: 10_000_000 };
        assert_eq!(stats.format_cost(prices).as_deref(), Some("0.0036"));
        assert_eq!(stats.format_cost(ModelPrices::default()), None);
        assert_eq!((stats.format_requests_per_text().as_str(), stats.segments_per_text()), ("3.0", 1.5));
        assert_eq!(stats.lost_rate().to_string(), "1 of 2 (50%)");
        assert_eq!(stats.dead_end_rate().to_string(), "0 of 2 (0%)");
    }

    #[test]
    fn missing_statistic_is_a_dash() {
        let stats = RunStats::from_runs(&[ScenarioRun::default()]);
        let values = [
            stats.format_latency(50),
            stats.format_latency(95),
            stats.format_tokens(),
            stats.format_segments(),
            stats.format_requests_per_text(),
        ];
        assert_eq!(values, ["-"; 5]);
    }

    #[test]
    fn scenario_passes_only_with_all_runs_and_skipped_ones_do_not_count() {
        let failed = ScenarioRun { problems: vec!["text 1: writes".to_owned()], messages: Vec::new() };
        let result = |outcome, runs| ScenarioRuns { id: String::new(), title: String::new(), outcome, runs };
        let results = [
            result(ScenarioOutcome::Passed, vec![run(&[1]), run(&[1])]),
            result(ScenarioOutcome::Failed, vec![run(&[1]), failed]),
            result(ScenarioOutcome::Skipped("the model fails".to_owned()), Vec::new()),
        ];
        let (scenarios, runs) = pass_rates(&results);
        assert_eq!((scenarios, runs), (PassRate { passed: 1, total: 2 }, PassRate { passed: 3, total: 4 }));
        assert_eq!((scenarios.to_string(), runs.to_string()), ("1 of 2 (50%)".into(), "3 of 4 (75%)".into()));
    }
}
