//! What happens in a conversation, as one ordered log tells it to whoever watches.

use std::fmt;

use jiff::Timestamp;

use super::transcript::{CallRow, EventId, OutboxId, TurnId};

/// The place of an event in the log: one row of numbers for all conversations, in the order of commits, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(pub i64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub seq: Seq,
    pub at: Timestamp,
    /// `None` for what belongs to no turn: a conversation's begin and end, a notice, a text that waits.
    pub turn: Option<TurnId>,
    pub what: What,
}

/// What an event tells. A row that changed is named with its state at that moment; its content is read from its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Turn(TurnState),
    /// The model begins a block, or goes on with one that another interrupted.
    BlockStart(Block),
    BlockDelta(Block, String),
    BlockEnd(Block),
    /// What was streamed of this attempt is void: drop its blocks. Blocks that follow under the same attempt are the
    /// response as it was recorded.
    StepAbandoned {
        step: u32,
        attempt: u32,
    },
    ToolCall(CallRow, CallPhase),
    TextIn(EventId, Arrival),
    TextOut(OutboxId, Delivery),
    /// By its row in `pending_actions`.
    Question(i64, QuestionState),
    /// By its row in `reactions`.
    Reaction(i64, ReactionState),
    Conversation(Change),
}

/// Which block of which response of the event's turn. Its deltas, joined, are its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    pub step: u32,
    pub attempt: u32,
    pub part: Part,
    /// Which call of the response; 0 for text and thinking.
    pub ord: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Text,
    Thinking,
    /// The tool's name, then the arguments as the model wrote them.
    ToolCall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnState {
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

/// What became of a text of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// No turn has taken it up yet.
    Waiting,
    /// It stands in the event's turn.
    Taken,
    /// It gets no turn.
    PutAside,
}

/// How far a text of ours has come: first with us, then with the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
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
pub enum QuestionState {
    /// It is on its way to the user.
    Asked,
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
pub enum Change {
    Begun,
    Ended,
    Reopened,
}
