//! `GET /api/v1/conversations/{id}/events`: live events of a conversation, as server-sent events. `after` or
//! `Last-Event-ID` is the client's cursor. If both are present, the larger one is used, because a browser that
//! reconnects repeats its first URL.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::response::sse::Event;
use serde::Deserialize;
use utoipa::IntoParams;

use super::api::database_unavailable;
use super::api::extract::{PathId, QueryParams};
use super::console_state::ConsoleState;
use super::event_stream::{EventSource, event_stream_response};
use super::problem::ProblemDetails;
use super::sse_events::{self, EventName, NoData};
use super::sse_snapshot;
use super::stream_limit::StreamOwner;
use crate::conversation::stream_events::{self, EventSeq};
use crate::conversation::transcript::ConversationId;
use crate::engine::stream::reader::{StreamBatch, StreamReader};
use crate::store::conversation::record::conversations::conversation_exists;
use crate::store::conversation::record::pages::{self, ConversationPage};
use crate::store::database::db::{Db, DbError};
use crate::store::stream::details::{self, EventDetails};
use crate::store::stream::event_log::LogPosition;

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
    let events = ConversationEvents { db: console.db, reader };
    Ok(event_stream_response(lease, console.stop, events))
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

/// Events of a conversation for one client.
struct ConversationEvents {
    db: Db,
    reader: StreamReader<ConversationPage>,
}

impl ConversationEvents {
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
}

impl EventSource for ConversationEvents {
    const NAME: &'static str = "conversation";

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
