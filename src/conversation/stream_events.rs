//! Events of conversations in the ordered log that subscribers read.

use std::fmt;

use jiff::Timestamp;

use super::delivery_status::DeliveryStatus;
use super::transcript::{CallRow, EventId, OutboxId, TurnId};

/// Sequence number of an event in the log. All conversations share one sequence, in commit order; numbers are never
/// reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventSeq(pub i64);

impl fmt::Display for EventSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Event in the log of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub seq: EventSeq,
    pub at: Timestamp,
    /// Turn of the event; `None` for events outside of turns: the start and end of a conversation, a notification, a
    /// waiting message.
    pub turn: Option<TurnId>,
    pub kind: StreamEventKind,
}

/// Kind of a stream event. An event about a row contains its id and its state at that time; subscribers read the
/// content from the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEventKind {
    Turn(StreamTurnState),
    /// The model starts a block, or continues one that another block interrupted.
    BlockStart(StreamBlock),
    BlockDelta(StreamBlock, String),
    BlockEnd(StreamBlock),
    /// The streamed output of this attempt is invalid, and subscribers drop its blocks. Later blocks of the same
    /// attempt contain the response as it was stored.
    StepAbandoned {
        step: u32,
        attempt: u32,
    },
    ToolCall(CallRow, CallPhase),
    InboundMessage(EventId, InboundStatus),
    OutboundMessage(OutboxId, DeliveryStatus),
    /// Confirmation prompt, by its row in `pending_actions`.
    Prompt(i64, PromptState),
    /// Reaction, by its row in `reactions`.
    Reaction(i64, ReactionState),
    Conversation(ConversationChange),
}

/// Block of a model response in the event's turn. Its concatenated deltas are its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamBlock {
    pub step: u32,
    pub attempt: u32,
    pub kind: BlockKind,
    /// Index of the tool call in the response; 0 for text and thinking.
    pub ord: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockKind {
    Text,
    Thinking,
    /// Name of the tool, then the arguments as the model wrote them.
    ToolCall,
}

/// State of a turn, as its events report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamTurnState {
    Created,
    InProgress,
    WaitingForTools,
    Failed,
    Error,
    Completed,
    Canceled,
}

/// State of a tool call, without its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallPhase {
    Created,
    /// The call awaits confirmation.
    Held,
    Running,
    /// The call was started, and its outcome has not been determined yet.
    Unknown,
    Complete,
    Error,
    Canceled,
}

/// Status of an inbound message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InboundStatus {
    /// No turn has claimed the message yet.
    Waiting,
    /// The message belongs to the event's turn.
    Claimed,
    /// The message gets no turn.
    NoTurn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PromptState {
    /// The prompt is being sent to the user.
    Sending,
    /// The prompt can be answered.
    Open,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReactionState {
    Given,
    Removed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConversationChange {
    Begun,
    Ended,
    Reopened,
}
