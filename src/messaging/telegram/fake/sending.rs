//! Messages of the bot: their checks, their buttons, and their record for tests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::api::Refusal;
use super::chats::remove_field;
use super::entities::text_json;
use super::parameters::MethodParameters;
use super::server::TelegramState;

const MAX_TEXT_LENGTH: usize = 4096;
const MAX_CAPTION_LENGTH: usize = 1024;
const MAX_BUTTON_BYTES: usize = 64;

/// Message that the bot sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeSentMessage {
    pub message_id: i64,
    pub chat_id: i64,
    /// Text, caption, or question of a poll.
    pub text: String,
    /// URL or file id of the picture.
    pub photo: Option<String>,
    /// Rows of buttons, also after their removal.
    pub buttons: Vec<Vec<FakeButton>>,
    pub reply_to: Option<i64>,
    pub thread: Option<i64>,
    pub poll: Option<FakePoll>,
    pub sent_at: Timestamp,
    /// Whether the buttons are still there.
    pub has_buttons_now: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeButton {
    pub label: String,
    pub data: String,
}

/// Poll in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakePoll {
    pub id: String,
    pub question: String,
    pub options: Vec<String>,
    pub is_anonymous: bool,
    pub is_closed: bool,
    /// Positions of the chosen options by person.
    pub votes: BTreeMap<i64, Vec<usize>>,
}

/// What a message consists of, apart from its buttons and its place in the chat.
#[derive(Debug, Default)]
pub(super) struct MessageContent {
    /// Fields of the message that the API shows.
    pub(super) fields: Value,
    pub(super) text: String,
    pub(super) photo: Option<String>,
    pub(super) poll: Option<FakePoll>,
}

#[derive(Deserialize)]
struct KeyboardParameter {
    inline_keyboard: Vec<Vec<ButtonParameter>>,
}

#[derive(Deserialize)]
struct ButtonParameter {
    text: String,
    #[serde(default)]
    callback_data: Option<String>,
}

#[derive(Deserialize)]
struct ReplyParameter {
    message_id: i64,
    #[serde(default)]
    allow_sending_without_reply: bool,
}

impl TelegramState {
    pub(super) fn send_message(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let text = parameters.text("text");
        if text.trim().is_empty() {
            return Err(Refusal::bad_request("message text is empty"));
        }
        if utf16_length(text) > MAX_TEXT_LENGTH {
            return Err(Refusal::bad_request("message is too long"));
        }
        let fields = text_json(text);
        self.accept_message(
            parameters,
            MessageContent { fields, text: text.to_owned(), ..Default::default() },
        )
    }

    pub(super) fn send_photo(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let (photo, caption) = (parameters.text("photo"), parameters.text("caption"));
        if photo.is_empty() {
            return Err(Refusal::bad_request("there is no photo in the request"));
        }
        let is_bad_url = photo.contains("://")
            && !Url::parse(photo)
                .is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
        if is_bad_url {
            return Err(Refusal::bad_request("wrong file identifier/HTTP URL specified"));
        }
        if utf16_length(caption) > MAX_CAPTION_LENGTH {
            return Err(Refusal::bad_request("message caption is too long"));
        }
        let mut fields = json!({ "photo": [{
            "file_id": "AgAD-sent", "file_unique_id": "sent", "width": 500, "height": 750, "file_size": 9_000,
        }] });
        if !caption.is_empty() {
            fields["caption"] = caption.into();
        }
        let (photo, text) = (Some(photo.to_owned()), caption.to_owned());
        self.accept_message(parameters, MessageContent { fields, text, photo, poll: None })
    }

    /// Adds a message of the bot to its chat, if the bot may write there.
    pub(super) fn accept_message(
        &mut self,
        parameters: &MethodParameters,
        content: MessageContent,
    ) -> Result<Value, Refusal> {
        let chat = parameters.chat()?;
        let buttons = parse_keyboard(parameters)?;
        self.writable_chat(chat)?;
        let mut fields = content.fields;
        let reply_to = self.find_reply_target(chat, parameters)?;
        if let Some((_, target)) = &reply_to {
            fields["reply_to_message"] = target.clone();
        }
        let thread = parameters.integer("message_thread_id");
        if let Some(thread) = thread {
            fields["message_thread_id"] = thread.into();
            fields["is_topic_message"] = true.into();
        }
        if !buttons.is_empty() {
            fields["reply_markup"] = keyboard_json(&buttons);
        }
        let (message_id, message) = self.add_message(chat, &self.bot_json(), &fields);
        self.sent.push(FakeSentMessage {
            message_id,
            chat_id: chat,
            text: content.text,
            photo: content.photo,
            has_buttons_now: !buttons.is_empty(),
            buttons,
            reply_to: reply_to.map(|(id, _)| id),
            thread,
            poll: content.poll,
            sent_at: self.clock.now(),
        });
        Ok(message)
    }

    /// Finds the message to which a message replies; `None` if it replies to none.
    fn find_reply_target(
        &self,
        chat: i64,
        parameters: &MethodParameters,
    ) -> Result<Option<(i64, Value)>, Refusal> {
        let Some(reply) = parameters.json::<ReplyParameter>("reply_parameters")? else { return Ok(None) };
        let messages = self.chats.get(&chat).map(|chat| &chat.messages);
        match messages.and_then(|messages| messages.get(&reply.message_id)) {
            Some(target) => {
                let mut target = target.clone();
                remove_field(&mut target, "reply_to_message");
                Ok(Some((reply.message_id, target)))
            }
            None if reply.allow_sending_without_reply => Ok(None),
            None => Err(Refusal::bad_request("message to be replied not found")),
        }
    }
}

/// Returns the rows of buttons below a message. Rows without buttons do not count.
pub(super) fn parse_keyboard(parameters: &MethodParameters) -> Result<Vec<Vec<FakeButton>>, Refusal> {
    let Some(keyboard) = parameters.json::<KeyboardParameter>("reply_markup")? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for row in keyboard.inline_keyboard.into_iter().filter(|row| !row.is_empty()) {
        rows.push(row.into_iter().map(parse_button).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(rows)
}

/// Returns a button that sends data. Other kinds of buttons are not simulated.
fn parse_button(button: ButtonParameter) -> Result<FakeButton, Refusal> {
    let Some(data) = button.callback_data else {
        return Err(Refusal::bad_request("text buttons are unallowed in the inline keyboard"));
    };
    if button.text.trim().is_empty() {
        return Err(Refusal::bad_request("inline keyboard button text must be non-empty"));
    }
    if data.is_empty() || data.len() > MAX_BUTTON_BYTES {
        return Err(Refusal::bad_request("BUTTON_DATA_INVALID"));
    }
    Ok(FakeButton { label: button.text, data })
}

pub(super) fn keyboard_json(buttons: &[Vec<FakeButton>]) -> Value {
    let button_json = |button: &FakeButton| json!({ "text": button.label, "callback_data": button.data });
    let row_json = |row: &Vec<FakeButton>| row.iter().map(button_json).collect::<Value>();
    json!({ "inline_keyboard": buttons.iter().map(row_json).collect::<Value>() })
}

pub(super) fn utf16_length(text: &str) -> usize {
    text.encode_utf16().count()
}
