//! Header and footer of a conversation, as HTML: the same for the page and for the stream.

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
    with: UserLink,
    started: DisplayTime,
    ended: Option<(DisplayTime, &'static str)>,
    token: &'a str,
}

#[derive(Template)]
#[template(path = "conversation_footer.html")]
struct FooterView<'a> {
    id: i64,
    token: &'a str,
    waiting: Vec<ReceivedView>,
    question: Option<PromptView>,
    last_prompt: Option<String>,
    /// Tokens that were read, and the limit of the model.
    meter: Option<(u64, u64)>,
}

struct PromptView {
    id: i64,
    words: String,
    code: Option<String>,
    items: Vec<String>,
    /// Time limit of the prompt. `None` before the prompt is delivered.
    until: Option<DisplayTime>,
}

pub(super) fn render_header(
    console: &ConsoleState,
    head: &ConversationHeader,
    setting: &FormContext,
) -> askama::Result<String> {
    let conversation = &head.conversation;
    let end = conversation.ended_at.zip(conversation.end_reason);
    let view = HeaderView {
        id: conversation.id.0,
        name: &conversation.name,
        with: UserLink::from(&head.user),
        started: console.display_time(conversation.started_at),
        ended: end.map(|(at, why)| (console.display_time(at), labels::end_reason_label(why))),
        token: &setting.token,
    };
    view.render()
}

pub(super) fn render_footer(
    console: &ConsoleState,
    head: &ConversationHeader,
    entries: &ConversationEntries,
    footer: &ConversationFooter,
    setting: &FormContext,
) -> askama::Result<String> {
    let question = footer.pending_action.as_ref().map(|question| PromptView {
        id: question.record.id,
        words: question.record.prompt.clone(),
        code: question.record.code.clone(),
        items: question.items.clone(),
        until: question.record.open_until().map(|at| console.display_time(at)),
    });
    let used = footer.last_input_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let waiting = &entries.content.unassigned.waiting;
    let view = FooterView {
        id: head.conversation.id.0,
        token: &setting.token,
        waiting: waiting.iter().map(|text| received_view(console, entries, text)).collect(),
        question,
        last_prompt: used.map(format_count),
        meter: used.zip(console.context_window),
    };
    view.render()
}
