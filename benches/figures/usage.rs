//! Resource usage of the running program, as the kernel counts it.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::ledger::is_settled;
use super::stage::{Running, Stage, wait_for};

/// The kernel counts processor time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

pub(crate) fn processor_time(running: &Running) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", running.child.id())).unwrap();
    // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
    TICK * ticks
}

/// Resident memory in MiB: current and maximum.
pub(crate) fn memory(running: &Running) -> (f64, f64) {
    let status = fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    };
    (of("VmRSS"), of("VmHWM"))
}

/// Size of the database after all replies and a clean shutdown.
pub(crate) async fn size_at_rest(stage: &Stage, mut running: Running) -> u64 {
    wait_for("the program to be done", async || is_settled(stage)).await;
    Command::new("kill").arg(running.child.id().to_string()).status().unwrap();
    wait_for("the program to end", async || running.ended().is_some()).await;
    fs::metadata(stage.database()).unwrap().len()
}
