//! Confirmation prompt of a deletion.

use super::turn_context::TurnContext;
use crate::conversation::agents::AgentCaller;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::routing::rooms::{Audience, SENT_PRIVATELY};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::pending_action::NewPendingAction;

/// Maximum length in bytes of a text that precedes a confirmation prompt in the same message.
const MAX_PREAMBLE_BYTES: usize = 600;

/// Builds the confirmation prompt about `items`, which follows `preamble` in the same message; `None` if it has a code and
/// there is no private chat in which to ask it. The question of an agent names it, and always has a code.
pub(super) fn build_confirmation_prompt(
    context: &TurnContext,
    items: Vec<DeletionTarget>,
    (preamble, agent): (&str, Option<&AgentCaller>),
    settings: &HouseholdSettings,
) -> Option<NewPendingAction> {
    let needs_code = agent.is_some() || settings.code_policy.needs_code(&items);
    let code = needs_code.then(|| settings.codes.draw_confirmation_code());
    let prompt = deletion_messages::format_confirmation_prompt(&items, code.as_deref());
    let prompt = agent.map_or(prompt.clone(), |agent| agent.format_question(&prompt));
    // A long preamble is omitted, because users must read the whole prompt. The conversation contains it already.
    let message = match preamble.len() {
        1..=MAX_PREAMBLE_BYTES => format!("{preamble} {prompt}"),
        _ => prompt.clone(),
    };
    let address = match &context.agent {
        Some(agent) => ReplyAddress::from_route(&context.user, agent.route.clone(), &settings.senders)
            .with_turn(context.active_turn.id),
        None => context.reply_address(),
    };
    let is_private = context.audience() != Audience::Room || code.is_none();
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
        asked_by_agent: context.agent.is_some(),
    })
}
