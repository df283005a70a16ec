//! Events of a conversation: their names, their data, and their description in the API document.

use serde::Serialize;
use utoipa::ToSchema;

use super::sse_snapshot::{BlockKey, SnapshotJson, block_key, format_iso};
use super::sse_states::{
    CallStateJson, ConversationStateJson, DirectionJson, MessageStateJson, QuestionStateJson,
    ReactionStateJson, TurnStateJson,
};
use crate::conversation::routing::route::MessageRef;
use crate::conversation::stream_events::{StreamEvent, StreamEventKind};
use crate::conversation::transcript::{EventId, OutboxId};
use crate::store::stream::details::EventDetails;

/// Name of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventName {
    Reset,
    Snapshot,
    CaughtUp,
    Conversation,
    Turn,
    BlockStart,
    BlockDelta,
    BlockEnd,
    StepAbandoned,
    ToolCall,
    Question,
    Message,
    Reaction,
}

impl EventName {
    pub(super) const ALL: [Self; 13] = [
        Self::Reset,
        Self::Snapshot,
        Self::CaughtUp,
        Self::Conversation,
        Self::Turn,
        Self::BlockStart,
        Self::BlockDelta,
        Self::BlockEnd,
        Self::StepAbandoned,
        Self::ToolCall,
        Self::Question,
        Self::Message,
        Self::Reaction,
    ];

    pub(super) fn wire_name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Snapshot => "snapshot",
            Self::CaughtUp => "caught_up",
            Self::Conversation => "conversation",
            Self::Turn => "turn",
            Self::BlockStart => "block_start",
            Self::BlockDelta => "block_delta",
            Self::BlockEnd => "block_end",
            Self::StepAbandoned => "step_abandoned",
            Self::ToolCall => "tool_call",
            Self::Question => "question",
            Self::Message => "message",
            Self::Reaction => "reaction",
        }
    }

    /// Returns the name of the schema of the event's data.
    fn schema_name(self) -> String {
        let schema = match self {
            Self::Reset | Self::CaughtUp => NoData::name(),
            Self::Snapshot => SnapshotJson::name(),
            Self::Conversation => ConversationEvent::name(),
            Self::Turn => TurnEvent::name(),
            Self::BlockStart | Self::BlockEnd => BlockEvent::name(),
            Self::BlockDelta => DeltaEvent::name(),
            Self::StepAbandoned => AbandonedEvent::name(),
            Self::ToolCall => CallEvent::name(),
            Self::Question => QuestionEvent::name(),
            Self::Message => MessageEvent::name(),
            Self::Reaction => ReactionEvent::name(),
        };
        schema.into_owned()
    }

    fn description(self) -> &'static str {
        match self {
            Self::Reset => "Your cursor is no longer available. Discard your state; a `snapshot` follows",
            Self::Snapshot => {
                "State of the conversation. Sent first if you gave no cursor, and after a `reset`"
            }
            Self::CaughtUp => "All earlier events were sent; the following events are live",
            Self::Conversation => "The conversation started, ended or was reopened",
            Self::Turn => "A turn changed its state",
            Self::BlockStart => "The model started a block, or continues one that another block interrupted",
            Self::BlockDelta => "The next chunk of a block. The chunks, joined, are its text",
            Self::BlockEnd => "The block is complete",
            Self::StepAbandoned => {
                "The attempt was abandoned: discard its blocks. Later blocks of the same attempt are the recorded response"
            }
            Self::ToolCall => "A tool call changed its state",
            Self::Question => "A confirmation prompt changed its state",
            Self::Message => {
                "A message was received or changed its state. Waiting messages belong to the open conversation, and leave it when it ends"
            }
            Self::Reaction => "A user added or removed a reaction to a message",
        }
    }
}

/// Formats the events as a Markdown table, for a description in the document.
pub(super) fn events_table() -> String {
    let row = |name: EventName| {
        let (event, schema, meaning) = (name.wire_name(), name.schema_name(), name.description());
        format!("| `{event}` | [`{schema}`](#/components/schemas/{schema}) | {meaning} |\n")
    };
    let rows: String = EventName::ALL.into_iter().map(row).collect();
    format!("| event | data | meaning |\n| --- | --- | --- |\n{rows}")
}

/// Schemas that are only referenced by the table, not by a route.
#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(
    NoData,
    SnapshotJson,
    ConversationEvent,
    TurnEvent,
    BlockEvent,
    DeltaEvent,
    AbandonedEvent,
    CallEvent,
    QuestionEvent,
    MessageEvent,
    ReactionEvent
)))]
pub(super) struct EventSchemas;

/// Empty object: `{}`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NoData {}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConversationEvent {
    state: ConversationStateJson,
    #[schema(format = DateTime)]
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TurnEvent {
    /// Id of the turn.
    turn: Option<i64>,
    state: TurnStateJson,
    #[schema(format = DateTime)]
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BlockEvent {
    turn: Option<i64>,
    #[serde(flatten)]
    block: BlockKey,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeltaEvent {
    turn: Option<i64>,
    #[serde(flatten)]
    block: BlockKey,
    text: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AbandonedEvent {
    turn: Option<i64>,
    step: u32,
    attempt: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallEvent {
    turn: Option<i64>,
    id: i64,
    state: CallStateJson,
    #[schema(format = DateTime)]
    at: String,
    /// Name of the tool when the call is `created`; the tool's summary for users when it is `complete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QuestionEvent {
    turn: Option<i64>,
    id: i64,
    state: QuestionStateJson,
    #[schema(format = DateTime)]
    at: String,
    /// Text of the prompt, in its first event and unless erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessageEvent {
    /// Null for a notification, which has no turn, and for a message that waits for a turn or gets none.
    turn: Option<i64>,
    /// Message id. Each direction has its own numbers.
    id: i64,
    direction: DirectionJson,
    state: MessageStateJson,
    #[schema(format = DateTime)]
    at: String,
    /// Text of an inbound message, and of an outbound message in its first event; absent if erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReactionEvent {
    turn: Option<i64>,
    id: i64,
    state: ReactionStateJson,
    #[schema(format = DateTime)]
    at: String,
    /// Message of the reaction, in this direction.
    message: Option<i64>,
    direction: Option<DirectionJson>,
    /// Emoji, in its first event.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Data of one event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum EventPayload {
    Conversation(ConversationEvent),
    Turn(TurnEvent),
    Block(BlockEvent),
    Delta(DeltaEvent),
    Abandoned(AbandonedEvent),
    Call(CallEvent),
    Question(QuestionEvent),
    Message(MessageEvent),
    Reaction(ReactionEvent),
}

/// Returns the name of an event and its data.
pub(super) fn event_payload(event: &StreamEvent, details: EventDetails) -> (EventName, EventPayload) {
    let (turn, at, text) = (event.turn.map(|turn| turn.0), format_iso(event.at), details.text);
    match &event.kind {
        StreamEventKind::Turn(state) => {
            (EventName::Turn, EventPayload::Turn(TurnEvent { turn, state: (*state).into(), at }))
        }
        StreamEventKind::BlockStart(block) => {
            (EventName::BlockStart, EventPayload::Block(BlockEvent { turn, block: block_key(*block) }))
        }
        StreamEventKind::BlockDelta(block, text) => (
            EventName::BlockDelta,
            EventPayload::Delta(DeltaEvent { turn, block: block_key(*block), text: text.clone() }),
        ),
        StreamEventKind::BlockEnd(block) => {
            (EventName::BlockEnd, EventPayload::Block(BlockEvent { turn, block: block_key(*block) }))
        }
        StreamEventKind::StepAbandoned { step, attempt } => {
            let data = AbandonedEvent { turn, step: *step, attempt: *attempt };
            (EventName::StepAbandoned, EventPayload::Abandoned(data))
        }
        StreamEventKind::ToolCall(call, phase) => {
            let data = CallEvent { turn, id: call.0, state: (*phase).into(), at, text };
            (EventName::ToolCall, EventPayload::Call(data))
        }
        StreamEventKind::InboundMessage(id, arrival) => {
            let (direction, state) = (DirectionJson::In, (*arrival).into());
            (
                EventName::Message,
                EventPayload::Message(MessageEvent { turn, id: id.0, direction, state, at, text }),
            )
        }
        StreamEventKind::OutboundMessage(id, delivery) => {
            let (direction, state) = (DirectionJson::Out, (*delivery).into());
            (
                EventName::Message,
                EventPayload::Message(MessageEvent { turn, id: id.0, direction, state, at, text }),
            )
        }
        StreamEventKind::Prompt(id, state) => {
            let data = QuestionEvent { turn, id: *id, state: (*state).into(), at, text };
            (EventName::Question, EventPayload::Question(data))
        }
        StreamEventKind::Reaction(id, state) => {
            let (message, direction) = match details.target {
                Some(MessageRef::Inbound(EventId(id))) => (Some(id), Some(DirectionJson::In)),
                Some(MessageRef::Outbound(OutboxId(id))) => (Some(id), Some(DirectionJson::Out)),
                None => (None, None),
            };
            let data = ReactionEvent { turn, id: *id, state: (*state).into(), at, message, direction, text };
            (EventName::Reaction, EventPayload::Reaction(data))
        }
        StreamEventKind::Conversation(change) => {
            let data = ConversationEvent { state: (*change).into(), at };
            (EventName::Conversation, EventPayload::Conversation(data))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::delivery_status::DeliveryStatus;
    use crate::conversation::stream_events::{
        BlockKind, CallPhase, ConversationChange, EventSeq, InboundStatus, PromptState, ReactionState,
        StreamBlock, StreamTurnState,
    };
    use crate::conversation::transcript::CallRow;

    #[test]
    fn table_has_every_event_name() {
        let block = StreamBlock { step: 0, attempt: 1, kind: BlockKind::Text, ord: 0 };
        let all = [
            StreamEventKind::Turn(StreamTurnState::Created),
            StreamEventKind::BlockStart(block),
            StreamEventKind::BlockDelta(block, "Hi".to_owned()),
            StreamEventKind::BlockEnd(block),
            StreamEventKind::StepAbandoned { step: 0, attempt: 1 },
            StreamEventKind::ToolCall(CallRow(1), CallPhase::Created),
            StreamEventKind::InboundMessage(EventId(1), InboundStatus::Waiting),
            StreamEventKind::OutboundMessage(OutboxId(1), DeliveryStatus::Queued),
            StreamEventKind::Prompt(1, PromptState::Sending),
            StreamEventKind::Reaction(1, ReactionState::Given),
            StreamEventKind::Conversation(ConversationChange::Begun),
        ];
        let name = |kind: StreamEventKind| {
            let event = StreamEvent { seq: EventSeq(1), at: jiff::Timestamp::UNIX_EPOCH, turn: None, kind };
            event_payload(&event, EventDetails::default()).0
        };
        let names =
            all.map(name).into_iter().chain([EventName::Reset, EventName::Snapshot, EventName::CaughtUp]);
        let missing: Vec<EventName> =
            names.filter(|name| !events_table().contains(&format!("`{}`", name.wire_name()))).collect();
        assert_eq!(missing, []);
    }
}
