//! Real messages while unknown clients open 500 connections a second through a listed proxy and send their bodies
//! slowly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dialarr::messaging::twilio::WEBHOOK_PATH;
use dialarr::messaging::twilio::signature::SIGNATURE_HEADER;
use dialarr::web::http_server::raise_file_limit;
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::load::{Text, text};
use crate::variants::Stage;

const FLOOD: Duration = Duration::from_secs(12);
const BETWEEN_CONNECTIONS: Duration = Duration::from_millis(2);
const CLIENTS: usize = 50;
const BETWEEN_TEXTS: Duration = Duration::from_millis(100);
/// Delay of the messages, after which the flood has taken all slots.
const HEAD_START: Duration = Duration::from_secs(2);
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(2);
/// Time limit of all waits.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Number of slow connections by their status line; an empty line is a close without a response.
type Ends = Arc<Mutex<BTreeMap<String, usize>>>;

pub(crate) async fn run() -> Result<()> {
    raise_file_limit();
    let stage = Stage::behind_proxy().await?;
    let (_, authority) = stage.url.split_once("//").unwrap_or_default();
    let ends = Ends::default();
    let flood = tokio::spawn(flood(authority.to_owned(), ends.clone()));
    tokio::time::sleep(HEAD_START).await;
    let mut times = send_texts(&stage.url).await?;
    let opened = flood.await?;
    times.sort_unstable();
    let (middle, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{opened} slow connections of {CLIENTS} clients in {} s", FLOOD.as_secs());
    for (status, count) in &*ends.lock().unwrap_or_else(PoisonError::into_inner) {
        println!("{count:>8}  {}", if status.is_empty() { "closed without an answer" } else { status });
    }
    println!("{} texts acknowledged, median {middle:.1?}, slowest {slowest:.1?}", times.len());
    stage.end().await?;
    ensure!(slowest <= ACKNOWLEDGED_WITHIN, "a text waited for {slowest:?}");
    Ok(())
}

/// Returns the number of opened connections, once all of them have ended.
async fn flood(authority: String, ends: Ends) -> usize {
    let mut connections = JoinSet::new();
    let mut ticks = interval(BETWEEN_CONNECTIONS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (begun, mut opened) = (Instant::now(), 0);
    while begun.elapsed() < FLOOD {
        ticks.tick().await;
        let (authority, ends, client) = (authority.clone(), ends.clone(), opened % CLIENTS);
        connections.spawn(async move {
            let end = trickle(&authority, client).await.unwrap_or_default();
            *ends.lock().unwrap_or_else(PoisonError::into_inner).entry(end).or_default() += 1;
        });
        opened += 1;
    }
    while connections.join_next().await.is_some() {}
    opened
}

/// Returns the status line of the response to one byte of a body.
async fn trickle(authority: &str, client: usize) -> Result<String> {
    let mut stream = TcpStream::connect(authority).await?;
    let head = format!(
        "POST {WEBHOOK_PATH} HTTP/1.1\r\nHost: {authority}\r\nX-Forwarded-For: 203.0.113.{client}\r\n\
         X-Twilio-Signature: none\r\nContent-Length: 1000\r\n\r\nB"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    timeout(TIMEOUT, stream.read_to_string(&mut answer)).await??;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

async fn send_texts(url: &str) -> Result<Vec<Duration>> {
    let client = reqwest::Client::new();
    let mut ticks = interval(BETWEEN_TEXTS);
    let begun = Instant::now();
    let mut times = Vec::new();
    while begun.elapsed() < FLOOD.saturating_sub(2 * HEAD_START) {
        ticks.tick().await;
        let Text { form, signature } = text(times.len());
        let sent = Instant::now();
        let request = client
            .post(format!("{url}{WEBHOOK_PATH}"))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8")
            .header(SIGNATURE_HEADER, signature)
            .header("x-forwarded-for", "54.172.60.1")
            .timeout(TIMEOUT)
            .body(form);
        let status = request.send().await?.status();
        ensure!(status == StatusCode::OK, "a text was answered {status}");
        times.push(sent.elapsed());
    }
    Ok(times)
}
