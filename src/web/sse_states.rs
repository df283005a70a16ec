//! States of a conversation in the API's format.

use serde::Serialize;
use utoipa::ToSchema;

use crate::conversation::stream_events;

/// `CREATED`, `IN_PROGRESS` and `WAITING_FOR_TOOLS` continue. `ERROR`: an attempt failed, and another follows.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = TurnWord)]
pub(super) enum TurnStateJson {
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
#[schema(as = CallWord)]
pub(super) enum CallStateJson {
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
#[schema(as = MessageWord)]
pub(super) enum MessageStateJson {
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
#[schema(as = QuestionWord)]
pub(super) enum QuestionStateJson {
    Asked,
    Open,
    Closed,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReactionWord)]
pub(super) enum ReactionStateJson {
    Given,
    Removed,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConversationWord)]
pub(super) enum ConversationStateJson {
    Begun,
    Ended,
    Reopened,
}

/// `in`: a message from the user. `out`: one to the user.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Direction)]
pub(super) enum DirectionJson {
    In,
    Out,
}

/// Kind of a block. The text of a `tool_call` is the tool's name and, after it, the arguments: piece by piece as the
/// model writes them, in a snapshot without unnecessary whitespace.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = BlockWord)]
pub(super) enum BlockKindJson {
    Text,
    Thinking,
    ToolCall,
}

impl From<stream_events::StreamTurnState> for TurnStateJson {
    fn from(state: stream_events::StreamTurnState) -> Self {
        match state {
            stream_events::StreamTurnState::Created => Self::Created,
            stream_events::StreamTurnState::InProgress => Self::InProgress,
            stream_events::StreamTurnState::WaitingForTools => Self::WaitingForTools,
            stream_events::StreamTurnState::Failed => Self::Failed,
            stream_events::StreamTurnState::Error => Self::Error,
            stream_events::StreamTurnState::Completed => Self::Completed,
            stream_events::StreamTurnState::Canceled => Self::Canceled,
        }
    }
}

impl From<stream_events::CallPhase> for CallStateJson {
    fn from(phase: stream_events::CallPhase) -> Self {
        match phase {
            stream_events::CallPhase::Created => Self::Created,
            stream_events::CallPhase::Held => Self::Held,
            stream_events::CallPhase::Running => Self::Running,
            stream_events::CallPhase::Unknown => Self::Unknown,
            stream_events::CallPhase::Complete => Self::Complete,
            stream_events::CallPhase::Error => Self::Error,
            stream_events::CallPhase::Canceled => Self::Canceled,
        }
    }
}

impl From<stream_events::InboundStatus> for MessageStateJson {
    fn from(state: stream_events::InboundStatus) -> Self {
        match state {
            stream_events::InboundStatus::Waiting => Self::Waiting,
            stream_events::InboundStatus::Claimed => Self::Received,
            stream_events::InboundStatus::NoTurn => Self::Skipped,
        }
    }
}

impl From<stream_events::OutboundStatus> for MessageStateJson {
    fn from(delivery: stream_events::OutboundStatus) -> Self {
        match delivery {
            stream_events::OutboundStatus::Queued => Self::Queued,
            stream_events::OutboundStatus::Attempting => Self::Attempting,
            stream_events::OutboundStatus::Unknown => Self::Unknown,
            stream_events::OutboundStatus::Accepted => Self::Accepted,
            stream_events::OutboundStatus::Scheduled => Self::Scheduled,
            stream_events::OutboundStatus::Sending => Self::Sending,
            stream_events::OutboundStatus::Sent => Self::Sent,
            stream_events::OutboundStatus::Delivered => Self::Delivered,
            stream_events::OutboundStatus::Read => Self::Read,
            stream_events::OutboundStatus::Undelivered => Self::Undelivered,
            stream_events::OutboundStatus::Failed => Self::Failed,
            stream_events::OutboundStatus::Canceled => Self::Canceled,
            stream_events::OutboundStatus::Suppressed => Self::Suppressed,
        }
    }
}

impl From<stream_events::PromptState> for QuestionStateJson {
    fn from(state: stream_events::PromptState) -> Self {
        match state {
            stream_events::PromptState::Sending => Self::Asked,
            stream_events::PromptState::Open => Self::Open,
            stream_events::PromptState::Closed => Self::Closed,
        }
    }
}

impl From<stream_events::ReactionState> for ReactionStateJson {
    fn from(state: stream_events::ReactionState) -> Self {
        match state {
            stream_events::ReactionState::Given => Self::Given,
            stream_events::ReactionState::Removed => Self::Removed,
        }
    }
}

impl From<stream_events::ConversationChange> for ConversationStateJson {
    fn from(change: stream_events::ConversationChange) -> Self {
        match change {
            stream_events::ConversationChange::Begun => Self::Begun,
            stream_events::ConversationChange::Ended => Self::Ended,
            stream_events::ConversationChange::Reopened => Self::Reopened,
        }
    }
}

impl From<stream_events::BlockKind> for BlockKindJson {
    fn from(part: stream_events::BlockKind) -> Self {
        match part {
            stream_events::BlockKind::Text => Self::Text,
            stream_events::BlockKind::Thinking => Self::Thinking,
            stream_events::BlockKind::ToolCall => Self::ToolCall,
        }
    }
}
