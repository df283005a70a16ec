//! What happens in a conversation, as one ordered log tells it to whoever watches.

use std::fmt;

use jiff::Timestamp;

use super::transcript::{CallRow, EventId, OutboxId, TurnId};

/// The place of an event in the log: one row of numbers for all conversations, in the order of commits, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventSeq(pub i64);

impl fmt::Display for EventSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub seq: EventSeq,
    pub at: Timestamp,
    /// `None` for what belongs to no turn: a conversation's begin and end, a notice, a text that waits.
    pub turn: Option<TurnId>,
    pub kind: StreamEventKind,
}

/// Kind of a stream event. A changed row is identified with its state at that moment; its content is read from its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEventKind {
    Turn(StreamTurnState),
    /// The model begins a block, or goes on with one that another interrupted.
    BlockStart(StreamBlock),
    BlockDelta(StreamBlock, String),
    BlockEnd(StreamBlock),
    /// What was streamed of this attempt is void: drop its blocks. Blocks that follow under the same attempt are the
    /// response as it was recorded.
    StepAbandoned {
        step: u32,
        attempt: u32,
    },
    ToolCall(CallRow, CallPhase),
    InboundMessage(EventId, InboundStatus),
    OutboundMessage(OutboxId, OutboundStatus),
    /// By its row in `pending_actions`.
    Prompt(i64, PromptState),
    /// By its row in `reactions`.
    Reaction(i64, ReactionState),
    Conversation(ConversationChange),
}

/// Which block of which response of the event's turn. Its deltas, joined, are its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamBlock {
    pub step: u32,
    pub attempt: u32,
    pub kind: BlockKind,
    /// Which call of the response; 0 for text and thinking.
    pub ord: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockKind {
    Text,
    Thinking,
    /// The tool's name, then the arguments as the model wrote them.
    ToolCall,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallPhase {
    Created,
    /// Waits for a yes.
    Held,
    Running,
    /// It was started, and what became of it is still to be found out.
    Unknown,
    Complete,
    Error,
    Canceled,
}

/// Status of an inbound message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InboundStatus {
    /// No turn has taken it up yet.
    Waiting,
    /// It stands in the event's turn.
    Claimed,
    /// It gets no turn.
    NoTurn,
}

/// Status of an outbound message: first in the outbox, then at the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutboundStatus {
    Queued,
    Attempting,
    Unknown,
    Accepted,
    /// The carrier has it for later.
    Scheduled,
    Sending,
    Sent,
    Delivered,
    Read,
    Undelivered,
    Failed,
    Canceled,
    Suppressed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PromptState {
    /// It is on its way to the user.
    Sending,
    /// It can be answered.
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
