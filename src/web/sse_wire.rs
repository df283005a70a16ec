//! The data of the events of a conversation, as JSON.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::conversation::stream::{
    Block, CallPhase, Change, Delivery, Event, Part, QuestionState, ReactionState, Seq, TurnState, What,
};
use crate::conversation::transcript::{Arguments, ConversationId};
use crate::store::stream::snapshot::{self, Extent};

/// `snapshot`: how the conversation stands after the event `seq`. It takes the place of everything told before.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Snapshot {
    seq: i64,
    conversation: Conversation,
    /// The newest 50 turns, oldest first. Of a running one, the blocks up to the newest piece.
    turns: Vec<Turn>,
    /// There are turns before these.
    older_turns: bool,
    /// What waits for a yes.
    question: Option<Question>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Conversation {
    id: i64,
    name: String,
    started_at: String,
    ended_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Turn {
    id: i64,
    state: &'static str,
    created_at: String,
    finished_at: Option<String>,
    /// What the user texted.
    texts: Vec<Text>,
    /// The whole answer, of which the messages carry the first page.
    answer: Option<String>,
    /// What was sent.
    messages: Vec<Message>,
    tool_calls: Vec<ToolCall>,
    blocks: Vec<Content>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Text {
    id: i64,
    body: String,
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct Message {
    id: i64,
    body: String,
    segments: u32,
    state: &'static str,
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct ToolCall {
    id: i64,
    step: u32,
    ord: u32,
    tool: String,
    /// As the model wrote them: an object, or a text that is none.
    arguments: Value,
    state: &'static str,
    /// What the tool says for people, once it is done.
    outcome: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Content {
    #[serde(flatten)]
    block: BlockKey,
    text: String,
    /// Further pieces may come while it is not.
    complete: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Question {
    id: i64,
    tool_call: i64,
    text: String,
    expires_at: Option<String>,
}

/// Which block of which response of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlockKey {
    step: u32,
    attempt: u32,
    /// `text`, `thinking` or `tool_call`. The text of a tool call is the tool's name and, behind it, the arguments.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Which call of the response; 0 for text and thinking.
    ord: u32,
}

/// What one event tells. `text` holds the words behind a row when it is first told of: the body of a message, the name
/// of a tool and, once it is complete, what it says for people, a question, an emoji. It is left out in other states,
/// and where nothing is left of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Told {
    /// `turn`.
    Turn { turn: Option<i64>, state: &'static str, at: String },
    /// `block_start` and `block_end`. A block that another interrupted is started again when it goes on.
    Block {
        turn: Option<i64>,
        #[serde(flatten)]
        block: BlockKey,
    },
    /// `block_delta`: the next piece of a block.
    Delta {
        turn: Option<i64>,
        #[serde(flatten)]
        block: BlockKey,
        text: String,
    },
    /// `step_abandoned`: drop the blocks of this attempt.
    Abandoned { turn: Option<i64>, step: u32, attempt: u32 },
    /// `tool_call`, `question` and `reaction`, by the id of their row.
    Row {
        turn: Option<i64>,
        id: i64,
        state: &'static str,
        at: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// `message`: `in` is a text of the user's, `out` one of ours and how far it has come.
    Message {
        turn: Option<i64>,
        id: i64,
        direction: &'static str,
        state: &'static str,
        at: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// `conversation`.
    Conversation { state: &'static str, at: String },
}

/// The name of an event and its data; `words` are those behind its row.
pub(super) fn told(event: &Event, words: Option<String>) -> (&'static str, Told) {
    let (turn, at) = (event.turn.map(|turn| turn.0), iso(event.at));
    let message = |id, direction, state, at, text| Told::Message { turn, id, direction, state, at, text };
    match &event.what {
        What::Turn(state) => ("turn", Told::Turn { turn, state: turn_word(*state), at }),
        What::BlockStart(block) => ("block_start", Told::Block { turn, block: key(*block) }),
        What::BlockDelta(block, text) => {
            ("block_delta", Told::Delta { turn, block: key(*block), text: text.clone() })
        }
        What::BlockEnd(block) => ("block_end", Told::Block { turn, block: key(*block) }),
        What::StepAbandoned { step, attempt } => {
            ("step_abandoned", Told::Abandoned { turn, step: *step, attempt: *attempt })
        }
        What::ToolCall(call, phase) => {
            ("tool_call", Told::Row { turn, id: call.0, state: phase_word(*phase), at, text: words })
        }
        What::TextIn(id) => ("message", message(id.0, "in", "received", at, words)),
        What::TextOut(id, delivery) => ("message", message(id.0, "out", delivery_word(*delivery), at, words)),
        What::Question(id, state) => {
            let state = match state {
                QuestionState::Asked => "asked",
                QuestionState::Open => "open",
                QuestionState::Closed => "closed",
            };
            ("question", Told::Row { turn, id: *id, state, at, text: words })
        }
        What::Reaction(id, state) => {
            let state = match state {
                ReactionState::Given => "given",
                ReactionState::Removed => "removed",
            };
            ("reaction", Told::Row { turn, id: *id, state, at, text: words })
        }
        What::Conversation(change) => {
            let state = match change {
                Change::Begun => "begun",
                Change::Ended => "ended",
                Change::Reopened => "reopened",
            };
            ("conversation", Told::Conversation { state, at })
        }
    }
}

impl Snapshot {
    pub(super) fn of(seq: Seq, conversation: ConversationId, snapshot: snapshot::Snapshot) -> Self {
        Self {
            seq: seq.0,
            conversation: Conversation {
                id: conversation.0,
                name: snapshot.name,
                started_at: iso(snapshot.started_at),
                ended_at: snapshot.ended_at.map(iso),
            },
            turns: snapshot.turns.into_iter().map(turn).collect(),
            older_turns: snapshot.cut,
            question: snapshot.question.map(question),
        }
    }
}

pub(super) fn question(question: snapshot::Question) -> Question {
    Question {
        id: question.id,
        tool_call: question.call.0,
        text: question.words,
        expires_at: question.expires_at.map(iso),
    }
}

pub(super) fn turn(turn: snapshot::Turn) -> Turn {
    let text = |text: snapshot::Received| Text { id: text.id.0, body: text.body, at: iso(text.at) };
    let message = |sent: snapshot::Sent| Message {
        id: sent.id.0,
        body: sent.body,
        segments: sent.segments,
        state: delivery_word(sent.delivery),
        at: iso(sent.at),
    };
    let content = |content: snapshot::Content| Content {
        block: key(content.block),
        text: content.text,
        complete: content.extent == Extent::Whole,
    };
    Turn {
        id: turn.id.0,
        state: turn_word(turn.state),
        created_at: iso(turn.created_at),
        finished_at: turn.finished_at.map(iso),
        texts: turn.received.into_iter().map(text).collect(),
        answer: turn.answer,
        messages: turn.sent.into_iter().map(message).collect(),
        tool_calls: turn.calls.into_iter().map(call).collect(),
        blocks: turn.blocks.into_iter().map(content).collect(),
    }
}

fn call(call: snapshot::Call) -> ToolCall {
    ToolCall {
        id: call.row.0,
        step: call.step,
        ord: call.ord,
        tool: call.tool,
        arguments: match call.arguments {
            Arguments::Object(map) => Value::Object(map),
            Arguments::Malformed(text) => Value::String(text),
        },
        state: phase_word(call.phase),
        outcome: call.outcome,
        started_at: call.started_at.map(iso),
        finished_at: call.finished_at.map(iso),
    }
}

fn key(block: Block) -> BlockKey {
    let kind = match block.part {
        Part::Text => "text",
        Part::Thinking => "thinking",
        Part::ToolCall => "tool_call",
    };
    BlockKey { step: block.step, attempt: block.attempt, kind, ord: block.ord }
}

pub(super) fn iso(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn turn_word(state: TurnState) -> &'static str {
    match state {
        TurnState::Created => "CREATED",
        TurnState::InProgress => "IN_PROGRESS",
        TurnState::WaitingForTools => "WAITING_FOR_TOOLS",
        TurnState::Failed => "FAILED",
        TurnState::Error => "ERROR",
        TurnState::Completed => "COMPLETED",
        TurnState::Canceled => "CANCELED",
    }
}

fn phase_word(phase: CallPhase) -> &'static str {
    match phase {
        CallPhase::Created => "created",
        CallPhase::Held => "held",
        CallPhase::Running => "running",
        CallPhase::Unknown => "unknown",
        CallPhase::Complete => "complete",
        CallPhase::Error => "error",
        CallPhase::Canceled => "canceled",
    }
}

fn delivery_word(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Queued => "queued",
        Delivery::Attempting => "attempting",
        Delivery::Unknown => "unknown",
        Delivery::Accepted => "accepted",
        Delivery::Scheduled => "scheduled",
        Delivery::Sending => "sending",
        Delivery::Sent => "sent",
        Delivery::Delivered => "delivered",
        Delivery::Read => "read",
        Delivery::Undelivered => "undelivered",
        Delivery::Failed => "failed",
        Delivery::Canceled => "canceled",
        Delivery::Suppressed => "suppressed",
    }
}
