//! Inputs of a model request: the turn, the turns before it, and the context that code adds.

use crate::conversation::model_request::EncodedMessage;
use crate::conversation::offered_tools::OfferedTools;
use crate::conversation::transcript::{ModelStep, TurnId, UserRights};
use crate::conversation::turn::{ModelCallStyle, Turn};

/// Inputs of a model request.
#[derive(Debug)]
pub struct PromptMaterial<'a> {
    pub tools: OfferedTools,
    /// Messages of the earlier turns of this conversation, oldest first.
    pub history: &'a [EncodedMessage],
    pub turn: &'a Turn,
    /// Name of the author in a room; `None` in a private chat.
    pub author: Option<&'a str>,
    /// Context block of the turn.
    pub context_block: &'a str,
    /// Text of the operator that each request contains.
    pub addition: Option<&'a str>,
    pub style: ModelCallStyle,
}

/// Context that the model gets in addition to the messages of the user.
#[derive(Debug, Clone)]
pub struct PromptContext<'a> {
    /// Current time in the zone of the household: `Fri Nov 20 2026 21:04 America/New_York`.
    pub moment: String,
    pub user_name: Option<&'a str>,
    /// Name of the room; `None` in a private chat.
    pub room: Option<&'a str>,
    pub rights: UserRights,
    /// Facts about the user, one sentence each.
    pub facts: &'a [String],
    /// Changes for the user earlier on the same day, in other conversations, newest first.
    pub done_today: &'a [String],
    /// Events that the history does not contain, one sentence each.
    pub notes: &'a [String],
    /// Earlier answers from other conversations, as dated lines.
    pub recalled: &'a [String],
}

/// Context of a turn, as stored when its first request is sent. It stays the same for the whole turn, and later turns
/// repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenContext {
    pub block: String,
    /// First of the earlier turns that the requests of the turn repeat; `None` if they repeat none.
    pub window_start: Option<TurnId>,
}

/// Finished turn, as the prompts of later turns include it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastTurn {
    pub id: TurnId,
    /// Name of the author in a room; `None` in a private chat.
    pub author: Option<String>,
    /// Context of the turn; `None` if its request went to no model, or its context was erased.
    pub context: Option<FrozenContext>,
    pub texts: Vec<String>,
    pub steps: Vec<ModelStep>,
    /// Reply of the turn, if it is not the text of the last step.
    pub answer: Option<String>,
    /// True if the reply mentions what somebody has watched.
    pub about_viewing: bool,
}
