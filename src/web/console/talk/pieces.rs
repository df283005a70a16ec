//! Header and footer of a conversation, as HTML: the same for the page and for the stream.

use askama::Template;

use super::turns::{ReceivedView, Setting, received};
use super::wording;
use crate::store::console::thread::head::{Head, Standing, Tail};
use crate::web::console::frame::When;
use crate::web::console::words::{Named, count};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "head.html")]
struct HeadView<'a> {
    id: i64,
    name: &'a str,
    with: Named,
    started: When,
    ended: Option<(When, &'static str)>,
    token: &'a str,
}

#[derive(Template)]
#[template(path = "tail.html")]
struct TailView<'a> {
    id: i64,
    token: &'a str,
    waiting: Vec<ReceivedView>,
    question: Option<QuestionView>,
    last_prompt: Option<String>,
    /// Tokens that were read, and the limit of the model.
    meter: Option<(u64, u64)>,
}

struct QuestionView {
    id: i64,
    words: String,
    code: Option<String>,
    items: Vec<String>,
    /// Time limit of the prompt. `None` before the prompt is delivered.
    until: Option<When>,
}

pub(super) fn head(console: &ConsoleState, head: &Head, setting: &Setting) -> askama::Result<String> {
    let view = HeadView {
        id: head.id.0,
        name: &head.name,
        with: Named::from(&head.with),
        started: console.when(head.started_at),
        ended: head.end.map(|(at, why)| (console.when(at), wording::end(why))),
        token: &setting.token,
    };
    view.render()
}

pub(super) fn tail(
    console: &ConsoleState,
    head: &Head,
    tail: Tail,
    setting: &Setting,
) -> askama::Result<String> {
    let question = tail.question.map(|question| QuestionView {
        id: question.id,
        words: question.words,
        code: question.code,
        items: question.items,
        until: match question.standing {
            Standing::OnItsWay => None,
            Standing::OpenUntil(at) => Some(console.when(at)),
        },
    });
    let used = tail.last_prompt.and_then(|tokens| u64::try_from(tokens).ok());
    let view = TailView {
        id: head.id.0,
        token: &setting.token,
        waiting: tail.waiting.iter().map(|text| received(console, text)).collect(),
        question,
        last_prompt: used.map(count),
        meter: used.zip(console.context_window),
    };
    view.render()
}
