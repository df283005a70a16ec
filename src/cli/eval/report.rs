//! Output of an evaluation: lines in the terminal, and a report in Markdown for a file.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::run_stats::{RunStats, RunsVerdict, ScenarioRuns, pass_shares};
use crate::conversation::model_cost::ModelPrices;

const LIVE: &str = "
## What was simulated

Sonarr, Radarr, Twilio, the people and the clock are simulated in memory. The model is real and was asked over the
network; so are this program's turns, tools, confirmations, texts and database. A scenario passes by its end: what was
written to the libraries, what is pending, who was told and what safety demands of the words. Which tools the model
called on its way and how it put things does not count.

Latency is from a text's arrival to the last answer to it: the model's time and ours, with none of a carrier's and next
to none of a library's. It is of texts for which the model was asked. Figures are of all runs together. Tokens are as the
server counted them.
";
const SCRIPTED: &str = "
## What was simulated

The model is a script: its words and calls are written in the file, so this says what the program does with them, and
nothing of how well any model does. Sonarr, Radarr, Twilio, the people and the clock are simulated in memory. Turns,
tools, confirmations, texts and the database are this program's own.
";

/// Settings of the evaluation.
pub(super) struct ReportHead {
    pub(super) at: Timestamp,
    /// Model name; `None` for the script.
    pub(super) model: Option<String>,
    pub(super) files: Vec<String>,
    /// Number of runs of each scenario.
    pub(super) times: u8,
    pub(super) prices: ModelPrices,
}

/// Formats a scenario for the terminal, with its problems.
pub(super) fn scenario_line(round: &ScenarioRuns) -> String {
    let ScenarioRuns { id, title, runs, .. } = round;
    let times =
        if runs.len() > 1 { format!(" ({} of {})", round.pass_count(), runs.len()) } else { String::new() };
    let mut line = match &round.verdict {
        RunsVerdict::Passed => format!("ok        {id} {title}{times}"),
        RunsVerdict::Failed => format!("FAILED    {id} {title}{times}"),
        RunsVerdict::NotPlayed(why) => format!("scripted  {id} {title}: {why}"),
    };
    for problem in problem_lines(round) {
        line.push_str("\n          ");
        line.push_str(&problem);
    }
    line
}

/// Formats the last lines in the terminal.
pub(super) fn totals_text(head: &ReportHead, rounds: &[ScenarioRuns]) -> String {
    let count =
        |wanted: fn(&RunsVerdict) -> bool| rounds.iter().filter(|round| wanted(&round.verdict)).count();
    let mut totals = format!(
        "{} scenarios: {} passed, {} failed",
        rounds.len(),
        count(|verdict| matches!(verdict, RunsVerdict::Passed)),
        count(|verdict| matches!(verdict, RunsVerdict::Failed)),
    );
    if head.model.is_some() {
        for (what, figure) in figure_rows(head, rounds) {
            write_to(&mut totals, format_args!("\n{what}: {figure}"));
        }
    }
    totals
}

/// Formats the whole report.
pub(super) fn markdown_report(head: &ReportHead, rounds: &[ScenarioRuns]) -> String {
    let at = head.at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC");
    let model = head.model.as_ref().map_or("scripted".to_owned(), |model| format!("{model} (live)"));
    let files = head.files.iter().map(|file| escape_cell(file)).collect::<Vec<_>>().join(", ");
    let mut report = format!(
        "# Evaluation\n\n| | |\n| --- | --- |\n| date | {at} |\n| model | {} |\n| played | {files} |\n",
        escape_cell(&model)
    );
    for (what, figure) in figure_rows(head, rounds) {
        write_to(&mut report, format_args!("| {what} | {figure} |\n"));
    }
    report.push_str(simulation_note(head));
    report.push_str("\n## Scenarios\n\n");
    report.push_str("| id | scenario | passed | latency p50 | latency p95 | tokens | segments |\n");
    report.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for round in rounds {
        let of_round = RunStats::from_runs(&round.runs);
        report.push_str(&table_row(
            &[escape_cell(&round.id), escape_cell(&round.title), passed_text(round)],
            &of_round,
        ));
    }
    let all = RunStats::from_runs(rounds.iter().flat_map(|round| &round.runs));
    let (_, runs) = pass_shares(rounds);
    report.push_str(&table_row(
        &["all".to_owned(), String::new(), format!("{}/{}", runs.passed, runs.of)],
        &all,
    ));
    report.push_str("\n## Tools\n\n| tool | calls | of them without an error |\n| --- | --- | --- |\n");
    for (tool, calls) in all.tools {
        write_to(&mut report, format_args!("| {} | {} | {} |\n", escape_cell(&tool), calls.of, calls.passed));
    }
    let failed: Vec<&ScenarioRuns> =
        rounds.iter().filter(|round| round.verdict == RunsVerdict::Failed).collect();
    if !failed.is_empty() {
        report.push_str("\n## Failures\n");
    }
    for round in failed {
        let (id, title) = (escape_cell(&round.id), escape_cell(&round.title));
        // A fence inside the quoted text would end this one.
        let problems = problem_lines(round).join("\n").replace("```", "'''");
        write_to(&mut report, format_args!("\n### {id} {title}\n\n```text\n{problems}\n```\n"));
    }
    report
}

fn table_row(head: &[String; 3], figures: &RunStats) -> String {
    let [latency, late] = [50, 95].map(|percent| figures.format_latency(percent));
    let figures = [latency, late, figures.format_tokens(), figures.format_segments()];
    format!("| {} |\n", [head.as_slice(), &figures].concat().join(" | "))
}

/// Returns a note on the scope and the limits of the figures.
fn simulation_note(head: &ReportHead) -> &'static str {
    match head.model {
        Some(_) => LIVE,
        None => SCRIPTED,
    }
}

fn figure_rows(head: &ReportHead, rounds: &[ScenarioRuns]) -> Vec<(String, String)> {
    let (whole, runs) = pass_shares(rounds);
    let all = RunStats::from_runs(rounds.iter().flat_map(|round| &round.runs));
    let row = |what: &str, figure: String| (what.to_owned(), figure);
    let mut figures = vec![row("scenarios passed", whole.to_string())];
    if head.times > 1 {
        figures = vec![
            (format!("scenarios passed in all {} runs (pass^{})", head.times, head.times), whole.to_string()),
            row("runs passed (pass^1)", runs.to_string()),
        ];
    }
    if head.model.is_some() {
        let latency = format!("p50 {}, p95 {}", all.format_latency(50), all.format_latency(95));
        figures.push(row("latency per turn", latency));
        figures.push(row("tokens", all.format_tokens()));
    }
    figures.extend(all.format_cost(head.prices).map(|cost| row("cost, in the currency of the prices", cost)));
    figures.push(row("SMS segments sent", all.format_segments()));
    figures
}

fn passed_text(round: &ScenarioRuns) -> String {
    match &round.verdict {
        RunsVerdict::Passed | RunsVerdict::Failed => format!("{}/{}", round.pass_count(), round.runs.len()),
        RunsVerdict::NotPlayed(why) => format!("scripted only: {}", escape_cell(why)),
    }
}

/// Lists the problems of all runs; a problem that several runs share is listed once.
fn problem_lines(round: &ScenarioRuns) -> Vec<String> {
    let [run] = &round.runs[..] else {
        let mut groups: Vec<(Vec<usize>, &[String])> = Vec::new();
        for (number, run) in (1..).zip(&round.runs).filter(|(_, run)| !run.has_passed()) {
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

/// Escapes text so that it stays in its table cell.
fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn write_to(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = text.write_fmt(more);
}
