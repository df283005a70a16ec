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
    header: String,
    entries: Vec<String>,
    footer: String,
    /// Section of the open prompt.
    prompt: String,
    older: Option<i64>,
    /// Name of the user to whom or in whose name the operator can write.
    writer: Option<TextBox>,
    /// Content of the text box.
    draft: String,
    /// Longest message, in characters.
    max_chars: usize,
    /// Idempotency key of the message form.
    key: String,
}

/// Box in which the operator writes.
struct TextBox {
    name: String,
    is_test: bool,
    /// True if the conversation is open, so that a text in the user's name continues it.
    is_open: bool,
}

/// Requested part of a conversation, with the operator's rejected message.
#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct ConversationPageQuery {
    before: Option<i64>,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
    /// Message that was not accepted.
    #[serde(skip)]
    draft: String,
}

pub(in crate::web) async fn show_conversation(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    PageParams(query): PageParams<ConversationPageQuery>,
) -> PageResult {
    conversation_response(&console, &operator, ConversationId(id), query).await
}

/// Shows the page again, with the rejected message still in its box and the reason for the rejection.
pub(super) async fn show_rejected_text(
    console: &ConsoleState,
    operator: &Operator,
    id: ConversationId,
    (draft, flash): (String, FlashMessage),
) -> PageResult {
    let query = ConversationPageQuery { before: None, flash: Some(flash), draft };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, conversation_response(console, operator, id, query).await?)
        .into_response())
}

async fn conversation_response(
    console: &ConsoleState,
    operator: &Operator,
    id: ConversationId,
    query: ConversationPageQuery,
) -> PageResult {
    let before = query.before.unwrap_or(i64::MAX);
    let load =
        move |conn: &mut _, position: &_| conversation::load_conversation_view(conn, id, before, position);
    let view = console.db.read_with_position(id, load).await?.ok_or(PageError::NotFound)?;
    Ok(render_conversation(console, operator, &view, query).unwrap_or_else(|error| {
        tracing::error!(%error, "failed to render a conversation");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }))
}

fn render_conversation(
    console: &ConsoleState,
    operator: &Operator,
    view: &ConversationView,
    query: ConversationPageQuery,
) -> askama::Result<Response> {
    let ConversationPageQuery { before, flash, draft } = query;
    let ConversationHeader { conversation, user } = &view.header;
    let user = UserLink::from(user);
    let form_context = FormContext { token: operator.form_token().to_owned() };
    let is_open = conversation.ended_at.is_none();
    let has_writer = before.is_none() && user.path.is_some() && conversation.agent.is_none();
    let content = ConversationTemplate {
        layout: PageLayout::new(
            operator,
            ConsoleSection::Conversations,
            format!("{}: {}", user.name, conversation.name),
        ),
        id: conversation.id.0,
        flash,
        is_test: user.is_test,
        is_live: before.is_none(),
        seq: view.seq.0,
        header: fragments::render_header(console, &view.header, &form_context)?,
        entries: turns::render_entries(console, &view.entries, &form_context)?,
        footer: match before {
            None => fragments::render_footer(console, &view.entries, &view.footer)?,
            Some(_) => String::new(),
        },
        prompt: match before {
            None => fragments::render_prompt(console, &view.header, &view.footer, &form_context)?,
            Some(_) => String::new(),
        },
        older: view.older,
        writer: (has_writer && (is_open || !user.is_test)).then_some(TextBox {
            is_test: user.is_test,
            // A group writes nothing itself.
            is_open: is_open && !user.is_room,
            name: user.name,
        }),
        draft,
        max_chars: MAX_MESSAGE_CHARS,
        key: format!("{:032x}", rand::random::<u128>()),
    };
    Ok(render_page(&content))
}
