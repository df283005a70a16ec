//! Cost of "do we have X?" in a library of 20,000 movies and 3,000 shows: the duration of a query, of a reload, and the
//! memory. The servers are a separate process, so that their memory is not counted.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

mod measures;
mod server;

use std::time::Instant;

use anyhow::{Result, ensure};
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::clock::Clock;
use dialarr::conversation::people::facts::UserFacts;
use dialarr::discovery::Discovery;
use dialarr::http::HttpClient;
use dialarr::media_servers::playability::MediaServers;
use dialarr::tools::find_in_library::FindInLibrary;
use dialarr::tools::library::{ArrInstances, Instance};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::measures::{memory, print_times, processor_time, run_with_server};

const MOVIES: usize = 20_000;
const SHOWS: usize = 3_000;
const QUESTIONS: usize = 1_000;
/// The first queries open connections.
const WARM_UP: usize = 20;

/// Builds the arguments of the query with this number.
type Question = fn(usize) -> Value;

fn main() -> Result<()> {
    dialarr::http::install_tls();
    let api = || server::api(MOVIES, SHOWS);
    tokio::runtime::Runtime::new()?.block_on(run_with_server(api, measure))
}

async fn measure(url: &str) -> Result<()> {
    let library = library(url)?;
    let begin = memory("VmRSS")?;
    for reading in ["first reading of everything", "second reading, the first still in memory"] {
        for instance in &library.movies {
            instance.client.common_api().record_change();
        }
        for instance in &library.series {
            instance.client.common_api().record_change();
        }
        let (started, worked) = (Instant::now(), processor_time()?);
        let told = ask(&library, json!({})).await?;
        ensure!(told["total"] == MOVIES + SHOWS, "not all of it was read: {told}");
        let worked = processor_time()?.saturating_sub(worked);
        println!("{reading}: {:.2?}, of it {worked:.2?} of our processor time", started.elapsed());
    }
    println!(
        "resident memory: {begin} MiB before, {} MiB with the index, {} MiB at its peak",
        memory("VmRSS")?,
        memory("VmHWM")?
    );
    let kinds: [(&str, Question); 5] = [
        ("a title that is there", |number| json!({ "query": server::movie_title(number * 17 % MOVIES) })),
        ("some words of titles", |number| json!({ "query": server::words(number) })),
        ("a title that is not there", |number| json!({ "query": format!("zzyzx nowhere {number}") })),
        (
            "what is missing, of a genre",
            |_| json!({ "only": "missing", "genre": "horror", "sort": "rating" }),
        ),
        ("the totals", |_| json!({})),
    ];
    for (name, question) in kinds {
        let mut times = Vec::with_capacity(QUESTIONS);
        for number in 0..WARM_UP + QUESTIONS {
            let started = Instant::now();
            ask(&library, question(number)).await?;
            times.push(started.elapsed());
        }
        print_times(name, &mut times[WARM_UP..]);
    }
    println!("resident memory at its peak: {} MiB", memory("VmHWM")?);
    Ok(())
}

fn library(url: &str) -> Result<ArrInstances> {
    let http = HttpClient::network()?;
    let movies = Radarr::new(http.clone(), url.parse()?, "key".to_owned().into());
    let series = Sonarr::new(http, url.parse()?, "key".to_owned().into());
    Ok(ArrInstances {
        movies: vec![Instance::new("radarr", false, movies)],
        series: vec![Instance::new("sonarr", false, series)],
        media_servers: MediaServers::default(),
        discovery: Discovery::default(),
        requests: None,
    })
}

async fn ask(library: &ArrInstances, question: Value) -> Result<Value> {
    let find: FindInLibrary = serde_json::from_value(question)?;
    let answer = find
        .find_titles(library, &UserFacts::default(), (&Clock::System.now().to_zoned(TimeZone::UTC), None))
        .await;
    Ok(answer.map_err(|error| anyhow::anyhow!("{error:?}"))?.for_model)
}
