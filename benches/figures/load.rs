//! Processor time and database growth per message, and memory after many messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::people::{Person, UserRequest};
use super::print_line;
use super::stage::Stage;
use super::usage::{memory, processor_time, size_at_rest};

const PEOPLE: u32 = 50;

pub(crate) async fn measure() {
    let phones: Vec<String> = (0..PEOPLE).map(|place| format!("+155501002{place:02}")).collect();
    let stage = Arc::new(Stage::open(&phones, Duration::ZERO).await);
    let mut people: Vec<Person> = phones.iter().map(|phone| Person::new(&stage, phone)).collect();

    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    people = text(people, 2).await;
    let before = size_at_rest(&stage, running).await;

    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    let used = processor_time(&running);
    let start = Instant::now();
    people = text(people, 20).await;
    let taken = start.elapsed();
    let used = processor_time(&running) - used;
    print_line(&format!(
        "1,000 texts of {PEOPLE} people, each with two model steps and one tool call: {:.2} ms of processor time per \
         text, {:.1} s in all",
        used.as_secs_f64(),
        taken.as_secs_f64()
    ));
    let after = size_at_rest(&stage, running).await;
    print_line(&format!("database growth per 1,000 such texts: {:.2} MB", (after - before) as f64 / 1e6));

    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    let (idle, used) = (memory(&running).0, processor_time(&running));
    let start = Instant::now();
    people = text(people, 200).await;
    let (resident, most) = memory(&running);
    let used = processor_time(&running) - used;
    print_line(&format!(
        "10,000 texts in {:.0} s: {resident:.1} MiB resident, {idle:.1} at the start, {most:.1} at most; {:.2} ms of \
         processor time per text",
        start.elapsed().as_secs_f64(),
        used.as_secs_f64() / 10.0
    ));
    let end = size_at_rest(&stage, running).await;
    print_line(&format!("database growth of these 10,000 texts: {:.2} MB", (end - after) as f64 / 1e6));
    drop(people);
}

/// Sends this many messages of each user, each after the last reply.
async fn text(people: Vec<Person>, times: u32) -> Vec<Person> {
    let tasks: Vec<_> = people
        .into_iter()
        .map(|mut person| {
            tokio::spawn(async move {
                for _ in 0..times {
                    person.make_request(UserRequest::Look).await;
                }
                person
            })
        })
        .collect();
    let mut people = Vec::new();
    for task in tasks {
        people.push(task.await.unwrap());
    }
    people
}
