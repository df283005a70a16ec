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

    /// Returns the schema of its data.
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
            Self::Reset => {
                "Your place is not known any more. Forget all that you were told; a `snapshot` follows"
            }
            Self::Snapshot => {
                "How everything stands. Comes first where you named no place, and after a `reset`"
            }
            Self::CaughtUp => "What happened before is told; what follows happens now",
            Self::Conversation => "The conversation has begun, ended or was opened again",
            Self::Turn => "A turn has another state",
            Self::BlockStart => "The model begins a block, or goes on with one that another interrupted",
            Self::BlockDelta => "The next piece of a block. Its pieces, joined, are its text",
            Self::BlockEnd => "The block is whole",
            Self::StepAbandoned => {
                "The attempt is void: drop its blocks. Those that follow under it are the response as it was recorded"
            }
            Self::ToolCall => "A tool call has another state",
            Self::Question => "A question before a deletion has another state",
            Self::Message => {
                "A text came in, or one has come further. Those that wait belong to the conversation that is open: with its end they are gone from it"
            }
            Self::Reaction => "Somebody reacted to a text, or took that back",
        }
    }
}

/// Formats the events as a table, in the language of the document's descriptions.
pub(super) fn events_table() -> String {
    let line = |name: EventName| {
        let (word, schema, meaning) = (name.wire_name(), name.schema_name(), name.description());
        format!("| `{word}` | [`{schema}`](#/components/schemas/{schema}) | {meaning} |\n")
    };
    let lines: String = EventName::ALL.into_iter().map(line).collect();
    format!("| event | data | meaning |\n| --- | --- | --- |\n{lines}")
}

/// Schemas that the table names, for the document: no route responds with them.
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
                Some(MessageRef::Inbound(EventId(text))) => (Some(text), Some(DirectionJson::In)),
                Some(MessageRef::Outbound(OutboxId(text))) => (Some(text), Some(DirectionJson::Out)),
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
        let name = |what: StreamEventKind| {
            let event =
                StreamEvent { seq: EventSeq(1), at: jiff::Timestamp::UNIX_EPOCH, turn: None, kind: what };
            event_payload(&event, EventDetails::default()).0
        };
        let sent =
            all.map(name).into_iter().chain([EventName::Reset, EventName::Snapshot, EventName::CaughtUp]);
        let left_out: Vec<EventName> =
            sent.filter(|name| !events_table().contains(&format!("`{}`", name.wire_name()))).collect();
        assert_eq!(left_out, []);
    }
}
