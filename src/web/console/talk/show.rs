//! The page of one conversation.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::acts::Outcome;
use super::pieces;
use super::turns::{self, Setting};
use crate::conversation::transcript::ConversationId;
use crate::store::console::thread::{self, Thread};
use crate::store::stream::snapshot;
use crate::web::auth::Operator;
use crate::web::console::Console;
use crate::web::console::answers::{Asked, Failure, Id, Shown};
use crate::web::console::frame::{Frame, Place, page};
use crate::web::console::words::Named;

#[derive(Template)]
#[template(path = "conversation.html")]
struct Page {
    frame: Frame,
    id: i64,
    said: Option<Outcome>,
    is_test: bool,
    /// Whether this is the end of the conversation, which goes on by itself.
    is_live: bool,
    seq: i64,
    head: String,
    entries: Vec<String>,
    tail: String,
    older: Option<i64>,
    /// The test user in whose name can be typed.
    types_as: Option<String>,
    /// By which a text that is sent twice is known.
    key: String,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Asks {
    before: Option<i64>,
    #[serde(default)]
    said: Option<String>,
}

pub(in crate::web) async fn show(
    State(console): State<Console>,
    operator: Operator,
    Id(id): Id,
    Asked(asks): Asked<Asks>,
) -> Shown {
    let id = ConversationId(id);
    let before = asks.before.unwrap_or(i64::MAX);
    let read = move |conn: &mut _| match snapshot::exists(conn, id)? {
        true => thread::read(conn, id, before).map(Some),
        false => Ok(None),
    };
    let thread = console.db.read(read).await?.ok_or(Failure::Missing)?;
    let said = asks.said.as_deref().and_then(Outcome::read);
    Ok(fill(&console, &operator, thread, said, asks.before).unwrap_or_else(|error| {
        tracing::error!(%error, "a conversation could not be written");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }))
}

fn fill(
    console: &Console,
    operator: &Operator,
    thread: Thread,
    said: Option<Outcome>,
    before: Option<i64>,
) -> askama::Result<Response> {
    let Thread { head, tail, entries, older, seq } = thread;
    let with = Named::from(&head.with);
    let setting = Setting { token: operator.form_token().to_owned() };
    let entries: askama::Result<Vec<String>> =
        entries.into_iter().map(|entry| turns::entry(console, entry, &setting)).collect();
    let is_open = head.end.is_none();
    let content = Page {
        frame: Frame::new(operator, Place::Conversations, head.name.clone()),
        id: head.id.0,
        said,
        is_test: with.is_test,
        is_live: before.is_none(),
        seq: seq.0,
        head: pieces::head(console, &head, &setting)?,
        entries: entries?,
        tail: if before.is_none() { pieces::tail(console, &head, tail, &setting)? } else { String::new() },
        older,
        types_as: (with.is_test && is_open && before.is_none()).then_some(with.name),
        key: format!("{:032x}", rand::random::<u128>()),
    };
    Ok(page(&content))
}
