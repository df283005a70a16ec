//! Tests of the real clients against faulty responses of the fake servers. Each response is either read or refused, in
//! the guaranteed order and bounds, and the error message of a refusal is a single line.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dialarr::arr::fake::activity::download;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::clock::Clock;
use dialarr::http::{HttpClient, InProcess};
use futures_util::future::FutureExt;
use http::{Method, Request, Response};
use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::{ProptestConfig, proptest};
use proptest::sample::Index;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::arr_reads::{Clients, READS, Read, check_refusal};
use crate::json_faults::{Flaw, Slip, flaws, slip, spoil, status, written};

const NOW: &str = "2026-03-06T19:00:00Z";
const CASES: u32 = 1_500;

fn clients(radarr: InProcess, sonarr: InProcess) -> Clients {
    let base = || "http://library.test".parse().unwrap();
    Clients {
        radarr: Radarr::new(HttpClient::in_process(radarr), base(), FakeRadarr::new().api_key().into()),
        sonarr: Sonarr::new(HttpClient::in_process(sonarr), base(), FakeSonarr::new().api_key().into()),
    }
}

/// Creates servers with data of every kind.
fn furnished() -> (FakeRadarr, FakeSonarr) {
    let clock = Clock::stopped_at(NOW.parse().unwrap());
    let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock));
    let alien = movie("Alien").id(7).tmdb(348).year(1979).size_gb(9.0).genres(&["Horror"]).rating(8.1);
    let alien = alien.collection(8_091, "Alien Collection").cinema(date(1979, 5, 25));
    radarr.add(alien.digital(date(2026, 3, 20)));
    let dune = movie("Dune: Part Three").id(8).tmdb(1_170_608).year(2026).unreleased();
    radarr.add(dune.cinema(date(2026, 3, 12)));
    radarr.add_suggestion(
        movie("Aliens").tmdb(679).year(1986).collection(8_091, "Alien Collection").rating(7.9),
    );
    radarr.add_to_queue(download("Alien").stuck("/downloads/x"));
    radarr.add_to_queue(download("Dune: Part Three").failed("Unpacking failed"));
    radarr.add_to_queue(download("Alien").percent(5).minutes_left(3_000));
    radarr.add_health_problem("error", "RootFolderCheck", "Missing root folder: /films");
    radarr.add_connect_entry("Dialarr", "http://dialarr.test", &["onDownload"]);
    let severance = series("Severance").id(15).tvdb(371_980).year(2022).seasons(2).episodes(6);
    sonarr.add(severance.missing(2).size_gb(9.0));
    sonarr.add(series("The Bear").id(16).tvdb(403_294).year(2022).seasons(2).episodes(4));
    sonarr.add_to_queue(download("Severance S02").stuck("Sample"));
    sonarr.add_to_queue(download("The Bear S02E01").percent(50).minutes_left(9));
    for (title, episode, time) in [
        ("Dune: Part Three", "The Bear S02E01", "2026-02-01T01:00:00Z"),
        ("Alien", "Severance S01", "2026-02-03T01:00:00Z"),
        ("Alien", "Severance S02E01", "2026-02-05T01:00:00Z"),
    ] {
        let at: Timestamp = time.parse().unwrap();
        radarr.add_import(title, at);
        sonarr.add_import(episode, at);
        sonarr.add_calendar_entry(episode, at + SignedDuration::from_hours(24 * 40));
    }
    (radarr, sonarr)
}

/// Returns the responses of the furnished servers to each read.
fn well_formed(runtime: &Runtime) -> Vec<Value> {
    let (radarr, sonarr) = furnished();
    let last_response = Arc::new(Mutex::new(Value::Null));
    let recorded = |peer: InProcess| -> InProcess {
        let last_response = last_response.clone();
        Arc::new(move |request: Request<Bytes>| {
            let (answer, last_response) = (peer(request), last_response.clone());
            async move {
                let answer = answer.await;
                *last_response.lock().unwrap() = serde_json::from_slice(answer.body()).unwrap();
                answer
            }
            .boxed()
        })
    };
    let clients = clients(recorded(radarr.in_process()), recorded(sonarr.in_process()));
    let read_response = |(name, read): &(&str, Read)| {
        runtime.block_on(read(&clients)).unwrap_or_else(|error| panic!("{name}: {error}"));
        last_response.lock().unwrap().clone()
    };
    READS.iter().map(read_response).collect()
}

/// Returns error responses of a server, with an unsuccessful status.
fn complaints(runtime: &Runtime) -> Vec<Value> {
    let fake = FakeRadarr::new();
    let send = |method: Method, body: &'static [u8]| {
        let request =
            Request::builder().method(method).uri("/api/v3/movie").header("x-api-key", fake.api_key());
        let answer = runtime.block_on(fake.in_process()(request.body(Bytes::from_static(body)).unwrap()));
        serde_json::from_slice(answer.body()).unwrap()
    };
    let mut complaints = vec![send(Method::POST, b"{")];
    for status in [400, 404, 500] {
        fake.fail_next(status);
        complaints.push(send(Method::GET, b""));
    }
    fake.set_down(true);
    complaints.push(send(Method::GET, b""));
    complaints
}

#[test]
fn garbled_response_is_parsed_or_refused_and_missing_fields_are_harmless() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let (well_formed, complaints) = (well_formed(&runtime), complaints(&runtime));
    proptest!(ProptestConfig::with_cases(CASES), |(
        which in 0..READS.len(),
        status in status(),
        complaint: Index,
        flaws in flaws(),
        slip in slip(),
    )| {
        let is_success = (200..300).contains(&status);
        let mut answer = if is_success { well_formed[which].clone() } else { complaint.get(&complaints).clone() };
        flaws.iter().for_each(|(place, flaw)| spoil(&mut answer, *place, flaw));
        let body = Bytes::from(written(&answer, &slip));
        let asked = Arc::new(AtomicUsize::new(0));
        let peer: InProcess = Arc::new({
            let asked = asked.clone();
            move |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                let response = Response::builder().status(status).body(body.clone()).unwrap();
                async move { response }.boxed()
            }
        });
        let (name, read) = READS[which];
        let outcome = runtime.block_on(read(&clients(peer.clone(), peer)));
        let asked = asked.load(Ordering::Relaxed);
        assert!(asked == 1 || asked == 2 && status == 503, "{name}: asked {asked} times");
        match outcome {
            Ok(()) => assert!(is_success || status == 404, "{name}: taken with status {status}"),
            Err(refusal) => {
                let harmless = |flaw: &Flaw| matches!(flaw, Flaw::Missing | Flaw::Twice | Flaw::Backwards);
                let has_no_oddity = slip == Slip::Nothing && flaws.iter().all(|(_, flaw)| harmless(flaw));
                assert!(!(is_success && has_no_oddity), "{name}: {refusal:?}");
                check_refusal(&refusal);
            }
        }
    });
}
