//! End of a turn: its outcome, and the reply that is sent.

use super::turn_context::TurnContext;
use crate::conversation::channel::ReactionSupport;
use crate::conversation::turn::{FallbackReply, NextStep, TurnReply};
use crate::conversation::votes::VoteMessage;
use crate::engine::reply_address;
use crate::engine::settings::SmsReactions;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::turns::finished_turns::TurnEnd;

/// Returns the end of the turn if `step` ends it.
pub(super) fn final_turn_end(
    context: &TurnContext,
    step: &NextStep,
    reactions: SmsReactions,
) -> Option<TurnEnd> {
    match step {
        NextStep::Reply(reply) => Some(reply_turn_end(context, reply, reactions)),
        NextStep::Cancel => Some(canceled_turn_end(context)),
        NextStep::CallModel(_)
        | NextStep::StartCalls(_)
        | NextStep::AnswerCall(..)
        | NextStep::RecoverCall(_) => None,
    }
}

pub(super) fn reply_turn_end(context: &TurnContext, reply: &TurnReply, reactions: SmsReactions) -> TurnEnd {
    let (id, address) = (context.active_turn.id, context.reply_address());
    let outcome = match reply {
        TurnReply::Code(FallbackReply::InternalError) => MessageOutcome::FailedNotified,
        TurnReply::Reaction(_) if is_silent_reaction(context, reactions) => {
            return match context.closing_sentence() {
                Some(closing) => address.turn_end(id, MessageOutcome::Replied, closing),
                None => TurnEnd::without_message(id, MessageOutcome::Reacted),
            };
        }
        TurnReply::Model(_)
        | TurnReply::Tools(_)
        | TurnReply::Code(_)
        | TurnReply::Ballot(_)
        | TurnReply::Reaction(_) => MessageOutcome::Replied,
    };
    let text = turn_reply_text(reply);
    let mut end = match context.closing_sentence() {
        Some(closing) => address.turn_end(id, outcome, &reply_address::prepend_sentence(closing, text)),
        None => address.turn_end(id, outcome, text),
    };
    if let TurnReply::Ballot(_) = reply {
        for message in &mut end.messages {
            message.vote = Some(VoteMessage::AsksStarter);
        }
    }
    end
}

/// Returns whether a reaction is the whole answer, without a message that contains its emoji.
fn is_silent_reaction(context: &TurnContext, reactions: SmsReactions) -> bool {
    let support = context.events.last().map(|event| event.channel.profile().content.reactions);
    match support.unwrap_or(ReactionSupport::AsMessage) {
        ReactionSupport::AsMessage => reactions == SmsReactions::Silent,
        ReactionSupport::Shown => false,
        // It was queued with the call.
        ReactionSupport::Placed => true,
    }
}

/// Creates the end of a turn that the user canceled. Only the closing of a confirmation prompt and completed
/// changes are reported.
pub(super) fn canceled_turn_end(context: &TurnContext) -> TurnEnd {
    let sentences: Vec<&str> =
        context.closing_sentence().into_iter().chain(context.turn.possible_changes()).collect();
    let report = sentences.join(" ");
    if report.is_empty() || context.user.opted_out {
        return TurnEnd::without_message(context.active_turn.id, MessageOutcome::Skipped("taken_back"));
    }
    context.reply_address().turn_end(context.active_turn.id, MessageOutcome::Replied, &report)
}

/// Creates the end of a turn that cannot continue.
pub(super) fn failed_turn_end(context: &TurnContext) -> TurnEnd {
    let (id, text) = (context.active_turn.id, FallbackReply::InternalError.text());
    context.reply_address().turn_end(id, MessageOutcome::FailedNotified, text)
}

/// Returns the text of a turn's reply.
fn turn_reply_text(reply: &TurnReply) -> &str {
    match reply {
        TurnReply::Model(text) | TurnReply::Tools(text) | TurnReply::Ballot(text) => text,
        TurnReply::Reaction(emoji) => emoji.as_str(),
        TurnReply::Code(fallback) => fallback.text(),
    }
}
