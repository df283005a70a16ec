//! `dialarr eval FILE`: plays scenarios against simulated peers, with a scripted model or the configured one, and
//! judges the effects: the writes to the libraries, the pending actions, the messages sent.

mod expectation;
mod fake_libraries;
mod file;
mod library_entries;
mod library_state;
mod recording_model;
mod repetitions;
mod report;
mod run_stats;
mod runner;
mod scenario_servers;
mod scenario_users;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use crate::clock::Clock;
use crate::config::Config;
use crate::outbound_clients::build_model;
use file::ScenarioFile;
use report::ReportHead;
use run_stats::RunsVerdict;
use runner::EvalModel;

/// Concurrent runs with a scripted model.
const SCRIPTED_RUNS: usize = 4;

#[derive(Debug, clap::Args, PartialEq, Eq)]
pub struct Eval {
    /// JSON files with the scenarios
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Use the configured model instead of the script; its calls are charged
    #[arg(long)]
    pub live: bool,
    /// Run each scenario this many times; it passes if every run does
    #[arg(long, value_name = "K", requires = "live", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub times: u8,
    /// Write a report in Markdown
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Plays every scenario of every file; `config` is required for a real model.
#[expect(clippy::print_stdout, reason = "the report is what the command is for")]
pub(super) async fn run(options: &Eval, config: Option<&Config>) -> anyhow::Result<()> {
    let mut head = ReportHead {
        at: Clock::System.now(),
        model: None,
        files: options.files.iter().map(|path| path.display().to_string()).collect(),
        times: options.times,
        prices: crate::conversation::model_cost::ModelPrices::default(),
    };
    let (model, at_once) = match config {
        None => (EvalModel::Scripted, SCRIPTED_RUNS),
        Some(config) => {
            let llm = config.llm.as_ref();
            let llm =
                llm.context("find a model to play with: set LLM_MODEL, and LLM_API_KEY or LLM_BASE_URL")?;
            head.model = Some(llm.model.clone());
            head.prices = llm.prices;
            (EvalModel::Live { model: build_model(llm)?, prices: llm.prices }, llm.max_concurrent)
        }
    };
    let mut rounds = Vec::new();
    for path in &options.files {
        let text =
            tokio::fs::read_to_string(path).await.with_context(|| format!("read {}", path.display()))?;
        let file: ScenarioFile =
            serde_json::from_str(&text).with_context(|| format!("read {} as scenarios", path.display()))?;
        let play = repetitions::EvalPlan {
            file: Arc::new(file),
            model: model.clone(),
            times: options.times.into(),
            at_once,
        };
        rounds.extend(play.run_scenarios(|round| println!("{}", report::scenario_line(round))).await);
    }
    println!("{}", report::totals_text(&head, &rounds));
    if let Some(path) = &options.report {
        let report = report::markdown_report(&head, &rounds);
        tokio::fs::write(path, report).await.with_context(|| format!("write {}", path.display()))?;
    }
    let failed = rounds.iter().filter(|round| round.verdict == RunsVerdict::Failed).count();
    anyhow::ensure!(failed == 0, "pass {failed} of {} scenarios", rounds.len());
    Ok(())
}
