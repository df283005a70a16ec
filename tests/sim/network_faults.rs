//! Network between the program and its peers: requests are delayed, refused, lost, carried out late, or carried out
//! without a response. A request on its way is carried out even if the program dies in the meantime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dialarr::clock::Clock;
use dialarr::http::InProcess;
use http::{Method, Request, Response, StatusCode};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::rng::Rng;
use crate::world::{Journal, pass};

/// Time that messages may be missing from the carrier's list.
const LIST_LAG_MS: u64 = 40_000;

/// Request as its peer saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub peer: &'static str,
    pub asked_at: Timestamp,
    /// Method and path, as in `POST /api/v3/movie`.
    pub what: String,
    pub body: String,
    /// Value of the header that names the user at a Seerr.
    pub user: Option<i64>,
    /// Time when the request was carried out, and its result; `None` if it never was.
    pub done: Option<(Timestamp, u16, String)>,
    /// Time when the response was returned unchanged; `None` if none was.
    pub answered_at: Option<Timestamp>,
    /// Time when any response was returned, also that of a fault, and its status.
    pub told_at: Option<(Timestamp, u16)>,
}

/// Simulated network failures between the program and one peer.
#[derive(Clone)]
pub(crate) struct NetworkFaults {
    pub name: &'static str,
    pub clock: Clock,
    /// Clock that is never set.
    pub true_clock: Clock,
    pub storm: u64,
    pub brisk: bool,
    pub calm: Arc<AtomicBool>,
    /// No request leaves the program, whose disk holds nothing that it has done since.
    pub power_is_off: Arc<AtomicBool>,
    pub rng: Arc<Mutex<Rng>>,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    pub journal: Journal,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Unchanged,
    Refused(u16),
    Html,
    /// The request is carried out, and answered with a failure.
    DoneAndFailed(u16),
    Never,
    DoneAndLost,
    /// The request is carried out after this delay.
    Late(u64),
}

impl NetworkFaults {
    pub(crate) fn before(self, peer: InProcess) -> InProcess {
        Arc::new(move |request| {
            if self.power_is_off.load(Ordering::SeqCst) {
                return Box::pin(std::future::pending());
            }
            let (faults, peer) = (self.clone(), peer.clone());
            let (answer, asker) = tokio::sync::oneshot::channel();
            tokio::spawn(async move {
                // The caller may be gone by now.
                drop(answer.send(faults.carry(&peer, request).await));
            });
            Box::pin(async move {
                match asker.await {
                    Ok(Some(response)) => response,
                    Ok(None) | Err(_) => std::future::pending().await,
                }
            })
        })
    }

    /// Carries a request to its peer; `None`: no response ever comes.
    async fn carry(&self, peer: &InProcess, request: Request<Bytes>) -> Option<Response<Bytes>> {
        let (fault, latency) = self.draw(request.method());
        let listing = request.method() == Method::GET && request.uri().path().ends_with("Messages.json");
        let entry = self.note(&request);
        pass(latency).await;
        match fault {
            Fault::Never => return None,
            Fault::Refused(status) => {
                self.told(entry, status);
                return Some(refusal(status));
            }
            Fault::Html => {
                return Some(Response::new(Bytes::from_static(b"<!doctype html><title>Hello</title>")));
            }
            Fault::Late(ms) => pass(std::time::Duration::from_millis(ms)).await,
            Fault::Unchanged | Fault::DoneAndFailed(_) | Fault::DoneAndLost => {}
        }
        let response = peer(request).await;
        self.done(entry, &response, fault);
        pass(latency).await;
        match fault {
            Fault::DoneAndLost => None,
            Fault::DoneAndFailed(status) => {
                self.told(entry, status);
                Some(refusal(status))
            }
            Fault::Unchanged | Fault::Late(_) if !listing => {
                self.seen.lock().unwrap()[entry].answered_at = Some(self.clock.now());
                self.told(entry, response.status().as_u16());
                Some(response)
            }
            _ if listing => Some(self.lagging(&response)),
            _ => Some(response),
        }
    }

    fn draw(&self, method: &Method) -> (Fault, std::time::Duration) {
        let mut rng = self.rng.lock().unwrap();
        let latency = if self.brisk { rng.ms(1, 3) } else { rng.ms(5, 150) };
        let (hit, kind, status) = (rng.percent(self.storm), rng.below(8), rng.one_of(&[500, 503, 502]));
        let late = rng.within(500, if self.name == "twilio" { 25_000 } else { 10_000 });
        let busy = if ["twilio", "phone", "telegram"].contains(&self.name) { 429 } else { 503 };
        if !hit || self.calm.load(Ordering::SeqCst) {
            return (Fault::Unchanged, latency);
        }
        let writes = method != Method::GET;
        let fault = match kind {
            0 => Fault::Refused(busy),
            1 => Fault::Refused(status),
            2 if writes => Fault::DoneAndFailed(status),
            2 => Fault::Html,
            3 => Fault::Never,
            4 | 5 => Fault::DoneAndLost,
            6 => Fault::Late(late),
            _ => return (Fault::Unchanged, std::time::Duration::from_millis(late / 2)),
        };
        (fault, latency)
    }

    fn note(&self, request: &Request<Bytes>) -> usize {
        let path = request.uri().path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        let user = request.headers().get("x-api-user");
        let mut seen = self.seen.lock().unwrap();
        seen.push(Seen {
            peer: self.name,
            asked_at: self.true_clock.now(),
            what: format!("{} {path}", request.method()),
            body: String::from_utf8_lossy(request.body()).into_owned(),
            user: user.and_then(|value| value.to_str().ok()?.parse().ok()),
            done: None,
            answered_at: None,
            told_at: None,
        });
        seen.len() - 1
    }

    fn told(&self, entry: usize, status: u16) {
        self.seen.lock().unwrap()[entry].told_at = Some((self.true_clock.now(), status));
    }

    fn done(&self, entry: usize, response: &Response<Bytes>, fault: Fault) {
        let status = response.status().as_u16();
        let body = String::from_utf8_lossy(response.body()).into_owned();
        let mut seen = self.seen.lock().unwrap();
        let entry = &mut seen[entry];
        if !entry.what.starts_with("GET") && !entry.what.ends_with("/getUpdates") {
            self.journal.note(format!("{} {} {} -> {status} ({fault:?})", self.name, entry.what, entry.body));
        }
        entry.done = Some((self.true_clock.now(), status, body));
    }

    /// Returns the carrier's list as a reader sees it who is slightly behind.
    fn lagging(&self, response: &Response<Bytes>) -> Response<Bytes> {
        let lag = self.rng.lock().unwrap().below(LIST_LAG_MS);
        let behind = !self.calm.load(Ordering::SeqCst) && self.storm > 0;
        let Ok(mut list) = serde_json::from_slice::<Value>(response.body()) else { return response.clone() };
        // An entry ahead of the clock is from before the clock was set back.
        let now = self.clock.now();
        let newest = now - SignedDuration::from_millis(if behind { lag as i64 } else { 0 });
        if let Some(messages) = list["messages"].as_array_mut() {
            messages.retain(|message| {
                let date = message["date_created"].as_str().unwrap_or_default();
                DateTimeParser::new().parse_timestamp(date).is_ok_and(|at| at <= newest || at > now)
            });
        }
        Response::new(Bytes::from(list.to_string()))
    }
}

fn refusal(status: u16) -> Response<Bytes> {
    let code = if status == 429 { 20429 } else { 20500 };
    let mut response =
        Response::new(Bytes::from(format!("{{\"code\":{code},\"message\":\"not at the moment\"}}")));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}
