//! State of a conversation, as JSON.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::sse_states::{BlockKindJson, CallStateJson, MessageStateJson, TurnStateJson};
use crate::conversation::stream_events::{EventSeq, StreamBlock};
use crate::conversation::transcript::{ConversationId, ToolArguments};
use crate::store::conversation::reactions::ActiveReaction;
use crate::store::stream::messages;
use crate::store::stream::snapshot::{self, BlockExtent};

/// `snapshot`: state of the conversation after the event `seq`. It replaces all earlier events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Snapshot)]
pub(super) struct SnapshotJson {
    seq: i64,
    conversation: SnapshotConversation,
    /// The newest 50 turns, oldest first. A running turn has the blocks up to the newest piece.
    turns: Vec<TurnJson>,
    /// True if there are turns before these.
    older_turns: bool,
    #[serde(flatten)]
    asides: UnassignedMessagesJson,
    /// Pending action that awaits confirmation.
    question: Option<QuestionJson>,
}

/// Messages of a conversation without a turn, oldest first; of each kind the newest 50.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Asides)]
pub(super) struct UnassignedMessagesJson {
    /// Outbound messages, such as that a title is ready: those among these turns and up to the next newer one.
    notices: Vec<OutboundMessageJson>,
    /// Inbound messages that got no turn, such as thanks, in the same range.
    unanswered: Vec<InboundMessageJson>,
    /// Inbound messages that no turn has claimed yet.
    waiting: Vec<InboundMessageJson>,
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
#[schema(as = Turn)]
pub(super) struct TurnJson {
    id: i64,
    state: TurnStateJson,
    created_at: String,
    finished_at: Option<String>,
    /// Messages of the user.
    texts: Vec<InboundMessageJson>,
    /// Whole reply, of which the messages carry the first page.
    answer: Option<String>,
    /// Messages that were sent.
    messages: Vec<OutboundMessageJson>,
    tool_calls: Vec<ToolCallJson>,
    blocks: Vec<BlockJson>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Text)]
struct InboundMessageJson {
    id: i64,
    body: String,
    at: String,
    reactions: Vec<ReactionJson>,
}

/// Reaction that was not removed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reaction)]
struct ReactionJson {
    id: i64,
    /// Null for a sticker, and if the emoji was erased.
    emoji: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
struct OutboundMessageJson {
    id: i64,
    body: String,
    segments: u32,
    state: MessageStateJson,
    at: String,
    reactions: Vec<ReactionJson>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolCall)]
struct ToolCallJson {
    id: i64,
    step: u32,
    ord: u32,
    tool: String,
    /// Arguments as the model wrote them: an object, or a string that is not one.
    arguments: Value,
    state: CallStateJson,
    /// The tool's summary for users, once the call is complete.
    outcome: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Content)]
struct BlockJson {
    #[serde(flatten)]
    block: BlockKey,
    text: String,
    /// True if no further pieces will follow.
    complete: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Question)]
pub(super) struct QuestionJson {
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
    kind: BlockKindJson,
    /// Number of the call in the response; 0 for text and thinking.
    ord: u32,
}

impl SnapshotJson {
    pub(super) fn from_snapshot(
        seq: EventSeq,
        conversation: ConversationId,
        snapshot: snapshot::ConversationSnapshot,
    ) -> Self {
        Self {
            seq: seq.0,
            conversation: SnapshotConversation {
                id: conversation.0,
                name: snapshot.name,
                started_at: format_iso(snapshot.started_at),
                ended_at: snapshot.ended_at.map(format_iso),
            },
            turns: snapshot.turns.into_iter().map(turn_json).collect(),
            older_turns: snapshot.truncated,
            asides: unassigned_messages_json(snapshot.unassigned),
            question: snapshot.pending_action.map(question_json),
        }
    }
}

pub(super) fn question_json(question: snapshot::SnapshotPendingAction) -> QuestionJson {
    QuestionJson {
        id: question.id,
        tool_call: question.call.0,
        text: question.summary,
        expires_at: question.expires_at.map(format_iso),
    }
}

pub(super) fn unassigned_messages_json(asides: messages::UnassignedMessages) -> UnassignedMessagesJson {
    UnassignedMessagesJson {
        notices: asides.notifications.into_iter().map(outbound_message_json).collect(),
        unanswered: asides.unanswered.into_iter().map(inbound_message_json).collect(),
        waiting: asides.waiting.into_iter().map(inbound_message_json).collect(),
        older_asides: asides.truncated,
    }
}

fn inbound_message_json(text: messages::SnapshotInbound) -> InboundMessageJson {
    InboundMessageJson {
        id: text.id.0,
        body: text.body,
        at: format_iso(text.at),
        reactions: reactions_json(text.reactions),
    }
}

fn outbound_message_json(sent: messages::SnapshotOutbound) -> OutboundMessageJson {
    OutboundMessageJson {
        id: sent.id.0,
        body: sent.body,
        segments: sent.segments,
        state: sent.delivery.into(),
        at: format_iso(sent.at),
        reactions: reactions_json(sent.reactions),
    }
}

fn reactions_json(standing: Vec<ActiveReaction>) -> Vec<ReactionJson> {
    standing.into_iter().map(|given| ReactionJson { id: given.id, emoji: given.emoji }).collect()
}

pub(super) fn turn_json(turn: snapshot::SnapshotTurn) -> TurnJson {
    let content = |content: snapshot::SnapshotBlock| BlockJson {
        block: block_key(content.block),
        text: content.text,
        complete: content.extent == BlockExtent::Whole,
    };
    TurnJson {
        id: turn.id.0,
        state: turn.state.into(),
        created_at: format_iso(turn.created_at),
        finished_at: turn.finished_at.map(format_iso),
        texts: turn.received.into_iter().map(inbound_message_json).collect(),
        answer: turn.answer,
        messages: turn.sent.into_iter().map(outbound_message_json).collect(),
        tool_calls: turn.calls.into_iter().map(tool_call_json).collect(),
        blocks: turn.blocks.into_iter().map(content).collect(),
    }
}

fn tool_call_json(call: snapshot::SnapshotCall) -> ToolCallJson {
    ToolCallJson {
        id: call.row.0,
        step: call.step,
        ord: call.ord,
        tool: call.tool,
        arguments: match call.arguments {
            ToolArguments::Object(map) => Value::Object(map),
            ToolArguments::Malformed(text) => Value::String(text),
        },
        state: call.phase.into(),
        outcome: call.outcome,
        started_at: call.started_at.map(format_iso),
        finished_at: call.finished_at.map(format_iso),
    }
}

pub(super) fn block_key(block: StreamBlock) -> BlockKey {
    BlockKey { step: block.step, attempt: block.attempt, kind: block.kind.into(), ord: block.ord }
}

pub(super) fn format_iso(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
