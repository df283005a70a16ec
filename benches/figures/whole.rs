//! The program under the load of 64 connections on which users text again as soon as they are answered: throughput,
//! cost per message, and the duration of acknowledgments meanwhile. Measured with defaults, with a library of 20,000
//! movies that every message searches, with a million messages in the database, and with a model at the speed of a fast
//! one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;

use super::people::report_delivery;
use super::print_line;
use super::shelf;
use super::stage::{Stage, TEST_TIMEOUT};
use super::stored_messages::{A_MILLION, store_messages};
use super::usage::{memory, processor_time};
use dialarr::messaging::twilio::fake::SentMessage;

const CONNECTIONS: usize = 64;
/// Number of messages of each user before and during the measurement.
const WARM_UP: usize = 3;
const TEXTS: usize = 60;
const MOVIES: usize = 20_000;
const SHOWS: usize = 3_000;

/// Delay between two of the five chunks of a response, which then takes 0.3 s; fewer messages, because each takes longer.
const WRITING: Duration = Duration::from_millis(75);
const TEXTS_WRITTEN: usize = 20;

/// The nth message of a user, and its reply.
#[derive(Clone, Copy)]
struct Exchange {
    asks: fn(usize) -> String,
    hears: &'static str,
    times: usize,
}

pub(crate) async fn measure() {
    let people: Vec<String> = (0..CONNECTIONS).map(|place| format!("+155501003{place:02}")).collect();
    let looks = Exchange {
        asks: |_| "what is downloading".to_owned(),
        hears: "Nothing is downloading.",
        times: TEXTS,
    };
    let searches = Exchange {
        asks: |time| format!("do we have {}", shelf::movie_title(time * 17 % MOVIES)),
        hears: " is there.",
        times: TEXTS,
    };

    let stage = Stage::open(&people, Duration::ZERO).await;
    round("by itself", stage, &people, looks).await;
    let stage = Stage::beside(&people, Duration::ZERO, Some(shelf::api(MOVIES, SHOWS))).await;
    round("each searches 20,000 movies", stage, &people, searches).await;
    let stage = Stage::open(&people, Duration::ZERO).await;
    store_messages(&stage, A_MILLION);
    round("beside a million stored texts", stage, &people, looks).await;
    let stage = Stage::open(&people, WRITING).await;
    let written = Exchange { times: TEXTS_WRITTEN, ..looks };
    round("as a model writes, 0.3 s a response", stage, &people, written).await;
}

async fn round(what: &str, stage: Stage, people: &[String], exchange: Exchange) {
    let stage = Arc::new(stage);
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    text(&stage, people, Exchange { times: WARM_UP, ..exchange }).await;
    let used = processor_time(&running);
    let start = Instant::now();
    let times = text(&stage, people, exchange).await;
    let (taken, used) = (start.elapsed(), processor_time(&running) - used);
    let count = times.len();
    let (acknowledged, answered): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
    print_line(&format!(
        "{what}: {:.0} answers a second, {:.2} ms of processor time a text; acknowledged after {}; answered after {}; \
         {:.1} MiB at most",
        count as f64 / taken.as_secs_f64(),
        used.as_secs_f64() * 1e3 / count as f64,
        spread(acknowledged),
        spread(answered),
        memory(&running).1,
    ));
}

/// Sends this many messages of each user, each after the last reply. Returns the duration of each acknowledgment and
/// each reply.
async fn text(stage: &Arc<Stage>, people: &[String], exchange: Exchange) -> Vec<(Duration, Duration)> {
    let tasks: Vec<_> = people
        .iter()
        .map(|phone| {
            let (stage, phone, mut inbox) =
                (Arc::clone(stage), phone.clone(), stage.twilio.subscribe_to(phone));
            tokio::spawn(async move {
                let mut seen = Vec::with_capacity(exchange.times);
                for time in 0..exchange.times {
                    let (_, request) = stage.text(&phone, &(exchange.asks)(time));
                    let start = Instant::now();
                    assert!(stage.deliver(request).await, "a text was refused:\n{}", stage.log());
                    let acknowledged = start.elapsed();
                    let answer = tokio::time::timeout(TEST_TIMEOUT, answer(&mut inbox, &stage)).await;
                    let Ok(heard) = answer else { panic!("{phone} was never answered:\n{}", stage.log()) };
                    assert!(heard.ends_with(exchange.hears), "{phone} was answered: {heard}");
                    seen.push((acknowledged, start.elapsed()));
                }
                seen
            })
        })
        .collect();
    let mut seen = Vec::new();
    for task in tasks {
        seen.extend(task.await.unwrap());
    }
    seen
}

/// Waits for the reply to a user. The carrier then sends its delivery reports, while the user goes on.
async fn answer(inbox: &mut UnboundedReceiver<SentMessage>, stage: &Arc<Stage>) -> String {
    let reply = inbox.recv().await.unwrap();
    tokio::spawn(report_delivery(Arc::clone(stage), reply.clone()));
    reply.body
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    format!("median {:.1} ms, p99 {:.1} ms", at(50), at(99))
}
