//! Figures of the released program as a process of its own, among peers on this machine. Told, not judged:
//! `cargo bench --bench figures`, or with one of `whole`, `load`, `recovery`, `history` behind it; `hour` takes that long
//! and only runs when it is named. `DIALARR_UNDER_TEST` names another build of the program to compare with.

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

mod history;
mod load;
mod recovery;
#[path = "../shelf/server.rs"]
#[expect(dead_code, reason = "the benchmark of the library asks more")]
mod shelf;
mod steady;
mod usage;
mod whole;

#[tokio::main]
async fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Some(other) = std::env::var_os("DIALARR_UNDER_TEST") {
        tell(&format!("of {}:", other.display()));
        stage::OTHER_PROGRAM.set(other.into()).unwrap();
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
}

/// Straight to the terminal.
fn tell(words: &str) {
    use std::io::Write;
    // Nothing depends on it being read.
    drop(writeln!(std::io::stdout(), "{words}"));
}
