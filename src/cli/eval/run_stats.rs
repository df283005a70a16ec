//! Statistics of the played scenarios: runs, their latencies, tokens and segments, and pass rates.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::conversation::model_cost::{ModelPrices, TokenUsage};
use crate::store::turns::calls::CallStatus;

/// One run of a scenario. A run without problems passed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ScenarioRun {
    pub(super) problems: Vec<String>,
    pub(super) texts: Vec<MessageCost>,
}

/// Cost of one message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MessageCost {
    /// Time until the reply was sent; `None` where no real model was called.
    pub(super) latency: Option<Duration>,
    pub(super) tokens: TokenUsage,
    /// Segments of each message that was sent because of it, to any user.
    pub(super) segments: Vec<usize>,
    /// Tools that were called.
    pub(super) calls: Vec<(String, CallStatus)>,
}

/// Scenario and all its runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScenarioRuns {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) verdict: RunsVerdict,
    pub(super) runs: Vec<ScenarioRun>,
}

/// Combined verdict on the runs of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunsVerdict {
    /// Every run passed.
    Passed,
    Failed,
    /// The scenario is meaningless with a real model, for this reason.
    NotPlayed(String),
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

/// Statistics of any number of runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RunStats {
    /// Latencies, shortest first.
    latencies: Vec<Duration>,
    pub(super) tokens: TokenUsage,
    segments: Vec<usize>,
    /// Number of calls of each tool, and number of successful calls.
    pub(super) tools: BTreeMap<String, PassShare>,
}

impl RunStats {
    pub(super) fn from_runs<'a>(runs: impl IntoIterator<Item = &'a ScenarioRun>) -> Self {
        let mut figures = Self::default();
        for text in runs.into_iter().flat_map(|run| &run.texts) {
            figures.latencies.extend(text.latency);
            figures.tokens = figures.tokens.plus(text.tokens);
            figures.segments.extend(&text.segments);
            for (tool, went) in &text.calls {
                let share = figures.tools.entry(tool.clone()).or_default();
                share.of += 1;
                share.passed += usize::from(*went == CallStatus::Succeeded);
            }
        }
        figures.latencies.sort_unstable();
        figures
    }

    /// Formats the latency that `percent` of the turns did not exceed, such as `1.2 s`.
    pub(super) fn format_latency(&self, percent: usize) -> String {
        let place = (self.latencies.len() * percent).div_ceil(100).max(1) - 1;
        self.latencies.get(place).map_or("-".to_owned(), |latency| format!("{:.1} s", latency.as_secs_f64()))
    }

    /// Formats the token counts: `8210 in (4096 cached), 312 out`.
    pub(super) fn format_tokens(&self) -> String {
        match self.tokens {
            TokenUsage { input: 0, output: 0, .. } => "-".to_owned(),
            TokenUsage { input, cached: 0, output } => format!("{input} in, {output} out"),
            TokenUsage { input, cached, output } => format!("{input} in ({cached} cached), {output} out"),
        }
    }

    /// Formats the cost; `None` without prices.
    pub(super) fn format_cost(&self, prices: ModelPrices) -> Option<String> {
        (prices != ModelPrices::default()).then(|| format!("{:.4}", prices.cost(self.tokens) as f64 / 1e6))
    }

    /// Formats the segment counts: `7 in 5 texts, at most 3 in one`.
    pub(super) fn format_segments(&self) -> String {
        let (all, texts) = (self.segments.iter().sum::<usize>(), self.segments.len());
        let texts = if texts == 1 { "1 text".to_owned() } else { format!("{texts} texts") };
        match self.segments.iter().max() {
            None => "-".to_owned(),
            Some(1) => format!("{all} in {texts}"),
            Some(most) => format!("{all} in {texts}, at most {most} in one"),
        }
    }
}

/// Number of counted runs, scenarios or calls, and the number of them that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PassShare {
    pub(super) passed: usize,
    pub(super) of: usize,
}

/// Returns the share of scenarios that passed every run, and the share of runs that passed.
pub(super) fn pass_shares(rounds: &[ScenarioRuns]) -> (PassShare, PassShare) {
    let counted: Vec<&ScenarioRuns> = rounds
        .iter()
        .filter(|round| matches!(round.verdict, RunsVerdict::Passed | RunsVerdict::Failed))
        .collect();
    let whole = counted.iter().filter(|round| round.verdict == RunsVerdict::Passed).count();
    let runs = counted.iter().map(|round| round.runs.len()).sum();
    let passes = counted.iter().map(|round| round.pass_count()).sum();
    (PassShare { passed: whole, of: counted.len() }, PassShare { passed: passes, of: runs })
}

impl std::fmt::Display for PassShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = if self.of == 0 { 0.0 } else { 100.0 * self.passed as f64 / self.of as f64 };
        write!(f, "{} of {} ({percent:.0}%)", self.passed, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(latencies: &[u64]) -> ScenarioRun {
        let text = |ms: &u64| MessageCost {
            latency: Some(Duration::from_millis(*ms)),
            tokens: TokenUsage { input: 1000, cached: 400, output: 20 },
            segments: vec![1, 2],
            calls: vec![
                ("upcoming".to_owned(), CallStatus::Succeeded),
                ("upcoming".to_owned(), CallStatus::Failed),
            ],
        };
        ScenarioRun { problems: Vec::new(), texts: latencies.iter().map(text).collect() }
    }

    #[test]
    fn percentiles_are_latencies_that_occurred() {
        let figures = RunStats::from_runs(&[run(&[900, 100]), run(&[500])]);
        assert_eq!(
            (figures.format_latency(50), figures.format_latency(95)),
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
        let figures = RunStats::from_runs(&[run(&[900, 100])]);
        assert_eq!(figures.format_tokens(), "2000 in (800 cached), 40 out");
        assert_eq!(figures.format_segments(), "6 in 4 texts, at most 2 in one");
        assert_eq!(figures.tools, BTreeMap::from([("upcoming".to_owned(), PassShare { passed: 2, of: 4 })]));
        let prices = ModelPrices { input: 2_000_000, cached: 1_000_000, output: 10_000_000 };
        assert_eq!(figures.format_cost(prices).as_deref(), Some("0.0036"));
        assert_eq!(figures.format_cost(ModelPrices::default()), None);
    }

    #[test]
    fn unmeasured_statistic_is_a_dash() {
        let figures = RunStats::from_runs(&[ScenarioRun::default()]);
        let values = [
            figures.format_latency(50),
            figures.format_latency(95),
            figures.format_tokens(),
            figures.format_segments(),
        ];
        assert_eq!(values, ["-"; 4]);
    }

    #[test]
    fn scenario_counts_only_with_all_runs_and_where_it_is_played() {
        let failed = ScenarioRun { problems: vec!["text 1: writes".to_owned()], texts: Vec::new() };
        let round = |verdict, runs| ScenarioRuns { id: String::new(), title: String::new(), verdict, runs };
        let rounds = [
            round(RunsVerdict::Passed, vec![run(&[1]), run(&[1])]),
            round(RunsVerdict::Failed, vec![run(&[1]), failed]),
            round(RunsVerdict::NotPlayed("the model fails".to_owned()), Vec::new()),
        ];
        let (whole, runs) = pass_shares(&rounds);
        assert_eq!((whole, runs), (PassShare { passed: 1, of: 2 }, PassShare { passed: 3, of: 4 }));
        assert_eq!((whole.to_string(), runs.to_string()), ("1 of 2 (50%)".into(), "3 of 4 (75%)".into()));
    }
}
