//! The program under the load that 64 connections make when everyone texts again as soon as they are answered: how many
//! are answered, what each costs, and how long the acknowledgement takes meanwhile. Once by itself, once with a library of
//! 20,000 movies that every text searches, once with a million texts in the database, and once with a model that writes
//! as a quick one does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use tokio::sync::broadcast::Receiver;

use super::shelf;
use super::stage::{TEST_TIMEOUT, Stage};
use super::tell;
use super::usage::{memory, processor_time};
use dialarr::messaging::fake::SentText;

const CONNECTIONS: usize = 64;
/// Texts of each before the clock runs, and while it does.
const WARM_UP: usize = 3;
const TEXTS: usize = 60;
const MOVIES: usize = 20_000;
const SHOWS: usize = 3_000;

/// Between two pieces of a response, of which there are five; fewer texts, since no more are answered at a time than the
/// model is asked for.
const WRITING: Duration = Duration::from_millis(40);
const TEXTS_WRITTEN: usize = 10;

/// What is texted for the nth time, and what answers it.
#[derive(Clone, Copy)]
struct Talk {
    asks: fn(usize) -> String,
    hears: &'static str,
    times: usize,
}

pub(crate) async fn measure() {
    let people: Vec<String> = (0..CONNECTIONS).map(|place| format!("+155501003{place:02}")).collect();
    let looks =
        Talk { asks: |_| "what is downloading".to_owned(), hears: "Nothing is downloading.", times: TEXTS };
    let searches = Talk {
        asks: |time| format!("do we have {}", shelf::movie_title(time * 17 % MOVIES)),
        hears: " is there.",
        times: TEXTS,
    };

    let stage = Stage::open(&people, Duration::ZERO).await;
    round("by itself", stage, &people, looks).await;
    let stage = Stage::beside(&people, Duration::ZERO, Some(shelf::api(MOVIES, SHOWS))).await;
    round("each searches 20,000 movies", stage, &people, searches).await;
    let stage = Stage::open(&people, Duration::ZERO).await;
    fill(&stage);
    round("beside a million stored texts", stage, &people, looks).await;
    let stage = Stage::open(&people, WRITING).await;
    let written = Talk { times: TEXTS_WRITTEN, ..looks };
    round("as a model writes, 0.2 s a response", stage, &people, written).await;
}

async fn round(what: &str, stage: Stage, people: &[String], talk: Talk) {
    let stage = Arc::new(stage);
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    text(&stage, people, Talk { times: WARM_UP, ..talk }).await;
    let used = processor_time(&running);
    let start = Instant::now();
    let times = text(&stage, people, talk).await;
    let (taken, used) = (start.elapsed(), processor_time(&running) - used);
    let count = times.len();
    let (acknowledged, answered): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
    tell(&format!(
        "{what}: {:.0} answers a second, {:.2} ms of processor time a text; acknowledged after {}; answered after {}; \
         {:.1} MiB at most",
        count as f64 / taken.as_secs_f64(),
        used.as_secs_f64() * 1e3 / count as f64,
        spread(acknowledged),
        spread(answered),
        memory(&running).1,
    ));
}

/// Everyone texts so many times, each after the last answer. How long each acknowledgement and each answer took.
async fn text(stage: &Arc<Stage>, people: &[String], talk: Talk) -> Vec<(Duration, Duration)> {
    let tasks: Vec<_> = people
        .iter()
        .map(|phone| {
            let (stage, phone, mut inbox) = (Arc::clone(stage), phone.clone(), stage.twilio.subscribe());
            tokio::spawn(async move {
                let mut seen = Vec::with_capacity(talk.times);
                for time in 0..talk.times {
                    let (_, request) = stage.text(&phone, &(talk.asks)(time));
                    let start = Instant::now();
                    assert!(stage.deliver(request).await, "a text was refused:\n{}", stage.log());
                    let acknowledged = start.elapsed();
                    let answer = tokio::time::timeout(TEST_TIMEOUT, answer(&mut inbox, &phone)).await;
                    let Ok(heard) = answer else { panic!("{phone} was never answered:\n{}", stage.log()) };
                    assert!(heard.ends_with(talk.hears), "{phone} was answered: {heard}");
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

async fn answer(inbox: &mut Receiver<SentText>, phone: &str) -> String {
    loop {
        let text = inbox.recv().await.unwrap();
        if text.to.as_str() == phone {
            return text.body;
        }
    }
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    format!("median {:.1} ms, p99 {:.1} ms", at(50), at(99))
}

/// Texts of everybody with their answers, as if they had texted once an hour for eleven months.
fn fill(stage: &Stage) {
    let mut conn = SqliteConnection::establish(stage.database().to_str().unwrap()).unwrap();
    conn.batch_execute(include_str!("a_million.sql")).unwrap();
}
