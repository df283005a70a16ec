//! Confirmation prompt of a deletion.

use super::turn_context::TurnContext;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::routing::rooms::{Audience, SENT_PRIVATELY};
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::pending_action::NewPendingAction;

/// Maximum length in bytes of a text that precedes a confirmation prompt in the same message.
const MAX_PREAMBLE_BYTES: usize = 600;

/// Builds the confirmation prompt about `items`, which follows `preamble` in the same message; `None` if it has a code and
/// there is no private chat in which to ask it.
pub(super) fn build_confirmation_prompt(
    context: &TurnContext,
    items: Vec<DeletionTarget>,
    preamble: &str,
    settings: &HouseholdSettings,
) -> Option<NewPendingAction> {
    let code = settings.code_policy.needs_code(&items).then(|| settings.codes.draw_confirmation_code());
    let prompt = deletion_messages::format_confirmation_prompt(&items, code.as_deref());
    // A long preamble is omitted, because users must read the whole prompt. The conversation contains it already.
    let message = match preamble.len() {
        1..=MAX_PREAMBLE_BYTES => format!("{preamble} {prompt}"),
        _ => prompt.clone(),
    };
    let address = context.reply_address();
    let is_private = context.audience() == Audience::Author || code.is_none();
    let (prompt_message, announcement) = match &context.private_address {
        _ if is_private => (address.prompt_message(&message), None),
        // Everybody in the room would read the code.
        Some(private) => {
            let to_author = address.clone().in_private_chat(private).prompt_message(&message);
            (to_author, Some(address.reply_message(SENT_PRIVATELY.to_owned())))
        }
        None => return None,
    };
    Some(NewPendingAction {
        turn: context.active_turn.id,
        user: context.user.id,
        conversation: context.active_turn.conversation,
        items,
        summary: prompt,
        code,
        prompt: prompt_message,
        announcement,
    })
}
