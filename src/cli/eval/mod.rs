//! `dialarr eval FILE`: runs scenarios against simulated peers, with a scripted or the configured model, and checks their
//! effects: library writes, pending actions and messages. Files of labeled texts are judged by the grammar.

mod expectation;
mod fake_libraries;
mod labeled_texts;
mod library_entries;
mod library_state;
mod recording_model;
mod repetitions;
mod report;
mod run_stats;
mod runner;
mod scenario_catalog;
mod scenario_file;
mod scenario_jellyfin;
mod scenario_room;
mod scenario_seerr;
mod scenario_servers;
mod scenario_users;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use crate::clock::Clock;
use crate::config::Config;
use crate::http::build_network_client;
use crate::outbound_clients::build_model;
use labeled_texts::{JudgmentCounts, LabeledFile};
use report::ReportHeader;
use run_stats::ScenarioOutcome;
use runner::EvalModel;
use scenario_file::ScenarioFile;

/// Limit of concurrent runs with a scripted model.
const MAX_SCRIPTED_RUNS: usize = 4;
/// Limit of concurrent runs with a real model. Each run has a limit of its own for its model calls, so these limits cannot
/// adapt to the load of all runs.
const MAX_LIVE_RUNS: usize = 8;

#[derive(Debug, clap::Args, PartialEq, Eq)]
pub struct EvalArguments {
    /// JSON files with the scenarios, or with labeled texts
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Use the configured model instead of the script; its calls are charged
    #[arg(long)]
    pub live: bool,
    /// Run each scenario this many times; it passes if every run does
    #[arg(long, value_name = "K", requires = "live", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub times: u8,
    /// Accept a file of labeled texts if at least this many are right; harmful ones always fail
    #[arg(long, value_name = "N")]
    pub at_least: Option<usize>,
    /// Write a report in Markdown
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Runs all scenarios of all files. `config` is required for a real model.
#[expect(clippy::print_stdout, reason = "the command prints the report")]
pub(super) async fn run(options: &EvalArguments, config: Option<&Config>) -> anyhow::Result<()> {
    let mut header = ReportHeader {
        at: Clock::System.now(),
        model: None,
        files: options.files.iter().map(|path| path.display().to_string()).collect(),
        times: options.times,
        prices: crate::conversation::model_cost::ModelPrices::default(),
    };
    let (model, max_concurrent) = match config {
        None => (EvalModel::Scripted, MAX_SCRIPTED_RUNS),
        Some(config) => {
            let llm = config.llm.as_ref();
            let llm =
                llm.context("find a configured model: set LLM_MODEL, and LLM_API_KEY or LLM_BASE_URL")?;
            header.model = Some(llm.model.clone());
            header.prices = llm.prices;
            (
                EvalModel::Live { model: build_model(llm, &build_network_client()?)?, prices: llm.prices },
                llm.max_concurrent.min(MAX_LIVE_RUNS),
            )
        }
    };
    let mut results = Vec::new();
    let mut judged = JudgmentCounts::default();
    for path in &options.files {
        let text =
            tokio::fs::read_to_string(path).await.with_context(|| format!("read {}", path.display()))?;
        if let Ok(labeled) = serde_json::from_str::<LabeledFile>(&text) {
            judged.add(labeled.judge(|line| println!("{line}")));
            continue;
        }
        let file: ScenarioFile = serde_json::from_str(&text)
            .with_context(|| format!("parse the scenarios of {}", path.display()))?;
        let plan = repetitions::EvalPlan {
            file: Arc::new(file),
            model: model.clone(),
            times: options.times.into(),
            max_concurrent,
        };
        results.extend(plan.run_scenarios(|result| println!("{}", report::scenario_line(result))).await);
    }
    if !results.is_empty() {
        println!("{}", report::totals_text(&header, &results));
    }
    if let Some(totals) = judged.totals_text() {
        println!("{totals}");
    }
    if let Some(path) = &options.report {
        let report = report::markdown_report(&header, &results);
        tokio::fs::write(path, report).await.with_context(|| format!("write {}", path.display()))?;
    }
    let failed = results.iter().filter(|result| result.outcome == ScenarioOutcome::Failed).count();
    anyhow::ensure!(failed == 0, "pass {failed} of {} scenarios", results.len());
    anyhow::ensure!(judged.is_acceptable(options.at_least), "read the labeled texts");
    Ok(())
}
