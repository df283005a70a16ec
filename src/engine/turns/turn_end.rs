//! End of a turn: its outcome, and the reply that is sent.

use super::turn_context::TurnContext;
use crate::conversation::turn::{FallbackReply, NextStep, TurnReply};
use crate::engine::reply_address;
use crate::engine::settings::SmsReactions;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::turns::turn_lifecycle::TurnEnd;

/// Returns the end of the turn if the step is its last.
pub(super) fn final_turn_end(
    context: &TurnContext,
    step: &NextStep,
    reactions: SmsReactions,
) -> Option<TurnEnd> {
    match step {
        NextStep::Reply(answer) => Some(reply_turn_end(context, answer, reactions)),
        NextStep::Cancel => Some(canceled_turn_end(context)),
        NextStep::CallModel(_)
        | NextStep::StartCalls(_)
        | NextStep::AnswerCall(..)
        | NextStep::RecoverCall(_) => None,
    }
}

pub(super) fn reply_turn_end(context: &TurnContext, answer: &TurnReply, reactions: SmsReactions) -> TurnEnd {
    let (id, back) = (context.active_turn.id, context.reply_address());
    let outcome = match answer {
        TurnReply::Code(FallbackReply::InternalError) => MessageOutcome::FailedNotified,
        TurnReply::Reaction(_) if is_silent_reaction(context, reactions) => {
            return match context.closing_sentence() {
                Some(closing) => back.turn_end(id, MessageOutcome::Replied, closing),
                None => TurnEnd::without_message(id, MessageOutcome::Reacted),
            };
        }
        TurnReply::Model(_) | TurnReply::Tools(_) | TurnReply::Code(_) | TurnReply::Reaction(_) => {
            MessageOutcome::Replied
        }
    };
    let words = turn_reply_text(answer);
    match context.closing_sentence() {
        Some(closing) => back.turn_end(id, outcome, &reply_address::prepend_sentence(closing, words)),
        None => back.turn_end(id, outcome, words),
    }
}

/// Returns whether a reaction is not sent. A phone cannot receive a reaction. The terminal shows the emoji.
fn is_silent_reaction(context: &TurnContext, reactions: SmsReactions) -> bool {
    let shown = context.events.last().is_some_and(|event| event.channel.shows_reactions());
    !shown && reactions == SmsReactions::Silent
}

/// Creates the end of a turn that the user canceled. Only a closed confirmation prompt and the completed changes are
/// reported.
pub(super) fn canceled_turn_end(context: &TurnContext) -> TurnEnd {
    let done: Vec<&str> =
        context.closing_sentence().into_iter().chain(context.turn.possible_changes()).collect();
    let done = done.join(" ");
    if done.is_empty() || context.user.opted_out {
        return TurnEnd::without_message(context.active_turn.id, MessageOutcome::Skipped("taken_back"));
    }
    context.reply_address().turn_end(context.active_turn.id, MessageOutcome::Replied, &done)
}

/// Creates the end of a turn that cannot continue.
pub(super) fn failed_turn_end(context: &TurnContext) -> TurnEnd {
    let (id, text) = (context.active_turn.id, FallbackReply::InternalError.text());
    context.reply_address().turn_end(id, MessageOutcome::FailedNotified, text)
}

/// Returns the text of a turn's answer.
fn turn_reply_text(answer: &TurnReply) -> &str {
    match answer {
        TurnReply::Model(text) | TurnReply::Tools(text) => text,
        TurnReply::Reaction(emoji) => emoji.as_str(),
        TurnReply::Code(excuse) => excuse.text(),
    }
}
