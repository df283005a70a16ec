//! Conversation in a list of conversations.

use super::format::UserLink;
use super::layout::DisplayTime;
use crate::store::console::conversations::{ConversationState, ConversationSummary, LastMessageText};
use crate::web::console_state::ConsoleState;

/// Conversation in a list.
pub(super) struct ConversationLine {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) user: UserLink,
    pub(super) at: DisplayTime,
    /// Last message and its author.
    pub(super) last: Option<(&'static str, String)>,
    pub(super) state: (&'static str, &'static str),
}

impl ConversationLine {
    pub(super) fn from_summary(summary: &ConversationSummary, console: &ConsoleState) -> Self {
        let last = summary.last_message.as_ref().map(|last| match last {
            LastMessageText::FromUser(text) => ("", text.clone()),
            LastMessageText::FromAssistant(text) => ("Dialarr: ", text.clone()),
        });
        Self {
            path: format!("/conversations/{}#tail", summary.conversation.id),
            name: summary.conversation.name.clone(),
            user: UserLink::from(&summary.user),
            at: console.display_time(summary.conversation.last_activity_at),
            last,
            state: match summary.state {
                ConversationState::TurnRunning => ("live", "Working"),
                ConversationState::Open => ("open", "Open"),
                ConversationState::Ended => ("ended", "Ended"),
            },
        }
    }
}
