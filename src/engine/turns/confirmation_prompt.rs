//! Confirmation prompt of a deletion.

use super::turn_context::TurnContext;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::pending_action::NewPendingAction;

/// Maximum length in bytes of a text that precedes a confirmation prompt in the same message.
const MAX_PREAMBLE_BYTES: usize = 600;

/// Builds the confirmation prompt about `items`, which follows `preamble` in the same message.
pub(super) fn build_confirmation_prompt(
    context: &TurnContext,
    items: Vec<DeletionTarget>,
    preamble: &str,
    settings: &HouseholdSettings,
) -> NewPendingAction {
    let code = settings.code_policy.needs_code(&items).then(|| settings.codes.draw_confirmation_code());
    let prompt = deletion_messages::format_confirmation_prompt(&items, code.as_deref());
    // A long preamble is omitted, because users must read the whole prompt. The conversation contains it already.
    let message = match preamble.len() {
        1..=MAX_PREAMBLE_BYTES => format!("{preamble} {prompt}"),
        _ => prompt.clone(),
    };
    NewPendingAction {
        turn: context.active_turn.id,
        user: context.user.id,
        conversation: context.active_turn.conversation,
        items,
        summary: prompt,
        code,
        prompt: context.reply_address().prompt_message(&message),
    }
}
