//! Page of one conversation.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::acts::LONGEST;
use super::pieces;
use super::turns::{self, Setting};
use crate::conversation::transcript::ConversationId;
use crate::store::console::thread::{self, Thread};
use crate::store::stream::snapshot;
use crate::web::auth::Operator;
use crate::web::console::answers::{Asked, Failure, Id, Shown};
use crate::web::console::frame::{Frame, Place, page};
use crate::web::console::said::{self, Said};
use crate::web::console::words::Named;
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "conversation.html")]
struct Page {
    frame: Frame,
    id: i64,
    said: Option<Said>,
    is_test: bool,
    /// True if the page shows the end of the conversation, which updates automatically.
    is_live: bool,
    seq: i64,
    head: String,
    entries: Vec<String>,
    tail: String,
    older: Option<i64>,
    /// Test user in whose name the operator can type.
    types_as: Option<String>,
    /// Content of the text box.
    typed: String,
    /// Longest message, in characters.
    longest: usize,
    /// Key that identifies a message that is submitted twice.
    key: String,
}

/// Requested part of a conversation, with the reader's own input.
#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct Asks {
    before: Option<i64>,
    #[serde(default, deserialize_with = "said::known")]
    said: Option<Said>,
    /// Typed text that was not accepted.
    #[serde(skip)]
    typed: String,
}

pub(in crate::web) async fn show(
    State(console): State<ConsoleState>,
    operator: Operator,
    Id(id): Id,
    Asked(asks): Asked<Asks>,
) -> Shown {
    answer(&console, &operator, ConversationId(id), asks).await
}

/// Shows the page again, with the typed text still in its box and the reason for which it was not accepted.
pub(super) async fn returned(
    console: &ConsoleState,
    operator: &Operator,
    id: ConversationId,
    (typed, said): (String, Said),
) -> Shown {
    let asks = Asks { before: None, said: Some(said), typed };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, answer(console, operator, id, asks).await?).into_response())
}

async fn answer(console: &ConsoleState, operator: &Operator, id: ConversationId, asks: Asks) -> Shown {
    let before = asks.before.unwrap_or(i64::MAX);
    let read = move |conn: &mut _| match snapshot::exists(conn, id)? {
        true => thread::read(conn, id, before).map(Some),
        false => Ok(None),
    };
    let thread = console.db.read_aside(read).await?.ok_or(Failure::Missing)?;
    Ok(fill(console, operator, thread, asks).unwrap_or_else(|error| {
        tracing::error!(%error, "a conversation could not be written");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }))
}

fn fill(console: &ConsoleState, operator: &Operator, thread: Thread, asks: Asks) -> askama::Result<Response> {
    let Thread { head, tail, entries, older, seq } = thread;
    let Asks { before, said, typed } = asks;
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
        typed,
        longest: LONGEST,
        key: format!("{:032x}", rand::random::<u128>()),
    };
    Ok(page(&content))
}
