//! What playing came to: runs, their latencies, tokens and segments, and how often a scenario passed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::conversation::spending::{Prices, Tokens};
use crate::store::calls::Went;

/// One playing of a scenario. Without problems it passed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Run {
    pub(super) problems: Vec<String>,
    pub(super) texts: Vec<Played>,
}

/// What one text cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Played {
    /// Until the answer was sent; `None` where no real model was asked.
    pub(super) latency: Option<Duration>,
    pub(super) tokens: Tokens,
    /// Of each text that went out because of it, to whomever.
    pub(super) segments: Vec<usize>,
    /// The tools that were called.
    pub(super) calls: Vec<(String, Went)>,
}

/// A scenario and all its runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Round {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) verdict: Verdict,
    pub(super) runs: Vec<Run>,
}

/// How the runs of a scenario went together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every run did.
    Passed,
    Failed,
    /// It means nothing with a real model, for this reason.
    NotPlayed(String),
}

impl Run {
    pub(super) fn passed(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Round {
    pub(super) fn passes(&self) -> usize {
        self.runs.iter().filter(|run| run.passed()).count()
    }
}

/// Figures of any number of runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    /// Shortest first.
    latencies: Vec<Duration>,
    pub(super) tokens: Tokens,
    segments: Vec<usize>,
    /// How often each tool was called, and how often that went well.
    pub(super) tools: BTreeMap<String, Share>,
}

impl Figures {
    pub(super) fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut figures = Self::default();
        for text in runs.into_iter().flat_map(|run| &run.texts) {
            figures.latencies.extend(text.latency);
            figures.tokens = figures.tokens.plus(text.tokens);
            figures.segments.extend(&text.segments);
            for (tool, went) in &text.calls {
                let share = figures.tools.entry(tool.clone()).or_default();
                share.of += 1;
                share.passed += usize::from(*went == Went::Well);
            }
        }
        figures.latencies.sort_unstable();
        figures
    }

    /// The latency that `percent` of the turns did not exceed, such as `1.2 s`.
    pub(super) fn latency(&self, percent: usize) -> String {
        let place = (self.latencies.len() * percent).div_ceil(100).max(1) - 1;
        self.latencies.get(place).map_or("-".to_owned(), |latency| format!("{:.1} s", latency.as_secs_f64()))
    }

    /// `8210 in (4096 cached), 312 out`.
    pub(super) fn tokens(&self) -> String {
        match self.tokens {
            Tokens { input: 0, output: 0, .. } => "-".to_owned(),
            Tokens { input, cached: 0, output } => format!("{input} in, {output} out"),
            Tokens { input, cached, output } => format!("{input} in ({cached} cached), {output} out"),
        }
    }

    /// `None` without prices.
    pub(super) fn cost(&self, prices: Prices) -> Option<String> {
        (prices != Prices::default()).then(|| format!("{:.4}", prices.cost(self.tokens) as f64 / 1e6))
    }

    /// `7 in 5 texts, at most 3 in one`.
    pub(super) fn segments(&self) -> String {
        let (all, texts) = (self.segments.iter().sum::<usize>(), self.segments.len());
        let texts = if texts == 1 { "1 text".to_owned() } else { format!("{texts} texts") };
        match self.segments.iter().max() {
            None => "-".to_owned(),
            Some(1) => format!("{all} in {texts}"),
            Some(most) => format!("{all} in {texts}, at most {most} in one"),
        }
    }
}

/// How many of those that count did so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) passed: usize,
    pub(super) of: usize,
}

/// The scenarios that passed every run, and the runs that passed.
pub(super) fn shares(rounds: &[Round]) -> (Share, Share) {
    let counted: Vec<&Round> =
        rounds.iter().filter(|round| matches!(round.verdict, Verdict::Passed | Verdict::Failed)).collect();
    let whole = counted.iter().filter(|round| round.verdict == Verdict::Passed).count();
    let runs = counted.iter().map(|round| round.runs.len()).sum();
    let passes = counted.iter().map(|round| round.passes()).sum();
    (Share { passed: whole, of: counted.len() }, Share { passed: passes, of: runs })
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = if self.of == 0 { 0.0 } else { 100.0 * self.passed as f64 / self.of as f64 };
        write!(f, "{} of {} ({percent:.0}%)", self.passed, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(latencies: &[u64]) -> Run {
        let text = |ms: &u64| Played {
            latency: Some(Duration::from_millis(*ms)),
            tokens: Tokens { input: 1000, cached: 400, output: 20 },
            segments: vec![1, 2],
            calls: vec![("upcoming".to_owned(), Went::Well), ("upcoming".to_owned(), Went::Wrong)],
        };
        Run { problems: Vec::new(), texts: latencies.iter().map(text).collect() }
    }

    #[test]
    fn percentiles_are_latencies_that_occurred() {
        let figures = Figures::of(&[run(&[900, 100]), run(&[500])]);
        assert_eq!((figures.latency(50), figures.latency(95)), ("0.5 s".to_owned(), "0.9 s".to_owned()));
        let one = Figures::of(&[run(&[1240])]);
        assert_eq!((one.latency(50), one.latency(95)), ("1.2 s".to_owned(), "1.2 s".to_owned()));
    }

    #[test]
    fn tokens_cost_and_segments_add_up() {
        let figures = Figures::of(&[run(&[900, 100])]);
        assert_eq!(figures.tokens(), "2000 in (800 cached), 40 out");
        assert_eq!(figures.segments(), "6 in 4 texts, at most 2 in one");
        assert_eq!(figures.tools, BTreeMap::from([("upcoming".to_owned(), Share { passed: 2, of: 4 })]));
        let prices = Prices { input: 2_000_000, cached: 1_000_000, output: 10_000_000 };
        assert_eq!(figures.cost(prices).as_deref(), Some("0.0036"));
        assert_eq!(figures.cost(Prices::default()), None);
    }

    #[test]
    fn what_nobody_measured_is_a_dash() {
        let figures = Figures::of(&[Run::default()]);
        let told = [figures.latency(50), figures.latency(95), figures.tokens(), figures.segments()];
        assert_eq!(told, ["-"; 4]);
    }

    #[test]
    fn a_scenario_counts_only_with_all_its_runs_and_only_where_it_is_played() {
        let failed = Run { problems: vec!["text 1: writes".to_owned()], texts: Vec::new() };
        let round = |verdict, runs| Round { id: String::new(), title: String::new(), verdict, runs };
        let rounds = [
            round(Verdict::Passed, vec![run(&[1]), run(&[1])]),
            round(Verdict::Failed, vec![run(&[1]), failed]),
            round(Verdict::NotPlayed("the model fails".to_owned()), Vec::new()),
        ];
        let (whole, runs) = shares(&rounds);
        assert_eq!((whole, runs), (Share { passed: 1, of: 2 }, Share { passed: 3, of: 4 }));
        assert_eq!((whole.to_string(), runs.to_string()), ("1 of 2 (50%)".into(), "3 of 4 (75%)".into()));
    }
}
