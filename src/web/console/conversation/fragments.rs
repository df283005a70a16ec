//! Header, footer and open prompt of a conversation, as HTML: the same for the page and for the stream.

use askama::Template;

use super::labels;
use super::turns::{FormContext, ReceivedView, received_view};
use crate::store::console::conversation::{ConversationEntries, ConversationFooter, ConversationHeader};
use crate::web::console::format::{UserLink, format_count};
use crate::web::console::layout::DisplayTime;
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "conversation_header.html")]
struct HeaderView<'a> {
    id: i64,
    name: &'a str,
    user: UserLink,
    started: DisplayTime,
    ended: Option<(DisplayTime, &'static str)>,
    /// An agent has the conversation; its next call starts another one.
    is_of_agent: bool,
    token: &'a str,
}

#[derive(Template)]
#[template(path = "conversation_footer.html")]
struct FooterView {
    waiting: Vec<ReceivedView>,
    last_prompt: Option<String>,
    /// Tokens of the last prompt, and the size of the model's context window.
    meter: Option<(u64, u64)>,
}

#[derive(Template)]
#[template(path = "conversation_prompt.html")]
struct PromptSection<'a> {
    /// Id of the conversation.
    id: i64,
    token: &'a str,
    prompt: Option<PromptView>,
}

struct PromptView {
    id: i64,
    text: String,
    code: Option<String>,
    items: Vec<String>,
    /// Time at which the prompt expires. `None` before it is delivered.
    expires_at: Option<DisplayTime>,
}

pub(super) fn render_header(
    console: &ConsoleState,
    header: &ConversationHeader,
    form_context: &FormContext,
) -> askama::Result<String> {
    let conversation = &header.conversation;
    let end = conversation.ended_at.zip(conversation.end_reason);
    let view = HeaderView {
        id: conversation.id.0,
        name: &conversation.name,
        user: UserLink::from(&header.user),
        started: console.display_time(conversation.started_at),
        ended: end.map(|(at, reason)| (console.display_time(at), labels::end_reason_label(reason))),
        is_of_agent: conversation.agent.is_some(),
        token: &form_context.token,
    };
    view.render()
}

/// Renders the open prompt, or an empty section. The section stays in view while the page is scrolled.
pub(super) fn render_prompt(
    console: &ConsoleState,
    header: &ConversationHeader,
    footer: &ConversationFooter,
    form_context: &FormContext,
) -> askama::Result<String> {
    let prompt = footer.pending_action.as_ref().map(|prompt| PromptView {
        id: prompt.record.id,
        text: prompt.record.prompt.clone(),
        code: prompt.record.code.clone(),
        items: prompt.items.clone(),
        expires_at: prompt.record.open_until().map(|at| console.display_time(at)),
    });
    PromptSection { id: header.conversation.id.0, token: &form_context.token, prompt }.render()
}

pub(super) fn render_footer(
    console: &ConsoleState,
    entries: &ConversationEntries,
    footer: &ConversationFooter,
) -> askama::Result<String> {
    let tokens = footer.last_input_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let waiting = &entries.content.unassigned.waiting;
    let view = FooterView {
        waiting: waiting.iter().map(|message| received_view(console, entries, message)).collect(),
        last_prompt: tokens.map(format_count),
        meter: tokens.zip(console.engine.settings().context_window),
    };
    view.render()
}
