//! Crash test: killed again and again at random moments while many users send messages, the program loses, repeats and
//! invents nothing.
//! `KILL_ROUNDS` plays more rounds, `KILL_SEED` plays one particular round.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::crash_points::finish;
use super::people::{Consent, Line, Person, UserRequest};
use super::stage::Stage;

const PEOPLE: u64 = 20;
const KILLS: u32 = 200;
/// Time that the program runs, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 20..400;
/// Occasional longer time that lets the program finish some work.
const LONG_LIFE_MS: std::ops::Range<u64> = 800..1_600;

#[tokio::test(flavor = "multi_thread")]
async fn random_crashes_lose_repeat_and_invent_nothing() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seed = number("KILL_SEED").unwrap_or_else(rand::random);
    for round in 0..number("KILL_ROUNDS").unwrap_or(1) {
        play(seed.wrapping_add(round)).await;
    }
}

async fn play(seed: u64) {
    print_line(&format!("seed {seed}"));
    let phones: Vec<String> = (0..PEOPLE).map(|place| format!("+155501002{place:02}")).collect();
    let stage = Arc::new(Stage::open(&phones, Duration::from_millis(2)).await);
    let over = Arc::new(AtomicBool::new(false));
    let mut lives = Vec::new();
    for (place, phone) in (1_u64..).zip(&phones) {
        let person = Person::new(&stage, phone);
        let chance = StdRng::seed_from_u64(seed ^ (place << 32));
        lives.push(tokio::spawn(live(person, Arc::clone(&stage), chance, Arc::clone(&over))));
    }
    kill_again_and_again(&stage, StdRng::seed_from_u64(seed)).await;
    over.store(true, Ordering::SeqCst);
    let running = stage.start(None);
    let mut people = Vec::new();
    for life in lives {
        people.push(life.await.unwrap());
    }
    let broken = finish(&stage, running, &people).await;
    print_line(&summary(&people));
    assert!(broken.is_empty(), "seed {seed}: {} broken:\n{}", broken.len(), broken.join("\n"));
}

async fn kill_again_and_again(stage: &Stage, mut chance: StdRng) {
    for kill in 0..KILLS {
        let mut running = stage.start(None);
        let life = if kill % 20 == 0 { LONG_LIFE_MS } else { LIFE_MS };
        let life = Duration::from_millis(chance.random_range(life));
        if kill % 10 == 0 {
            // Without this wait, a slow machine would only ever kill a program that is starting.
            stage.ready(&mut running).await;
        }
        assert!(!running.ends_within(life).await, "it ended by itself:\n{}", stage.log());
        running.kill();
    }
}

/// Plays one request after the other, until the test is over.
async fn live(mut person: Person, stage: Arc<Stage>, mut chance: StdRng, over: Arc<AtomicBool>) -> Person {
    while !over.load(Ordering::SeqCst) {
        let request = match chance.random_range(0..10) {
            0..4 => UserRequest::Add(stage.addable()),
            4..6 => UserRequest::Delete(vec![stage.deletable()], Consent::Yes),
            6 => UserRequest::Delete(vec![stage.deletable(), stage.deletable()], Consent::Yes),
            7 => UserRequest::Delete(vec![stage.deletable()], Consent::No),
            _ => UserRequest::Look,
        };
        person.make_request(request).await;
    }
    person.wait_for_reports().await;
    person
}

/// Returns the number of messages of each kind that users received.
fn summary(people: &[Person]) -> String {
    let entries = people.iter().flat_map(|person| &person.diary);
    let mut sent = 0;
    let mut acknowledged_texts = 0;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for line in entries.flat_map(|entry| &entry.lines) {
        match line {
            Line::Sent { acknowledged, .. } => {
                sent += 1;
                acknowledged_texts += usize::from(*acknowledged);
            }
            Line::Received { body, .. } => {
                let words: Vec<&str> = body.split_whitespace().take(2).collect();
                let kind =
                    if body.contains("Reply YES") { "Delete ...?".to_owned() } else { words.join(" ") };
                let kind = kind.split(" Q").next().unwrap_or_default().to_owned();
                let kind = if kind.starts_with('Q') { "Q...".to_owned() } else { kind };
                *kinds.entry(kind).or_default() += 1;
            }
        }
    }
    format!("{sent} texts, {acknowledged_texts} acknowledged, answers {kinds:?}")
}

/// Prints directly to the terminal, because the test runner captures the output of a passing test.
fn print_line(words: &str) {
    // The test does not depend on this output.
    drop(writeln!(std::io::stdout(), "{words}"));
}
