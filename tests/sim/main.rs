//! Schedules generated from a seed: messages, crashes and failing peers in any order, and the invariants that hold
//! after each schedule.
//! `SIM_SEEDS=5000` runs that many schedules, `SIM_SEED=17` runs one and prints its events, `SIM_FROM=1000` begins at
//! that seed, `SIM_ROOMS=1` runs only schedules in which people write in a group.

// Informs the lints of what cargo knows: an unwrap in this crate is a failing test.
#![cfg(test)]

mod agent_plan;
mod bot_people;
mod bot_plan;
mod carriers;
mod checker;
mod digest_people;
mod disk_faults;
#[path = "../it/harness/expected_events.rs"]
mod expected_events;
mod forgeries;
mod house_agents;
mod house_bot;
mod house_jellyfin;
mod house_seerr;
mod house_series;
mod house_tonight;
mod house_viewers;
#[path = "../it/harness/invitations.rs"]
mod invitations;
mod network_faults;
mod numbered_port;
mod operator;
mod people;
mod phone_people;
mod phone_plan;
mod plan;
mod prefix;
mod proposal_plan;
mod records;
mod rng;
mod run;
mod simulated_model;
mod timeline;
mod vote_people;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dialarr::store::database::db::Db;

use crate::bot_plan::BotChats;
use crate::checker::Tally;
use crate::plan::Plan;
use crate::run::{Verdict, run};

/// Number of schedules in an ordinary run of the tests.
const USUAL: u64 = 60;
/// Number of failures after which no further seed is tried.
const ENOUGH: usize = 20;
/// Seeds that once failed; they stay in the list permanently.
const ONCE_FAILED: &str = include_str!("seeds.txt");

/// Folder, in memory if possible, with a migrated database that schedules begin with.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        silence_model_panics();
        let memory = PathBuf::from("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let ground = Self { folder };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(Db::open_simulated(ground.template().to_str().unwrap(), 0).unwrap().close());
        let mut conn =
            <diesel::SqliteConnection as diesel::Connection>::establish(ground.template().to_str().unwrap())
                .unwrap();
        diesel::connection::SimpleConnection::batch_execute(&mut conn, "PRAGMA wal_checkpoint(TRUNCATE);")
            .unwrap();
        ground
    }

    fn template(&self) -> PathBuf {
        self.folder.path().join("template.db")
    }

    fn play(&self, plan: &Plan) -> Verdict {
        run(plan, &self.template(), self.folder.path())
    }
}

/// Silences the panics of the model, which are part of the simulation; all other panics are reported as usual.
fn silence_model_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some("the mind has lost itself") {
            usual(panic);
        }
    }));
}

/// Returns whether a schedule is in the list of those that failed before.
pub(crate) fn has_failed_before(seed: u64) -> bool {
    let mut seeds =
        ONCE_FAILED.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    seeds.any(|failed| failed == seed)
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// Runs the seeds on every core, and fails with the first few that violate an invariant.
fn check(seeds: impl Iterator<Item = u64> + Send) -> Tally {
    let ground = Ground::new();
    let (seeds, failed, tally) = (Mutex::new(seeds), Mutex::new(Vec::new()), Mutex::new(Tally::default()));
    let count = AtomicU64::new(0);
    let work = || {
        while failed.lock().unwrap().len() < ENOUGH
            && let Some(seed) = { seeds.lock().unwrap().next() }
        {
            let played = catch_unwind(AssertUnwindSafe(|| ground.play(&Plan::of(seed))));
            let verdict = played.unwrap_or_else(|panic| Verdict {
                violations: vec![format!("panicked: {:?}", panic.downcast_ref::<String>())],
                ..Verdict::default()
            });
            count.fetch_add(1, Ordering::Relaxed);
            tally.lock().unwrap().add(&verdict.tally);
            if !verdict.violations.is_empty() {
                failed.lock().unwrap().push((seed, verdict));
            }
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let (failed, count) = (failed.into_inner().unwrap(), count.into_inner());
    assert!(failed.is_empty(), "{} of {count} seeds failed\n{}", failed.len(), describe_failures(&failed));
    tally.into_inner().unwrap()
}

fn describe_failures(failed: &[(u64, Verdict)]) -> String {
    let mut describe_failures = String::new();
    for (seed, verdict) in failed.iter().take(8) {
        describe_failures += &format!("seed {seed}: SIM_SEED={seed} cargo test --test sim schedules\n");
        describe_failures +=
            &verdict.violations.iter().map(|violation| format!("  {violation}\n")).collect::<String>();
    }
    if let [(_, verdict)] = failed {
        describe_failures += &verdict.journal.join("\n");
    }
    let more = failed.iter().skip(8).map(|(seed, verdict)| format!("{seed} {}\n", verdict.violations[0]));
    describe_failures + &more.take(40).collect::<String>()
}

#[test]
fn random_schedules_keep_every_invariant() {
    if let Some(seed) = variable("SIM_SEED") {
        let subscriber = tracing_subscriber::fmt().with_test_writer().with_max_level(tracing::Level::INFO);
        // Only the first caller gets the subscriber.
        let _ = subscriber.try_init();
        check(std::iter::once(seed));
        return;
    }
    let from = variable("SIM_FROM").unwrap_or(0);
    let count = variable("SIM_SEEDS").unwrap_or(USUAL);
    if variable("SIM_ROOMS").is_some() {
        // In these schedules, only a bot is a carrier.
        let has_room = |seed: &u64| Plan::of(*seed).bot.is_some_and(|bot| bot.chats != BotChats::Private);
        check((from..).filter(has_room).take(usize::try_from(count).unwrap()));
        return;
    }
    check(from..from + count).assert_everything_happened(count);
}

#[test]
fn seeds_that_failed_before_pass() {
    let seeds = ONCE_FAILED.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    check(seeds.collect::<Vec<u64>>().into_iter());
}
