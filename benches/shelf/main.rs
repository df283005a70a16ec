//! Cost of "do we have X?" in a library of 20,000 movies and 3,000 shows: the duration of a query, of a reload, and the
//! memory. The servers are a separate process, so that their memory is not counted.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

mod server;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::clock::Clock;
use dialarr::conversation::people::facts::UserFacts;
use dialarr::http::HttpClient;
use dialarr::media_servers::playability::MediaServers;
use dialarr::tools::find_in_library::FindInLibrary;
use dialarr::tools::library::{ArrInstances, Instance};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const MOVIES: usize = 20_000;
const SHOWS: usize = 3_000;
const QUESTIONS: usize = 1_000;
/// The first queries open connections.
const WARM_UP: usize = 20;

/// Builds the arguments of the query with this number.
type Question = fn(usize) -> Value;

fn main() -> Result<()> {
    dialarr::http::install_tls();
    let runtime = tokio::runtime::Runtime::new()?;
    if std::env::args().any(|word| word == "serve") {
        return runtime.block_on(serve());
    }
    runtime.block_on(run())
}

/// Prints its address in a line and serves until it is killed.
async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, server::api(MOVIES, SHOWS)).await?;
    Ok(())
}

async fn run() -> Result<()> {
    let mut servers = Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
    let mut url = String::new();
    BufReader::new(servers.stdout.take().context("no output")?).read_line(&mut url)?;
    let measured = measure(url.trim()).await;
    servers.kill()?;
    servers.wait()?;
    measured
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
        tell(name, &mut times[WARM_UP..]);
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
    })
}

async fn ask(library: &ArrInstances, question: Value) -> Result<Value> {
    let find: FindInLibrary = serde_json::from_value(question)?;
    let answer = find
        .find_titles(library, &UserFacts::default(), (&Clock::System.now().to_zoned(TimeZone::UTC), None))
        .await;
    Ok(answer.map_err(|error| anyhow::anyhow!("{error:?}"))?.for_model)
}

fn tell(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    println!("{name}: median {:.2?}, p99 {:.2?}, longest {:.2?}", at(50), at(99), at(100));
}

/// Returns a line of the kernel's status of this process, in MiB.
fn memory(line: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let told = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'));
    let kilobytes = told.and_then(|it| it.split_whitespace().next()).context("no such line")?;
    Ok(kilobytes.parse::<u64>()? >> 10)
}

/// Processor time of all threads of this process so far.
fn processor_time() -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let told = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += told.split(' ').next().context("an empty line")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}
