//! `GET /live`: live updates of the home page. Each event carries a whole section as HTML.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::watch;

use super::sections::HomeSections;
use crate::connections::states::ConnectionState;
use crate::conversation::stream_events::EventSeq;
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;
use crate::web::event_stream::{EventSource, event_stream_response};
use crate::web::stream_limit::StreamOwner;

/// Interval at which the stream looks for new events of conversations, which is in memory.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the sections are loaded even without a new event.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
pub(in crate::web) struct VersionQuery {
    /// Version of the sections that the page shows.
    after: Option<String>,
}

pub(in crate::web) async fn follow_home(
    State(console): State<ConsoleState>,
    operator: Operator,
    Query(query): Query<VersionQuery>,
    headers: HeaderMap,
) -> Response {
    let token = operator.form_token().to_owned();
    let lease = match console.streams.acquire_lease(StreamOwner::Session(token.clone())).into_lease() {
        Ok(lease) => lease,
        Err(refusal) => return refusal.into_response(),
    };
    // A browser that reconnects repeats its first URL, with its last event in this header.
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let shown_version = last.or(query.after).unwrap_or_default();
    let connections = console.connections.subscribe();
    let stop = console.stop.clone();
    let events = HomeEvents { console, token, connections, shown_version, shown: None, seen: None };
    event_stream_response(lease, stop, events)
}

/// Sections that changed, for one page.
struct HomeEvents {
    console: ConsoleState,
    token: String,
    connections: watch::Receiver<Arc<Vec<ConnectionState>>>,
    /// Version that the page showed before this stream sent anything.
    shown_version: String,
    /// Sections that this stream has compared or sent last.
    shown: Option<HomeSections>,
    /// Last event of any conversation when the sections were loaded.
    seen: Option<EventSeq>,
}

impl EventSource for HomeEvents {
    const NAME: &'static str = "home page";

    async fn next_events(&mut self) -> anyhow::Result<Vec<Event>> {
        if self.seen.is_some() {
            self.wait_for_change().await;
        }
        self.seen = Some(self.console.db.event_log().last_number());
        self.connections.mark_unchanged();
        let sections = HomeSections::load(&self.console, &self.token).await?;
        let version = sections.version().to_string();
        let shown = self.shown.replace(sections.clone());
        if shown.is_none() && version == self.shown_version {
            return Ok(Vec::new());
        }
        let is_shown = |index: usize| shown.as_ref().is_some_and(|shown| shown.0[index] == sections.0[index]);
        let changed = sections.0.iter().enumerate().filter(|(index, _)| !is_shown(*index));
        let event = |html: &String| Event::default().event("section").data(html.replace('\r', ""));
        let mut events: Vec<Event> = changed.map(|(_, html)| event(html)).collect();
        // Only the last event of the batch carries the version.
        if let Some(last) = events.pop() {
            events.push(last.id(version));
        }
        Ok(events)
    }
}

impl HomeEvents {
    /// Waits for a change of a connection, a new event of a conversation, or the end of the interval.
    async fn wait_for_change(&mut self) {
        let log = self.console.db.event_log().clone();
        let seen = self.seen;
        let new_event = async {
            loop {
                tokio::time::sleep(EVENT_INTERVAL).await;
                if Some(log.last_number()) != seen {
                    return;
                }
            }
        };
        tokio::select! {
            _ = self.connections.changed() => {}
            () = new_event => {}
            () = tokio::time::sleep(RELOAD_INTERVAL) => {}
        }
    }
}
