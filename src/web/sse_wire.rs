//! State of a conversation, as JSON.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::sse_words::{BlockWord, CallWord, MessageWord, TurnWord};
use crate::conversation::stream::{Block, Seq};
use crate::conversation::transcript::{Arguments, ConversationId};
use crate::store::reactions::Standing;
use crate::store::stream::snapshot::{self, Extent};
use crate::store::stream::texts;

/// `snapshot`: state of the conversation after the event `seq`. It replaces all earlier events.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Snapshot {
    seq: i64,
    conversation: SnapshotConversation,
    /// The newest 50 turns, oldest first. A running turn has the blocks up to the newest piece.
    turns: Vec<Turn>,
    /// True if there are turns before these.
    older_turns: bool,
    #[serde(flatten)]
    asides: Asides,
    /// Pending action that awaits confirmation.
    question: Option<Question>,
}

/// Messages of a conversation without a turn, oldest first; of each kind the newest 50.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Asides {
    /// Outbound messages, such as that a title is ready: those among these turns and up to the next newer one.
    notices: Vec<Message>,
    /// Inbound messages that got no turn, such as thanks, in the same range.
    unanswered: Vec<Text>,
    /// Inbound messages that no turn has claimed yet.
    waiting: Vec<Text>,
    /// True if there are older ones of a kind, which are left out here.
    older_asides: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct SnapshotConversation {
    id: i64,
    name: String,
    #[schema(format = DateTime)]
    started_at: String,
    /// Null while the conversation is open.
    #[schema(format = DateTime)]
    ended_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Turn {
    id: i64,
    state: TurnWord,
    created_at: String,
    finished_at: Option<String>,
    /// Messages of the user.
    texts: Vec<Text>,
    /// Whole reply, of which the messages carry the first page.
    answer: Option<String>,
    /// Messages that were sent.
    messages: Vec<Message>,
    tool_calls: Vec<ToolCall>,
    blocks: Vec<Content>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Text {
    id: i64,
    body: String,
    at: String,
    reactions: Vec<Reaction>,
}

/// Reaction that was not removed.
#[derive(Debug, Serialize, ToSchema)]
struct Reaction {
    id: i64,
    /// Null for a sticker, and if the emoji was erased.
    emoji: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Message {
    id: i64,
    body: String,
    segments: u32,
    state: MessageWord,
    at: String,
    reactions: Vec<Reaction>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ToolCall {
    id: i64,
    step: u32,
    ord: u32,
    tool: String,
    /// Arguments as the model wrote them: an object, or a string that is not one.
    arguments: Value,
    state: CallWord,
    /// The tool's summary for users, once the call is complete.
    outcome: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Content {
    #[serde(flatten)]
    block: BlockKey,
    text: String,
    /// True if no further pieces will follow.
    complete: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Question {
    id: i64,
    tool_call: i64,
    text: String,
    expires_at: Option<String>,
}

/// Key of a block: turn, response and position.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlockKey {
    step: u32,
    attempt: u32,
    #[serde(rename = "type")]
    kind: BlockWord,
    /// Number of the call in the response; 0 for text and thinking.
    ord: u32,
}

impl Snapshot {
    pub(super) fn of(seq: Seq, conversation: ConversationId, snapshot: snapshot::Snapshot) -> Self {
        Self {
            seq: seq.0,
            conversation: SnapshotConversation {
                id: conversation.0,
                name: snapshot.name,
                started_at: iso(snapshot.started_at),
                ended_at: snapshot.ended_at.map(iso),
            },
            turns: snapshot.turns.into_iter().map(turn).collect(),
            older_turns: snapshot.cut,
            asides: asides(snapshot.asides),
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

pub(super) fn asides(asides: texts::Asides) -> Asides {
    Asides {
        notices: asides.notices.into_iter().map(message).collect(),
        unanswered: asides.unanswered.into_iter().map(text).collect(),
        waiting: asides.waiting.into_iter().map(text).collect(),
        older_asides: asides.cut,
    }
}

fn text(text: texts::Received) -> Text {
    Text { id: text.id.0, body: text.body, at: iso(text.at), reactions: reactions(text.reactions) }
}

fn message(sent: texts::Sent) -> Message {
    Message {
        id: sent.id.0,
        body: sent.body,
        segments: sent.segments,
        state: sent.delivery.into(),
        at: iso(sent.at),
        reactions: reactions(sent.reactions),
    }
}

fn reactions(standing: Vec<Standing>) -> Vec<Reaction> {
    standing.into_iter().map(|given| Reaction { id: given.id, emoji: given.emoji }).collect()
}

pub(super) fn turn(turn: snapshot::Turn) -> Turn {
    let content = |content: snapshot::Content| Content {
        block: key(content.block),
        text: content.text,
        complete: content.extent == Extent::Whole,
    };
    Turn {
        id: turn.id.0,
        state: turn.state.into(),
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
        state: call.phase.into(),
        outcome: call.outcome,
        started_at: call.started_at.map(iso),
        finished_at: call.finished_at.map(iso),
    }
}

pub(super) fn key(block: Block) -> BlockKey {
    BlockKey { step: block.step, attempt: block.attempt, kind: block.part.into(), ord: block.ord }
}

pub(super) fn iso(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
