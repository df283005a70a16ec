//! `eval` at a terminal: scenario files, with the script and with a model behind a server on loopback.

use serde_json::{Value, json};

use crate::harness::cli::{Cli, Ended, data};
use crate::harness::model_server::{Answer, ModelServer};

/// Returns a scenario in which Ann adds Heat, and one that needs the script.
fn heat() -> Value {
    json!({
        "now": "2026-03-06T19:00:00-05:00",
        "users": { "ann": { "phone": "+15550100002", "role": "member" } },
        "libraries": { "base": { "catalog": { "movie": [{ "tmdb": 949, "title": "Heat", "year": 1995 }] } } },
        "scenarios": [
            {
                "id": "H1",
                "title": "a film is added",
                "turns": [{
                    "from": "ann",
                    "text": "add heat",
                    "model": [{ "say": "A model never says this." }],
                    "expect": {
                        "writes": [["add_movie", 949]],
                        "calls": ["a_tool_that_nobody_calls"],
                        "reply": { "all": ["heat"], "texts": 1 },
                        "state": { "movies.tmdb:949.monitored": true }
                    }
                }]
            },
            { "id": "H2", "title": "nobody answers", "scripted_only": "the model fails", "turns": [] }
        ]
    })
}

fn adds_heat() -> [Answer; 3] {
    [
        Answer::Calls("search_media", json!({ "query": "heat", "type": "movie" })),
        Answer::Calls("add_movie", json!({ "tmdb": 949 })),
        Answer::Says("Heat (1995) is on its way."),
    ]
}

/// Runs `heat` with the model. The runs are sequential, so that the server's responses match them.
fn live(server: &ModelServer, cli: &Cli, times: &str) -> Ended {
    cli.write("heat.json", &heat().to_string());
    let environment = [
        ("LLM_BASE_URL", server.url()),
        ("LLM_MODEL", "a-model".to_owned()),
        ("LLM_MAX_CONCURRENT", "1".to_owned()),
        ("LLM_PRICE_INPUT", "2".to_owned()),
        ("LLM_PRICE_OUTPUT", "10".to_owned()),
    ];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    cli.run(&["eval", "heat.json", "--live", "--times", times, "--report", "report.md"], &environment)
}

/// Removes the values that differ from run to run: the date and the duration.
fn steady(report: &str) -> String {
    let word = |word: &str| match word.strip_suffix(|c: char| !c.is_ascii_digit()).unwrap_or(word) {
        number if number.parse::<f64>().is_ok() && number.contains('.') => word.replace(number, "[time]"),
        _ => word.to_owned(),
    };
    let timed = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    let lines = report.lines().filter(|line| !line.starts_with("| date |"));
    lines
        .map(|line| if line.contains(" s") { timed(line) } else { line.to_owned() })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_scenario_passes() {
    let ended = Cli::new().run(&["eval", &data("scenarios.json")], &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
}

#[test]
fn failed_scenario_fails_the_evaluation() {
    let text = std::fs::read_to_string(data("scenarios.json")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let scenarios = file["scenarios"].as_array_mut().unwrap();
    scenarios.truncate(1);
    scenarios[0]["turns"][0]["expect"] = json!({ "writes": [["add_movie", 1]] });
    let cli = Cli::new();
    cli.write("scenarios.json", &file.to_string());
    let ended = cli.run(&["eval", "scenarios.json"], &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    assert!(ended.output.contains("FAILED    A1"), "{}", ended.output);
    assert!(ended.errors.contains("error: failed to pass 1 of 1 scenarios"), "{}", ended.errors);
}

#[test]
fn live_evaluation_uses_the_model_and_not_the_script() {
    let server = ModelServer::start(adds_heat());
    let cli = Cli::new();
    let ended = live(&server, &cli, "1");
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    insta::assert_snapshot!(steady(&ended.output), @r"
    ok        H1 a film is added
    scripted  H2 nobody answers: the model fails
    2 scenarios: 1 passed, 0 failed
    scenarios passed: 1 of 1 (100%)
    latency per turn: p50 [time] s, p95 [time] s
    tokens: 3000 in (1200 cached), 60 out
    lost texts (without the expected effect): 0 of 1 (0%)
    dead ends (a fixed reply instead of an answer): 0 of 1 (0%)
    model requests per text: 3.0
    cost, in the currency of the prices: 0.0066
    SMS segments sent: 1 in 1 text
    ");
    let models: Vec<Value> = server.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(models, ["a-model"; 3]);
}

#[test]
fn live_scenario_passes_only_if_every_run_passes() {
    let replies = [Answer::Says("Heat is there."), Answer::Says("Heat is there.")];
    let server = ModelServer::start(adds_heat().into_iter().chain(replies));
    let cli = Cli::new();
    let ended = live(&server, &cli, "2");
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("error: failed to pass 1 of 2 scenarios"), "{}", ended.errors);
    insta::assert_snapshot!(steady(&String::from_utf8(cli.read("report.md")).unwrap()), @r#"
    # Evaluation

    | | |
    | --- | --- |
    | model | a-model (live) |
    | scenario files | heat.json |
    | scenarios passed in all 2 runs (pass^2) | 0 of 1 (0%) |
    | runs passed (pass^1) | 1 of 2 (50%) |
    | latency per turn | p50 [time] s, p95 [time] s |
    | tokens | 4000 in (1600 cached), 80 out |
    | lost texts (without the expected effect) | 1 of 2 (50%) |
    | dead ends (a fixed reply instead of an answer) | 0 of 2 (0%) |
    | model requests per text | 2.0 |
    | cost, in the currency of the prices | 0.0088 |
    | SMS segments sent | 2 in 2 texts |

    ## What was simulated

    Sonarr, Radarr, Twilio, the users and the clock are simulated in memory. The model is called over the network. Turns,
    tools, confirmations, texts and the database are Dialarr's own. A scenario passes if its effects are as expected: the
    writes to the libraries, the pending deletion, the texts to other users, and the safety checks of the wording. The tool
    calls on the way and the rest of the wording are not checked.

    A text is lost if its effects are not as expected, and a dead end if code sent one of its fixed replies instead of an
    answer. Requests are the model requests per text that reached the model.

    Latency is the time from the arrival of a text to its last reply, for texts that reached the model. It includes the model
    and Dialarr, but no carrier and almost no library. Statistics are over all runs. Tokens are as counted by the server.

    ## Scenarios

    | id | scenario | passed | lost | dead ends | requests | latency p50 | latency p95 | tokens | segments |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | H1 | a film is added | 1/2 | 1 | 0 | [time] | [time] s | [time] s | 4000 in (1600 cached), 80 out | 2 in 2 texts |
    | H2 | nobody answers | scripted only: the model fails | 0 | 0 | - | - | - | - | - |
    | all |  | 1/2 | 1 | 0 | [time] | [time] s | [time] s | 4000 in (1600 cached), 80 out | 2 in 2 texts |

    ## Tools

    | tool | calls | succeeded |
    | --- | --- | --- |
    | add_movie | 1 | 1 |
    | search_media | 1 | 1 |

    ## Failures

    ### H1 a film is added

    ```text
    run 2:
      text 1: writes [], expected [("add_movie", 949)]
      text 1: movies.tmdb:949.monitored is null, expected true
      text 1: reply was "Heat is there."
    ```
    "#);
}

#[test]
fn unreachable_model_fails_every_scenario() {
    let server = ModelServer::start([]);
    let cli = Cli::new();
    let ended = live(&server, &cli, "1");
    assert_eq!(ended.code, Some(1));
    assert!(ended.output.contains("failed to reach the model"), "{}", ended.output);
}

#[test]
fn live_evaluation_needs_a_model() {
    let cli = Cli::new();
    cli.write("heat.json", &heat().to_string());
    let ended = cli.run(&["eval", "heat.json", "--live"], &[]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    insta::assert_snapshot!(ended.errors, @"error: failed to find a configured model: set LLM_MODEL, and LLM_API_KEY or LLM_BASE_URL");
}
