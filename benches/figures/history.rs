//! Turn of a user with 50,000 stored messages, beside one of a user with none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::people::{Person, UserRequest};
use super::print_line;
use super::stage::Stage;

const OLD_HAND: &str = "+15550100002";
const NEWCOMER: &str = "+15550100003";
const TURNS: usize = 200;

pub(crate) async fn measure() {
    let people = [OLD_HAND.to_owned(), NEWCOMER.to_owned()];
    let stage = Arc::new(Stage::open(&people, Duration::ZERO).await);
    fill(&stage);
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    let mut times = people.map(|phone| (Person::new(&stage, &phone), Vec::new()));
    for _ in 0..TURNS {
        // The order of the two alternates.
        times.reverse();
        for (person, times) in &mut times {
            let start = Instant::now();
            person.make_request(UserRequest::Look).await;
            times.push(start.elapsed());
        }
    }
    for (person, mut times) in times {
        times.sort_unstable();
        let whose = if person.phone == OLD_HAND { "50,000 stored texts" } else { "no stored text" };
        print_line(&format!(
            "a turn of someone with {whose}, from the text to the answer at the carrier: median {:.1} ms, 90th of 100 \
             {:.1} ms",
            times[TURNS / 2].as_secs_f64() * 1e3,
            times[TURNS * 9 / 10].as_secs_f64() * 1e3
        ));
    }
}

/// One long conversation without a pause, the longest possible history.
fn fill(stage: &Stage) {
    let mut conn = SqliteConnection::establish(stage.database().to_str().unwrap()).unwrap();
    conn.batch_execute(include_str!("../../tests/data/long_history.sql")).unwrap();
}
