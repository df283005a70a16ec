//! Scripted runs of all scenarios in `evals/`: each one passes, and together they use every tool.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::MAX_SCRIPTED_RUNS;
use super::library_entries::LibraryEntry;
use super::repetitions::EvalPlan;
use super::run_stats::{RunStats, ScenarioOutcome, ScenarioRuns};
use super::runner::EvalModel;
use super::scenario_file::{MessageEntry, ScenarioFile};
use super::scenario_servers::ScenarioServers;
use crate::clock::Clock;
use crate::conversation::transcript::ToolAudience;
use crate::simulation;
use crate::tool_list;

/// Lower bound for the number of scenarios, so that none are lost by accident.
const MIN_SCENARIOS: usize = 140;

/// Upper bound for the average number of segments of a text.
const MAX_SEGMENTS_PER_TEXT: f64 = 1.2;

async fn run_included_scenarios() -> Vec<ScenarioRuns> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/evals");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut results = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let file: ScenarioFile =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for scenario in &file.scenarios {
            let checks_effects =
                |message: &MessageEntry| message.expect.writes.is_some() || !message.expect.state.is_empty();
            assert!(
                scenario.turns.iter().any(checks_effects),
                "{} checks no writes and no state",
                scenario.id
            );
        }
        let plan = EvalPlan {
            file: Arc::new(file),
            model: EvalModel::Scripted,
            times: 1,
            max_concurrent: MAX_SCRIPTED_RUNS,
        };
        results.extend(plan.run_scenarios(|_| ()).await);
    }
    results
}

/// Returns the names of all tools that a model or the keyword responder is offered.
fn all_tool_names() -> BTreeSet<String> {
    let servers = ScenarioServers::from_entry(&LibraryEntry::default(), &Clock::System).unwrap();
    let blueprint = servers.peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None).unwrap();
    let library = Arc::new(blueprint.library);
    tool_list::all_tools(&library, blueprint.settings.pictures)
        .iter()
        .filter(|tool| tool.spec().audience != ToolAudience::Agent)
        .map(|tool| tool.spec().name.to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn included_scenarios_pass_and_use_every_tool() {
    let results = run_included_scenarios().await;
    let failed: Vec<String> = results
        .iter()
        .filter(|result| result.outcome != ScenarioOutcome::Passed)
        .map(super::report::scenario_line)
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(results.len() >= MIN_SCENARIOS, "{} scenarios", results.len());
    let ids: BTreeSet<&str> = results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(ids.len(), results.len(), "duplicate scenario id");

    let stats = RunStats::from_runs(results.iter().flat_map(|result| &result.runs));
    let segments = stats.segments_per_text();
    assert!(segments <= MAX_SEGMENTS_PER_TEXT, "{segments} segments per text");
    let calls_by_tool = stats.tools;
    let unused: Vec<String> = all_tool_names()
        .into_iter()
        .filter(|tool| calls_by_tool.get(tool).is_none_or(|calls| calls.passed == 0))
        .collect();
    assert!(
        unused.is_empty(),
        "no scenario in evals/ uses {unused:?} successfully; docs/internals/EVALS.md describes how to add one"
    );
}

#[test]
fn unknown_path_is_an_error_and_missing_title_is_null() {
    let servers = ScenarioServers::from_entry(&LibraryEntry::default(), &Clock::System).unwrap();
    for path in
        ["movies.7", "movies.7.colour", "movies.x.here", "radarr.mood", "books.7.here", "movies_4k.7.here"]
    {
        assert!(servers.read_value(path).is_err(), "{path}");
    }
    assert_eq!(servers.read_value("movies.7.here").unwrap(), json!(false));
    assert_eq!(servers.read_value("series.tvdb:9.seasons").unwrap(), Value::Null);
    for (path, value) in [
        ("movies.7.here", json!(false)),
        ("radarr.down", json!("yes")),
        ("radarr.up", json!(true)),
        ("jellyfin.down", json!(true)),
        ("tmdb.down", json!(true)),
    ] {
        assert!(servers.change_value(path, &value).is_err(), "{path}");
    }
}
