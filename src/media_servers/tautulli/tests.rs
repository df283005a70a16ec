//! Tests of the client against the simulated program: commands, pages and the key.

use std::io::{self, Seek};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use http::Response;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::{PlaySelection, Tautulli};
use crate::clock::Clock;
use crate::http::HttpClient;
use crate::media_servers::fake::FakePlex;
use crate::media_servers::fake::{FakeHousehold, FakeTautulli};
use crate::media_servers::plex::Plex;
use crate::media_servers::{CatalogIds, MediaServer, ServerError, ServerStatus, ServerUserId};
use crate::stub_server::{self, StubServer};
use crate::telemetry;

const START: Timestamp = Timestamp::constant(1_770_000_000, 0);
const KEY: &str = "0123456789abcdef";

struct World {
    household: FakeHousehold,
    fake: FakeTautulli,
    client: Tautulli,
}

impl World {
    fn new() -> Self {
        let household = FakeHousehold::new(Clock::stopped_at(START));
        let fake = FakeTautulli::with_household(KEY, household.clone());
        let client = client_of(HttpClient::in_process(fake.in_process()), KEY);
        Self { household, fake, client }
    }
}

fn client_of(http: HttpClient, key: &str) -> Tautulli {
    Tautulli::new(http, "http://tautulli.invalid".parse().unwrap(), &SecretString::from(key))
}

/// Returns a client of a program that always gives this response.
fn client_with_response(response: Response<&'static str>) -> Tautulli {
    let (head, body) = response.into_parts();
    let peer = move |_| {
        let response = Response::from_parts(head.clone(), Bytes::from_static(body.as_bytes()));
        async move { response }.boxed()
    };
    client_of(HttpClient::in_process(Arc::new(peer)), KEY)
}

#[tokio::test]
async fn program_states_its_version_and_users() {
    let world = World::new();
    let (ann, bob) = (world.household.add_user("Ann"), world.household.add_user("Bob"));
    world.household.set_recorded(bob, false);
    let status = ServerStatus { name: "Tautulli".into(), version: "v2.17.2".into() };
    assert_eq!(world.client.fetch_status().await.unwrap(), status);
    let users = world.client.fetch_users().await.unwrap();
    let lines: Vec<_> = users
        .iter()
        .map(|user| (user.id.as_str(), user.friendly_name.as_str(), user.is_owner, user.is_recorded))
        .collect();
    let (ann, bob) = (world.fake.user_id(ann), world.fake.user_id(bob));
    assert_eq!(lines, [(ann.as_str(), "Ann", true, true), (bob.as_str(), "Bob", false, false)]);
}

#[tokio::test]
async fn long_history_is_read_in_pages_up_to_its_limit() {
    let world = World::new();
    let ann = world.household.add_user("Ann");
    let heat = world.household.add_movie(("Heat", 1995), CatalogIds::default(), SignedDuration::ZERO);
    for _ in 0..1_200 {
        world.household.watch(ann, heat, 100);
    }
    let user = ServerUserId::new(&world.fake.user_id(ann));
    let plays = world.client.fetch_plays(&user, PlaySelection::All, 20_000).await.unwrap();
    assert_eq!((plays.plays.len(), plays.is_complete), (1_200, true));
    let plays = world.client.fetch_plays(&user, PlaySelection::All, 600).await.unwrap();
    assert_eq!((plays.plays.len(), plays.is_complete), (1_000, false));
}

#[tokio::test]
async fn errors_of_the_program_are_classified_by_what_helps() {
    let world = World::new();
    let wrong = client_of(HttpClient::in_process(world.fake.in_process()), "wrong");
    assert!(matches!(wrong.fetch_users().await, Err(ServerError::Unauthorized)));
    let error = async |status| {
        world.household.set_recorder_status(Some(status));
        world.client.fetch_users().await.unwrap_err()
    };
    assert!(matches!(error(404).await, ServerError::WrongUrl(_)));
    assert!(matches!(error(400).await, ServerError::Refused(400)));
    assert!(matches!(error(500).await, ServerError::Unavailable(500)));
}

#[tokio::test]
async fn failed_query_with_a_success_status_is_an_error() {
    let user = ServerUserId::new("1");
    let bodies = [
        r#"{"response":{"result":"error","message":"no","data":{"recordsFiltered":0,"data":[]}}}"#,
        r#"{"response":{"result":"success","message":null,"data":{"recordsFiltered":0,"data":"null"}}}"#,
        r#"{"response":{"result":"success","message":null,"data":{}}}"#,
    ];
    for body in bodies {
        let client = client_with_response(Response::new(body));
        assert!(client.fetch_plays(&user, PlaySelection::All, 10).await.is_err(), "{body}");
    }
}

#[tokio::test]
async fn key_is_part_of_no_error_and_no_debug_output() {
    let location = format!("https://other.invalid/api/v2?apikey={KEY}&cmd=get_users");
    let redirect = Response::builder().status(301).header("Location", location).body("").unwrap();
    let client = client_with_response(redirect);
    let error = client.fetch_users().await.unwrap_err();
    let shown = format!("{error} {error:?} {client:?}");
    assert!(!shown.contains(KEY), "{shown}");
    let page = client_with_response(Response::new("<html>0123456789abcdef</html>"));
    let error = page.fetch_users().await.unwrap_err();
    assert!(matches!(error, ServerError::WrongUrl(_)));
    assert!(!format!("{error} {error:?}").contains(KEY));
}

/// Starts a server that ends every connection after the request, and returns its URL.
async fn start_breaking_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            connection.readable().await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn key_is_part_of_no_log_line_of_a_failed_request() {
    let mut log = tempfile::tempfile().unwrap();
    let lines =
        tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Arc::new(log.try_clone().unwrap()));
    let _guard = tracing_subscriber::registry().with(lines).set_default();
    let failing = StubServer::start("/api/v2", |_| stub_server::empty_response(500)).await;
    let target = format!("http://other.invalid/?apikey={KEY}");
    let redirecting = StubServer::start("/api/v2", move |_| stub_server::redirect_response(&target)).await;
    let breaking = start_breaking_server().await;
    let household = FakeHousehold::new(Clock::stopped_at(START));
    let ann = household.add_user("Ann");
    let heat = household.add_movie(("Heat", 1995), CatalogIds::default(), SignedDuration::ZERO);
    household.start_playing(ann, heat);
    let plex = FakePlex::with_household("token", household);
    let urls = [failing.uri(), redirecting.uri(), breaking.as_str(), "http://127.0.0.1:1"];
    let mut shown = String::new();
    for url in urls {
        let http = HttpClient::network().unwrap();
        let client = Tautulli::new(http, url.parse().unwrap(), &SecretString::from(KEY));
        let error = client.fetch_users().await.unwrap_err();
        shown.push_str(&format!("{error:?} {}\n", telemetry::error_chain(&error)));
        let http = HttpClient::in_process(plex.in_process());
        let plex = Plex::new(http, "http://plex.invalid".parse().unwrap(), &plex.token());
        let plex = plex.with_tautulli(client);
        assert_eq!(plex.fetch_playing().await.unwrap().len(), 1);
        shown.push_str(&format!("{plex:?}\n"));
    }
    log.rewind().unwrap();
    let log = io::read_to_string(log).unwrap();
    assert_eq!(log.matches("failed to read the users of Tautulli").count(), urls.len(), "{log}");
    for text in [log, shown] {
        assert!(!text.contains(KEY), "{text}");
    }
}
