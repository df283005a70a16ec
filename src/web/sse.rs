//! `GET /api/v1/conversations/{id}/events`: a conversation as it happens, as server-sent events. `after` or
//! `Last-Event-ID` tells where the client is; of both the larger counts, since a browser that reconnects repeats the
//! address it began with.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::auth::Caller;
use super::console::Console;
use super::problem::Problem;
use super::sse_wire as wire;
use crate::conversation::stream::{self, Seq};
use crate::conversation::transcript::ConversationId;
use crate::engine::stream::reader::{Batch, Reader};
use crate::store::db::{Db, DbError};
use crate::store::stream::details;
use crate::store::stream::snapshot::{self, Snapshot};

/// Streams that are open at the same time.
const MOST: usize = 1000;
/// How long a client waits before it comes back, in place of the browser's own idea.
pub(in crate::web) const RETRY: Duration = Duration::from_secs(2);
/// A comment this often tells proxies that the stream lives, and us that the client is gone.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The places for open streams; clones share them.
#[derive(Debug, Clone)]
pub struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Places {
    /// `None`: there are as many streams as there may be.
    pub(in crate::web) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Cursor {
    after: Option<i64>,
}

pub(super) async fn events(
    State(console): State<Console>,
    _caller: Caller,
    Path(conversation): Path<i64>,
    Query(cursor): Query<Cursor>,
    headers: HeaderMap,
) -> Response {
    let Ok(after) = place(&cursor, &headers) else {
        return Problem::new(StatusCode::BAD_REQUEST, "Last-Event-ID is the number of an event.")
            .into_response();
    };
    let conversation = ConversationId(conversation);
    match console.db.read(move |conn| snapshot::exists(conn, conversation)).await {
        Ok(true) => {}
        Ok(false) => {
            return Problem::new(StatusCode::NOT_FOUND, "There is no such conversation.").into_response();
        }
        Err(error) => {
            tracing::error!(%error, "a conversation could not be looked up");
            return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The database does not answer.")
                .into_response();
        }
    }
    let Some(permit) = console.streams.take() else {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "As many streams are open as may be.")
            .into_response();
    };
    let reader = console.engine.connect(conversation, after, move |conn| snapshot::read(conn, conversation));
    let waiting = VecDeque::from([Event::default().retry(RETRY)]);
    let told = Telling { db: console.db, reader, waiting, _permit: permit };
    sent(told.stream().take_until(console.stop.cancelled_owned()))
}

/// Where the client is; `None` at the beginning.
pub(in crate::web) fn place(cursor: &Cursor, headers: &HeaderMap) -> Result<Option<Seq>, NotANumber> {
    let last = match headers.get("last-event-id") {
        None => None,
        Some(value) if value.is_empty() => None,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.parse::<i64>().ok());
            Some(number.ok_or(NotANumber)?)
        }
    };
    Ok(cursor.after.max(last).map(Seq))
}

#[derive(Debug)]
pub(in crate::web) struct NotANumber;

/// A stream as a browser reads it, past every proxy that would gather it first.
pub(in crate::web) fn sent(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    let sse = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    ([(CACHE_CONTROL, "no-store"), (unbuffered, "no")], sse).into_response()
}

/// One client, and what it is still to be told of the last batch.
struct Telling {
    db: Db,
    reader: Reader<Snapshot>,
    waiting: VecDeque<Event>,
    _permit: OwnedSemaphorePermit,
}

impl Telling {
    /// Ends when the log cannot be read: the client comes back and says where it was.
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        unfold(self, |mut this| async move {
            loop {
                if let Some(event) = this.waiting.pop_front() {
                    return Some((Ok(event), this));
                }
                match this.next().await {
                    Ok(events) => this.waiting.extend(events),
                    Err(error) => {
                        tracing::warn!(error = format!("{error:#}"), "a stream ended early");
                        return None;
                    }
                }
            }
        })
    }

    /// The words behind each event, where there are any. Most batches are deltas, which carry theirs.
    async fn words(&self, events: &[Arc<stream::Event>]) -> Result<Vec<Option<String>>, DbError> {
        if !events.iter().any(|event| details::has(event)) {
            return Ok(vec![None; events.len()]);
        }
        let events = events.to_vec();
        let read = move |conn: &mut _| events.iter().map(|event| details::of(conn, event)).collect();
        self.db.read(read).await
    }

    async fn next(&mut self) -> anyhow::Result<Vec<Event>> {
        Ok(match self.reader.next().await? {
            // Without an id: who is cut off here says the old place again, and gets the same answer.
            Batch::Reset => vec![Event::default().event("reset").data("{}")],
            Batch::Snapshot(seq, snapshot) => {
                let data = wire::Snapshot::of(seq, self.reader.conversation(), snapshot);
                vec![Event::default().event("snapshot").id(seq.to_string()).json_data(data)?]
            }
            Batch::Events(events) => {
                let words = self.words(&events).await?;
                let told = events.iter().zip(words).map(|(event, words)| {
                    let (name, data) = wire::told(event, words);
                    Event::default().event(name).id(event.seq.to_string()).json_data(data)
                });
                told.collect::<Result<_, _>>()?
            }
            Batch::CaughtUp => {
                let caught_up = Event::default().event("caught_up").data("{}");
                vec![match self.reader.place() {
                    Some(seq) => caught_up.id(seq.to_string()),
                    None => caught_up,
                }]
            }
        })
    }
}
