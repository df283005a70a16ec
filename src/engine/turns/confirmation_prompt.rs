//! Confirmation prompt of a deletion.

use super::turn_context::TurnContext;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::pending_action::NewPendingAction;

/// Maximum length in bytes of a deletion report that precedes a confirmation prompt.
const MAX_BEFORE_QUESTION: usize = 600;

/// Builds the exact confirmation prompt about `items`. The text `before` precedes the prompt.
pub(super) fn build_confirmation_prompt(
    context: &TurnContext,
    items: Vec<DeletionTarget>,
    before: &str,
    settings: &HouseholdSettings,
) -> NewPendingAction {
    let code = settings.code_policy.needs_code(&items).then(|| settings.codes.draw_confirmation_code());
    let words = deletion_messages::format_confirmation_prompt(&items, code.as_deref());
    // Users must read the whole prompt. The conversation already contains the report of earlier actions.
    let said = match before.len() {
        1..=MAX_BEFORE_QUESTION => format!("{before} {words}"),
        _ => words.clone(),
    };
    NewPendingAction {
        turn: context.active_turn.id,
        user: context.user.id,
        conversation: context.active_turn.conversation,
        items,
        summary: words,
        code,
        prompt: context.reply_address().prompt_message(&said),
    }
}
