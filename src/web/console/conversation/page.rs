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
use crate::store::console::conversation::{self, ConversationHeader, ConversationView};
use crate::web::auth::Operator;
use crate::web::console::flash::{self, FlashMessage};
use crate::web::console::format::UserLink;
use crate::web::console::layout::{ConsoleSection, PageLayout, render_page};
use crate::web::console::responses::{PageError, PageId, PageParams, PageResult};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "conversation.html")]
struct ConversationTemplate {
    layout: PageLayout,
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
    let read = move |conn: &mut _| conversation::load_conversation_view(conn, id, before);
    let view = console.db.read_in_background(read).await?.ok_or(PageError::NotFound)?;
    Ok(render_conversation(console, operator, &view, asks).unwrap_or_else(|error| {
        tracing::error!(%error, "failed to render a conversation");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }))
}

fn render_conversation(
    console: &ConsoleState,
    operator: &Operator,
    view: &ConversationView,
    asks: ConversationPageQuery,
) -> askama::Result<Response> {
    let ConversationPageQuery { before, flash, typed } = asks;
    let ConversationHeader { conversation, user } = &view.header;
    let with = UserLink::from(user);
    let setting = FormContext { token: operator.form_token().to_owned() };
    let is_open = conversation.ended_at.is_none();
    let content = ConversationTemplate {
        layout: PageLayout::new(operator, ConsoleSection::Conversations, conversation.name.clone()),
        id: conversation.id.0,
        flash,
        is_test: with.is_test,
        is_live: before.is_none(),
        seq: view.seq.0,
        head: fragments::render_header(console, &view.header, &setting)?,
        entries: turns::render_entries(console, &view.entries, &setting)?,
        tail: if before.is_none() {
            fragments::render_footer(console, &view.header, &view.entries, &view.footer, &setting)?
        } else {
            String::new()
        },
        older: view.older,
        types_as: (with.is_test && is_open && before.is_none()).then_some(with.name),
        typed,
        longest: MAX_MESSAGE_CHARS,
        key: format!("{:032x}", rand::random::<u128>()),
    };
    Ok(render_page(&content))
}
