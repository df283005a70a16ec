//! Runs the scenarios of a file, each as often as requested, with limited concurrency.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::run_stats::{ScenarioOutcome, ScenarioRun, ScenarioRuns};
use super::runner::{self, EvalModel};
use super::scenario_file::{Scenario, ScenarioFile};

/// Minimum number of digits of a phone number.
const MIN_PHONE_DIGITS: usize = 7;

/// Scenarios to run, with their settings.
pub(super) struct EvalPlan {
    pub(super) file: Arc<ScenarioFile>,
    pub(super) model: EvalModel,
    pub(super) times: usize,
    /// Number of concurrent runs.
    pub(super) max_concurrent: usize,
}

impl EvalPlan {
    /// Returns the scenario runs in the order of the file. Passes each to `report_runs` as soon as it and its predecessors
    /// are finished.
    pub(super) async fn run_scenarios(
        &self,
        mut report_runs: impl FnMut(&ScenarioRuns),
    ) -> Vec<ScenarioRuns> {
        let scenarios = &self.file.scenarios;
        let run_counts =
            scenarios.iter().map(|scenario| if self.includes_scenario(scenario) { self.times } else { 0 });
        let indexes =
            run_counts.clone().enumerate().flat_map(|(index, count)| (0..count).map(move |_| index));
        let runs = indexes.map(|index| run_repetition(self.file.clone(), index, self.model.clone()));
        let mut runs = stream::iter(runs).buffered(self.max_concurrent.max(1));
        let mut results = Vec::new();
        for (scenario, count) in scenarios.iter().zip(run_counts) {
            let mut scenario_runs = Vec::new();
            for _ in 0..count {
                scenario_runs.extend(runs.next().await);
            }
            let result = ScenarioRuns {
                id: scenario.id.clone(),
                title: scenario.title.clone(),
                outcome: scenario_outcome(scenario, &scenario_runs),
                runs: scenario_runs,
            };
            report_runs(&result);
            results.push(result);
        }
        results
    }

    fn includes_scenario(&self, scenario: &Scenario) -> bool {
        match self.model {
            EvalModel::Scripted => true,
            EvalModel::Live { .. } => scenario.scripted_only.is_none(),
        }
    }
}

/// Runs a scenario in a separate task, so that a panic fails only that run.
async fn run_repetition(file: Arc<ScenarioFile>, index: usize, model: EvalModel) -> ScenarioRun {
    let result =
        tokio::spawn(async move { runner::run_scenario(&file, &file.scenarios[index], &model).await });
    match result.await {
        Ok(Ok(run)) => mask_run(run),
        Ok(Err(error)) => stopped_run(&format!("{error:#}")),
        Err(error) => stopped_run(&error.to_string()),
    }
}

fn stopped_run(error: &str) -> ScenarioRun {
    mask_run(ScenarioRun { problems: vec![format!("could not run: {error}")], messages: Vec::new() })
}

/// Masks phone numbers in the problems of a run.
fn mask_run(run: ScenarioRun) -> ScenarioRun {
    ScenarioRun { problems: run.problems.iter().map(|problem| mask_phone_numbers(problem)).collect(), ..run }
}

/// Masks the phone numbers in a text for the report.
fn mask_phone_numbers(text: &str) -> String {
    let mut parts = text.split('+');
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|char: char| !char.is_ascii_digit() && !" -().".contains(char));
        let number = part[..end.unwrap_or(part.len())].trim_end_matches(|char: char| !char.is_ascii_digit());
        if number.chars().filter(char::is_ascii_digit).count() >= MIN_PHONE_DIGITS {
            masked.push_str("[number]");
        } else {
            masked.push('+');
            masked.push_str(number);
        }
        masked.push_str(&part[number.len()..]);
    }
    masked
}

fn scenario_outcome(scenario: &Scenario, runs: &[ScenarioRun]) -> ScenarioOutcome {
    if let (Some(reason), []) = (&scenario.scripted_only, runs) {
        ScenarioOutcome::Skipped(reason.clone())
    } else if runs.iter().all(ScenarioRun::has_passed) {
        ScenarioOutcome::Passed
    } else {
        ScenarioOutcome::Failed
    }
}
