//! Agreement of the documents with the program: named metrics, variables, commands, tests and dependencies exist, and
//! quoted sentences occur in the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use dialarr::conversation::channel_list;
use dialarr::conversation::model_cost::TokenUsage;
use dialarr::conversation::routing::verification::VerificationOutcome;
use dialarr::conversation::transcript::Responder;
use dialarr::metrics::{Metrics, ModelQueueCounts};
use dialarr::store::queue::backlog::{AssistantState, Backlog, QueueDepth};
use dialarr::store::queue::outbox::{AcceptanceOutcome, OutboundKind};
use dialarr::store::turns::turn_lifecycle::TurnKind;
use dialarr::store::turns::turn_stats::{CallEnd, TurnResult, TurnStats};
use diesel::RunQueryDsl;
use jiff::Timestamp;

use crate::harness::TestApp;
use crate::harness::cli::Cli;

/// Documents outside `docs/`, which is read with its folders.
const LONE_DOCUMENTS: [&str; 5] =
    ["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "fuzz/README.md", "packaging/README.md"];
/// Variables of other programs, and of the tests.
const OTHERS: [&str; 13] = [
    "DIALARR_AGENT_KEY",
    "DIALARR_COMMIT",
    "DIALARR_NODE_MODULES",
    "DIALARR_UNDER_TEST",
    "DIALARR_UPDATE_DOCS",
    "INSTA_UPDATE",
    "MALLOC_ARENA_MAX",
    "OLLAMA_CONTEXT_LENGTH",
    "PROPTEST_CASES",
    "SIM_FROM",
    "SIM_ROOMS",
    "SIM_SEED",
    "SIM_SEEDS",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the paths of all documents, from the root of the repository.
fn documents() -> Vec<String> {
    let mut paths = LONE_DOCUMENTS.map(str::to_owned).to_vec();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                paths.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    paths.sort();
    paths
}

/// Returns the text of every file with this ending below a folder.
fn below(folder: &Path, ending: &str, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, ending, into);
        } else if path.to_str().unwrap().ends_with(ending) {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

fn source(folders: &[&str]) -> String {
    let mut text = String::new();
    for folder in folders {
        below(&root().join(folder), ".rs", &mut text);
    }
    text
}

/// Returns the texts between backticks on one line.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

pub(crate) fn words<'a>(text: &'a str, belongs: impl Fn(char) -> bool + 'a) -> impl Iterator<Item = &'a str> {
    text.split(move |mark: char| !belongs(mark)).filter(|word| !word.is_empty())
}

/// Returns the names of all samples, each with its labels, of a program that has counted everything at least once.
pub(crate) fn metrics_text() -> String {
    let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let metrics = Metrics::new(vec!["add_movie"], now);
    metrics.text_received(channel_list::TWILIO);
    metrics.text_accepted(AcceptanceOutcome::First {
        kind: OutboundKind::Reply,
        channel: channel_list::TWILIO,
        segments: 1,
    });
    metrics.text_refused();
    metrics.text_retried();
    for run in [1, 2] {
        let calls = vec![("add_movie".to_owned(), CallEnd::Complete)];
        let account = TurnStats {
            kind: TurnKind::Chat,
            run,
            result: TurnResult::Completed,
            model_ms: 1,
            tools_ms: 1,
            own_ms: 1,
            calls,
        };
        metrics.turn_ended(&account);
    }
    metrics.model_answered(Responder::Model, Some(TokenUsage { input: 1, cached: 1, output: 1 }));
    metrics.model_retried();
    metrics.model_queue_changed(ModelQueueCounts::default());
    metrics.webhook_answered("/health".to_owned(), 200);
    metrics.webhook_refused("texts", "odd_name");
    metrics.text_verified(VerificationOutcome::Agreed);
    let none = QueueDepth { length: 0, oldest: None };
    let backlog =
        Backlog { waiting: none, unsent: none, running_turns: 0, assistant: AssistantState::Running };
    let metrics_text = metrics.render(&backlog, now).unwrap();
    let registered = source(&["src"]).matches("registry.register").count();
    assert_eq!(
        metrics_text.matches("# TYPE ").count(),
        registered,
        "a metric has no sample here:\n{metrics_text}"
    );
    metrics_text
}

/// Returns every sample with its labels.
pub(crate) fn samples() -> BTreeMap<String, BTreeSet<String>> {
    let mut samples: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in metrics_text().lines().filter(|line| !line.starts_with('#')) {
        let sample = line.rsplit_once(' ').unwrap().0;
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let labels = labels.split('=').filter_map(|part| words(part, is_of_a_name).last());
        let labels = labels.filter(|label| label.chars().all(|mark| mark.is_ascii_lowercase()));
        samples.entry(name.to_owned()).or_default().extend(labels.map(str::to_owned));
    }
    samples
}

pub(crate) fn is_of_a_name(mark: char) -> bool {
    mark.is_ascii_alphanumeric() || mark == '_'
}

pub(crate) fn is_metric(word: &&str) -> bool {
    (word.starts_with("dialarr_") || word.starts_with("process_")) && word.len() > "process_".len()
}

#[test]
fn every_documented_metric_exists() {
    let samples = samples();
    for path in documents().into_iter().chain(["docs/alerts.yml".to_owned()]) {
        for name in words(&read(&path), is_of_a_name).filter(is_metric) {
            let is_family =
                samples.keys().any(|sample| sample.strip_prefix(name).is_some_and(|end| end == "_sum"));
            assert!(samples.contains_key(name) || is_family, "{path} names {name}: {:?}", samples.keys());
        }
    }
}

#[test]
fn metrics_table_is_complete() {
    let document = read("docs/METRICS.md");
    let missing: Vec<String> = samples()
        .into_keys()
        .filter(|name| {
            let family = ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
            !document.contains(&format!("`{}", family.unwrap_or(name)))
        })
        .collect();
    assert_eq!(missing, [] as [String; 0]);
}

/// A label with an impossible value would make an alert that never fires.
#[test]
fn every_label_in_the_alerts_exists_with_its_value() {
    let (samples, code) = (samples(), source(&["src"]));
    let alerts = read("docs/alerts.yml");
    let mut checked = 0;
    for (at, _) in alerts.match_indices("dialarr_") {
        let name = words(&alerts[at..], is_of_a_name).next().unwrap();
        let Some(selector) = alerts[at + name.len()..].strip_prefix('{') else { continue };
        let selector = selector.split("}[").next().unwrap();
        for condition in selector.split("\",").filter(|condition| condition.contains('"')) {
            let (label, value) = condition.split_once('"').unwrap();
            let label = label.trim_end_matches(['=', '~', '!']);
            if label == "job" {
                continue;
            }
            assert!(samples[name].contains(label), "{name} has no label {label}: {:?}", samples[name]);
            for value in value.trim_end_matches('"').split('|').filter(|value| value.parse::<u16>().is_err())
            {
                let value = value.trim_end_matches(".*");
                assert!(code.contains(&format!("\"{value}\"")), "{name}: {label} is never {value}");
            }
            checked += 1;
        }
    }
    assert!(checked > 8, "{checked} labels were found");
}

#[test]
fn every_alert_is_explained() {
    let (alerts, explanations) = (read("docs/alerts.yml"), read("docs/METRICS.md"));
    let defined: BTreeSet<&str> =
        alerts.split("- alert: ").skip(1).filter_map(|rest| rest.lines().next()).collect();
    let explained: BTreeSet<&str> = explanations
        .lines()
        .filter_map(|line| line.strip_prefix("| `Dialarr")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let defined: BTreeSet<&str> = defined.iter().filter_map(|name| name.strip_prefix("Dialarr")).collect();
    assert_eq!(explained, defined);
}

#[test]
fn every_documented_variable_is_read() {
    let example = read(".env.example");
    let known: BTreeSet<&str> = example
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    let documents = documents();
    let is_document = |name: &str| documents.iter().any(|path| path.ends_with(&format!("/{name}.md")));
    for path in &documents {
        let text = read(path);
        let named = words(&text, is_of_a_name).filter(|word| {
            let is_loud = |mark: char| mark.is_ascii_uppercase() || mark.is_ascii_digit() || mark == '_';
            word.contains('_')
                && word.chars().all(is_loud)
                && word.starts_with(|mark: char| mark.is_ascii_uppercase())
        });
        for name in named.filter(|name| !OTHERS.contains(name) && !is_document(name)) {
            let is_beginning = name.ends_with('_') && known.iter().any(|variable| variable.starts_with(name));
            assert!(known.contains(name) || is_beginning, "{path} names {name}");
        }
    }
}

#[test]
fn every_documented_command_and_option_exists() {
    let cli = Cli::new();
    let help = |command: &[&str]| cli.run(&[command, &["--help"]].concat(), &[]).output;
    let commands = help(&[]);
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    for path in documents() {
        let text = read(&path);
        for line in text.lines() {
            for rest in line.split("dialarr ").skip(1) {
                let command = rest.split(['`', '|', ';', '&', '\'', '"', '#']).next().unwrap_or_default();
                let mut options = words(command, |mark| !mark.is_whitespace());
                let Some(name) = options.next().filter(|name| !name.starts_with('-')) else { continue };
                let is_called = line.contains(&format!("`dialarr {name}"))
                    || line.contains(&format!("dialarr dialarr {name}"));
                if !is_called {
                    continue;
                }
                assert!(commands.contains(&format!("\n  {name} ")), "{path} names dialarr {name}");
                let help_text = asked.entry(name.to_owned()).or_insert_with(|| help(&[name]));
                for option in options.filter(|option| option.starts_with("--")) {
                    let subcommands = [("users", "set"), ("config", "export")];
                    let mut subcommands = subcommands.into_iter().filter(|(group, _)| *group == name);
                    let is_known = help_text.contains(option)
                        || subcommands.any(|(group, command)| help(&[group, command]).contains(option));
                    assert!(is_known, "{path} names dialarr {name} {option}");
                }
            }
        }
    }
    assert!(asked.len() > 7, "{asked:?}");
}

/// Returns the quoted names of several words, which are the names of tests, such as ``second_yes_deletes_nothing``.
fn sentences(document: &str) -> BTreeSet<&str> {
    let is_sentence = |span: &&str| {
        span.matches('_').count() > 2
            && span.chars().all(|mark| mark.is_ascii_lowercase() || "_0123456789".contains(mark))
    };
    spans(document).filter(is_sentence).collect()
}

/// Paths are relative to the repository, or to `src`, which documents about the code leave out.
#[test]
fn every_source_path_in_documents_for_contributors_exists() {
    let mut checked = 0;
    for document in documents().iter().filter(|path| is_for_contributors(path)) {
        let text = read(document);
        for span in spans(&text) {
            let path = span.split("::").next().unwrap();
            let is_path = path.contains('/') && path.ends_with(".rs") && !path.contains("NOUN");
            if is_path && !path.contains("NAME") {
                let exists =
                    [root().join(path), root().join("src").join(path)].iter().any(|path| path.exists());
                assert!(exists, "{document} names {path}");
                checked += 1;
            }
        }
    }
    assert!(checked > 200, "{checked} paths were found");
}

fn is_for_contributors(path: &str) -> bool {
    path.starts_with("docs/internals/")
}

#[test]
fn every_documented_test_exists() {
    let code = source(&["src", "tests"]);
    let security = read("docs/SECURITY.md");
    let all_documents = documents().iter().map(|path| read(path)).collect::<Vec<_>>().join("\n");
    assert!(sentences(&security).len() > 80, "{} are named", sentences(&security).len());
    for name in sentences(&security) {
        assert!(code.contains(&format!("fn {name}(")), "no test is called {name}");
    }
    // Guards and indexes have such names too.
    let migrations = std::fs::read_dir(root().join("migrations")).unwrap();
    let tables = migrations.map(|one| std::fs::read_to_string(one.unwrap().path().join("up.sql")).unwrap());
    let known = code + &read("tests/sim/mutants.sh") + &tables.collect::<String>();
    for name in sentences(&all_documents) {
        assert!(known.contains(name), "nothing is called {name}");
    }
}

/// Returns the functions in the source of the program that write without a sync.
fn functions_with_unsynced_writes() -> BTreeSet<String> {
    let mut code = String::new();
    for folder in ["alerts", "connections", "engine", "messaging", "web", "cli", "store/memory"] {
        below(&root().join("src").join(folder), ".rs", &mut code);
    }
    for file in ["app.rs", "channel_poller.rs", "heartbeat.rs", "maintenance.rs"] {
        code += &read(&format!("src/{file}"));
    }
    let mut function = "";
    let mut found = BTreeSet::new();
    for line in code.lines() {
        if let Some((before, rest)) = line.split_once("fn ")
            && before
                .trim()
                .split(' ')
                .all(|word| word.is_empty() || word.starts_with("pub") || word == "async")
        {
            function = rest.split(['(', '<']).next().unwrap();
        }
        let calls = [".write_unsynced(", ".write_with(", ".write_in_order(Durability::Unsynced"];
        if calls.iter().any(|call| line.contains(call)) && !line.contains("Durability::Synced") {
            found.insert(function.to_owned());
        }
    }
    found
}

#[test]
fn every_unsynced_write_is_documented() {
    let document = read("docs/internals/RELIABILITY.md");
    let section = document.split_once("### Synced and unsynced writes").unwrap().1;
    let table = section.split_once("| Unsynced write |").unwrap().1.split_once("\n\n").unwrap().0;
    let cells = table.lines().skip(2).map(|row| row.split('|').nth(1).unwrap());
    let documented: BTreeSet<String> = cells
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim().trim_matches('`').split_once("::").unwrap().1.to_owned())
        .collect();
    assert_eq!(functions_with_unsynced_writes(), documented);
}

#[test]
fn findings_quoted_in_documents_match_the_source() {
    let document = read("docs/DOCTOR.md");
    let section = document.split("\n## ").find_map(|section| section.strip_prefix("Messages\n")).unwrap();
    // A line of the source may end in the middle of a sentence.
    let code = source(&["src"]).lines().map(|line| line.trim().trim_end_matches('\\')).collect::<String>();
    let mut quoted = 0;
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split(" | ").next().unwrap();
        for piece in spans(cell).flat_map(|span| span.split('…')) {
            // The program joins the name of a check, the quoted text and its values.
            let words = piece.rsplit(": ").next().unwrap().trim().trim_matches(['(', ')', ';', ',']).trim();
            if words.len() > 3 {
                assert!(code.contains(words), "nothing says {words:?} of {cell}");
                quoted += 1;
            }
        }
    }
    assert!(quoted > 40, "{quoted} pieces are quoted");
}

#[tokio::test]
async fn every_documented_query_fits_the_tables() {
    let app = TestApp::start_without_model().await;
    let mut queries = Vec::new();
    for path in documents() {
        let text = read(&path);
        let blocks = text.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
        queries.extend(blocks.flat_map(|block| block.split(";\n")).map(str::trim).map(str::to_owned));
    }
    queries.retain(|query| !query.is_empty());
    assert!(queries.len() > 10, "{queries:?}");
    for query in queries {
        let plan = format!("EXPLAIN {query}");
        let looked = app.app().db.read(move |conn| diesel::sql_query(plan).execute(conn)).await;
        assert!(looked.is_ok(), "{looked:?}: {query}");
    }
}

/// Returns the crates under `[dependencies]` and `[dev-dependencies]`.
fn direct() -> BTreeSet<String> {
    let manifest = read("Cargo.toml");
    let sections = manifest
        .split("\n[")
        .filter(|section| section.starts_with("dependencies]") || section.starts_with("dev-dependencies]"));
    let lines = sections.flat_map(str::lines).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())).collect()
}

#[test]
fn each_direct_dependency_has_a_complete_table_row() {
    let document = read("docs/internals/DEPENDENCIES.md");
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let mut lines = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!((cells.len(), cells.iter().any(|cell| cell.is_empty())), (5, false), "{row}");
        lines.insert(cells[0].trim_matches('`').to_owned());
    }
    assert_eq!(lines, direct());
}

#[test]
fn each_direct_dependency_is_used() {
    let code = source(&["src", "tests", "benches", "packaging"]);
    let unused: Vec<String> = direct()
        .into_iter()
        // The crate is a dependency for its compile options; diesel calls it.
        .filter(|name| name != "libsqlite3-sys")
        .filter(|name| !code.contains(&format!("{}::", name.replace('-', "_"))))
        .collect();
    assert_eq!(unused, [] as [String; 0]);
}
