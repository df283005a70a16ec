//! JSON of the Bot API. Unknown fields are ignored.

use serde::{Deserialize, Serialize};

/// Parameters of a method that has none.
#[derive(Debug, Serialize)]
pub(super) struct Empty {}

/// Answer to a request.
#[derive(Debug, Deserialize)]
pub(super) struct ApiAnswer<T> {
    pub(super) ok: bool,
    #[serde(default = "Option::default")]
    pub(super) result: Option<T>,
    #[serde(default)]
    pub(super) error_code: Option<u16>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) parameters: Option<AnswerParameters>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AnswerParameters {
    /// Seconds to wait.
    #[serde(default)]
    pub(super) retry_after: Option<u64>,
    #[serde(default)]
    pub(super) migrate_to_chat_id: Option<i64>,
}

/// Result of `getMe`.
#[derive(Debug, Deserialize)]
pub(super) struct BotUser {
    #[serde(default)]
    pub(super) username: Option<String>,
    #[serde(default)]
    pub(super) can_read_all_group_messages: bool,
}

/// Result of `getWebhookInfo`.
#[derive(Debug, Deserialize)]
pub(super) struct WebhookInfo {
    /// Empty if no webhook is set.
    pub(super) url: String,
    #[serde(default)]
    pub(super) allowed_updates: Vec<String>,
    #[serde(default)]
    pub(super) last_error_message: Option<String>,
}

/// Update of any kind, with only the fields that are used.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Update {
    pub(super) update_id: i64,
    #[serde(default)]
    pub(super) message: Option<Message>,
    #[serde(default)]
    pub(super) callback_query: Option<CallbackQuery>,
    #[serde(default)]
    pub(super) my_chat_member: Option<ChatMemberChange>,
    #[serde(default)]
    pub(super) poll_answer: Option<PollChoice>,
    #[serde(default)]
    pub(super) message_reaction: Option<ReactionUpdate>,
}

/// Change of the reactions of a person to a message.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ReactionUpdate {
    pub(super) chat: Chat,
    pub(super) message_id: i64,
    /// Missing if a group reacted.
    #[serde(default)]
    pub(super) user: Option<Person>,
    pub(super) new_reaction: Vec<ReactionType>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ReactionType {
    /// Missing for a reaction that is no standard emoji.
    #[serde(default)]
    pub(super) emoji: Option<String>,
}

/// Answer of a person to a poll of ours.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PollChoice {
    pub(super) poll_id: String,
    /// Missing if a group answered.
    #[serde(default)]
    pub(super) user: Option<Person>,
    /// Positions of the chosen options, from 0; none if the person withdrew the answer.
    pub(super) option_ids: Vec<u8>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Message {
    pub(super) message_id: i64,
    /// Unix time in seconds.
    pub(super) date: i64,
    pub(super) chat: Chat,
    #[serde(default)]
    pub(super) from: Option<Person>,
    /// Channel or group in whose name the message was written.
    #[serde(default)]
    pub(super) sender_chat: Option<Chat>,
    /// Bot through which the message was written.
    #[serde(default)]
    pub(super) via_bot: Option<Person>,
    /// Origin of a forwarded message, in any form.
    #[serde(default)]
    pub(super) forward_origin: Option<serde_json::Value>,
    /// Message that this one replies to.
    #[serde(default)]
    pub(super) reply_to_message: Option<QuotedMessage>,
    /// New id of a group that has become a supergroup.
    #[serde(default)]
    pub(super) migrate_to_chat_id: Option<i64>,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) caption: Option<String>,
    #[serde(default)]
    pub(super) sticker: Option<Sticker>,
    #[serde(default)]
    pub(super) photo: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) voice: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) audio: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) video: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) video_note: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) animation: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) document: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) location: Option<serde_json::Value>,
    #[serde(default)]
    pub(super) contact: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct QuotedMessage {
    #[serde(default)]
    pub(super) from: Option<Person>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Sticker {
    #[serde(default)]
    pub(super) emoji: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Person {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) is_bot: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Name of a group.
    #[serde(default)]
    pub(super) title: Option<String>,
}

impl Chat {
    pub(super) fn is_private(&self) -> bool {
        self.kind == "private"
    }

    pub(super) fn is_group(&self) -> bool {
        matches!(self.kind.as_str(), "group" | "supergroup")
    }
}

/// Press of a button.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct CallbackQuery {
    pub(super) id: String,
    pub(super) from: Person,
    /// Message with the button; missing if it is too old.
    #[serde(default)]
    pub(super) message: Option<PressedMessage>,
    #[serde(default)]
    pub(super) data: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PressedMessage {
    pub(super) message_id: i64,
    pub(super) chat: Chat,
}

/// Change of the bot's membership in a chat.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ChatMemberChange {
    pub(super) chat: Chat,
    pub(super) from: Person,
    /// Unix time in seconds.
    pub(super) date: i64,
    pub(super) new_chat_member: ChatMember,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ChatMember {
    pub(super) status: String,
}

/// Parameters of `getUpdates`.
#[derive(Debug, Serialize)]
pub(super) struct GetUpdates<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<i64>,
    pub(super) limit: u8,
    /// Seconds for which the request waits for an update.
    pub(super) timeout: u64,
    pub(super) allowed_updates: &'a [&'a str],
}

/// Parameters of `setWebhook`.
#[derive(Debug, Serialize)]
pub(super) struct SetWebhook<'a> {
    pub(super) url: &'a str,
    pub(super) secret_token: &'a str,
    pub(super) allowed_updates: &'a [&'a str],
    pub(super) max_connections: u8,
}

/// Parameters of `sendMessage`.
#[derive(Debug, Serialize)]
pub(super) struct SendMessage<'a> {
    pub(super) chat_id: i64,
    pub(super) text: &'a str,
    pub(super) link_preview_options: LinkPreviewOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply_parameters: Option<ReplyParameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply_markup: Option<Keyboard>,
}

/// Parameters of `sendPhoto`.
#[derive(Debug, Serialize)]
pub(super) struct SendPhoto<'a> {
    pub(super) chat_id: i64,
    /// URL that Telegram fetches.
    pub(super) photo: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) caption: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply_parameters: Option<ReplyParameters>,
}

/// Quoted message. A message that is gone is not quoted.
#[derive(Debug, Serialize)]
pub(super) struct ReplyParameters {
    pub(super) message_id: i64,
    pub(super) allow_sending_without_reply: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct LinkPreviewOptions {
    pub(super) is_disabled: bool,
}

/// Rows of buttons below a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Keyboard {
    pub(super) inline_keyboard: Vec<Vec<Button>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Button {
    pub(super) text: String,
    /// 1 to 64 bytes that come back when the button is pressed.
    pub(super) callback_data: String,
}

/// Parameters of `sendPoll`.
#[derive(Debug, Serialize)]
pub(super) struct SendPoll<'a> {
    pub(super) chat_id: i64,
    pub(super) question: &'a str,
    pub(super) options: Vec<PollOption<'a>>,
    /// Only the answers to a poll that is not anonymous are reported.
    pub(super) is_anonymous: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply_parameters: Option<ReplyParameters>,
}

#[derive(Debug, Serialize)]
pub(super) struct PollOption<'a> {
    pub(super) text: &'a str,
}

/// Parameters of `stopPoll`.
#[derive(Debug, Serialize)]
pub(super) struct StopPoll {
    pub(super) chat_id: i64,
    pub(super) message_id: i64,
}

/// Parameters of `setMessageReaction`.
#[derive(Debug, Serialize)]
pub(super) struct SetMessageReaction<'a> {
    pub(super) chat_id: i64,
    pub(super) message_id: i64,
    pub(super) reaction: [EmojiReaction<'a>; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct EmojiReaction<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) emoji: &'a str,
}

/// Parameters of `sendChatAction`.
#[derive(Debug, Serialize)]
pub(super) struct SendChatAction {
    pub(super) chat_id: i64,
    pub(super) action: &'static str,
}

/// Parameters of `answerCallbackQuery`.
#[derive(Debug, Serialize)]
pub(super) struct AnswerCallbackQuery<'a> {
    pub(super) callback_query_id: &'a str,
}

/// Parameters of `editMessageReplyMarkup` that remove the buttons.
#[derive(Debug, Serialize)]
pub(super) struct RemoveKeyboard {
    pub(super) chat_id: i64,
    pub(super) message_id: i64,
}

/// Result of `sendMessage`, `sendPhoto` and `sendPoll`.
#[derive(Debug, Deserialize)]
pub(super) struct SentMessage {
    pub(super) message_id: i64,
    /// Unix time in seconds.
    pub(super) date: i64,
    #[serde(default)]
    pub(super) poll: Option<SentPoll>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SentPoll {
    pub(super) id: String,
}
