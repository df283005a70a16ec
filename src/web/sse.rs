//! `GET /api/v1/conversations/{id}/events`: live events of a conversation, as server-sent events. `after` or
//! `Last-Event-ID` is the client's cursor. If both are present, the larger one is used, because a browser that
//! reconnects repeats its first URL.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use utoipa::IntoParams;

use super::api::database_unavailable;
use super::api::extract::{PathId, QueryParams};
use super::console_state::ConsoleState;
use super::problem::ProblemDetails;
use super::sse_events::{self, EventName, NoData};
use super::sse_snapshot;
use super::stream_limit::{StreamLease, StreamOwner};
use crate::conversation::stream_events::{self, EventSeq};
use crate::conversation::transcript::ConversationId;
use crate::engine::stream::reader::{StreamBatch, StreamReader};
use crate::store::conversation::record::conversations::conversation_exists;
use crate::store::conversation::record::pages::{self, ConversationPage};
use crate::store::database::db::{Db, DbError};
use crate::store::stream::details::{self, EventDetails};
use crate::store::stream::event_log::LogPosition;

/// Delay before a client reconnects, instead of the browser's default.
pub(in crate::web) const RETRY: Duration = Duration::from_secs(2);
/// Interval of heartbeat comments. They keep proxies from closing the stream, and reveal a client that has
/// disconnected.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct CursorQuery {
    /// Number of the last event that the client received.
    after: Option<i64>,
}

/// Follow the live events of a conversation
///
/// Each event has a name (`event`), data as JSON (`data`) and, if it marks a cursor, its number (`id`). A client that
/// reconnects with the last number, as `after` or as `Last-Event-ID`, gets all later events, or a `reset` and a
/// `snapshot` if those are no longer available. The stream ends after five minutes at most: reconnect with your cursor.
/// It ends at once when the key is revoked or the session signed out. Names that are not in the table may be added;
/// ignore them.
#[utoipa::path(
    get,
    path = "/conversations/{id}/events",
    tag = "conversations",
    operation_id = "follow_conversation",
    params(
        ("id" = i64, Path, description = "A conversation's id"),
        CursorQuery,
        ("Last-Event-ID" = Option<i64>, Header, description = "Sent by browsers when they reconnect"),
    ),
    responses(
        (status = 200, description = "Server-sent events, as in the table above", body = String, content_type = "text/event-stream"),
        (status = 404, description = "No conversation has this id"),
        (status = 429, description = "This key or session has too many open streams"),
        (status = 503, description = "The database is unavailable, or too many streams are open"),
    )
)]
pub(super) async fn follow_conversation(
    State(console): State<ConsoleState>,
    owner: StreamOwner,
    PathId(conversation): PathId,
    QueryParams(cursor): QueryParams<CursorQuery>,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let after = parse_cursor(&cursor, &headers).map_err(|InvalidEventId| {
        ProblemDetails::new(StatusCode::BAD_REQUEST, "Last-Event-ID must be an event number")
    })?;
    let conversation = ConversationId(conversation);
    let exists = console.db.read_in_background(move |conn| conversation_exists(conn, conversation)).await;
    if !exists.map_err(database_unavailable)? {
        return Err(ProblemDetails::new(StatusCode::NOT_FOUND, "no conversation has this id"));
    }
    let lease = console.streams.acquire_lease(owner).into_lease();
    let lease = lease.map_err(|(status, detail)| ProblemDetails::new(status, detail))?;
    let snapshot = move |conn: &mut _, position: &LogPosition| {
        pages::load_newest_page(conn, conversation, &position.streamed)
    };
    let reader = console.engine.streams.connect(conversation, after, snapshot);
    let queue = VecDeque::from([Event::default().retry(RETRY)]);
    let stream = ConversationEventStream { db: console.db, reader, queue };
    Ok(event_stream_response(lease, stream.into_event_stream().take_until(console.stop.cancelled_owned())))
}

/// Returns the cursor of the client; `None` to start with a snapshot.
pub(in crate::web) fn parse_cursor(
    cursor: &CursorQuery,
    headers: &HeaderMap,
) -> Result<Option<EventSeq>, InvalidEventId> {
    let last = match headers.get("last-event-id") {
        None => None,
        Some(value) if value.is_empty() => None,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.parse::<i64>().ok());
            Some(number.ok_or(InvalidEventId)?)
        }
    };
    Ok(cursor.after.max(last).map(EventSeq))
}

#[derive(Debug)]
pub(in crate::web) struct InvalidEventId;

/// Longest duration of a stream. The client then reconnects with its cursor, and its access is checked again.
const MAX_STREAM_TIME: Duration = Duration::from_secs(300);

/// Returns a stream of server-sent events, with headers that prevent proxies from buffering it. The stream ends at once
/// when its owner loses access.
pub(in crate::web) fn event_stream_response(
    lease: StreamLease,
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    // The lease is held until the stream ends.
    let ended = async move {
        tokio::select! {
            () = tokio::time::sleep(MAX_STREAM_TIME) => {}
            () = lease.wait_ended() => {}
        }
    };
    let sse = Sse::new(events.take_until(Box::pin(ended))).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    ([(CACHE_CONTROL, "no-store"), (unbuffered, "no")], sse).into_response()
}

/// Stream of one client, with the events of the last batch that were not sent yet.
struct ConversationEventStream {
    db: Db,
    reader: StreamReader<ConversationPage>,
    queue: VecDeque<Event>,
}

impl ConversationEventStream {
    /// Returns the stream of events. It ends when the log cannot be read: the client reconnects with its cursor.
    fn into_event_stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        unfold(self, |mut this| async move {
            loop {
                if let Some(event) = this.queue.pop_front() {
                    return Some((Ok(event), this));
                }
                match this.next_events().await {
                    Ok(events) => this.queue.extend(events),
                    Err(error) => {
                        tracing::warn!(error = format!("{error:#}"), "event stream ended early");
                        return None;
                    }
                }
            }
        })
    }

    /// Loads the details of each event. Most batches are deltas, which contain their text.
    async fn load_details(
        &self,
        events: &[Arc<stream_events::StreamEvent>],
    ) -> Result<Vec<EventDetails>, DbError> {
        if !events.iter().any(|event| details::has_details(event)) {
            return Ok(vec![EventDetails::default(); events.len()]);
        }
        let events = events.to_vec();
        let load =
            move |conn: &mut _| events.iter().map(|event| details::load_event_details(conn, event)).collect();
        self.db.read_in_background(load).await
    }

    async fn next_events(&mut self) -> anyhow::Result<Vec<Event>> {
        Ok(match self.reader.next().await? {
            // The event has no id, so that a client that disconnects here sends its old cursor and gets a reset again.
            StreamBatch::Reset => {
                vec![Event::default().event(EventName::Reset.wire_name()).json_data(NoData {})?]
            }
            StreamBatch::Snapshot(seq, page) => {
                let data = sse_snapshot::SnapshotJson::from_page(seq, page)?;
                vec![
                    Event::default()
                        .event(EventName::Snapshot.wire_name())
                        .id(seq.to_string())
                        .json_data(data)?,
                ]
            }
            StreamBatch::Events(events) => {
                let details = self.load_details(&events).await?;
                let payloads = events.iter().zip(details).map(|(event, details)| {
                    let (name, data) = sse_events::event_payload(event, details);
                    Event::default().event(name.wire_name()).id(event.seq.to_string()).json_data(data)
                });
                payloads.collect::<Result<_, _>>()?
            }
            StreamBatch::CaughtUp => {
                let caught_up =
                    Event::default().event(EventName::CaughtUp.wire_name()).json_data(NoData {})?;
                vec![match self.reader.cursor() {
                    Some(seq) => caught_up.id(seq.to_string()),
                    None => caught_up,
                }]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use futures_util::stream::pending;

    use super::event_stream_response;
    use crate::web::stream_limit::{StreamLimit, StreamOwner};

    #[tokio::test(start_paused = true)]
    async fn stream_ends_after_its_time_limit() {
        let lease = StreamLimit::default()
            .acquire_lease(StreamOwner::Key(1))
            .into_lease()
            .unwrap_or_else(|_| panic!("lease was refused"));
        let body = to_bytes(event_stream_response(lease, pending()).into_body(), usize::MAX).await.unwrap();
        assert!(body.starts_with(b":\n\n"), "heartbeats, then the end");
    }
}
