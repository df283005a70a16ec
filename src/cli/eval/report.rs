//! What is told of an evaluation: lines in the terminal, and a report in Markdown for a file.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::measure::{Figures, Round, Verdict, shares};
use crate::conversation::spending::Prices;

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

/// What was played.
pub(super) struct Head {
    pub(super) at: Timestamp,
    /// `None` for the script.
    pub(super) model: Option<String>,
    pub(super) files: Vec<String>,
    /// Runs of each scenario.
    pub(super) times: u8,
    pub(super) prices: Prices,
}

/// A scenario in the terminal, with its problems.
pub(super) fn line(round: &Round) -> String {
    let Round { id, title, runs, .. } = round;
    let times =
        if runs.len() > 1 { format!(" ({} of {})", round.passes(), runs.len()) } else { String::new() };
    let mut line = match &round.verdict {
        Verdict::Passed => format!("ok        {id} {title}{times}"),
        Verdict::Failed => format!("FAILED    {id} {title}{times}"),
        Verdict::NotPlayed(why) => format!("scripted  {id} {title}: {why}"),
    };
    for problem in problems(round) {
        line.push_str("\n          ");
        line.push_str(&problem);
    }
    line
}

/// The last lines in the terminal.
pub(super) fn totals(head: &Head, rounds: &[Round]) -> String {
    let count = |wanted: fn(&Verdict) -> bool| rounds.iter().filter(|round| wanted(&round.verdict)).count();
    let mut totals = format!(
        "{} scenarios: {} passed, {} failed",
        rounds.len(),
        count(|verdict| matches!(verdict, Verdict::Passed)),
        count(|verdict| matches!(verdict, Verdict::Failed)),
    );
    if head.model.is_some() {
        for (what, figure) in figures(head, rounds) {
            write_to(&mut totals, format_args!("\n{what}: {figure}"));
        }
    }
    totals
}

/// The whole report.
pub(super) fn markdown(head: &Head, rounds: &[Round]) -> String {
    let at = head.at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC");
    let model = head.model.as_ref().map_or("scripted".to_owned(), |model| format!("{model} (live)"));
    let files = head.files.iter().map(|file| cell(file)).collect::<Vec<_>>().join(", ");
    let mut report = format!(
        "# Evaluation\n\n| | |\n| --- | --- |\n| date | {at} |\n| model | {} |\n| played | {files} |\n",
        cell(&model)
    );
    for (what, figure) in figures(head, rounds) {
        write_to(&mut report, format_args!("| {what} | {figure} |\n"));
    }
    report.push_str(simulated(head));
    report.push_str("\n## Scenarios\n\n");
    report.push_str("| id | scenario | passed | latency p50 | latency p95 | tokens | segments |\n");
    report.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for round in rounds {
        let of_round = Figures::of(&round.runs);
        report.push_str(&row(&[cell(&round.id), cell(&round.title), passed(round)], &of_round));
    }
    let all = Figures::of(rounds.iter().flat_map(|round| &round.runs));
    let (_, runs) = shares(rounds);
    report.push_str(&row(&["all".to_owned(), String::new(), format!("{}/{}", runs.passed, runs.of)], &all));
    report.push_str("\n## Tools\n\n| tool | calls | of them without an error |\n| --- | --- | --- |\n");
    for (tool, calls) in all.tools {
        write_to(&mut report, format_args!("| {} | {} | {} |\n", cell(&tool), calls.of, calls.passed));
    }
    let failed: Vec<&Round> = rounds.iter().filter(|round| round.verdict == Verdict::Failed).collect();
    if !failed.is_empty() {
        report.push_str("\n## Failures\n");
    }
    for round in failed {
        let (id, title) = (cell(&round.id), cell(&round.title));
        // A fence inside what was said would end this one.
        let problems = problems(round).join("\n").replace("```", "'''");
        write_to(&mut report, format_args!("\n### {id} {title}\n\n```text\n{problems}\n```\n"));
    }
    report
}

fn row(head: &[String; 3], figures: &Figures) -> String {
    let [latency, late] = [50, 95].map(|percent| figures.latency(percent));
    let figures = [latency, late, figures.tokens(), figures.segments()];
    format!("| {} |\n", [head.as_slice(), &figures].concat().join(" | "))
}

/// What the figures are of, and what they are not of.
fn simulated(head: &Head) -> &'static str {
    match head.model {
        Some(_) => LIVE,
        None => SCRIPTED,
    }
}

fn figures(head: &Head, rounds: &[Round]) -> Vec<(String, String)> {
    let (whole, runs) = shares(rounds);
    let all = Figures::of(rounds.iter().flat_map(|round| &round.runs));
    let told = |what: &str, figure: String| (what.to_owned(), figure);
    let mut figures = vec![told("scenarios passed", whole.to_string())];
    if head.times > 1 {
        figures = vec![
            (format!("scenarios passed in all {} runs (pass^{})", head.times, head.times), whole.to_string()),
            told("runs passed (pass^1)", runs.to_string()),
        ];
    }
    if head.model.is_some() {
        let latency = format!("p50 {}, p95 {}", all.latency(50), all.latency(95));
        figures.push(told("latency per turn", latency));
        figures.push(told("tokens", all.tokens()));
    }
    figures.extend(all.cost(head.prices).map(|cost| told("cost, in the currency of the prices", cost)));
    figures.push(told("SMS segments sent", all.segments()));
    figures
}

fn passed(round: &Round) -> String {
    match &round.verdict {
        Verdict::Passed | Verdict::Failed => format!("{}/{}", round.passes(), round.runs.len()),
        Verdict::NotPlayed(why) => format!("scripted only: {}", cell(why)),
    }
}

/// The problems of all runs; what several runs have in common stands once.
fn problems(round: &Round) -> Vec<String> {
    let [run] = &round.runs[..] else {
        let mut told: Vec<(Vec<usize>, &[String])> = Vec::new();
        for (number, run) in (1..).zip(&round.runs).filter(|(_, run)| !run.passed()) {
            match told.iter_mut().find(|(_, problems)| *problems == run.problems) {
                Some((numbers, _)) => numbers.push(number),
                None => told.push((vec![number], &run.problems)),
            }
        }
        let lines = told.into_iter().flat_map(|(numbers, problems)| {
            let numbers = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let indented = problems.iter().map(|problem| format!("  {problem}"));
            std::iter::once(format!("run {numbers}:")).chain(indented).collect::<Vec<_>>()
        });
        return lines.collect();
    };
    run.problems.clone()
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn write_to(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = text.write_fmt(more);
}
