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

use super::pieces;
use super::turns::{self, Setting};
use crate::conversation::route::Said;
use crate::conversation::stream::{Arrival, Event as Logged, Seq, What};
use crate::conversation::transcript::{ConversationId, EventId, OutboxId};
use crate::engine::stream::reader::{Batch, Reader};
use crate::store::console::thread::head::{self, Head, Tail};
use crate::store::console::thread::{self, Entry, texts};
use crate::store::stream::snapshot;
use crate::store::{Conn, QueryResult, reactions};
use crate::web::auth::Operator;
use crate::web::console::answers::{Failure, Id};
use crate::web::console_state::ConsoleState;
use crate::web::places::Follower;
use crate::web::sse::{self, Cursor};

/// Time within which pieces of an answer are combined into one event.
const TOGETHER: Duration = Duration::from_millis(80);

pub(in crate::web) async fn follow(
    State(console): State<ConsoleState>,
    operator: Operator,
    Id(id): Id,
    Query(cursor): Query<Cursor>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let Ok(after) = sse::place(&cursor, &headers) else {
        return Ok((StatusCode::BAD_REQUEST, "after is the number of an event").into_response());
    };
    let id = ConversationId(id);
    if !console.db.read_aside(move |conn| snapshot::exists(conn, id)).await? {
        return Err(Failure::Missing);
    }
    let token = operator.form_token().to_owned();
    let place = match console.streams.take(Follower::Session(token.clone())).place() {
        Ok(place) => place,
        Err(refusal) => return Ok(refusal.into_response()),
    };
    // A page without a cursor has nothing to continue from: it gets an instruction to reload.
    let after = after.unwrap_or(Seq(-1));
    let reader = console.engine.connect(id, Some(after), |_| Ok(()));
    let begin = VecDeque::from([Event::default().retry(sse::RETRY)]);
    let telling = Telling { console, reader, token, waiting: begin };
    Ok(sse::sent(place, telling.stream()))
}

struct Telling {
    console: ConsoleState,
    reader: Reader<()>,
    token: String,
    waiting: VecDeque<Event>,
}

/// Parts to render again.
#[derive(Debug, Default)]
struct Touched {
    turns: BTreeSet<i64>,
    notices: BTreeSet<i64>,
    texts: BTreeSet<i64>,
    /// Reactions on messages without a turn.
    reactions: BTreeSet<i64>,
    /// True if the header and the footer of the conversation changed.
    frame: bool,
}

impl Telling {
    /// Returns the stream of events. It ends with the listener, and when the log cannot be read: the page reconnects
    /// with its cursor.
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        stream::unfold(self, |mut this| async move {
            let stop = this.console.stop.clone();
            loop {
                if let Some(event) = this.waiting.pop_front() {
                    return Some((Ok(event), this));
                }
                let next = tokio::select! {
                    next = this.next() => next,
                    () = stop.cancelled() => return None,
                };
                match next {
                    Ok(events) => this.waiting.extend(events),
                    Err(error) => {
                        tracing::warn!(error = format!("{error:#}"), "a page's stream ended early");
                        return None;
                    }
                }
            }
        })
    }

    async fn next(&mut self) -> anyhow::Result<Vec<Event>> {
        match self.reader.next().await? {
            Batch::Reset | Batch::Snapshot(..) => Ok(vec![Event::default().event("reset").data("reload")]),
            Batch::CaughtUp => Ok(Vec::new()),
            Batch::Events(events) => {
                let mut touched = Touched::default();
                for event in &events {
                    touched.add(event);
                }
                if !touched.frame {
                    tokio::time::sleep(TOGETHER).await;
                }
                let Some(last) = events.last() else { return Ok(Vec::new()) };
                self.draw(touched, last.seq).await
            }
        }
    }

    /// Renders the current state, which may be later than the last event: the next events then repeat it.
    async fn draw(&self, touched: Touched, seq: Seq) -> anyhow::Result<Vec<Event>> {
        let id = self.reader.conversation();
        let Drawn { head, tail, entries } =
            self.console.db.read_aside(move |conn| touched.read(conn, id)).await?;
        let setting = Setting { token: self.token.clone() };
        let mut events = Vec::new();
        for entry in entries {
            let html = turns::entry(&self.console, entry, &setting)?;
            events.push(told("turn", &html));
        }
        if let Some(tail) = tail {
            events.push(told("head", &pieces::head(&self.console, &head, &setting)?));
            events.push(told("head", &pieces::tail(&self.console, &head, tail, &setting)?));
        }
        // The cursor counts only once the client has the whole batch.
        if let Some(last) = events.pop() {
            events.push(last.id(seq.to_string()));
        }
        Ok(events)
    }
}

/// Builds an event. A line may end in two ways in the protocol, and both together would be two line ends.
fn told(name: &str, html: &str) -> Event {
    Event::default().event(name).data(html.replace("\r\n", "\n"))
}

struct Drawn {
    head: Head,
    tail: Option<Tail>,
    entries: Vec<Entry>,
}

impl Touched {
    /// Adds an event. A piece of an answer changes nothing around the conversation.
    fn add(&mut self, event: &Logged) {
        self.turns.extend(event.turn.map(|turn| turn.0));
        match &event.what {
            What::BlockStart(_) | What::BlockDelta(..) | What::BlockEnd(_) => return,
            What::TextOut(OutboxId(id), _) if event.turn.is_none() => {
                self.notices.insert(*id);
            }
            What::TextIn(EventId(id), Arrival::PutAside) => {
                self.texts.insert(*id);
            }
            What::Reaction(id, _) if event.turn.is_none() => {
                self.reactions.insert(*id);
            }
            What::Turn(_)
            | What::StepAbandoned { .. }
            | What::ToolCall(..)
            | What::TextIn(..)
            | What::TextOut(..)
            | What::Question(..)
            | What::Reaction(..)
            | What::Conversation(_) => {}
        }
        self.frame = true;
    }

    fn read(mut self, conn: &mut Conn, id: ConversationId) -> QueryResult<Drawn> {
        for reaction in std::mem::take(&mut self.reactions) {
            match reactions::text_of(conn, reaction)? {
                Some(Said::ByUs(OutboxId(id))) => self.notices.insert(id),
                Some(Said::ByThem(EventId(id))) => self.texts.insert(id),
                None => continue,
            };
        }
        let head = head::read(conn, id)?;
        let tail = if self.frame { Some(head::tail(conn, &head)?) } else { None };
        let turns: Vec<i64> = self.turns.into_iter().collect();
        let mut entries: Vec<Entry> = thread::turns_of(conn, &turns)?.into_iter().map(Entry::Turn).collect();
        for notice in self.notices {
            entries.extend(texts::notice(conn, OutboxId(notice))?.map(Entry::Notice));
        }
        for text in self.texts {
            entries.extend(texts::unanswered_text(conn, EventId(text))?.map(Entry::Unanswered));
        }
        entries.sort_by_key(Entry::at);
        Ok(Drawn { head, tail, entries })
    }
}
