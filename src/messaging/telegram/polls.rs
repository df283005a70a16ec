//! Polls: the native form of a vote in a group.

use super::api::BotApiError;
use super::port::Telegram;
use super::sending::message_number;
use super::wire::{PollOption, ReplyParameters, SendPoll, SentMessage, StopPoll};
use crate::conversation::votes::VoteQuestion;

impl Telegram {
    pub(super) async fn send_poll(
        &self,
        chat: i64,
        question: &VoteQuestion,
        reply_parameters: Option<ReplyParameters>,
    ) -> Result<SentMessage, BotApiError> {
        let options = question.options_with_reasons();
        let options = options.iter().map(|text| PollOption { text }).collect();
        let parameters = SendPoll {
            chat_id: chat,
            question: question.text(),
            options,
            is_anonymous: false,
            reply_parameters,
        };
        self.call("sendPoll", &parameters).await
    }

    /// Ends polls. One that is gone or has ended needs nothing.
    pub(super) async fn end_polls(&self, chat: i64, messages: &[String]) -> Result<(), BotApiError> {
        for message_id in messages.iter().filter_map(|id| message_number(id)) {
            let parameters = StopPoll { chat_id: chat, message_id };
            match self.call::<serde_json::Value>("stopPoll", &parameters).await {
                Ok(_) => {}
                Err(BotApiError::Refused(reason)) => tracing::debug!(%reason, "poll has ended already"),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
