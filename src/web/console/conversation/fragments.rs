//! Header and footer of a conversation, as HTML: the same for the page and for the stream.

use askama::Template;

use super::labels;
use super::turns::{FormContext, ReceivedView, received_view};
use crate::store::console::conversation::header::{ConversationFooter, ConversationHeader, PromptStatus};
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
    let view = HeaderView {
        id: head.id.0,
        name: &head.name,
        with: UserLink::from(&head.user_ref),
        started: console.display_time(head.started_at),
        ended: head.end.map(|(at, why)| (console.display_time(at), labels::end_reason_label(why))),
        token: &setting.token,
    };
    view.render()
}

pub(super) fn render_footer(
    console: &ConsoleState,
    head: &ConversationHeader,
    tail: ConversationFooter,
    setting: &FormContext,
) -> askama::Result<String> {
    let question = tail.pending_action.map(|question| PromptView {
        id: question.id,
        words: question.summary,
        code: question.code,
        items: question.items,
        until: match question.status {
            PromptStatus::InTransit => None,
            PromptStatus::OpenUntil(at) => Some(console.display_time(at)),
        },
    });
    let used = tail.last_prompt.and_then(|tokens| u64::try_from(tokens).ok());
    let view = FooterView {
        id: head.id.0,
        token: &setting.token,
        waiting: tail.waiting.iter().map(|text| received_view(console, text)).collect(),
        question,
        last_prompt: used.map(format_count),
        meter: used.zip(console.context_window),
    };
    view.render()
}
