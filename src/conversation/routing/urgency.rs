//! Effect of a message on waiting messages and on a running turn, by its words alone.

use super::inbound_message::ReceivedMessage;
use crate::conversation::digest::digest_command;
use crate::conversation::grammar::confirmation_reply::{
    ConfirmationReply, ReplyLanguage, parse_confirmation_reply,
};
use crate::conversation::grammar::keyword_grammar::{self, TextCommand};
use crate::conversation::grammar::make_room_step;
use crate::conversation::making_room::keep_command;
use crate::conversation::people::admin_commands;
use crate::conversation::transcript::OptKeyword;
use crate::conversation::votes::vote_command;

/// Effect of a message on waiting messages and on a running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageUrgency {
    /// Wait for further messages that may belong to this one.
    MayWait,
    /// Process the message at once, because replies, commands and numbers are complete on their own.
    Immediate,
    /// Cancel the running turn.
    CancelsTurn,
    /// Cancel the running turn and send nothing more, because the user opts out.
    OptsOut,
    /// Cancel the running turn; if a prompt is open, answer the prompt instead.
    CancelsTurnOrAnswers,
}

/// Classifies a message by its effect on waiting messages and on a running turn.
pub fn classify_urgency(received: &ReceivedMessage, languages: &[ReplyLanguage]) -> MessageUrgency {
    let opt_keyword = received.carrier_word.or_else(|| keyword_grammar::parse_opt_keyword(&received.body));
    let opt_keyword = opt_keyword.filter(|_| received.room.is_none());
    let command = keyword_grammar::parse_command(&received.body);
    if received.channel.honors_opt_out() && opt_keyword == Some(OptKeyword::Out) {
        return MessageUrgency::OptsOut;
    }
    if command == Some(TextCommand::ClearConversation) {
        return MessageUrgency::CancelsTurn;
    }
    if keyword_grammar::is_retraction(&received.body) {
        return MessageUrgency::CancelsTurnOrAnswers;
    }
    let reply = parse_confirmation_reply(&received.body, None, languages);
    let is_command = opt_keyword.is_some()
        || command.is_some()
        || vote_command::parse_vote_command(&received.body).is_some()
        || keep_command::parse_keep_command(&received.body).is_some()
        || make_room_step::parse_make_room_step(&received.body).is_some()
        || digest_command::parse_digest_command(&received.body).is_some()
        || admin_commands::parse_admin_command(&received.body).is_some();
    if reply != ConfirmationReply::Unrelated || is_command {
        MessageUrgency::Immediate
    } else {
        MessageUrgency::MayWait
    }
}
