//! Plays the scenarios of a file, each as often as requested, some of them concurrently.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::file::{Scenario, ScenarioFile};
use super::run_stats::{RunsVerdict, ScenarioRun, ScenarioRuns};
use super::runner::{self, EvalModel};

/// Minimum length of a phone number in digits. Shorter numbers are not phone numbers.
const DIGITS_OF_A_NUMBER: usize = 7;

/// Scenarios to play, and the settings to play them with.
pub(super) struct EvalPlan {
    pub(super) file: Arc<ScenarioFile>,
    pub(super) model: EvalModel,
    pub(super) times: usize,
    /// Number of concurrent runs.
    pub(super) at_once: usize,
}

impl EvalPlan {
    /// Returns the scenario runs in the order of the file, and passes each one to `report_runs` as soon as that scenario
    /// and those before it are finished.
    pub(super) async fn run_scenarios(
        &self,
        mut report_runs: impl FnMut(&ScenarioRuns),
    ) -> Vec<ScenarioRuns> {
        let scenarios = &self.file.scenarios;
        let plays =
            scenarios.iter().map(|scenario| if self.includes_scenario(scenario) { self.times } else { 0 });
        let jobs = plays.clone().enumerate().flat_map(|(place, plays)| (0..plays).map(move |_| place));
        let runs = jobs.map(|place| run_repetition(self.file.clone(), place, self.model.clone()));
        let mut runs = stream::iter(runs).buffered(self.at_once.max(1));
        let mut rounds = Vec::new();
        for (scenario, plays) in scenarios.iter().zip(plays) {
            let mut of_scenario = Vec::new();
            for _ in 0..plays {
                of_scenario.extend(runs.next().await);
            }
            let round = ScenarioRuns {
                id: scenario.id.clone(),
                title: scenario.title.clone(),
                verdict: runs_verdict(scenario, &of_scenario),
                runs: of_scenario,
            };
            report_runs(&round);
            rounds.push(round);
        }
        rounds
    }

    fn includes_scenario(&self, scenario: &Scenario) -> bool {
        match self.model {
            EvalModel::Scripted => true,
            EvalModel::Live { .. } => scenario.scripted_only.is_none(),
        }
    }
}

/// Runs one repetition in a separate task, so that a run which panics fails alone.
async fn run_repetition(file: Arc<ScenarioFile>, place: usize, model: EvalModel) -> ScenarioRun {
    let played =
        tokio::spawn(async move { runner::run_scenario(&file, &file.scenarios[place], &model).await });
    match played.await {
        Ok(Ok(run)) => without_private_values(run),
        Ok(Err(error)) => stopped_run(&format!("{error:#}")),
        Err(error) => stopped_run(&error.to_string()),
    }
}

fn stopped_run(why: &str) -> ScenarioRun {
    without_private_values(ScenarioRun {
        problems: vec![format!("could not be played: {why}")],
        texts: Vec::new(),
    })
}

fn without_private_values(run: ScenarioRun) -> ScenarioRun {
    ScenarioRun { problems: run.problems.iter().map(|problem| without_numbers(problem)).collect(), ..run }
}

/// Removes phone numbers, which texts and errors may contain, from text that is shared with others.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split('+');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|char: char| !char.is_ascii_digit() && !" -().".contains(char));
        let number = part[..end.unwrap_or(part.len())].trim_end_matches(|char: char| !char.is_ascii_digit());
        if number.chars().filter(char::is_ascii_digit).count() >= DIGITS_OF_A_NUMBER {
            kept.push_str("[number]");
        } else {
            kept.push('+');
            kept.push_str(number);
        }
        kept.push_str(&part[number.len()..]);
    }
    kept
}

fn runs_verdict(scenario: &Scenario, runs: &[ScenarioRun]) -> RunsVerdict {
    if let (Some(why), []) = (&scenario.scripted_only, runs) {
        RunsVerdict::NotPlayed(why.clone())
    } else if runs.iter().all(ScenarioRun::has_passed) {
        RunsVerdict::Passed
    } else {
        RunsVerdict::Failed
    }
}
