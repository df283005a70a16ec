//! State of a conversation, as JSON.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::sse_states::{BlockKindJson, CallStateJson, MessageStateJson, TurnStateJson};
use crate::conversation::routing::route::MessageRef;
use crate::conversation::stream_events::{EventSeq, StreamBlock};
use crate::conversation::transcript::ToolArguments;
use crate::store::QueryResult;
use crate::store::conversation::reactions::{ActiveReaction, Reactions};
use crate::store::conversation::record::conversations::PendingActionRecord;
use crate::store::conversation::record::messages::{InboundRecord, OutboundRecord, UnassignedMessages};
use crate::store::conversation::record::pages::{ConversationPage, PageContent};
use crate::store::conversation::record::steps::ToolCallRecord;
use crate::store::conversation::record::turns::{TurnBlock, TurnRecord};

/// `snapshot`: state of the conversation after the event `seq`. It replaces all earlier events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Snapshot)]
pub(super) struct SnapshotJson {
    seq: i64,
    conversation: SnapshotConversation,
    /// The newest 25 turns, oldest first. A running turn has its blocks so far.
    turns: Vec<TurnJson>,
    /// True if there are turns before these.
    older_turns: bool,
    #[serde(flatten)]
    unassigned: UnassignedMessagesJson,
    /// Pending action that awaits confirmation.
    question: Option<QuestionJson>,
}

/// Messages of a conversation without a turn, oldest first; of each kind the newest 50.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Asides)]
pub(super) struct UnassignedMessagesJson {
    /// Outbound messages without a turn, such as that a title is ready, in the time range of these turns (up to the
    /// next newer turn).
    notices: Vec<OutboundMessageJson>,
    /// Inbound messages that got no turn, such as thanks, in the same range.
    unanswered: Vec<InboundMessageJson>,
    /// Inbound messages that no turn has claimed yet.
    waiting: Vec<InboundMessageJson>,
    /// True if older messages of a kind were left out.
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
    /// Inbound messages.
    texts: Vec<InboundMessageJson>,
    /// Complete reply; the messages contain its first page.
    answer: Option<String>,
    /// Outbound messages.
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
    /// True if no more chunks will follow.
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

/// Key of a block in its turn: model step, attempt and position.
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
    pub(super) fn from_page(seq: EventSeq, page: ConversationPage) -> QueryResult<Self> {
        let ConversationPage { conversation, content, truncated, pending_action } = page;
        let PageContent { turns, unassigned, reactions } = content;
        let turns = turns.into_iter().map(|turn| turn_json(turn, &reactions));
        Ok(Self {
            seq: seq.0,
            conversation: SnapshotConversation {
                id: conversation.id.0,
                name: conversation.name,
                started_at: format_iso(conversation.started_at),
                ended_at: conversation.ended_at.map(format_iso),
            },
            turns: turns.collect::<QueryResult<_>>()?,
            older_turns: truncated,
            unassigned: unassigned_messages_json(unassigned, &reactions),
            question: pending_action.map(question_json),
        })
    }
}

pub(super) fn question_json(action: PendingActionRecord) -> QuestionJson {
    QuestionJson {
        id: action.id,
        tool_call: action.call.0,
        text: action.prompt,
        expires_at: action.expires_at.map(format_iso),
    }
}

pub(super) fn unassigned_messages_json(
    messages: UnassignedMessages,
    reactions: &Reactions,
) -> UnassignedMessagesJson {
    UnassignedMessagesJson {
        notices: outbound_messages_json(messages.notifications, reactions),
        unanswered: inbound_messages_json(messages.unanswered, reactions),
        waiting: inbound_messages_json(messages.waiting, reactions),
        older_asides: messages.truncated,
    }
}

fn inbound_messages_json(messages: Vec<InboundRecord>, reactions: &Reactions) -> Vec<InboundMessageJson> {
    let json = |message: InboundRecord| InboundMessageJson {
        id: message.id.0,
        body: message.body,
        at: format_iso(message.received_at),
        reactions: reactions_json(reactions.get(MessageRef::Inbound(message.id))),
    };
    messages.into_iter().map(json).collect()
}

fn outbound_messages_json(messages: Vec<OutboundRecord>, reactions: &Reactions) -> Vec<OutboundMessageJson> {
    let json = |message: OutboundRecord| OutboundMessageJson {
        id: message.id.0,
        state: message.status().into(),
        body: message.body,
        segments: message.segments,
        at: format_iso(message.written_at),
        reactions: reactions_json(reactions.get(MessageRef::Outbound(message.id))),
    };
    messages.into_iter().map(json).collect()
}

fn reactions_json(active: &[ActiveReaction]) -> Vec<ReactionJson> {
    active.iter().map(|reaction| ReactionJson { id: reaction.id, emoji: reaction.emoji.clone() }).collect()
}

pub(super) fn turn_json(turn: TurnRecord, reactions: &Reactions) -> QueryResult<TurnJson> {
    let block = |block: TurnBlock| BlockJson {
        block: block_key(block.block),
        text: block.text,
        complete: block.is_complete,
    };
    let blocks = turn.blocks()?.into_iter().map(block).collect();
    Ok(TurnJson {
        id: turn.row.id.0,
        state: turn.row.state.into(),
        created_at: format_iso(turn.row.started_at),
        finished_at: turn.row.finished_at.map(format_iso),
        tool_calls: turn.calls().map(tool_call_json).collect::<QueryResult<_>>()?,
        texts: inbound_messages_json(turn.received, reactions),
        answer: turn.row.answer,
        messages: outbound_messages_json(turn.sent, reactions),
        blocks,
    })
}

fn tool_call_json(call: &ToolCallRecord) -> QueryResult<ToolCallJson> {
    Ok(ToolCallJson {
        id: call.id.0,
        step: call.step,
        ord: call.ord,
        tool: call.tool.clone(),
        arguments: match call.arguments()? {
            ToolArguments::Object(map) => Value::Object(map),
            ToolArguments::Malformed(text) => Value::String(text),
        },
        state: call.state.into(),
        outcome: call.result()?.map(|result| result.for_user).filter(|text| !text.is_empty()),
        started_at: call.started_at.map(format_iso),
        finished_at: call.finished_at.map(format_iso),
    })
}

pub(super) fn block_key(block: StreamBlock) -> BlockKey {
    BlockKey { step: block.step, attempt: block.attempt, kind: block.kind.into(), ord: block.ord }
}

pub(super) fn format_iso(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
