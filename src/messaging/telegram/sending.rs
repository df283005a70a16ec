//! Sending of messages, pictures and reactions. The Bot API has no id of ours and no list of sent messages, so a message
//! whose answer is lost cannot be found again.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::api::BotApiError;
use super::buttons;
use super::port::Telegram;
use super::wire::{
    EmojiReaction, LinkPreviewOptions, ReplyParameters, SendMessage, SendPhoto, SentMessage,
    SetMessageReaction,
};
use crate::conversation::channel_list;
use crate::messaging::{CarrierReceipt, OutboundMessage, PollAction, SendError};

/// Time for which a message waits for its turn below the limits of Telegram. After it, the outbox retries.
const PATIENCE: Duration = Duration::from_secs(5);

impl Telegram {
    pub(super) async fn send_message(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        let chat = parse_chat(message)?;
        match &message.reacts_to {
            Some(target) => match self.react(chat, target, message).await {
                // Not every emoji can be a reaction, and the message may have been deleted.
                Err(BotApiError::Refused(_)) => self.send_text(chat, message).await,
                outcome => outcome.map_err(|error| match error {
                    // Setting the same reaction twice sets it once.
                    BotApiError::Lost(reason) => SendError::Later { retry_after: None, reason },
                    error => self.send_error(chat, error),
                }),
            },
            None => self.send_text(chat, message).await,
        }
    }

    /// Reserves the time at which a message may be sent. A reaction has no limit.
    pub(super) fn reserve_pace(&self, message: &OutboundMessage) -> Result<Option<Instant>, SendError> {
        if message.reacts_to.is_some() {
            return Ok(None);
        }
        self.pace.reserve(parse_chat(message)?, PATIENCE).map(Some).map_err(|delay| {
            let reason = "earlier messages to the chat are too recent".to_owned();
            SendError::Later { retry_after: Some(delay), reason }
        })
    }

    async fn react(
        &self,
        chat: i64,
        target: &str,
        message: &OutboundMessage,
    ) -> Result<CarrierReceipt, BotApiError> {
        let message_id =
            message_number(target).ok_or_else(|| BotApiError::Refused("not a message".to_owned()))?;
        // Telegram lists the emoji without the character that asks for colors.
        let emoji = message.body.trim_end_matches('\u{fe0f}');
        let reaction = [EmojiReaction { kind: "emoji", emoji }];
        let parameters = SetMessageReaction { chat_id: chat, message_id, reaction };
        self.call::<bool>("setMessageReaction", &parameters).await?;
        // A reaction has no id of its own.
        Ok(CarrierReceipt { sid: message.callback_token.as_str().to_owned(), created_at: None, poll: None })
    }

    async fn send_text(&self, chat: i64, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        if let Some(PollAction::End(polls)) = &message.poll {
            // Nothing was sent yet, and ending a poll twice ends it once.
            let ended = self.end_polls(chat, polls).await.map_err(|error| match error {
                BotApiError::Lost(reason) => BotApiError::NotSent(reason),
                error => error,
            });
            ended.map_err(|error| self.send_error(chat, error))?;
        }
        let sent = self.send_content(chat, message).await.map_err(|error| self.send_error(chat, error))?;
        Ok(CarrierReceipt {
            sid: self.account.message_id(chat, sent.message_id),
            created_at: Timestamp::from_second(sent.date).ok(),
            poll: sent.poll.map(|poll| poll.id),
        })
    }

    /// Sends a poll, a picture or a text.
    async fn send_content(&self, chat: i64, message: &OutboundMessage) -> Result<SentMessage, BotApiError> {
        let quoted = message.quotes.as_deref().and_then(message_number);
        let reply_parameters =
            quoted.map(|message_id| ReplyParameters { message_id, allow_sending_without_reply: true });
        if let Some(PollAction::Ask(question)) = &message.poll {
            return self.send_poll(chat, question, reply_parameters).await;
        }
        match message.media.first() {
            Some(photo) => {
                let caption = &message.body;
                let parameters = SendPhoto { chat_id: chat, photo, caption, reply_parameters };
                self.call("sendPhoto", &parameters).await
            }
            None => {
                let parameters = SendMessage {
                    chat_id: chat,
                    text: &message.body,
                    link_preview_options: LinkPreviewOptions { is_disabled: true },
                    reply_parameters,
                    reply_markup: buttons::keyboard(message),
                };
                self.call("sendMessage", &parameters).await
            }
        }
    }

    fn send_error(&self, chat: i64, error: BotApiError) -> SendError {
        let reason = error.to_string();
        match error {
            BotApiError::NotSent(_) => SendError::Later { retry_after: None, reason },
            BotApiError::TooMany(delay) => {
                self.pace.hold_back(chat, delay);
                SendError::Later { retry_after: Some(delay), reason }
            }
            BotApiError::Lost(_) => SendError::Unknown(reason),
            BotApiError::Unreachable(description) if description.contains("blocked by the user") => {
                SendError::OptedOut
            }
            BotApiError::WrongToken => SendError::Misconfigured { code: None, meaning: reason },
            // The message that reports the new id of the group is read soon.
            BotApiError::Migrated(_) => SendError::Later { retry_after: None, reason },
            BotApiError::Conflict(_) | BotApiError::Unreachable(_) | BotApiError::Refused(_) => {
                SendError::Permanent { code: None, meaning: reason }
            }
        }
    }
}

/// Returns the number of a message in its chat, with which its id begins.
pub(super) fn message_number(id: &str) -> Option<i64> {
    id.split('.').next()?.parse().ok()
}

/// Returns the chat of the recipient. A private chat has the id of the person.
fn parse_chat(message: &OutboundMessage) -> Result<i64, SendError> {
    let chat =
        message.to.as_str().strip_prefix(channel_list::TELEGRAM_PREFIX).and_then(|chat| chat.parse().ok());
    chat.ok_or_else(|| SendError::Permanent { code: None, meaning: "the recipient is no account".to_owned() })
}
