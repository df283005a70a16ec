//! JSON names of the states of conversations, turns, tool calls and messages.

use serde::Serialize;
use utoipa::ToSchema;

use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::stream_events::{
    BlockKind, CallPhase, ConversationChange, InboundStatus, PromptState, ReactionState, StreamTurnState,
};

/// State of a turn. After `CREATED`, `IN_PROGRESS` and `WAITING_FOR_TOOLS` the turn continues. `ERROR`: an attempt
/// failed, and another follows.
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

/// State of a tool call. `held`: it awaits confirmation; `unknown`: its outcome is still to be determined.
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

/// State of a message. Inbound: `waiting` for a turn, `received` by its turn, or `skipped` without a turn. Outbound:
/// `queued` to `accepted` are states of Dialarr, and later ones come from the carrier; `suppressed` is never sent.
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

/// State of a confirmation prompt. `asked`: it is being sent to the user; `open`: it can be answered.
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

/// Kind of a block. The text of a `tool_call` is the tool's name, followed by the arguments. Live events have them as
/// the model writes them; a snapshot has them without unnecessary whitespace.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = BlockWord)]
pub(super) enum BlockKindJson {
    Text,
    Thinking,
    ToolCall,
}

/// Implements `From` for each state, variant by variant.
macro_rules! convert_states {
    ($($state:path => $json:ident { $($from:ident => $to:ident),+ $(,)? })+) => {$(
        impl From<$state> for $json {
            fn from(state: $state) -> Self {
                match state { $(<$state>::$from => Self::$to),+ }
            }
        }
    )+};
}

convert_states! {
    StreamTurnState => TurnStateJson {
        Created => Created, InProgress => InProgress, WaitingForTools => WaitingForTools, Failed => Failed,
        Error => Error, Completed => Completed, Canceled => Canceled,
    }
    CallPhase => CallStateJson {
        Created => Created, Held => Held, Running => Running, Unknown => Unknown, Complete => Complete,
        Error => Error, Canceled => Canceled,
    }
    InboundStatus => MessageStateJson { Waiting => Waiting, Claimed => Received, NoTurn => Skipped }
    DeliveryStatus => MessageStateJson {
        Queued => Queued, Delayed => Queued, Attempting => Attempting, Unknown => Unknown, Shown => Accepted,
        Accepted => Accepted, Scheduled => Scheduled, QueuedByCarrier => Queued, Sending => Sending, Sent => Sent,
        Delivered => Delivered, Read => Read, Undelivered => Undelivered, Failed => Failed, Canceled => Canceled,
        Suppressed => Suppressed,
    }
    PromptState => QuestionStateJson { Sending => Asked, Open => Open, Closed => Closed }
    ReactionState => ReactionStateJson { Given => Given, Removed => Removed }
    ConversationChange => ConversationStateJson { Begun => Begun, Ended => Ended, Reopened => Reopened }
    BlockKind => BlockKindJson { Text => Text, Thinking => Thinking, ToolCall => ToolCall }
}
