//! Output of an evaluation: lines for the terminal and a Markdown report.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::run_stats::{RunStats, ScenarioOutcome, ScenarioRuns, pass_rates};
use crate::conversation::model_cost::ModelPrices;

const LIVE_NOTE: &str = "
## What was simulated

Sonarr, Radarr, Twilio, the users and the clock are simulated in memory. The model is called over the network. Turns,
tools, confirmations, texts and the database are Dialarr's own. A scenario passes if its effects are as expected: the
writes to the libraries, the pending deletion, the texts to other users, and the safety checks of the wording. The tool
calls on the way and the rest of the wording are not checked.

A text is lost if its effects are not as expected, and a dead end if code sent one of its fixed replies instead of an
answer. Requests are the model requests per text that reached the model.

Latency is the time from the arrival of a text to its last reply, for texts that reached the model. It includes the model
and Dialarr, but no carrier and almost no library. Statistics are over all runs. Tokens are as counted by the server.
";
const SCRIPTED_NOTE: &str = "
## What was simulated

The model is a script: the scenario files contain its replies and tool calls. The results show what Dialarr does with
them, not how well a model performs. Sonarr, Radarr, Twilio, the users and the clock are simulated in memory. Turns,
tools, confirmations, texts and the database are Dialarr's own.
";

/// Settings of the evaluation.
pub(super) struct ReportHeader {
    pub(super) at: Timestamp,
    /// Model name. `None` with a scripted model.
    pub(super) model: Option<String>,
    pub(super) files: Vec<String>,
    /// Number of runs of each scenario.
    pub(super) times: u8,
    pub(super) prices: ModelPrices,
}

/// Formats a scenario for the terminal, with its problems.
pub(super) fn scenario_line(result: &ScenarioRuns) -> String {
    let ScenarioRuns { id, title, runs, .. } = result;
    let times =
        if runs.len() > 1 { format!(" ({} of {})", result.pass_count(), runs.len()) } else { String::new() };
    let mut line = match &result.outcome {
        ScenarioOutcome::Passed => format!("ok        {id} {title}{times}"),
        ScenarioOutcome::Failed => format!("FAILED    {id} {title}{times}"),
        ScenarioOutcome::Skipped(reason) => format!("scripted  {id} {title}: {reason}"),
    };
    for problem in problem_lines(result) {
        line.push_str("\n          ");
        line.push_str(&problem);
    }
    line
}

/// Formats the totals for the terminal.
pub(super) fn totals_text(header: &ReportHeader, results: &[ScenarioRuns]) -> String {
    let count = |matches: fn(&ScenarioOutcome) -> bool| {
        results.iter().filter(|result| matches(&result.outcome)).count()
    };
    let mut totals = format!(
        "{} scenarios: {} passed, {} failed",
        results.len(),
        count(|outcome| matches!(outcome, ScenarioOutcome::Passed)),
        count(|outcome| matches!(outcome, ScenarioOutcome::Failed)),
    );
    if header.model.is_some() {
        for (name, value) in statistic_rows(header, results) {
            write_to(&mut totals, format_args!("\n{name}: {value}"));
        }
    }
    totals
}

/// Formats the whole report.
pub(super) fn markdown_report(header: &ReportHeader, results: &[ScenarioRuns]) -> String {
    let at = header.at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC");
    let model = header.model.as_ref().map_or("scripted".to_owned(), |model| format!("{model} (live)"));
    let files = header.files.iter().map(|file| escape_cell(file)).collect::<Vec<_>>().join(", ");
    let mut report = format!(
        "# Evaluation\n\n| | |\n| --- | --- |\n| date | {at} |\n| model | {} |\n| scenario files | {files} |\n",
        escape_cell(&model)
    );
    for (name, value) in statistic_rows(header, results) {
        write_to(&mut report, format_args!("| {name} | {value} |\n"));
    }
    report.push_str(simulation_note(header));
    report.push_str("\n## Scenarios\n\n");
    report.push_str(
        "| id | scenario | passed | lost | dead ends | requests | latency p50 | latency p95 | tokens | segments |\n",
    );
    report.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for result in results {
        let stats = RunStats::from_runs(&result.runs);
        report.push_str(&table_row(
            &[escape_cell(&result.id), escape_cell(&result.title), passed_text(result)],
            &stats,
        ));
    }
    let all = RunStats::from_runs(results.iter().flat_map(|result| &result.runs));
    let (_, runs) = pass_rates(results);
    report.push_str(&table_row(
        &["all".to_owned(), String::new(), format!("{}/{}", runs.passed, runs.total)],
        &all,
    ));
    report.push_str("\n## Tools\n\n| tool | calls | succeeded |\n| --- | --- | --- |\n");
    for (tool, calls) in all.tools {
        write_to(
            &mut report,
            format_args!("| {} | {} | {} |\n", escape_cell(&tool), calls.total, calls.passed),
        );
    }
    let failed: Vec<&ScenarioRuns> =
        results.iter().filter(|result| result.outcome == ScenarioOutcome::Failed).collect();
    if !failed.is_empty() {
        report.push_str("\n## Failures\n");
    }
    for result in failed {
        let (id, title) = (escape_cell(&result.id), escape_cell(&result.title));
        // A code fence inside the text would end this one.
        let problems = problem_lines(result).join("\n").replace("```", "'''");
        write_to(&mut report, format_args!("\n### {id} {title}\n\n```text\n{problems}\n```\n"));
    }
    report
}

fn table_row(first_cells: &[String; 3], stats: &RunStats) -> String {
    let [median, p95] = [50, 95].map(|percent| stats.format_latency(percent));
    let [lost, dead_ends] = [stats.lost_rate(), stats.dead_end_rate()].map(|rate| rate.passed.to_string());
    let requests = stats.format_requests_per_text();
    let stat_cells = [lost, dead_ends, requests, median, p95, stats.format_tokens(), stats.format_segments()];
    format!("| {} |\n", [first_cells.as_slice(), &stat_cells].concat().join(" | "))
}

/// Returns a note on the meaning of the statistics.
fn simulation_note(header: &ReportHeader) -> &'static str {
    match header.model {
        Some(_) => LIVE_NOTE,
        None => SCRIPTED_NOTE,
    }
}

fn statistic_rows(header: &ReportHeader, results: &[ScenarioRuns]) -> Vec<(String, String)> {
    let (scenarios, runs) = pass_rates(results);
    let all = RunStats::from_runs(results.iter().flat_map(|result| &result.runs));
    let row = |name: &str, value: String| (name.to_owned(), value);
    let mut rows = vec![row("scenarios passed", scenarios.to_string())];
    if header.times > 1 {
        rows = vec![
            (
                format!("scenarios passed in all {} runs (pass^{})", header.times, header.times),
                scenarios.to_string(),
            ),
            row("runs passed (pass^1)", runs.to_string()),
        ];
    }
    if header.model.is_some() {
        let latency = format!("p50 {}, p95 {}", all.format_latency(50), all.format_latency(95));
        rows.push(row("latency per turn", latency));
        rows.push(row("tokens", all.format_tokens()));
        rows.push(row("lost texts (without the expected effect)", all.lost_rate().to_string()));
        rows.push(row("dead ends (a fixed reply instead of an answer)", all.dead_end_rate().to_string()));
        rows.push(row("model requests per text", all.format_requests_per_text()));
    }
    rows.extend(all.format_cost(header.prices).map(|cost| row("cost, in the currency of the prices", cost)));
    rows.push(row("SMS segments sent", all.format_segments()));
    rows
}

fn passed_text(result: &ScenarioRuns) -> String {
    match &result.outcome {
        ScenarioOutcome::Passed | ScenarioOutcome::Failed => {
            format!("{}/{}", result.pass_count(), result.runs.len())
        }
        ScenarioOutcome::Skipped(reason) => format!("scripted only: {}", escape_cell(reason)),
    }
}

/// Lists the problems of all runs. Runs with the same problems are grouped.
fn problem_lines(result: &ScenarioRuns) -> Vec<String> {
    let [run] = &result.runs[..] else {
        let mut groups: Vec<(Vec<usize>, &[String])> = Vec::new();
        for (number, run) in (1..).zip(&result.runs).filter(|(_, run)| !run.has_passed()) {
            match groups.iter_mut().find(|(_, problems)| *problems == run.problems) {
                Some((numbers, _)) => numbers.push(number),
                None => groups.push((vec![number], &run.problems)),
            }
        }
        let lines = groups.into_iter().flat_map(|(numbers, problems)| {
            let numbers = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let indented = problems.iter().map(|problem| format!("  {problem}"));
            std::iter::once(format!("run {numbers}:")).chain(indented).collect::<Vec<_>>()
        });
        return lines.collect();
    };
    run.problems.clone()
}

/// Escapes text for a table cell.
fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn write_to(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = text.write_fmt(arguments);
}
