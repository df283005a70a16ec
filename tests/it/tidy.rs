//! Rules of the repository: imports, sizes, names, wording.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use dialarr::config::{Config, ConfigSources, VARIABLES};

use crate::import_graph::ImportGraph;

/// Maximum lines of a source file without its tests.
const FILE_LINES: usize = 500;
/// Maximum lines of code of a `mod.rs`.
const MOD_LINES: usize = 200;
/// Beginnings of words that praise instead of stating facts.
const PRAISE: [&str; 14] = [
    "blazing",
    "comprehensive",
    "cutting-edge",
    "delightful",
    "effortless",
    "elegant",
    "powerful",
    "revolution",
    "robust",
    "seamless",
    "state-of-the-art",
    "supercharge",
    "unparalleled",
    "world-class",
];

struct File {
    /// Path from the root of the repository, with `/` as the separator.
    path: String,
    text: String,
}

/// Checks that the rule finds nothing in the tree and something in every counter-example.
#[track_caller]
fn check(tree: &[File], rule: impl Fn(&File) -> Vec<String>, counter_examples: &[(&str, &str)]) {
    for (path, text) in counter_examples {
        let findings = rule(&file(path, text));
        assert!(!findings.is_empty(), "the rule accepts its counter-example in {path}:\n{text}");
    }
    let findings: Vec<String> = tree.iter().flat_map(rule).collect();
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn conversation_decides_without_clock_network_database_and_siblings() {
    let rule = |file: &File| {
        let outside = ["tokio", "axum", "diesel", "reqwest", "async_openai", "tracing"];
        let clock = ["Utc::now", "SystemTime", "Timestamp::now", "Zoned::now"];
        let mut findings = mentions(file, &["conversation"], &outside);
        findings.extend(mentions(file, &["conversation"], &clock));
        if within(&file.path, &["conversation"]) {
            findings.extend(findings_by_line(file, |line| {
                line.split("crate::").skip(1).any(|path| !path.starts_with("conversation"))
            }));
        }
        findings
    };
    let counter_examples = [
        ("src/conversation/turn.rs", "use tokio::time::sleep;"),
        ("src/conversation/turn.rs", "/// As `tracing` shows it."),
        ("src/conversation/lifecycle.rs", "let now = jiff::Timestamp::now();"),
        ("src/conversation/grammar/keyword_grammar.rs", "use crate::tools::Registry;"),
    ];
    check(&sources(), rule, &counter_examples);
}

#[test]
fn tools_models_memory_and_clients_import_no_web_database_or_engine() {
    let folders = ["tools", "llm", "memory", "media_servers", "discovery", "seerr", "server_api", "arr"];
    let rule = |file: &File| {
        let words = ["diesel", "crate::web", "crate::engine", "crate::store"];
        let mut findings = mentions(file, &folders, &words);
        if !is_fake(&file.path) {
            findings.extend(mentions(file, &folders, &["axum"]));
        }
        findings
    };
    let counter_examples = [
        ("src/tools/add_movie.rs", "use crate::web::api;"),
        ("src/tools/approval.rs", "use crate::store::pending;"),
        ("src/llm/openai.rs", "use axum::Router;"),
        ("src/arr/fake.rs", "use crate::engine::Engine;"),
        ("src/memory/facts.rs", "use diesel::prelude::*;"),
    ];
    check(&sources(), rule, &counter_examples);
}

#[test]
fn store_imports_no_network_and_no_engine() {
    let words = ["axum", "reqwest", "async_openai", "crate::engine"];
    let counter_examples = [("src/store/queue/inbound_messages.rs", "use crate::engine::Engine;")];
    check(&sources(), |file| mentions(file, &["store"], &words), &counter_examples);
}

#[test]
fn engine_imports_no_wire_format_and_no_carrier() {
    let words = ["axum", "reqwest", "diesel", "twilio"];
    let counter_examples = [
        ("src/engine/turns/turn_runner.rs", "// Twilio asks again when we are slow."),
        ("src/engine.rs", "Channel::Twilio => {}"),
        ("src/engine/inbound/scheduler.rs", "use crate::messaging::TwilioChannel;"),
    ];
    check(&sources(), |file| mentions(file, &["engine"], &words), &counter_examples);
}

#[test]
fn only_messaging_and_setup_name_a_carrier() {
    const NAMES: [&str; 2] = ["channel_list::TWILIO", "\"twilio\""];
    let names_carrier = |whole: &File| {
        let is_bound = within(&whole.path, &["conversation", "engine", "store", "web", "metrics"])
            && whole.path != "src/conversation/channel_list.rs"
            && !is_test_file(&whole.path);
        let code = file(&whole.path, without_tests(&whole.text));
        let findings = findings_by_line(&code, |line| NAMES.iter().any(|name| line.contains(name)));
        if is_bound { findings } else { Vec::new() }
    };
    let counter_examples = [
        ("src/store/people/users.rs", ".filter(inbound_events::channel.eq(channel_list::TWILIO))"),
        ("src/web/channel_webhook.rs", "Channel::from_word(\"twilio\")"),
    ];
    check(&sources(), names_carrier, &counter_examples);
}

#[test]
fn messaging_imports_no_database_and_no_engine() {
    let words = ["diesel", "crate::engine"];
    let counter_examples = [("src/messaging/outbox_relay.rs", "crate::engine::wake(user);")];
    check(&sources(), |file| mentions(file, &["messaging"], &words), &counter_examples);
}

#[test]
fn only_config_reads_the_environment() {
    let rule = |file: &File| {
        if within(&file.path, &["config"]) {
            return Vec::new();
        }
        findings_by_line(file, |line| ["std::env", "env::var"].iter().any(|word| mentions_word(line, word)))
    };
    let counter_examples = [
        ("src/llm/openai.rs", "std::env::var(\"LLM_API_KEY\")"),
        ("src/app.rs", "use std::{env, fs};\nlet port = env::var_os(\"PORT\");"),
    ];
    check(&sources(), rule, &counter_examples);
}

#[test]
fn only_store_mentions_diesel_and_only_web_and_fakes_axum() {
    let rule = |file: &File| {
        let may_say_diesel = within(&file.path, &["store"]);
        let may_say_axum =
            within(&file.path, &["web"]) || is_fake(&file.path) || file.path == "src/stub_server.rs";
        findings_by_line(file, |line| {
            (mentions_word(line, "diesel") && !may_say_diesel)
                || (mentions_word(line, "axum") && !may_say_axum)
        })
    };
    let counter_examples = [
        ("src/app.rs", "diesel::connection"),
        ("src/cli/serve.rs", "axum::serve(listener, router)"),
        ("src/messaging/twilio/client.rs", "use axum::Router;"),
    ];
    check(&sources(), rule, &counter_examples);
}

/// SQLite assigns the largest id again if its row is deleted, and ids of these tables are shown, signed and sent.
#[test]
fn rows_of_the_ledger_are_never_deleted() {
    const LEDGER: [&str; 5] = ["inbound_events", "turns", "tool_calls", "outbox", "agent_responses"];
    let rule = |file: &File| {
        let code: String = without_tests(&file.text).split_whitespace().collect();
        let deletions =
            LEDGER.iter().flat_map(|table| [format!("delete({table}::"), format!("DELETEFROM{table}WHERE")]);
        let found = deletions.filter(|deletion| !is_test_file(&file.path) && code.contains(deletion));
        found.map(|deletion| format!("{}: {deletion}", file.path)).collect()
    };
    let examples = [
        ("src/store/privacy/erase.rs", "diesel::delete(\n    turns::table.filter(is_old),\n)"),
        ("src/store/people/merge.rs", "    \"DELETE FROM outbox WHERE user_id = ?1\","),
    ];
    check(&sources(), rule, &examples);
}

#[test]
fn columns_are_compared_with_enums_instead_of_strings() {
    const CLOSED_SETS: [&str; 7] = ["kind", "outcome", "role", "scope", "source", "state", "status"];
    let rule = |file: &File| {
        findings_by_line(file, |line| {
            let compared = CLOSED_SETS.iter().any(|column| {
                ["eq(\"", "ne(\"", "eq_any([\""]
                    .iter()
                    .any(|call| line.contains(&format!("::{column}.{call}")))
            });
            compared && within(&file.path, &["store"])
        })
    };
    let counter_examples = [
        ("src/store/queue/outbox.rs", ".filter(outbox::state.eq(\"queued\"))"),
        ("src/store/queue/outbox.rs", ".filter(outbox::state.eq_any([\"queued\", \"failed\"]))"),
    ];
    check(&sources(), rule, &counter_examples);
}

#[test]
fn top_level_modules_import_each_other_without_cycles() {
    let found = |files: &[File]| {
        let counted = files.iter().filter(|file| !matches!(file.path.as_str(), "src/lib.rs" | "src/main.rs"));
        import_graph(counted).merged(1).cyclic_imports()
    };
    let counter_examples = [
        [("src/alpha.rs", "use crate::beta::Beta;"), ("src/beta.rs", "fn f() { crate::alpha::g(); }")],
        [("src/alpha.rs", "use super::beta;"), ("src/beta/mod.rs", "use super::alpha::Alpha;")],
        [("src/alpha.rs", "use crate::{beta, gamma};"), ("src/beta.rs", "use crate::alpha;")],
    ];
    for example in counter_examples {
        let tree = example.map(|(path, text)| file(path, text));
        assert_eq!(found(&tree).len(), 2, "the rule accepts {example:?}");
    }
    let chain = [file("src/alpha.rs", "use crate::beta::Beta;"), file("src/beta.rs", "use crate::gamma;")];
    assert_eq!(found(&chain), [""; 0]);
    assert_eq!(found(&sources()), [""; 0]);
}

#[test]
fn source_files_are_short_and_mod_files_have_no_logic() {
    let rule = |file: &File| {
        let code = without_tests(&file.text);
        let lines = code.lines().count();
        let door =
            code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        let mut findings = Vec::new();
        let is_written_by_hand = !file.text.starts_with("// @generated");
        if lines > FILE_LINES && is_written_by_hand && !is_test_file(&file.path) {
            findings.push(format!("{}: {lines} lines, {FILE_LINES} at most", file.path));
        }
        if door > MOD_LINES && file.path.ends_with("/mod.rs") {
            findings.push(format!("{}: {door} lines of code, {MOD_LINES} at most", file.path));
        }
        findings
    };
    let counter_examples = [
        ("src/store/queue/inbound_messages.rs", "x\n".repeat(FILE_LINES + 1)),
        ("src/arr/mod.rs", "x\n".repeat(MOD_LINES + 1)),
    ];
    check(&sources(), rule, &counter_examples.each_ref().map(|(path, text)| (*path, text.as_str())));
}

#[test]
fn example_file_names_exactly_the_variables_of_the_table() {
    assert_eq!(names_in("# NOT=this\nPORT=3000\n\nTZ=\n"), set(&["PORT", "TZ"]));

    let table = VARIABLES.iter().map(|variable| variable.name.to_owned()).collect();
    assert_eq!(names_in(&example_file()), table);
}

#[test]
fn links_between_documents_lead_to_existing_headings() {
    let rule = |file: &File| {
        findings_by_line(file, |line| {
            let targets = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
            targets
                .filter(|target| !target.starts_with("https://"))
                .any(|target| !leads_somewhere(file, target))
        })
    };
    let counter_examples = [
        ("README.md", "See [this](docs/NOWHERE.md)."),
        ("docs/TOUR.md", "See [this](../README.md#no-such-heading)."),
        ("docs/TOUR.md", "See [this](#below)."),
    ];
    check(&documents(), rule, &counter_examples);
}

#[test]
fn contract_scripts_define_the_function_that_ci_calls() {
    let rule = |file: &File| {
        let name = Path::new(&file.path).file_stem().unwrap().to_string_lossy();
        let defines = file.text.lines().any(|line| line.starts_with(&format!("{name}() ")));
        if defines { Vec::new() } else { vec![file.path.clone()] }
    };
    check(&files(&[".ci/contract"], ".sh"), rule, &[(".ci/contract/deb.sh", "install() (\n)")]);
}

#[test]
fn example_file_changes_no_default() {
    let example = example_file();
    let lines = example.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    let values = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::from_sources(&ConfigSources::from_environment(values)).unwrap();
    let unset = Config::from_sources(&ConfigSources::default()).unwrap();
    assert_eq!(format!("{config:?}"), format!("{unset:?}"));
}

#[test]
fn names_of_tests_have_no_prefix() {
    let rule = |file: &File| findings_by_line(file, |line| line.contains("fn test_"));
    check(&rust(), rule, &[("tests/it/turns.rs", "async fn test_reply() {")]);
}

#[test]
fn lints_are_never_silenced_and_tests_never_ignored() {
    let rule =
        |file: &File| findings_by_line(file, |line| line.contains("[allow(") || line.contains("#[ignore"));
    let counter_examples = [
        ("src/app.rs", "#[allow(dead_code)]"),
        ("src/lib.rs", "#![allow(clippy::unwrap_used)]"),
        ("tests/it/turns.rs", "#[ignore = \"slow\"]"),
    ];
    check(&rust(), rule, &counter_examples);
}

#[test]
fn errors_are_not_printed_as_debug_output() {
    let rule = |whole: &File| {
        let code = file(&whole.path, without_tests(&whole.text));
        findings_by_line(&code, |line| line.contains(" ?error") || line.contains("error:?}"))
    };
    let mut code = sources();
    code.retain(|file| !is_test_file(&file.path));
    let counter_examples = [
        ("src/tools/library.rs", "tracing::warn!(instance, ?error, \"a request failed\");"),
        ("src/doctor/model.rs", "format!(\"failed: {error:?}\")"),
    ];
    check(&code, rule, &counter_examples);
}

#[test]
fn tests_do_not_sleep() {
    let tests: Vec<File> = rust().into_iter().filter(|file| file.path.starts_with("tests/")).collect();
    let rule = |file: &File| findings_by_line(file, |line| line.contains("sleep("));
    check(&tests, rule, &[("tests/it/outbox.rs", "tokio::time::sleep(SECOND).await;")]);
}

#[test]
fn comments_have_no_banners() {
    let rule = |file: &File| {
        findings_by_line(file, |line| {
            let Some(comment) = line.trim().strip_prefix("//") else { return false };
            let is_rule = |mark: char| "=-─━*#~_/+".contains(mark);
            comment.split(|mark: char| !is_rule(mark)).any(|marks| marks.chars().count() >= 4)
        })
    };
    let counter_examples = [
        ("src/app.rs", "// ---- Tools ----"),
        ("src/app.rs", "    ///////////////"),
        ("src/app.rs", "// ─── Tools ───────"),
    ];
    check(&rust(), rule, &counter_examples);
}

#[test]
fn type_names_have_no_filler_words() {
    let rule = |file: &File| findings_by_line(file, |line| type_name(line).is_some_and(says_nothing));
    let counter_examples = [
        ("src/app.rs", "pub(crate) struct SessionManager {"),
        ("src/app.rs", "enum MessageHandler<'a> {"),
        ("src/app.rs", "pub trait Helper: Send {"),
        ("src/app.rs", "type TextUtils = ();"),
    ];
    check(&rust(), rule, &counter_examples);
}

#[test]
fn documents_state_facts_without_praise() {
    let rule = |file: &File| {
        findings_by_line(file, |line| {
            let line = line.to_lowercase();
            line.split_whitespace()
                .map(|word| word.trim_start_matches(|mark: char| !mark.is_alphanumeric()))
                .any(|word| PRAISE.iter().any(|praise| word.starts_with(praise)))
        })
    };
    let counter_examples =
        [("README.md", "A **robust** assistant"), ("docs/TOUR.md", "It works (seamlessly) everywhere")];
    check(&documents(), rule, &counter_examples);
}

// Types that only one file may construct, and cycles inside `conversation`.

/// A deletion runs only with a `ClaimedDeletion`, so only the store, which has read the yes, may construct one.
#[test]
fn only_store_constructs_claimed_deletions() {
    let definition = "src/conversation/deletion/claimed_deletion.rs";
    let rule = |file: &File| match file.path.as_str() {
        "src/store/confirmation/pending_action.rs" => Vec::new(),
        path if path == definition => findings_by_line(file, |line| {
            ["Default", "Deserialize", "From<"].iter().any(|word| line.contains(word))
        }),
        _ => findings_by_line(file, |line| line.contains("from_confirmed_call")),
    };
    let counter_examples = [
        ("src/engine/turns/deletion.rs", "ClaimedDeletion::from_confirmed_call(call, tool, items)"),
        (definition, "#[derive(Debug, Default)]"),
    ];
    check(&sources(), rule, &counter_examples);
}

/// A file of `conversation` or `engine` may not import a file that imports it, directly or indirectly. `turn/next.rs`
/// and `turn/mod.rs` are two files, and the declaration of a module in a `mod.rs` is not an import. So the files of a
/// folder may import from its `mod.rs`, unless that imports or re-exports an item of theirs. Folders form no cycle
/// either: the imports of `turn/` import nothing of `turn/`.
#[test]
fn conversation_and_engine_have_no_import_cycles() {
    let found = |files: &[File], folder: &str| {
        let graph = import_graph(files.iter()).within(folder);
        [graph.cyclic_imports(), graph.merged(2).cyclic_imports()].concat()
    };
    let counter_examples = [
        [("a.rs", "use super::b::B;"), ("b.rs", "use crate::conversation::{c, turn::{self, Turn}, a::A};")],
        [("a.rs", "fn a() -> super::b::B {}"), ("b.rs", "/// See c.\nuse super::{c, a};")],
        [("turn/mod.rs", "mod next;\npub use next::next;"), ("turn/next.rs", "use super::Turn;")],
        [("turn/mod.rs", "mod next;\nfn f() { next::next() }"), ("turn/next.rs", "use super::*;")],
        [
            ("prompt/a.rs", "use super::super::turn::a::A;"),
            ("turn/a.rs", "use crate::conversation::prompt::b;"),
        ],
    ];
    let tree = |examples: &[(&str, &str)]| -> Vec<File> {
        let empty = ["mod.rs", "prompt/mod.rs", "prompt/b.rs", "turn/mod.rs"].map(|path| (path, ""));
        let files = empty.iter().chain(examples);
        files.map(|(path, text)| file(&format!("src/conversation/{path}"), text)).collect()
    };
    for example in counter_examples {
        assert!(!found(&tree(&example), "conversation").is_empty(), "no cycle found in {example:?}");
    }
    let example = [("turn/mod.rs", "mod next;"), ("turn/next.rs", "use super::Turn;\n// See super::words.")];
    assert_eq!(found(&tree(&example), "conversation"), [""; 0]);

    assert_eq!(found(&sources(), "conversation"), [""; 0]);
    assert_eq!(found(&sources(), "engine"), [""; 0]);
}

/// Returns the lines of files in these folders of `src` that contain one of the words, comments included.
fn mentions(file: &File, folders: &[&str], words: &[&str]) -> Vec<String> {
    if !within(&file.path, folders) {
        return Vec::new();
    }
    findings_by_line(file, |line| words.iter().any(|word| mentions_word(line, word)))
}

fn findings_by_line(file: &File, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = file.text.lines().enumerate().filter(|(_, line)| is_wrong(line));
    lines.map(|(index, line)| format!("{}:{}: {}", file.path, index + 1, line.trim())).collect()
}

/// Compares without case, and parts of longer names too: `TwilioChannel` contains Twilio.
fn mentions_word(line: &str, word: &str) -> bool {
    line.to_lowercase().contains(&word.to_lowercase())
}

/// Returns the imports of these files, without tests.
fn import_graph<'f>(files: impl Iterator<Item = &'f File>) -> ImportGraph {
    let counted = files.filter(|file| !is_test_file(&file.path));
    let code: Vec<(&str, &str)> =
        counted.map(|file| (file.path.as_str(), without_tests(&file.text))).collect();
    ImportGraph::from_files(&code)
}

fn within(path: &str, folders: &[&str]) -> bool {
    let Some(path) = path.strip_prefix("src/") else { return false };
    folders.iter().any(|folder| {
        path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/') || rest.starts_with(".rs"))
    })
}

fn is_fake(path: &str) -> bool {
    path.ends_with("/fake.rs") || path.contains("/fake/")
}

/// Returns whether the whole file is a test module.
fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

/// Returns the code before the test module at the end of a file.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

fn type_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| matches!(*word, "struct" | "enum" | "trait" | "type" | "union"))?;
    words.next()?.split(|mark: char| !mark.is_alphanumeric() && mark != '_').next()
}

fn says_nothing(type_name: &str) -> bool {
    // A resource of Twilio's API.
    if type_name == "MessagingService" {
        return false;
    }
    let endings = ["Manager", "Service", "Helper", "Helpers", "Util", "Utils", "Handler"];
    endings.iter().any(|ending| type_name.ends_with(ending))
}

fn names_in(example: &str) -> BTreeSet<String> {
    let lines = example.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect()
}

/// Returns whether a relative link in `file` leads to a file, and to an existing heading in it if it names one.
fn leads_somewhere(file: &File, target: &str) -> bool {
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let folder = root().join(&file.path).parent().map(Path::to_owned).unwrap_or_default();
    let text = if path.is_empty() { Ok(file.text.clone()) } else { fs::read_to_string(folder.join(path)) };
    let Ok(text) = text else { return false };
    heading.is_none_or(|heading| {
        let headings = text.lines().filter(|line| line.starts_with('#'));
        headings.map(anchor).any(|anchor| anchor == heading)
    })
}

/// Returns the anchor of a rendered heading.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|&mark| mark.is_alphanumeric() || mark == ' ' || mark == '-');
    kept.map(|mark| if mark == ' ' { '-' } else { mark }).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn example_file() -> String {
    fs::read_to_string(root().join(".env.example")).unwrap()
}

fn sources() -> Vec<File> {
    files(&["src"], ".rs")
}

/// Returns all Rust files except this one, whose counter-examples break every rule.
fn rust() -> Vec<File> {
    let mut files = files(&["src", "tests", "benches", "fuzz/src", "fuzz/fuzz_targets"], ".rs");
    files.retain(|file| file.path != "tests/it/tidy.rs");
    files
}

fn documents() -> Vec<File> {
    files(&["README.md", "CONTRIBUTING.md", "docs", "fuzz/README.md"], ".md")
}

fn files(places: &[&str], ending: &str) -> Vec<File> {
    let mut files = Vec::new();
    for place in places {
        // Some folders do not exist in every state of the repository.
        if root().join(place).exists() {
            collect(place, ending, &mut files).unwrap();
        }
    }
    files
}

fn collect(path: &str, ending: &str, files: &mut Vec<File>) -> io::Result<()> {
    let place = root().join(path);
    if place.is_file() {
        if path.ends_with(ending) {
            files.push(file(path, &fs::read_to_string(place)?));
        }
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        let name = entry?.file_name();
        collect(&format!("{path}/{}", name.to_string_lossy()), ending, files)?;
    }
    Ok(())
}

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
