//! States of a conversation in the API's format.

use serde::Serialize;
use utoipa::ToSchema;

use crate::conversation::stream;

/// `CREATED`, `IN_PROGRESS` and `WAITING_FOR_TOOLS` continue. `ERROR`: an attempt failed, and another follows.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum TurnWord {
    Created,
    InProgress,
    WaitingForTools,
    Failed,
    Error,
    Completed,
    Canceled,
}

/// `held` awaits confirmation; `unknown`: the outcome is still to be determined.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallWord {
    Created,
    Held,
    Running,
    Unknown,
    Complete,
    Error,
    Canceled,
}

/// Progress of a message. Inbound: `waiting` is one that no turn has claimed yet, `received` belongs to its turn, and
/// `skipped` gets none. Outbound: `queued` to `accepted` are our own states, and later ones come from the carrier;
/// `suppressed` is never sent.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageWord {
    Waiting,
    Received,
    Skipped,
    Queued,
    Attempting,
    Unknown,
    Accepted,
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

/// `asked` is being sent to the user; `open` can be answered.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum QuestionWord {
    Asked,
    Open,
    Closed,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReactionWord {
    Given,
    Removed,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConversationWord {
    Begun,
    Ended,
    Reopened,
}

/// `in`: a message from the user. `out`: one to the user.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    In,
    Out,
}

/// Kind of a block. The text of a `tool_call` is the tool's name and, after it, the arguments: piece by piece as the
/// model writes them, in a snapshot without unnecessary whitespace.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BlockWord {
    Text,
    Thinking,
    ToolCall,
}

impl From<stream::TurnState> for TurnWord {
    fn from(state: stream::TurnState) -> Self {
        match state {
            stream::TurnState::Created => Self::Created,
            stream::TurnState::InProgress => Self::InProgress,
            stream::TurnState::WaitingForTools => Self::WaitingForTools,
            stream::TurnState::Failed => Self::Failed,
            stream::TurnState::Error => Self::Error,
            stream::TurnState::Completed => Self::Completed,
            stream::TurnState::Canceled => Self::Canceled,
        }
    }
}

impl From<stream::CallPhase> for CallWord {
    fn from(phase: stream::CallPhase) -> Self {
        match phase {
            stream::CallPhase::Created => Self::Created,
            stream::CallPhase::Held => Self::Held,
            stream::CallPhase::Running => Self::Running,
            stream::CallPhase::Unknown => Self::Unknown,
            stream::CallPhase::Complete => Self::Complete,
            stream::CallPhase::Error => Self::Error,
            stream::CallPhase::Canceled => Self::Canceled,
        }
    }
}

impl From<stream::Arrival> for MessageWord {
    fn from(state: stream::Arrival) -> Self {
        match state {
            stream::Arrival::Waiting => Self::Waiting,
            stream::Arrival::Taken => Self::Received,
            stream::Arrival::PutAside => Self::Skipped,
        }
    }
}

impl From<stream::Delivery> for MessageWord {
    fn from(delivery: stream::Delivery) -> Self {
        match delivery {
            stream::Delivery::Queued => Self::Queued,
            stream::Delivery::Attempting => Self::Attempting,
            stream::Delivery::Unknown => Self::Unknown,
            stream::Delivery::Accepted => Self::Accepted,
            stream::Delivery::Scheduled => Self::Scheduled,
            stream::Delivery::Sending => Self::Sending,
            stream::Delivery::Sent => Self::Sent,
            stream::Delivery::Delivered => Self::Delivered,
            stream::Delivery::Read => Self::Read,
            stream::Delivery::Undelivered => Self::Undelivered,
            stream::Delivery::Failed => Self::Failed,
            stream::Delivery::Canceled => Self::Canceled,
            stream::Delivery::Suppressed => Self::Suppressed,
        }
    }
}

impl From<stream::QuestionState> for QuestionWord {
    fn from(state: stream::QuestionState) -> Self {
        match state {
            stream::QuestionState::Asked => Self::Asked,
            stream::QuestionState::Open => Self::Open,
            stream::QuestionState::Closed => Self::Closed,
        }
    }
}

impl From<stream::ReactionState> for ReactionWord {
    fn from(state: stream::ReactionState) -> Self {
        match state {
            stream::ReactionState::Given => Self::Given,
            stream::ReactionState::Removed => Self::Removed,
        }
    }
}

impl From<stream::Change> for ConversationWord {
    fn from(change: stream::Change) -> Self {
        match change {
            stream::Change::Begun => Self::Begun,
            stream::Change::Ended => Self::Ended,
            stream::Change::Reopened => Self::Reopened,
        }
    }
}

impl From<stream::Part> for BlockWord {
    fn from(part: stream::Part) -> Self {
        match part {
            stream::Part::Text => Self::Text,
            stream::Part::Thinking => Self::Thinking,
            stream::Part::ToolCall => Self::ToolCall,
        }
    }
}
