//! Crash test: killed at the first and at the second visit of every failpoint, the program continues as if the crash
//! had not happened.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use futures_util::{FutureExt, StreamExt};

use super::invariants;
use super::ledger::{count, is_settled};
use super::people::{Consent, Line, Person, UserRequest};
use super::settings::SECRETS_WRITTEN;
use super::stage::{Running, Stage, wait_for};

/// Number of cases that run concurrently.
const AT_ONCE: usize = 4;
const ANN: &str = "+15550100002";
const BOB: &str = "+15550100003";

/// Scenario that passes a failpoint. Two users each play the scenario, so that every failpoint is visited twice.
#[derive(Debug, Clone, Copy)]
enum Scenario {
    /// Adds a movie.
    Add,
    /// Deletes two movies with one YES.
    Delete,
    /// Misses a movie's addition while the program is down.
    Missed,
}

const SCENARIOS: [(&str, Scenario); 19] = [
    ("admit.stored", Scenario::Add),
    ("turn.begun", Scenario::Add),
    ("step.started", Scenario::Add),
    ("step.answered", Scenario::Add),
    ("step.recorded", Scenario::Add),
    ("call.started", Scenario::Add),
    ("call.ran", Scenario::Add),
    ("call.recorded", Scenario::Add),
    ("turn.ended", Scenario::Add),
    ("outbox.claimed", Scenario::Add),
    ("outbox.sent", Scenario::Add),
    ("outbox.recorded", Scenario::Add),
    ("question.held", Scenario::Delete),
    ("item.started", Scenario::Delete),
    ("item.ran", Scenario::Delete),
    ("item.recorded", Scenario::Delete),
    ("deletion.reported", Scenario::Delete),
    ("missed.read", Scenario::Missed),
    ("missed.admitted", Scenario::Missed),
];

#[test]
fn every_failpoint_has_a_scenario() {
    let mut named = BTreeSet::new();
    gather(Path::new("src"), &mut named).unwrap();
    let places = SCENARIOS.iter().map(|(place, _)| *place).chain([SECRETS_WRITTEN]);
    let played: BTreeSet<String> = places.map(str::to_owned).collect();
    assert_eq!(named, played);
}

fn gather(folder: &Path, named: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, named)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let names = text.split("failpoint::reached(\"").skip(1).filter_map(|rest| rest.split('"').next());
            named.extend(names.map(str::to_owned));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_at_any_failpoint_is_invisible_to_users() {
    // Each failpoint also runs in other scenarios that pass it: recovery of a write and recovery of a deletion differ.
    let mut cases: Vec<(String, Scenario)> = Vec::new();
    for (place, scenario) in SCENARIOS {
        cases.extend([1, 2].map(|visit| (format!("{place}@{visit}"), scenario)));
    }
    for place in ["outbox.claimed", "outbox.sent", "outbox.recorded", "turn.begun", "admit.stored"] {
        cases.extend([1, 2, 3, 4].map(|visit| (format!("{place}@{visit}"), Scenario::Delete)));
    }
    // The third and the fourth call of a pair of additions are the writes. The results of the reads before them are stored
    // with the next record, so that the first and the second recorded call are the writes.
    for place in ["call.started", "call.ran"] {
        cases.extend([3, 4].map(|visit| (format!("{place}@{visit}"), Scenario::Add)));
    }
    let played = futures_util::stream::iter(cases)
        .map(|(place, scenario)| async move {
            let name = format!("{place} {scenario:?}");
            // A case that fails must not hide the others.
            let broken = AssertUnwindSafe(play(&place, scenario)).catch_unwind().await;
            (name, broken.unwrap_or_else(|_| vec!["panicked, as told above".to_owned()]))
        })
        .buffer_unordered(AT_ONCE)
        .collect::<BTreeMap<String, Vec<String>>>()
        .await;
    let broken: BTreeMap<_, _> = played.iter().filter(|(_, broken)| !broken.is_empty()).collect();
    assert!(broken.is_empty(), "{} of {} broken: {broken:#?}", broken.len(), played.len());
}

/// Plays a scenario in which the program dies at `place` and starts again. Returns the violated invariants.
async fn play(place: &str, scenario: Scenario) -> Vec<String> {
    let people = [ANN.to_owned(), BOB.to_owned()];
    let stage = Arc::new(Stage::open(&people, Duration::from_millis(1)).await);
    let mut people: Vec<Person> = people.iter().map(|phone| Person::new(&stage, phone)).collect();
    let requests = people.iter_mut().map(|_| scenario.request(&stage)).collect::<Vec<_>>();
    let missed = match scenario {
        Scenario::Add | Scenario::Delete => Vec::new(),
        Scenario::Missed => {
            first_reading(&stage).await;
            people
                .iter()
                .zip(&requests)
                .map(|(person, request)| person.undelivered_line(&request.words()))
                .collect()
        }
    };
    let mut running = stage.start(Some(place));
    if missed.is_empty() {
        stage.ready(&mut running).await;
    }
    let mut missed = missed.into_iter();
    let lives = people
        .into_iter()
        .zip(requests)
        .map(|(person, request)| tokio::spawn(live(person, request, missed.next())));
    let lives: Vec<_> = lives.collect();
    wait_for(&format!("the death at {place}"), async || running.ended().is_some()).await;
    if !running.aborted() {
        return vec![format!("ended otherwise than at {place}: {:?}\n{}", running.ended(), stage.log())];
    }
    let running = stage.start(None);
    let mut people = Vec::new();
    for life in lives {
        match life.await {
            Ok(person) => people.push(person),
            Err(error) => return vec![format!("{error}\n{}", stage.log())],
        }
    }
    finish(&stage, running, &people).await
}

async fn live(mut person: Person, request: UserRequest, missed: Option<Line>) -> Person {
    match missed {
        Some(sent) => person.resume_request(request, sent).await,
        None => person.make_request(request).await,
    }
    person
}

/// Waits for the first reading of the carrier's list. Only messages sent after this reading are ever missed.
pub(crate) async fn first_reading(stage: &Stage) {
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    wait_for("the first reading", async || count(stage, "SELECT count(*) AS n FROM offsets") > 0).await;
    running.kill();
}

/// Waits until the program has no work left, and checks the invariants.
pub(crate) async fn finish(stage: &Stage, mut running: Running, people: &[Person]) -> Vec<String> {
    stage.ready(&mut running).await;
    wait_for("the program to be done", async || is_settled(stage)).await;
    let broken = invariants::broken(stage, people);
    running.kill();
    broken
}

impl Scenario {
    fn request(self, stage: &Stage) -> UserRequest {
        match self {
            Self::Add | Self::Missed => UserRequest::Add(stage.addable()),
            Self::Delete => UserRequest::Delete(vec![stage.deletable(), stage.deletable()], Consent::Yes),
        }
    }
}
