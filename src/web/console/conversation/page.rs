//! Page of one conversation.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::actions::MAX_MESSAGE_CHARS;
use super::fragments;
use super::turns::{self, FormContext};
use crate::conversation::transcript::ConversationId;
use crate::store::console::conversation::{self, ConversationPage};
use crate::store::stream::snapshot;
use crate::web::auth::Operator;
use crate::web::console::flash::{self, FlashMessage};
use crate::web::console::format::UserLink;
use crate::web::console::layout::{ConsoleSection, PageLayout, render_page};
use crate::web::console::responses::{PageError, PageId, PageParams, PageResult};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "conversation.html")]
struct ConversationView {
    frame: PageLayout,
    id: i64,
    flash: Option<FlashMessage>,
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
pub(in crate::web) struct ConversationPageQuery {
    before: Option<i64>,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
    /// Typed text that was not accepted.
    #[serde(skip)]
    typed: String,
}

pub(in crate::web) async fn show_conversation(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    PageParams(asks): PageParams<ConversationPageQuery>,
) -> PageResult {
    conversation_response(&console, &operator, ConversationId(id), asks).await
}

/// Shows the page again, with the typed text still in its box and the reason for which it was not accepted.
pub(super) async fn show_rejected_text(
    console: &ConsoleState,
    operator: &Operator,
    id: ConversationId,
    (typed, flash): (String, FlashMessage),
) -> PageResult {
    let asks = ConversationPageQuery { before: None, flash: Some(flash), typed };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, conversation_response(console, operator, id, asks).await?)
        .into_response())
}

async fn conversation_response(
    console: &ConsoleState,
    operator: &Operator,
    id: ConversationId,
    asks: ConversationPageQuery,
) -> PageResult {
    let before = asks.before.unwrap_or(i64::MAX);
    let read = move |conn: &mut _| match snapshot::conversation_exists(conn, id)? {
        true => conversation::load_conversation_page(conn, id, before).map(Some),
        false => Ok(None),
    };
    let thread = console.db.read_in_background(read).await?.ok_or(PageError::NotFound)?;
    Ok(render_conversation(console, operator, thread, asks).unwrap_or_else(|error| {
        tracing::error!(%error, "failed to render a conversation");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }))
}

fn render_conversation(
    console: &ConsoleState,
    operator: &Operator,
    thread: ConversationPage,
    asks: ConversationPageQuery,
) -> askama::Result<Response> {
    let ConversationPage { header: head, footer: tail, entries, older, seq } = thread;
    let ConversationPageQuery { before, flash, typed } = asks;
    let with = UserLink::from(&head.user_ref);
    let setting = FormContext { token: operator.form_token().to_owned() };
    let entries: askama::Result<Vec<String>> =
        entries.into_iter().map(|entry| turns::render_entry(console, entry, &setting)).collect();
    let is_open = head.end.is_none();
    let content = ConversationView {
        frame: PageLayout::new(operator, ConsoleSection::Conversations, head.name.clone()),
        id: head.id.0,
        flash,
        is_test: with.is_test,
        is_live: before.is_none(),
        seq: seq.0,
        head: fragments::render_header(console, &head, &setting)?,
        entries: entries?,
        tail: if before.is_none() {
            fragments::render_footer(console, &head, tail, &setting)?
        } else {
            String::new()
        },
        older,
        types_as: (with.is_test && is_open && before.is_none()).then_some(with.name),
        typed,
        longest: MAX_MESSAGE_CHARS,
        key: format!("{:032x}", rand::random::<u128>()),
    };
    Ok(render_page(&content))
}
