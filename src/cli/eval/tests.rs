//! Scenarios of `evals/`, played with their scripts: each one passes, and together they use every tool.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::SCRIPTED_RUNS;
use super::file::{ScenarioFile, TextEntry};
use super::library_entries::LibraryEntry;
use super::repetitions::EvalPlan;
use super::run_stats::{RunStats, RunsVerdict, ScenarioRuns};
use super::runner::EvalModel;
use super::scenario_servers::ScenarioServers;
use crate::app;
use crate::clock::Clock;
use crate::simulation;
use crate::store::database::db::Db;

/// Minimum number of this project's own scenarios, besides those from other sources.
const MIN_SCENARIOS: usize = 30;

async fn played() -> Vec<ScenarioRuns> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/evals");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut rounds = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let file: ScenarioFile =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for scenario in &file.scenarios {
            let ends = |text: &TextEntry| text.expect.writes.is_some() || !text.expect.state.is_empty();
            assert!(scenario.turns.iter().any(ends), "{} is not judged by how it ends", scenario.id);
        }
        let plan =
            EvalPlan { file: Arc::new(file), model: EvalModel::Scripted, times: 1, at_once: SCRIPTED_RUNS };
        rounds.extend(plan.run_scenarios(|_| ()).await);
    }
    rounds
}

/// Returns the names of all tools of the program.
fn tools() -> BTreeSet<String> {
    let world = ScenarioServers::from_entry(&LibraryEntry::default(), &Clock::System);
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("tools.db").to_str().unwrap()).unwrap();
    let blueprint = world.peers.blueprint(db, simulation::simulation_settings(TimeZone::UTC), None).unwrap();
    let library = Arc::new(blueprint.library);
    app::all_tools(&library, blueprint.settings.pictures)
        .iter()
        .map(|tool| tool.spec().name.to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn included_scenarios_pass_and_use_every_tool() {
    let rounds = played().await;
    let failed: Vec<String> = rounds
        .iter()
        .filter(|round| round.verdict != RunsVerdict::Passed)
        .map(super::report::scenario_line)
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(rounds.len() >= MIN_SCENARIOS, "{} scenarios", rounds.len());
    let ids: BTreeSet<&str> = rounds.iter().map(|round| round.id.as_str()).collect();
    assert_eq!(ids.len(), rounds.len(), "two scenarios have one id");

    let used = RunStats::from_runs(rounds.iter().flat_map(|round| &round.runs)).tools;
    let unused: Vec<String> =
        tools().into_iter().filter(|tool| used.get(tool).is_none_or(|calls| calls.passed == 0)).collect();
    assert!(
        unused.is_empty(),
        "no scenario of evals/ uses {unused:?} with success: docs/EVALS.md says how to add one"
    );
}

#[test]
fn unknown_path_is_an_error_and_missing_entry_is_null() {
    let world = ScenarioServers::from_entry(&LibraryEntry::default(), &Clock::System);
    for path in
        ["movies.7", "movies.7.colour", "movies.x.here", "radarr.mood", "books.7.here", "movies_4k.7.here"]
    {
        assert!(world.read_value(path).is_err(), "{path}");
    }
    assert_eq!(world.read_value("movies.7.here").unwrap(), json!(false));
    assert_eq!(world.read_value("series.tvdb:9.seasons").unwrap(), Value::Null);
    for (path, value) in
        [("movies.7.here", json!(false)), ("radarr.down", json!("yes")), ("radarr.up", json!(true))]
    {
        assert!(world.change_value(path, &value).is_err(), "{path}");
    }
}
