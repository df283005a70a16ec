//! One user who sends one message after the other, each after the delivery reports of the last reply. `benches/cost.sh`
//! runs the program inside tools that count its operations.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use super::people::{Person, UserRequest};
use super::print_line;
use super::stage::{Running, Stage};
use super::usage::size_at_rest;

const PHONE: &str = "+15550100002";

/// Sends `COST_TEXTS` messages, 20 by default.
pub(crate) async fn measure() {
    let texts: u32 = std::env::var("COST_TEXTS").map_or(20, |texts| texts.parse().unwrap());
    let stage = Arc::new(Stage::open(&[PHONE.to_owned()], Duration::ZERO).await);
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    let mut person = Person::new(&stage, PHONE);
    for _ in 0..texts {
        person.make_request(UserRequest::Look).await;
        person.wait_for_reports().await;
    }
    print_line(&format!("voluntary context switches: {}", voluntary_switches(&running)));
    size_at_rest(&stage, running).await;
}

/// Returns the number of voluntary context switches of the program's running threads.
fn voluntary_switches(running: &Running) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", running.child.id())).unwrap();
    let statuses =
        threads.filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).ok());
    let switches = |status: String| {
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    statuses.map(switches).sum()
}
