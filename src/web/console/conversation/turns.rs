//! Entry of a conversation as HTML: the same for the page and for the stream, so that a repeat changes nothing.

use askama::Template;
use serde_json::Value;

use super::labels::{self, StateBadge};
use crate::conversation::routing::inbound_message::MessageMedia;
use crate::conversation::routing::transport::MessageTransport;
use crate::conversation::stream_events::StreamTurnState;
use crate::conversation::transcript::{EffectLevel, Responder, ToolArguments};
use crate::store::console::conversation::message_entries::{InboundEntry, OutboundEntry};
use crate::store::console::conversation::steps::{AttemptEntry, AttemptState, ToolCallEntry};
use crate::store::console::conversation::{ConversationEntry, TurnEntry};
use crate::web::console::delivery_labels::{self, DeliveryLabel};
use crate::web::console::layout::DisplayTime;
use crate::web::console_state::ConsoleState;

/// Values that forms in an entry need.
#[derive(Debug, Clone)]
pub(super) struct FormContext {
    /// Token that forms must send back.
    pub(super) token: String,
}

#[derive(Template)]
#[template(path = "turn.html")]
struct EntryView {
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
    state: StateBadge,
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
    state: StateBadge,
    took: Option<String>,
    arguments: String,
    outcome: Option<String>,
    for_model: Option<String>,
}

pub(super) struct ReceivedView {
    pub(super) body: String,
    pub(super) when: DisplayTime,
    pub(super) by: String,
    pub(super) media: Vec<MessageMedia>,
    pub(super) skipped: Option<&'static str>,
    pub(super) reactions: Vec<String>,
}

struct SentView {
    body: String,
    when: DisplayTime,
    state: DeliveryLabel,
    why: Option<String>,
    segments: String,
    has_picture: bool,
    reactions: Vec<String>,
}

/// Renders the HTML of one entry.
pub(super) fn render_entry(
    console: &ConsoleState,
    entry: ConversationEntry,
    setting: &FormContext,
) -> askama::Result<String> {
    let at_ms = entry.timestamp().as_millisecond();
    let token = setting.token.clone();
    let article = match entry {
        ConversationEntry::Turn(turn) => EntryView {
            id: format!("turn-{}", turn.id),
            at_ms,
            token,
            received: turn.received.iter().map(|text| received_view(console, text)).collect(),
            sent: turn.sent.iter().map(|text| sent_view(console, text)).collect(),
            turn: Some(turn_view(turn)),
        },
        ConversationEntry::Notification(text) => EntryView {
            id: format!("notice-{}", text.id),
            at_ms,
            token,
            turn: None,
            received: Vec::new(),
            sent: vec![sent_view(console, &text)],
        },
        ConversationEntry::Unanswered(text) => EntryView {
            id: format!("text-{}", text.id),
            at_ms,
            token,
            turn: None,
            received: vec![received_view(console, &text)],
            sent: Vec::new(),
        },
    };
    article.render()
}

fn turn_view(turn: TurnEntry) -> TurnView {
    let is_running = turn.finished_at.is_none();
    let mut running = turn.steps.iter().flat_map(|step| &step.attempts);
    let running = running.rfind(|attempt| attempt.state == AttemptState::Running);
    let partial = running.map(|attempt| attempt.text.clone()).unwrap_or_default();
    let calls: Vec<&str> =
        turn.steps.iter().flat_map(|step| &step.calls).map(|call| call.tool.as_str()).collect();
    TurnView {
        id: turn.id.0,
        state: if turn.is_ending {
            StateBadge { words: "Ending", class: "warn" }
        } else {
            labels::turn_badge(turn.state)
        },
        is_running,
        is_ending: turn.is_ending,
        has_failed: !is_running && matches!(turn.state, StreamTurnState::Failed | StreamTurnState::Error),
        summary: summarize_turn(turn.steps.len(), &calls, turn.executed_calls.len()),
        took: turn.finished_at.map(|end| labels::format_duration(turn.created_at, end)),
        partial,
        steps: turn
            .steps
            .into_iter()
            .map(|step| StepView {
                number: step.number + 1,
                attempts: (1..).zip(step.attempts).map(attempt_view).collect(),
                calls: step.calls.into_iter().map(call_view).collect(),
            })
            .collect(),
        carries_out: turn.executed_calls.into_iter().map(call_view).collect(),
    }
}

/// Summary of a turn, such as `2 steps: search_media, add_movie`.
fn summarize_turn(steps: usize, calls: &[&str], carried_out: usize) -> String {
    let steps = match (steps, carried_out) {
        (0, 0) => "Answered by code".to_owned(),
        (0, _) => "Runs the confirmed action".to_owned(),
        (1, _) => "1 step".to_owned(),
        (many, _) => format!("{many} steps"),
    };
    if calls.is_empty() { steps } else { format!("{steps}: {}", calls.join(", ")) }
}

fn attempt_view((number, attempt): (u32, AttemptEntry)) -> AttemptView {
    let by = match attempt.brain {
        Responder::Model => attempt.model,
        Responder::Keyword => "Keywords".to_owned(),
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
        took: attempt.finished_at.map(|end| labels::format_duration(attempt.started_at, end)),
        thinking: attempt.thinking,
        text: attempt.text,
        drafts: attempt.drafts,
    }
}

fn call_view(call: ToolCallEntry) -> CallView {
    let arguments = match call.arguments {
        ToolArguments::Object(map) => pretty_json(&Value::Object(map)),
        ToolArguments::Malformed(text) => text,
    };
    CallView {
        tool: call.tool,
        tier: match call.tier {
            EffectLevel::Read => "reads",
            EffectLevel::Write => "changes something",
            EffectLevel::Destructive => "deletes",
        },
        state: labels::call_badge(call.phase),
        took: call.started_at.zip(call.finished_at).map(|(from, to)| labels::format_duration(from, to)),
        arguments,
        outcome: call.outcome,
        for_model: call.for_model.map(|value| pretty_json(&value)),
    }
}

fn pretty_json(value: &Value) -> String {
    format!("{value:#}")
}

pub(super) fn received_view(console: &ConsoleState, text: &InboundEntry) -> ReceivedView {
    ReceivedView {
        body: text.body.clone(),
        when: console.display_time(text.at),
        by: labels::author_label(text),
        media: text.media.clone(),
        skipped: text.skipped.as_deref().map(labels::skip_reason_label),
        reactions: text.reactions.clone(),
    }
}

fn sent_view(console: &ConsoleState, text: &OutboundEntry) -> SentView {
    SentView {
        body: text.body.clone(),
        when: console.display_time(text.at),
        state: delivery_labels::delivery_label(text.status),
        why: delivery_labels::delivery_reason(text.status, &text.failure),
        segments: match text.transport {
            MessageTransport::Console | MessageTransport::Terminal => String::new(),
            MessageTransport::Carrier if text.segments == 1 => "1 segment".to_owned(),
            MessageTransport::Carrier => format!("{} segments", text.segments),
        },
        has_picture: text.picture.is_some(),
        reactions: text.reactions.clone(),
    }
}
