//! Many slow or large requests at the webhooks, over connections in memory and with a stopped clock.

use std::collections::BTreeMap;

use dialarr::access_rules::{TrustedProxies, parse_network};
use dialarr::messaging::twilio::signature::SIGNATURE_HEADER;
use dialarr::web;
use dialarr::web::http_server::ListenerLimits;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::harness::reports;
use crate::harness::streams::{MemoryClient, MemoryServer};
use crate::harness::wire::Form;
use crate::harness::world::World;

const PROXY: &str = "127.0.0.1";
const CARRIER: &str = "54.172.60.1";
/// Maximum number of connections of unproven senders.
const SLOTS: usize = 512;

/// Number of connections that ended with each status.
type Statuses = BTreeMap<u16, usize>;

fn limits(proxies: &[&str]) -> ListenerLimits {
    let networks = proxies.iter().map(|text| parse_network(text).unwrap()).collect();
    ListenerLimits::for_webhooks(TrustedProxies::from_networks(networks))
}

fn serve(world: &World, limits: ListenerLimits) -> MemoryServer {
    MemoryServer::start(web::webhook_router(world.webhooks()), limits)
}

/// Returns a message of Ann that Twilio signed, as a proxy forwards it for `client`.
fn text(number: u32, client: &str) -> String {
    let request = Form::text().number(number).request();
    let signature = request.headers()[SIGNATURE_HEADER].to_str().unwrap();
    let body = std::str::from_utf8(request.body()).unwrap();
    let length = body.len();
    format!("{}\r\n\r\n{body}", head(client, signature, length))
}

fn head(client: &str, signature: &str, length: usize) -> String {
    format!(
        "POST /webhook/twilio HTTP/1.1\r\nHost: here\r\nConnection: close\r\nX-Forwarded-For: {client}\r\n\
         X-Twilio-Signature: {signature}\r\nContent-Length: {length}"
    )
}

/// Returns a request with only the first byte of its body.
fn slow(client: &str) -> String {
    format!("{}\r\n\r\nB", head(client, "none", 100))
}

async fn statuses(clients: Vec<MemoryClient>) -> Statuses {
    let mut counts = Statuses::new();
    for status in join_all(clients.into_iter().map(MemoryClient::status)).await {
        *counts.entry(status).or_default() += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn webhooks_get_through_fifty_slow_uploads() {
    let world = World::start().await;
    let server = serve(&world, limits(&[PROXY]));
    let begun = Instant::now();
    let mut flood: Vec<Vec<MemoryClient>> = (0..50).map(|_| Vec::new()).collect();
    for _ in 0..20 {
        for (client, connections) in flood.iter_mut().enumerate() {
            let slow = slow(&format!("6.6.6.6, 203.0.113.{client}"));
            connections.push(server.connect(PROXY, &slow).await);
        }
    }
    for number in 1..=10 {
        assert_eq!(server.connect(PROXY, &text(number, CARRIER)).await.status().await, 200);
    }
    assert_eq!(begun.elapsed().as_secs(), 0, "a text waited for a slow body");
    let mut waited = 0;
    for connections in flood {
        let statuses = statuses(connections).await;
        let kept = statuses.get(&408).copied().unwrap_or_default();
        assert_eq!(statuses.get(&503).copied().unwrap_or_default(), 20 - kept);
        assert!((10..=11).contains(&kept), "{kept} of 20 connections of one client kept their slots");
        waited += kept;
    }
    assert_eq!((waited, begun.elapsed().as_secs()), (SLOTS - 1, 3));
    let stored = world.lines("SELECT count(*) AS line FROM inbound_events WHERE body = 'hello'").await;
    assert_eq!(stored, ["10"]);
}

#[tokio::test(start_paused = true)]
async fn incomplete_headers_displace_only_those_of_their_address() {
    let world = World::start().await;
    let server = serve(&world, limits(&[]));
    let mut flood = Vec::new();
    for _ in 0..SLOTS + 40 {
        flood.push(server.connect("203.0.113.7", "POST /webhook/twilio HTTP/1.1\r\nHost: he").await);
    }
    let begun = Instant::now();
    // The header of a peer that is not listed is ignored.
    let forwarded = text(1, "203.0.113.7");
    assert_eq!(server.connect(CARRIER, &forwarded).await.status().await, 200);
    assert_eq!(begun.elapsed().as_secs(), 0);
    let oldest = flood.remove(0);
    assert_eq!((oldest.status().await, begun.elapsed().as_secs()), (0, 0));
    let rest = statuses(flood.split_off(SLOTS - 1)).await;
    assert_eq!((rest, begun.elapsed().as_secs()), (Statuses::from([(0, 40)]), 0));
}

#[tokio::test(start_paused = true)]
async fn unlisted_local_peer_has_no_share_limit() {
    let world = World::start().await;
    let server = serve(&world, limits(&[]));
    let begun = Instant::now();
    let mut flood = Vec::new();
    for _ in 0..SLOTS + 100 {
        flood.push(server.connect("172.18.0.2", &slow("203.0.113.7")).await);
    }
    assert_eq!(server.connect("172.18.0.2", &text(1, CARRIER)).await.status().await, 200);
    assert_eq!(begun.elapsed().as_secs(), 0);
    assert_eq!(statuses(flood).await, Statuses::from([(408, SLOTS + 100)]));
    assert_eq!(begun.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn authenticated_events_keep_their_slot_during_a_flood() {
    let world = World::start().await;
    let server = serve(&world, limits(&[PROXY]));
    let event = r#"{"eventType":"Test"}"#;
    let head = format!(
        "POST /webhook/radarr HTTP/1.1\r\nHost: here\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.1\r\n\
         X-Dialarr-Token: {}\r\nContent-Length: {}\r\n\r\n",
        reports::SECRET,
        event.len()
    );
    let mut report = server.connect(PROXY, &head).await;
    let mut flood = Vec::new();
    for client in 0..SLOTS + 10 {
        let slow = slow(&format!("198.51.{}.{}", client / 256, client % 256));
        flood.push(server.connect(PROXY, &slow).await);
    }
    assert_eq!(server.connect(PROXY, &text(1, CARRIER)).await.status().await, 200);
    report.write(event).await;
    assert_eq!(report.status().await, 200);
    // If each client holds one slot, the oldest loses its slot.
    assert_eq!(statuses(flood).await, Statuses::from([(408, SLOTS - 1), (503, 11)]));
}

#[tokio::test(start_paused = true)]
async fn large_body_is_read_to_the_end_before_the_close() {
    let world = World::start().await;
    let server = serve(&world, limits(&[]));
    let limit = 64 << 10;
    for length in [limit + 1, limit + (200 << 10)] {
        for framing in [
            format!("Content-Length: {length}\r\n\r\n"),
            format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n"),
        ] {
            let head = "POST /webhook/twilio HTTP/1.1\r\nHost: here\r\nX-Twilio-Signature: none\r\n";
            let mut client = server.connect(PROXY, &format!("{head}{framing}")).await;
            // A client that sends everything before it reads would fail here if the connection were closed.
            client.write(&"a".repeat(length)).await;
            assert_eq!(client.status().await, 413);
        }
    }
    let mut endless = server.connect(PROXY, &format!("{}\r\n\r\n", head(CARRIER, "none", 10 << 20))).await;
    endless.write(&"a".repeat(256 << 10)).await;
    let begun = Instant::now();
    assert_eq!((endless.status().await, begun.elapsed().as_secs()), (413, 0));
}
