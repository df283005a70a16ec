//! `GET /conversations/{id}/live`: live events of a conversation, as HTML. Each event carries a whole entry, or its
//! whole header or footer, so that a repeat changes nothing. `after` or `Last-Event-ID` is the cursor of the page.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};

use super::fragments;
use super::turns::{self, FormContext};
use crate::conversation::routing::route::MessageRef;
use crate::conversation::stream_events::{EventSeq, InboundStatus, StreamEvent as Logged, StreamEventKind};
use crate::conversation::transcript::{ConversationId, EventId, OutboxId, TurnId};
use crate::engine::stream::reader::{StreamBatch, StreamReader};
use crate::store::console::conversation::{self, ConversationUpdate};
use crate::store::conversation::reactions;
use crate::store::conversation::record::conversations::conversation_exists;
use crate::store::conversation::record::pages::ChangedEntries;
use crate::store::{Conn, QueryResult};
use crate::web::auth::Operator;
use crate::web::console::responses::{PageError, PageId};
use crate::web::console_state::ConsoleState;
use crate::web::sse::{self, CursorQuery};
use crate::web::stream_limit::StreamOwner;

/// Time within which pieces of an answer are combined into one event.
const COMBINE_PERIOD: Duration = Duration::from_millis(80);

pub(in crate::web) async fn follow_page(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    Query(cursor): Query<CursorQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let Ok(after) = sse::parse_cursor(&cursor, &headers) else {
        return Ok((StatusCode::BAD_REQUEST, "after is the number of an event").into_response());
    };
    let id = ConversationId(id);
    if !console.db.read_in_background(move |conn| conversation_exists(conn, id)).await? {
        return Err(PageError::NotFound);
    }
    let token = operator.form_token().to_owned();
    let place = match console.streams.acquire_lease(StreamOwner::Session(token.clone())).into_lease() {
        Ok(place) => place,
        Err(refusal) => return Ok(refusal.into_response()),
    };
    // A page without a cursor has nothing to continue from: it gets an instruction to reload.
    let after = after.unwrap_or(EventSeq(-1));
    let reader = console.engine.streams.connect(id, Some(after), |_| Ok(()));
    let begin = VecDeque::from([Event::default().retry(sse::RETRY)]);
    let stream = PageEventStream { console, reader, token, waiting: begin };
    Ok(sse::event_stream_response(place, stream.into_event_stream()))
}

struct PageEventStream {
    console: ConsoleState,
    reader: StreamReader<()>,
    token: String,
    waiting: VecDeque<Event>,
}

/// Parts to render again.
#[derive(Debug, Default)]
struct ChangedParts {
    turns: BTreeSet<TurnId>,
    notices: BTreeSet<OutboxId>,
    texts: BTreeSet<EventId>,
    /// Reactions on messages without a turn.
    reactions: BTreeSet<i64>,
    /// True if the header and the footer of the conversation changed.
    layout: bool,
}

impl PageEventStream {
    /// Returns the stream of events. It ends with the listener, and when the log cannot be read: the page reconnects
    /// with its cursor.
    fn into_event_stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        stream::unfold(self, |mut this| async move {
            let stop = this.console.stop.clone();
            loop {
                if let Some(event) = this.waiting.pop_front() {
                    return Some((Ok(event), this));
                }
                let next = tokio::select! {
                    next = this.next_events() => next,
                    () = stop.cancelled() => return None,
                };
                match next {
                    Ok(events) => this.waiting.extend(events),
                    Err(error) => {
                        tracing::warn!(error = format!("{error:#}"), "live stream of a page ended early");
                        return None;
                    }
                }
            }
        })
    }

    async fn next_events(&mut self) -> anyhow::Result<Vec<Event>> {
        match self.reader.next().await? {
            StreamBatch::Reset | StreamBatch::Snapshot(..) => {
                Ok(vec![Event::default().event("reset").data("reload")])
            }
            StreamBatch::CaughtUp => Ok(Vec::new()),
            StreamBatch::Events(events) => {
                let mut touched = ChangedParts::default();
                for event in &events {
                    touched.add_event(event);
                }
                if !touched.layout {
                    tokio::time::sleep(COMBINE_PERIOD).await;
                }
                let Some(last) = events.last() else { return Ok(Vec::new()) };
                self.render_parts(touched, last.seq).await
            }
        }
    }

    /// Renders the current state, which may be later than the last event: the next events then repeat it.
    async fn render_parts(&self, touched: ChangedParts, seq: EventSeq) -> anyhow::Result<Vec<Event>> {
        let id = self.reader.conversation();
        let ConversationUpdate { header, entries, footer } =
            self.console.db.read_in_background(move |conn| touched.load_update(conn, id)).await?;
        let setting = FormContext { token: self.token.clone() };
        let entries_html = turns::render_entries(&self.console, &entries, &setting)?;
        let mut events: Vec<Event> = entries_html.iter().map(|html| html_event("turn", html)).collect();
        if let Some(footer) = footer {
            let head = fragments::render_header(&self.console, &header, &setting)?;
            let tail = fragments::render_footer(&self.console, &header, &entries, &footer, &setting)?;
            events.push(html_event("head", &head));
            events.push(html_event("head", &tail));
        }
        // The cursor counts only once the client has the whole batch.
        if let Some(last) = events.pop() {
            events.push(last.id(seq.to_string()));
        }
        Ok(events)
    }
}

/// Builds an event. A line may end in two ways in the protocol, and both together would be two line ends.
fn html_event(name: &str, html: &str) -> Event {
    Event::default().event(name).data(html.replace("\r\n", "\n"))
}

impl ChangedParts {
    /// Adds an event. A piece of an answer changes nothing around the conversation.
    fn add_event(&mut self, event: &Logged) {
        self.turns.extend(event.turn);
        match &event.kind {
            StreamEventKind::BlockStart(_)
            | StreamEventKind::BlockDelta(..)
            | StreamEventKind::BlockEnd(_) => return,
            StreamEventKind::OutboundMessage(id, _) if event.turn.is_none() => {
                self.notices.insert(*id);
            }
            StreamEventKind::InboundMessage(id, InboundStatus::NoTurn) => {
                self.texts.insert(*id);
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
        self.layout = true;
    }

    fn load_update(mut self, conn: &mut Conn, id: ConversationId) -> QueryResult<ConversationUpdate> {
        for reaction in self.reactions {
            match reactions::load_reaction_target(conn, reaction)? {
                Some(MessageRef::Outbound(id)) => self.notices.insert(id),
                Some(MessageRef::Inbound(id)) => self.texts.insert(id),
                None => continue,
            };
        }
        let changed = ChangedEntries {
            turns: self.turns.into_iter().collect(),
            notifications: self.notices.into_iter().collect(),
            unanswered: self.texts.into_iter().collect(),
        };
        conversation::load_conversation_update(conn, id, changed, self.layout)
    }
}
