//! Events of a conversation: their names, their data, and their description in the API document.

use serde::Serialize;
use utoipa::ToSchema;

use super::sse_wire::{BlockKey, Snapshot, iso, key};
use super::sse_words::{
    CallWord, ConversationWord, Direction, MessageWord, QuestionWord, ReactionWord, TurnWord,
};
use crate::conversation::route::Said;
use crate::conversation::stream::{Event, What};
use crate::conversation::transcript::{EventId, OutboxId};
use crate::store::stream::details::Details;

/// Name of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
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

impl Name {
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

    pub(super) fn word(self) -> &'static str {
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
    fn schema(self) -> String {
        let schema = match self {
            Self::Reset | Self::CaughtUp => NoData::name(),
            Self::Snapshot => Snapshot::name(),
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

    fn meaning(self) -> &'static str {
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
pub(super) fn table() -> String {
    let line = |name: Name| {
        let (word, schema, meaning) = (name.word(), name.schema(), name.meaning());
        format!("| `{word}` | [`{schema}`](#/components/schemas/{schema}) | {meaning} |\n")
    };
    let lines: String = Name::ALL.into_iter().map(line).collect();
    format!("| event | data | meaning |\n| --- | --- | --- |\n{lines}")
}

/// Schemas that the table names, for the document: no route responds with them.
#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(
    NoData,
    Snapshot,
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
pub(super) struct Schemas;

/// Empty object: `{}`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NoData {}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConversationEvent {
    state: ConversationWord,
    #[schema(format = DateTime)]
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TurnEvent {
    /// Id of the turn.
    turn: Option<i64>,
    state: TurnWord,
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
    state: CallWord,
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
    state: QuestionWord,
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
    direction: Direction,
    state: MessageWord,
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
    state: ReactionWord,
    #[schema(format = DateTime)]
    at: String,
    /// Message of the reaction, in this direction.
    message: Option<i64>,
    direction: Option<Direction>,
    /// Emoji, in its first event.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Data of one event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Told {
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
pub(super) fn told(event: &Event, details: Details) -> (Name, Told) {
    let (turn, at, text) = (event.turn.map(|turn| turn.0), iso(event.at), details.words);
    match &event.what {
        What::Turn(state) => (Name::Turn, Told::Turn(TurnEvent { turn, state: (*state).into(), at })),
        What::BlockStart(block) => (Name::BlockStart, Told::Block(BlockEvent { turn, block: key(*block) })),
        What::BlockDelta(block, text) => {
            (Name::BlockDelta, Told::Delta(DeltaEvent { turn, block: key(*block), text: text.clone() }))
        }
        What::BlockEnd(block) => (Name::BlockEnd, Told::Block(BlockEvent { turn, block: key(*block) })),
        What::StepAbandoned { step, attempt } => {
            let data = AbandonedEvent { turn, step: *step, attempt: *attempt };
            (Name::StepAbandoned, Told::Abandoned(data))
        }
        What::ToolCall(call, phase) => {
            let data = CallEvent { turn, id: call.0, state: (*phase).into(), at, text };
            (Name::ToolCall, Told::Call(data))
        }
        What::TextIn(id, arrival) => {
            let (direction, state) = (Direction::In, (*arrival).into());
            (Name::Message, Told::Message(MessageEvent { turn, id: id.0, direction, state, at, text }))
        }
        What::TextOut(id, delivery) => {
            let (direction, state) = (Direction::Out, (*delivery).into());
            (Name::Message, Told::Message(MessageEvent { turn, id: id.0, direction, state, at, text }))
        }
        What::Question(id, state) => {
            let data = QuestionEvent { turn, id: *id, state: (*state).into(), at, text };
            (Name::Question, Told::Question(data))
        }
        What::Reaction(id, state) => {
            let (message, direction) = match details.on {
                Some(Said::ByThem(EventId(text))) => (Some(text), Some(Direction::In)),
                Some(Said::ByUs(OutboxId(text))) => (Some(text), Some(Direction::Out)),
                None => (None, None),
            };
            let data = ReactionEvent { turn, id: *id, state: (*state).into(), at, message, direction, text };
            (Name::Reaction, Told::Reaction(data))
        }
        What::Conversation(change) => {
            let data = ConversationEvent { state: (*change).into(), at };
            (Name::Conversation, Told::Conversation(data))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::stream::{
        Arrival, Block, CallPhase, Change, Delivery, Part, QuestionState, ReactionState, Seq, TurnState,
    };
    use crate::conversation::transcript::CallRow;

    #[test]
    fn the_table_has_every_event_that_can_be_sent() {
        let block = Block { step: 0, attempt: 1, part: Part::Text, ord: 0 };
        let all = [
            What::Turn(TurnState::Created),
            What::BlockStart(block),
            What::BlockDelta(block, "Hi".to_owned()),
            What::BlockEnd(block),
            What::StepAbandoned { step: 0, attempt: 1 },
            What::ToolCall(CallRow(1), CallPhase::Created),
            What::TextIn(EventId(1), Arrival::Waiting),
            What::TextOut(OutboxId(1), Delivery::Queued),
            What::Question(1, QuestionState::Asked),
            What::Reaction(1, ReactionState::Given),
            What::Conversation(Change::Begun),
        ];
        let name = |what: What| {
            let event = Event { seq: Seq(1), at: jiff::Timestamp::UNIX_EPOCH, turn: None, what };
            told(&event, Details::default()).0
        };
        let sent = all.map(name).into_iter().chain([Name::Reset, Name::Snapshot, Name::CaughtUp]);
        let left_out: Vec<Name> =
            sent.filter(|name| !table().contains(&format!("`{}`", name.word()))).collect();
        assert_eq!(left_out, []);
    }
}
