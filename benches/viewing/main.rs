//! Cost of a media server with 20,000 titles and 200,000 episodes: the memory of its index and of what two people have
//! watched, and the duration of questions about them. The media server and the libraries are a separate process, so that
//! their memory is not counted; that of the client, of its responses and of the runtime is.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

#[path = "../shelf/server.rs"]
#[expect(dead_code, reason = "shared with another benchmark")]
mod library_server;
#[path = "../shelf/measures.rs"]
mod measures;
mod server;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::clock::Clock;
use dialarr::conversation::notifications::readiness::Playability;
use dialarr::conversation::people::age_ratings::AgeLimit;
use dialarr::conversation::people::facts::UserFacts;
use dialarr::conversation::routing::rooms::Audience;
use dialarr::conversation::transcript::{MediaKind, UserRights};
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount, WatchSharing};
use dialarr::discovery::Discovery;
use dialarr::http::HttpClient;
use dialarr::media_servers::jellyfin::Jellyfin;
use dialarr::media_servers::playability::{AskedTitle, MediaServers, TitlePart};
use dialarr::media_servers::{CatalogIds, MediaServer, WatchEvidence, WatchState};
use dialarr::tools::find_in_library::FindInLibrary;
use dialarr::tools::library::{ArrInstances, Instance};
use dialarr::tools::making_room::SpaceRecords;
use dialarr::tools::quota_allowance::QuotaAllowance;
use dialarr::tools::tonight::gathering::Gathering;
use dialarr::tools::typed_tool::TypedTool;
use dialarr::tools::viewing::Viewers;
use dialarr::tools::{RequestTiming, ToolContext};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::measures::{memory, print_times, processor_time, run_with_server};

const MOVIES: usize = 15_000;
const SHOWS: usize = 5_000;
/// Episodes of each show.
const EPISODES: usize = 40;
/// Ids of the users whose watching is asked for.
const USERS: [&str; 2] = ["a0000000000000000000000000000000", "b0000000000000000000000000000000"];
const QUESTIONS: usize = 1_000;
/// The first queries open connections.
const WARM_UP: usize = 20;
/// Limit of the memory of the whole process while the titles are indexed, in MiB.
const MAX_PEAK_MIB: u64 = 40;

fn main() -> Result<()> {
    dialarr::http::install_tls();
    let api = || library_server::api(MOVIES, SHOWS).merge(server::api());
    tokio::runtime::Runtime::new()?.block_on(run_with_server(api, measure))
}

async fn measure(url: &str) -> Result<()> {
    let client =
        Jellyfin::new(HttpClient::network()?, format!("{url}/jellyfin").parse()?, &"key".to_owned().into());
    let servers = MediaServers::new(vec![Arc::new(client) as Arc<dyn MediaServer>]);
    let now = measure_index(&servers, Clock::System.now()).await?;
    let accounts = USERS.map(|id| ViewerAccount {
        server: MediaServerKind::Jellyfin,
        id: id.to_owned(),
        name: "Ann".to_owned(),
    });
    measure_watched(&servers, &accounts, now).await?;
    measure_questions(&servers, &accounts, now).await?;
    measure_library(url, servers, &accounts, now).await
}

/// Reads all titles twice, and what changed once. Returns the time of the newest list.
async fn measure_index(servers: &MediaServers, begin: Timestamp) -> Result<Timestamp> {
    let resident = memory("VmRSS")?;
    let mut now = begin;
    let readings = [
        ("first reading of all titles", SignedDuration::ZERO),
        ("reading of 200 changed titles", SignedDuration::from_mins(1)),
        ("reading of all titles a day later, the first still in memory", SignedDuration::from_hours(25)),
    ];
    for (reading, later) in readings {
        now += later;
        let (started, worked) = (Instant::now(), processor_time()?);
        let playability = servers.check_playability(&movie(MOVIES - 1), now).await;
        ensure!(playability == Playability::Playable, "not all of it was read: {playability:?}");
        let worked = processor_time()?.saturating_sub(worked);
        println!(
            "{reading}: {:.2?}, of it {worked:.2?} of our processor time; {} MiB resident",
            started.elapsed(),
            memory("VmRSS")?
        );
    }
    let peak = memory("VmHWM")?;
    println!(
        "resident memory: {resident} MiB before, {} MiB with the index, {peak} MiB at its peak",
        memory("VmRSS")?
    );
    ensure!(peak <= MAX_PEAK_MIB, "the peak is above {MAX_PEAK_MIB} MiB");
    Ok(now)
}

async fn measure_watched(servers: &MediaServers, accounts: &[ViewerAccount], now: Timestamp) -> Result<()> {
    let started = Instant::now();
    let watched = servers.load_watched(accounts, now).await;
    ensure!(watched.evidence == WatchEvidence::Complete, "not all of what people have watched was read");
    println!(
        "first reading of what two people have watched, at the same time: {:.2?}; {} MiB resident, {} MiB at the peak",
        started.elapsed(),
        memory("VmRSS")?,
        memory("VmHWM")?
    );
    Ok(())
}

/// Asks about single titles.
async fn measure_questions(servers: &MediaServers, accounts: &[ViewerAccount], now: Timestamp) -> Result<()> {
    let (mut whole, mut season, mut watching) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..WARM_UP + QUESTIONS {
        let (asked, show) = (movie(number * 17 % MOVIES), show(number * 7 % SHOWS));
        let started = Instant::now();
        ensure!(
            servers.check_playability(&asked, now).await == Playability::Playable,
            "{asked:?} does not play"
        );
        whole.push(started.elapsed());
        let started = Instant::now();
        ensure!(
            servers.check_playability(&show, now).await == Playability::Playable,
            "{show:?} does not play"
        );
        season.push(started.elapsed());
        let started = Instant::now();
        let watched = servers.load_watched(&accounts[..1], now).await;
        let is_finished = matches!(watched.state(asked.kind, &asked.ids), WatchState::Finished { .. });
        ensure!(is_finished == server::is_played(number * 17 % MOVIES, 0), "another state of {asked:?}");
        watching.push(started.elapsed());
    }
    print_times("does a movie play", &mut whole[WARM_UP..]);
    print_times("does a season play, with a request for the episodes of its show", &mut season[WARM_UP..]);
    print_times("has a person watched a movie", &mut watching[WARM_UP..]);
    Ok(())
}

/// Asks about the whole library.
async fn measure_library(
    url: &str,
    media_servers: MediaServers,
    accounts: &[ViewerAccount],
    now: Timestamp,
) -> Result<()> {
    let http = HttpClient::network()?;
    let movies = Radarr::new(http.clone(), url.parse()?, "key".to_owned().into());
    let series = Sonarr::new(http, url.parse()?, "key".to_owned().into());
    let library = ArrInstances {
        movies: vec![Instance::new("radarr", false, movies)],
        series: vec![Instance::new("sonarr", false, series)],
        media_servers,
        discovery: Discovery::default(),
        requests: None,
    };
    let context = context(accounts, now);
    let questions = [
        ("five titles of the library", json!({ "only": "on_disk" })),
        ("five titles that a person has not watched", json!({ "watched": "unwatched" })),
        ("the same, those on disk", json!({ "watched": "unwatched", "only": "on_disk" })),
        (
            "five titles that a person has watched, newest first",
            json!({ "watched": "watched", "last_watched": true }),
        ),
    ];
    for (name, question) in questions {
        let mut times = Vec::with_capacity(QUESTIONS);
        for _ in 0..WARM_UP + QUESTIONS / 5 {
            let started = Instant::now();
            let found = ask(&library, &context, &question).await?;
            times.push(started.elapsed());
            ensure!(found["results"].as_array().is_some_and(|found| found.len() == 5), "not found: {found}");
        }
        print_times(name, &mut times[WARM_UP..]);
    }
    println!("resident memory at its peak, with the cache of the library: {} MiB", memory("VmHWM")?);
    Ok(())
}

async fn ask(library: &ArrInstances, context: &ToolContext, question: &Value) -> Result<Value> {
    let find: FindInLibrary = serde_json::from_value(question.clone())?;
    let output = find.run(library, context).await.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    Ok(output.result.for_model)
}

fn movie(number: usize) -> AskedTitle {
    let ids = CatalogIds::of_library(MediaKind::Movie, 100_000 + number as i64);
    AskedTitle { kind: MediaKind::Movie, ids, part: TitlePart::Whole }
}

fn show(number: usize) -> AskedTitle {
    let ids = CatalogIds::of_library(MediaKind::Series, 200_000 + number as i64);
    AskedTitle { kind: MediaKind::Series, ids, part: TitlePart::Seasons(vec![1]) }
}

fn context(accounts: &[ViewerAccount], now: Timestamp) -> ToolContext {
    let rights = UserRights::MEMBER;
    ToolContext {
        now,
        zone: TimeZone::UTC,
        rights,
        turn_messages: Vec::new(),
        last_three_messages: Vec::new(),
        audience: Audience::Author,
        age_limit: AgeLimit::default(),
        parents: None,
        titles_asked_for: Vec::new(),
        languages: Vec::new(),
        allowance: QuotaAllowance::default(),
        removal_requests: Vec::new(),
        admins: 1,
        title_requests: Vec::new(),
        own_titles: Vec::new(),
        space: SpaceRecords::default(),
        facts: UserFacts::default(),
        viewers: Viewers::new(accounts[..1].to_vec(), WatchSharing::Off),
        gathering: Gathering::default(),
        seerr_account: None,
        agent_request: None,
        request_timing: RequestTiming::Now,
    }
}
