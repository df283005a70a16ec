//! Turns in an empty database, beside a million stored messages, and of a user with 50,000 stored messages, each with a
//! program of its own. The programs get their messages in turn, so that other load affects all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::people::{Person, UserRequest};
use super::print_line;
use super::stage::{Running, Stage};
use super::stored_messages::{A_MILLION, LONG_HISTORY, store_messages};

/// Number of users, of whom one sends messages.
const USERS: u32 = 50;
const WARM_UP: usize = 20;
const TURNS: usize = 200;

/// Program under test, and the user who sends it messages.
struct Measured {
    what: &'static str,
    person: Person,
    /// Times from a message to its reply at the carrier.
    times: Vec<Duration>,
    _running: Running,
}

pub(crate) async fn measure() {
    let mut all = [
        start("in an empty database", None).await,
        start("beside a million stored messages", Some(A_MILLION)).await,
        start("of a user with 50,000 stored messages", Some(LONG_HISTORY)).await,
    ];
    for turn in 0..WARM_UP + TURNS {
        all.reverse();
        for measured in &mut all {
            let start = Instant::now();
            measured.person.make_request(UserRequest::Look).await;
            if turn >= WARM_UP {
                measured.times.push(start.elapsed());
            }
        }
    }
    for Measured { what, mut times, .. } in all {
        times.sort_unstable();
        print_line(&format!(
            "a turn {what}, from the message to the reply at the carrier: median {:.1} ms, 90th of 100 {:.1} ms",
            times[TURNS / 2].as_secs_f64() * 1e3,
            times[TURNS * 9 / 10].as_secs_f64() * 1e3
        ));
    }
}

/// Starts a program with these messages in its database.
async fn start(what: &'static str, messages: Option<&str>) -> Measured {
    // The 50,000 messages are from the first of them.
    let phones: Vec<String> = (2..USERS + 2).map(|place| format!("+155501000{place:02}")).collect();
    let stage = Arc::new(Stage::open(&phones, Duration::ZERO).await);
    if let Some(script) = messages {
        store_messages(&stage, script);
    }
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    let person = Person::new(&stage, &phones[0]);
    Measured { what, person, times: Vec::new(), _running: running }
}
