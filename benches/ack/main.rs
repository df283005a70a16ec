//! Acknowledged messages per second, each stored on disk before its response, and the duration of a response. Compared
//! with one commit per message and with no commit, in turns, over open loopback sockets. With the argument `slow`:
//! messages while unknown clients hold hundreds of connections.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

mod load;
mod slow;
mod variants;

use std::env;
use std::time::Duration;

use anyhow::{Context, Result};

use load::Load;
use variants::Variant;

/// Number of concurrent webhooks.
const CONCURRENT: usize = 64;
const ROUND: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    dialarr::http::install_tls();
    if env::args().any(|argument| argument == "slow") {
        return tokio::runtime::Runtime::new()?.block_on(slow::run());
    }
    // `cargo bench` adds an argument of its own.
    let rounds = env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(5);
    let delay = env::var("SYNC_DELAY_US").unwrap_or_else(|_| "0".to_owned());
    println!(
        "{CONCURRENT} at once, {rounds} rounds of {} s each, sync delayed by {delay} us",
        ROUND.as_secs()
    );
    tokio::runtime::Runtime::new()?.block_on(compare(rounds))
}

async fn compare(rounds: usize) -> Result<()> {
    let mut loads: Vec<(Variant, Vec<Load>)> = Variant::ALL.map(|variant| (variant, Vec::new())).into();
    for round in 0..rounds {
        for (variant, loads) in &mut loads {
            let stage = variant.start().await?;
            let load = load::run(&stage.url, CONCURRENT, ROUND).await?;
            stage.end().await?;
            println!("round {} {:<34} {load}", round + 1, variant.name());
            loads.push(load);
        }
    }
    let medians: Vec<(Variant, Load)> =
        loads.iter().map(|(variant, loads)| (*variant, Load::median(loads))).collect();
    let rate = |wanted: Variant| {
        let found = medians.iter().find(|(variant, _)| *variant == wanted);
        found.map(|(_, load)| load.per_second).context("a variant that was not run")
    };
    let (each, none) = (rate(Variant::CommitEach)?, rate(Variant::NoStore)?);
    println!("\nmedians of {rounds} rounds");
    for (variant, load) in &medians {
        let (times, percent) = (load.per_second / each, 100.0 * load.per_second / none);
        println!("{:<34} {load}  {times:.1} x one commit each, {percent:.0} % of no commit", variant.name());
    }
    Ok(())
}
