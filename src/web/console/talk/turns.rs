//! Entry of a conversation as HTML: the same for the page and for the stream, so that a repeat changes nothing.

use askama::Template;
use serde_json::Value;

use super::wording::{self, Badge};
use crate::conversation::inbound_message::Media;
use crate::conversation::stream::TurnState;
use crate::conversation::transcript::{Arguments, Brain, Tier};
use crate::conversation::way::Way;
use crate::store::console::thread::steps::{Attempt, AttemptState, Call};
use crate::store::console::thread::texts::{Received, Sent};
use crate::store::console::thread::{Entry, Turn};
use crate::web::console::fates::{self, Mark};
use crate::web::console::frame::When;
use crate::web::console_state::ConsoleState;

/// Values that forms in an entry need.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Token that forms must send back.
    pub(super) token: String,
}

#[derive(Template)]
#[template(path = "turn.html")]
struct Article {
    /// Element id such as `turn-12`, by which the page and the stream identify the entry.
    id: String,
    /// Time in milliseconds: entries are sorted by it.
    at_ms: i64,
    token: String,
    turn: Option<TurnView>,
    received: Vec<ReceivedView>,
    sent: Vec<SentView>,
}

struct TurnView {
    id: i64,
    state: Badge,
    is_running: bool,
    is_ending: bool,
    has_failed: bool,
    summary: String,
    took: Option<String>,
    steps: Vec<StepView>,
    carries_out: Vec<CallView>,
    /// Text that the running step has produced so far.
    partial: String,
}

struct StepView {
    number: u32,
    attempts: Vec<AttemptView>,
    calls: Vec<CallView>,
}

struct AttemptView {
    number: u32,
    by: String,
    is_running: bool,
    abandoned: Option<String>,
    tokens: Option<String>,
    took: Option<String>,
    thinking: String,
    text: String,
    drafts: Vec<String>,
}

struct CallView {
    tool: String,
    tier: &'static str,
    state: Badge,
    took: Option<String>,
    arguments: String,
    outcome: Option<String>,
    for_model: Option<String>,
}

pub(super) struct ReceivedView {
    pub(super) body: String,
    pub(super) when: When,
    pub(super) by: String,
    pub(super) media: Vec<Media>,
    pub(super) skipped: Option<&'static str>,
    pub(super) reactions: Vec<String>,
}

struct SentView {
    body: String,
    when: When,
    state: Mark,
    why: Option<String>,
    segments: String,
    has_picture: bool,
    reactions: Vec<String>,
}

/// The HTML of one entry.
pub(super) fn entry(console: &ConsoleState, entry: Entry, setting: &Setting) -> askama::Result<String> {
    let at_ms = entry.at().as_millisecond();
    let token = setting.token.clone();
    let article = match entry {
        Entry::Turn(turn) => Article {
            id: format!("turn-{}", turn.id),
            at_ms,
            token,
            received: turn.received.iter().map(|text| received(console, text)).collect(),
            sent: turn.sent.iter().map(|text| sent(console, text)).collect(),
            turn: Some(view(turn)),
        },
        Entry::Notice(text) => Article {
            id: format!("notice-{}", text.id),
            at_ms,
            token,
            turn: None,
            received: Vec::new(),
            sent: vec![sent(console, &text)],
        },
        Entry::Unanswered(text) => Article {
            id: format!("text-{}", text.id),
            at_ms,
            token,
            turn: None,
            received: vec![received(console, &text)],
            sent: Vec::new(),
        },
    };
    article.render()
}

fn view(turn: Turn) -> TurnView {
    let is_running = turn.finished_at.is_none();
    let mut running = turn.steps.iter().flat_map(|step| &step.attempts);
    let running = running.rfind(|attempt| attempt.state == AttemptState::Running);
    let partial = running.map(|attempt| attempt.text.clone()).unwrap_or_default();
    let calls: Vec<&str> =
        turn.steps.iter().flat_map(|step| &step.calls).map(|call| call.tool.as_str()).collect();
    TurnView {
        id: turn.id.0,
        state: if turn.is_ending {
            Badge { words: "Ending", class: "warn" }
        } else {
            wording::turn(turn.state)
        },
        is_running,
        is_ending: turn.is_ending,
        has_failed: !is_running && matches!(turn.state, TurnState::Failed | TurnState::Error),
        summary: summary(turn.steps.len(), &calls, turn.carries_out.len()),
        took: turn.finished_at.map(|end| wording::took(turn.created_at, end)),
        partial,
        steps: turn
            .steps
            .into_iter()
            .map(|step| StepView {
                number: step.number + 1,
                attempts: (1..).zip(step.attempts).map(attempt).collect(),
                calls: step.calls.into_iter().map(call).collect(),
            })
            .collect(),
        carries_out: turn.carries_out.into_iter().map(call).collect(),
    }
}

/// Summary of a turn, such as `2 steps: search_media, add_movie`.
fn summary(steps: usize, calls: &[&str], carried_out: usize) -> String {
    let steps = match (steps, carried_out) {
        (0, 0) => "Answered by code".to_owned(),
        (0, _) => "Carries out what was asked about".to_owned(),
        (1, _) => "1 step".to_owned(),
        (many, _) => format!("{many} steps"),
    };
    if calls.is_empty() { steps } else { format!("{steps}: {}", calls.join(", ")) }
}

fn attempt((number, attempt): (u32, Attempt)) -> AttemptView {
    let by = match attempt.brain {
        Brain::Model => attempt.model,
        Brain::Keyword => "Keyword brain".to_owned(),
    };
    AttemptView {
        number,
        by,
        is_running: attempt.state == AttemptState::Running,
        abandoned: match attempt.state {
            AttemptState::Running | AttemptState::Complete => None,
            AttemptState::Abandoned(why) => Some(why),
        },
        tokens: attempt.tokens.map(|tokens| {
            format!("{} tokens in ({} cached), {} out", tokens.input, tokens.cached, tokens.output)
        }),
        took: attempt.finished_at.map(|end| wording::took(attempt.started_at, end)),
        thinking: attempt.thinking,
        text: attempt.text,
        drafts: attempt.drafts,
    }
}

fn call(call: Call) -> CallView {
    let arguments = match call.arguments {
        Arguments::Object(map) => pretty(&Value::Object(map)),
        Arguments::Malformed(text) => text,
    };
    CallView {
        tool: call.tool,
        tier: match call.tier {
            Tier::Read => "reads",
            Tier::Write => "changes something",
            Tier::Destructive => "deletes",
        },
        state: wording::call(call.phase),
        took: call.started_at.zip(call.finished_at).map(|(from, to)| wording::took(from, to)),
        arguments,
        outcome: call.outcome,
        for_model: call.for_model.map(|value| pretty(&value)),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

pub(super) fn received(console: &ConsoleState, text: &Received) -> ReceivedView {
    ReceivedView {
        body: text.body.clone(),
        when: console.when(text.at),
        by: wording::writer(text),
        media: text.media.clone(),
        skipped: text.skipped.as_deref().map(wording::skipped),
        reactions: text.reactions.clone(),
    }
}

fn sent(console: &ConsoleState, text: &Sent) -> SentView {
    SentView {
        body: text.body.clone(),
        when: console.when(text.at),
        state: fates::mark(text.fate),
        why: fates::reason(text.fate, &text.why),
        segments: match text.way {
            Way::Console | Way::Terminal => String::new(),
            Way::Carrier if text.segments == 1 => "1 segment".to_owned(),
            Way::Carrier => format!("{} segments", text.segments),
        },
        has_picture: text.picture.is_some(),
        reactions: text.reactions.clone(),
    }
}
