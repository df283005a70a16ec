//! Entries of a conversation as HTML, the same for the page and for the stream.

use askama::Template;
use jiff::Timestamp;
use serde_json::Value;

use super::labels::{self, StateBadge};
use super::posters;
use crate::conversation::routing::inbound_message::MessageMedia;
use crate::conversation::routing::route::MessageRef;
use crate::conversation::stream_events::{BlockKind, StreamTurnState};
use crate::conversation::transcript::{EffectLevel, Responder, ToolArguments};
use crate::store::console::conversation::ConversationEntries;
use crate::store::conversation::record::messages::{InboundRecord, OutboundRecord};
use crate::store::conversation::record::steps::{AttemptRecord, AttemptState, StepRecord, ToolCallRecord};
use crate::store::conversation::record::turns::TurnRecord;
use crate::store::{QueryResult, skip_unreadable};
use crate::web::console::delivery_labels::{self, DeliveryLabel};
use crate::web::console::layout::DisplayTime;
use crate::web::console_state::ConsoleState;

/// Values for the forms in an entry.
#[derive(Debug, Clone)]
pub(super) struct FormContext {
    /// CSRF token that forms must send back.
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
    duration: Option<String>,
    steps: Vec<StepView>,
    executed_calls: Vec<CallView>,
    /// Text of the running step so far.
    partial: String,
    /// Paths of the posters of its titles.
    posters: Vec<String>,
}

struct StepView {
    number: u32,
    attempts: Vec<AttemptView>,
    calls: Vec<CallView>,
}

struct AttemptView {
    number: u32,
    responder: String,
    is_running: bool,
    failure: Option<String>,
    tokens: Option<String>,
    duration: Option<String>,
    thinking: String,
    text: String,
    drafts: Vec<String>,
}

struct CallView {
    tool: String,
    effect: &'static str,
    state: StateBadge,
    duration: Option<String>,
    arguments: String,
    outcome: Option<String>,
    for_model: Option<String>,
}

pub(super) struct ReceivedView {
    pub(super) body: String,
    pub(super) when: DisplayTime,
    pub(super) source: String,
    pub(super) media: Vec<MessageMedia>,
    pub(super) skipped: Option<&'static str>,
    pub(super) reactions: Vec<String>,
}

struct SentView {
    body: String,
    when: DisplayTime,
    state: DeliveryLabel,
    reason: Option<String>,
    segments: String,
    has_picture: bool,
    reactions: Vec<String>,
}

/// Renders the HTML of each entry, oldest first.
pub(super) fn render_entries(
    console: &ConsoleState,
    entries: &ConversationEntries,
    form_context: &FormContext,
) -> askama::Result<Vec<String>> {
    let entry = |id: String, at: Timestamp| EntryView {
        id,
        at_ms: at.as_millisecond(),
        token: form_context.token.clone(),
        turn: None,
        received: Vec::new(),
        sent: Vec::new(),
    };
    let turns = entries.content.turns.iter().map(|turn| EntryView {
        received: turn.received.iter().map(|message| received_view(console, entries, message)).collect(),
        sent: turn.sent.iter().map(|message| sent_view(console, entries, message)).collect(),
        turn: Some(turn_view(turn)),
        ..entry(format!("turn-{}", turn.row.id), turn.row.started_at)
    });
    let notifications = entries.content.unassigned.notifications.iter().map(|message| EntryView {
        sent: vec![sent_view(console, entries, message)],
        ..entry(format!("notice-{}", message.id), message.written_at)
    });
    let unanswered = entries.content.unassigned.unanswered.iter().map(|message| EntryView {
        received: vec![received_view(console, entries, message)],
        ..entry(format!("text-{}", message.id), message.received_at)
    });
    let mut views: Vec<EntryView> = turns.chain(notifications).chain(unanswered).collect();
    views.sort_by_key(|view| view.at_ms);
    views.iter().map(EntryView::render).collect()
}

fn turn_view(turn: &TurnRecord) -> TurnView {
    let is_running = turn.row.is_running();
    let is_ending = turn.row.is_ending();
    let mut attempts = turn.steps.iter().flat_map(|step| &step.attempts);
    let running = attempts.rfind(|attempt| attempt.is_running());
    let state = turn.row.state;
    TurnView {
        id: turn.row.id.0,
        state: if is_ending {
            StateBadge { label: "Ending", class: "warn" }
        } else {
            labels::turn_badge(state)
        },
        is_running,
        is_ending,
        has_failed: !is_running && matches!(state, StreamTurnState::Failed | StreamTurnState::Error),
        summary: summarize_turn(turn),
        duration: turn.row.finished_at.map(|end| labels::format_duration(turn.row.started_at, end)),
        partial: running.and_then(|attempt| attempt.text(BlockKind::Text)).unwrap_or_default(),
        steps: turn.steps.iter().map(step_view).collect(),
        executed_calls: call_views(&turn.executed_calls),
        posters: posters::poster_paths(turn.calls().chain(&turn.executed_calls)),
    }
}

/// Summary of a turn, such as `2 steps: search_media, add_movie`.
fn summarize_turn(turn: &TurnRecord) -> String {
    let steps = match (turn.steps.len(), turn.executed_calls.len()) {
        (0, 0) => "Answered without a model".to_owned(),
        (0, _) => "Runs the confirmed action".to_owned(),
        (1, _) => "1 step".to_owned(),
        (count, _) => format!("{count} steps"),
    };
    let calls: Vec<&str> = turn.calls().map(|call| call.tool.as_str()).collect();
    if calls.is_empty() { steps } else { format!("{steps}: {}", calls.join(", ")) }
}

fn step_view(step: &StepRecord) -> StepView {
    StepView {
        number: step.number + 1,
        attempts: (1..).zip(&step.attempts).map(attempt_view).collect(),
        calls: call_views(&step.calls),
    }
}

fn attempt_view((number, attempt): (u32, &AttemptRecord)) -> AttemptView {
    let row = &attempt.row;
    let is_running = attempt.is_running();
    let mut drafts: Vec<_> =
        attempt.blocks.iter().filter(|block| block.kind == BlockKind::ToolCall).collect();
    drafts.retain(|_| is_running);
    drafts.sort_by_key(|block| block.ord);
    AttemptView {
        number,
        responder: match row.responder {
            Responder::Model => row.model.clone(),
            Responder::Keyword => "Keywords".to_owned(),
        },
        is_running,
        failure: (row.state == AttemptState::Abandoned)
            .then(|| skip_unreadable(row.failure_message()).flatten().unwrap_or_default()),
        tokens: row.tokens_in.map(|input| {
            let (cached, output) =
                (row.tokens_cached.unwrap_or_default(), row.tokens_out.unwrap_or_default());
            format!("{input} tokens in ({cached} cached), {output} out")
        }),
        duration: row.finished_at.map(|end| labels::format_duration(row.started_at, end)),
        thinking: attempt.text(BlockKind::Thinking).unwrap_or_default(),
        text: attempt.text(BlockKind::Text).unwrap_or_default(),
        drafts: drafts.into_iter().map(|block| block.text.clone()).collect(),
    }
}

/// Returns the views of calls. A call that cannot be parsed is left out, so that the page still shows the rest of the
/// turn.
fn call_views(calls: &[ToolCallRecord]) -> Vec<CallView> {
    calls.iter().filter_map(|call| skip_unreadable(call_view(call))).collect()
}

fn call_view(call: &ToolCallRecord) -> QueryResult<CallView> {
    let outcome = call.outcome()?;
    Ok(CallView {
        tool: call.tool.clone(),
        effect: match call.effect {
            EffectLevel::Read => "reads",
            EffectLevel::Write => "changes something",
            EffectLevel::Destructive => "deletes",
        },
        state: labels::call_badge(call.state),
        duration: call.started_at.zip(call.finished_at).map(|(from, to)| labels::format_duration(from, to)),
        arguments: match call.arguments()? {
            ToolArguments::Object(map) => pretty_json(&Value::Object(map)),
            ToolArguments::Malformed(text) => text,
        },
        outcome: outcome.for_user,
        for_model: outcome.for_model.as_ref().map(pretty_json),
    })
}

fn pretty_json(value: &Value) -> String {
    format!("{value:#}")
}

pub(super) fn received_view(
    console: &ConsoleState,
    entries: &ConversationEntries,
    message: &InboundRecord,
) -> ReceivedView {
    ReceivedView {
        body: message.body.clone(),
        when: console.display_time(message.received_at),
        source: labels::author_label(message, &entries.key_names),
        media: skip_unreadable(message.media()).unwrap_or_default(),
        skipped: message.skip_reason().map(labels::skip_reason_label),
        reactions: reaction_labels(entries, MessageRef::Inbound(message.id)),
    }
}

fn sent_view(console: &ConsoleState, entries: &ConversationEntries, message: &OutboundRecord) -> SentView {
    SentView {
        body: message.body.clone(),
        when: console.display_time(message.written_at),
        state: delivery_labels::delivery_label(message.status()),
        reason: delivery_labels::delivery_reason(message),
        segments: match message.segments {
            _ if message.channel().is_shown() => String::new(),
            1 => "1 segment".to_owned(),
            segments => format!("{segments} segments"),
        },
        has_picture: message.picture.is_some(),
        reactions: reaction_labels(entries, MessageRef::Outbound(message.id)),
    }
}

fn reaction_labels(entries: &ConversationEntries, message: MessageRef) -> Vec<String> {
    let active = entries.content.reactions.get(message).iter();
    active.map(|reaction| reaction.emoji.clone().unwrap_or_else(|| "sticker".to_owned())).collect()
}
