//! `GET /conversations/{id}/live`: live events of a conversation, as HTML. Each event carries a complete entry,
//! header or footer, so that a repeat changes nothing. `after` or `Last-Event-ID` is the cursor of the page.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};

use super::fragments;
use super::turns::{self, FormContext};
use crate::conversation::routing::route::MessageRef;
use crate::conversation::stream_events::{EventSeq, InboundStatus, StreamEvent, StreamEventKind};
use crate::conversation::transcript::{ConversationId, EventId, OutboxId, TurnId};
use crate::engine::stream::reader::{StreamBatch, StreamReader};
use crate::store::console::conversation::{self, ConversationUpdate};
use crate::store::conversation::reactions;
use crate::store::conversation::record::conversations::conversation_exists;
use crate::store::conversation::record::pages::ChangedEntries;
use crate::store::stream::event_log::LogPosition;
use crate::store::{Conn, QueryResult};
use crate::web::auth::Operator;
use crate::web::console::responses::{PageError, PageId};
use crate::web::console_state::ConsoleState;
use crate::web::event_stream::{EventSource, event_stream_response};
use crate::web::sse::{self, CursorQuery};
use crate::web::stream_limit::StreamOwner;

/// Period in which chunks of a reply are combined into one event.
const COMBINE_PERIOD: Duration = Duration::from_millis(80);

pub(in crate::web) async fn follow_page(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    Query(cursor): Query<CursorQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let Ok(after) = sse::parse_cursor(&cursor, &headers) else {
        return Ok((StatusCode::BAD_REQUEST, "after must be an event number").into_response());
    };
    let id = ConversationId(id);
    if !console.db.read_in_background(move |conn| conversation_exists(conn, id)).await? {
        return Err(PageError::NotFound);
    }
    let token = operator.form_token().to_owned();
    let lease = match console.streams.acquire_lease(StreamOwner::Session(token.clone())).into_lease() {
        Ok(lease) => lease,
        Err(refusal) => return Ok(refusal.into_response()),
    };
    // A page without a cursor gets a `reset`, which makes it reload.
    let after = after.unwrap_or(EventSeq(-1));
    let reader = console.engine.streams.connect(id, Some(after), |_, _| Ok(()));
    let stop = console.stop.clone();
    Ok(event_stream_response(lease, stop, PageEvents { console, reader, token }))
}

/// Changed parts of a conversation, for one page.
struct PageEvents {
    console: ConsoleState,
    reader: StreamReader<()>,
    token: String,
}

/// Parts of the page to render again.
#[derive(Debug, Default)]
struct ChangedParts {
    turns: BTreeSet<TurnId>,
    notifications: BTreeSet<OutboxId>,
    unanswered: BTreeSet<EventId>,
    /// Reactions on messages without a turn.
    reactions: BTreeSet<i64>,
    /// True if the header and the footer of the conversation changed.
    header_and_footer: bool,
}

impl EventSource for PageEvents {
    const NAME: &'static str = "page of a conversation";

    async fn next_events(&mut self) -> anyhow::Result<Vec<Event>> {
        match self.reader.next().await? {
            StreamBatch::Reset | StreamBatch::Snapshot(..) => {
                Ok(vec![Event::default().event("reset").data("reload")])
            }
            StreamBatch::CaughtUp => Ok(Vec::new()),
            StreamBatch::Events(events) => {
                let mut changed = ChangedParts::default();
                for event in &events {
                    changed.add_event(event);
                }
                if !changed.header_and_footer {
                    tokio::time::sleep(COMBINE_PERIOD).await;
                }
                let Some(last) = events.last() else { return Ok(Vec::new()) };
                self.render_parts(changed, last.seq).await
            }
        }
    }
}

impl PageEvents {
    /// Renders the current state. It may be newer than the last event; the next events then repeat it.
    async fn render_parts(&self, changed: ChangedParts, seq: EventSeq) -> anyhow::Result<Vec<Event>> {
        let id = self.reader.conversation();
        let ConversationUpdate { header, entries, footer } =
            self.console.db.read_with_position(id, move |conn, at| changed.load_update(conn, id, at)).await?;
        let form_context = FormContext { token: self.token.clone() };
        let entries_html = turns::render_entries(&self.console, &entries, &form_context)?;
        let mut events: Vec<Event> = entries_html.iter().map(|html| html_event("turn", html)).collect();
        if let Some(footer) = footer {
            let header_html = fragments::render_header(&self.console, &header, &form_context)?;
            let footer_html = fragments::render_footer(&self.console, &entries, &footer)?;
            let prompt_html = fragments::render_prompt(&self.console, &header, &footer, &form_context)?;
            events.extend([header_html, footer_html, prompt_html].map(|html| html_event("head", &html)));
        }
        // Only the last event of the batch carries the cursor.
        if let Some(last) = events.pop() {
            events.push(last.id(seq.to_string()));
        }
        Ok(events)
    }
}

/// Builds an event. CRLF is replaced, because CR and LF each end a line of event data.
fn html_event(name: &str, html: &str) -> Event {
    Event::default().event(name).data(html.replace("\r\n", "\n"))
}

impl ChangedParts {
    /// Adds the parts that an event changes. A chunk of a reply changes neither header nor footer.
    fn add_event(&mut self, event: &StreamEvent) {
        self.turns.extend(event.turn);
        match &event.kind {
            StreamEventKind::BlockStart(_)
            | StreamEventKind::BlockDelta(..)
            | StreamEventKind::BlockEnd(_) => return,
            StreamEventKind::OutboundMessage(id, _) if event.turn.is_none() => {
                self.notifications.insert(*id);
            }
            StreamEventKind::InboundMessage(id, InboundStatus::NoTurn) => {
                self.unanswered.insert(*id);
            }
            StreamEventKind::Reaction(id, _) if event.turn.is_none() => {
                self.reactions.insert(*id);
            }
            StreamEventKind::Turn(_)
            | StreamEventKind::StepAbandoned { .. }
            | StreamEventKind::ToolCall(..)
            | StreamEventKind::InboundMessage(..)
            | StreamEventKind::OutboundMessage(..)
            | StreamEventKind::Prompt(..)
            | StreamEventKind::Reaction(..)
            | StreamEventKind::Conversation(_) => {}
        }
        self.header_and_footer = true;
    }

    fn load_update(
        mut self,
        conn: &mut Conn,
        id: ConversationId,
        position: &LogPosition,
    ) -> QueryResult<ConversationUpdate> {
        for reaction in self.reactions {
            match reactions::load_reaction_target(conn, reaction)? {
                Some(MessageRef::Outbound(id)) => self.notifications.insert(id),
                Some(MessageRef::Inbound(id)) => self.unanswered.insert(id),
                None => continue,
            };
        }
        let entries = ChangedEntries {
            turns: self.turns.into_iter().collect(),
            notifications: self.notifications.into_iter().collect(),
            unanswered: self.unanswered.into_iter().collect(),
        };
        conversation::load_conversation_update(conn, id, entries, position, self.header_and_footer)
    }
}
