//! Server in a process of its own, and measurements of this process.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use tokio::net::TcpListener;

/// Argument with which the program serves.
const SERVE: &str = "serve";

/// Runs `measure` with the URL of a server, which is this program in another process. That process serves `api`.
pub(crate) async fn run_with_server(
    api: impl FnOnce() -> Router,
    measure: impl AsyncFnOnce(&str) -> Result<()>,
) -> Result<()> {
    if std::env::args().any(|word| word == SERVE) {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        axum::serve(listener, api()).await?;
        return Ok(());
    }
    let mut servers = Command::new(std::env::current_exe()?).arg(SERVE).stdout(Stdio::piped()).spawn()?;
    let mut url = String::new();
    BufReader::new(servers.stdout.take().context("no output")?).read_line(&mut url)?;
    let measured = measure(url.trim()).await;
    servers.kill()?;
    servers.wait()?;
    measured
}

pub(crate) fn print_times(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    println!("{name}: median {:.2?}, p99 {:.2?}, longest {:.2?}", at(50), at(99), at(100));
}

/// Returns a line of the kernel's status of this process, in MiB.
pub(crate) fn memory(line: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let told = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'));
    let kilobytes = told.and_then(|it| it.split_whitespace().next()).context("no such line")?;
    Ok(kilobytes.parse::<u64>()? >> 10)
}

/// Processor time of all threads of this process so far.
pub(crate) fn processor_time() -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let told = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += told.split(' ').next().context("an empty line")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}
