//! Measurements of the released program as a separate process, among peers on this machine, without pass criteria:
//! `cargo bench --bench figures`, optionally followed by `whole`, `load`, `recovery` or `history`; `hour`, which takes
//! that long, and `alone`, which `benches/cost.sh` uses, run only by name. `DIALARR_UNDER_TEST` names another build of
//! the program for comparison. The carrier calls the webhooks through connections that stay open, as a proxy on this
//! machine does; with `DIRECT` in the environment, each of its requests opens a connection.

#![expect(clippy::unwrap_used, reason = "a figure that cannot be taken has no one to tell")]

#[expect(dead_code, reason = "the crash tests use the rest")]
#[path = "../../tests/kill/ledger.rs"]
mod ledger;
#[path = "../../tests/kill/model.rs"]
#[expect(dead_code, reason = "the crash tests use the rest")]
mod model;
#[path = "../../tests/kill/people.rs"]
#[expect(dead_code, reason = "the crash tests use the rest")]
mod people;
#[path = "../../tests/kill/stage.rs"]
#[expect(dead_code, reason = "the crash tests use the rest")]
mod stage;

mod alone;
mod history;
mod load;
mod recovery;
#[path = "../shelf/server.rs"]
#[expect(dead_code, reason = "the benchmark of the library asks more")]
mod shelf;
mod steady;
mod stored_messages;
mod usage;
mod whole;

#[tokio::main]
async fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Some(other) = std::env::var_os("DIALARR_UNDER_TEST") {
        print_line(&format!("of {}:", other.display()));
        stage::OTHER_PROGRAM.set(other.into()).unwrap();
    }
    if std::env::var_os("DIRECT").is_none() {
        stage::EXTRA_VARIABLE.set(("TRUSTED_PROXIES", "127.0.0.1")).unwrap();
    }
    let wants = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    if wants("whole") {
        whole::measure().await;
    }
    if wants("load") {
        load::measure().await;
    }
    if wants("recovery") {
        recovery::measure().await;
    }
    if wants("history") {
        history::measure().await;
    }
    if chosen.iter().any(|word| word == "hour") {
        steady::measure().await;
    }
    if chosen.iter().any(|word| word == "alone") {
        alone::measure().await;
    }
}

/// Writes directly to the terminal.
fn print_line(words: &str) {
    use std::io::Write;
    // The measurement does not depend on this output.
    drop(writeln!(std::io::stdout(), "{words}"));
}
