//! Methods for chats and their buttons: typing, answers to presses, removal of buttons, and members.

use serde_json::{Value, json};

use super::api::Refusal;
use super::chats::ChatKind;
use super::parameters::MethodParameters;
use super::sending::{keyboard_json, parse_keyboard, utf16_length};
use super::server::{TelegramState, user_json};

const ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];
const MAX_ANSWER_LENGTH: usize = 200;

impl TelegramState {
    pub(super) fn send_chat_action(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let action = parameters.text("action");
        if !ACTIONS.contains(&action) {
            return Err(Refusal::bad_request("wrong parameter action in request"));
        }
        let chat = self.writable_chat(parameters.chat()?)?;
        if action == "typing" {
            chat.typing_count += 1;
        }
        Ok(true.into())
    }

    /// Ends the waiting of a pressed button. A press can be answered once.
    pub(super) fn answer_callback_query(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        self.answer_count += 1;
        if utf16_length(parameters.text("text")) > MAX_ANSWER_LENGTH {
            return Err(Refusal::bad_request("MESSAGE_TOO_LONG"));
        }
        let id = parameters.text("callback_query_id");
        match self.presses.iter_mut().find(|press| press.id == id && !press.is_answered) {
            Some(press) => {
                press.is_answered = true;
                Ok(true.into())
            }
            None => Err(Refusal::bad_request(
                "query is too old and response timeout expired or query ID is invalid",
            )),
        }
    }

    /// Replaces or removes the buttons of a message of the bot.
    pub(super) fn edit_message_reply_markup(
        &mut self,
        parameters: &MethodParameters,
    ) -> Result<Value, Refusal> {
        let (chat_id, message_id) = (parameters.chat()?, parameters.message()?);
        let buttons = parse_keyboard(parameters)?;
        let chat = self.writable_chat(chat_id)?;
        if !chat.messages.contains_key(&message_id) {
            return Err(Refusal::bad_request("message to edit not found"));
        }
        let Some(sent) = self.find_sent(chat_id, message_id) else {
            return Err(Refusal::bad_request("message can't be edited"));
        };
        let is_same = match (sent.has_buttons_now, buttons.is_empty()) {
            (false, is_removal) => is_removal,
            (true, true) => false,
            (true, false) => sent.buttons == buttons,
        };
        if is_same {
            return Err(Refusal::bad_request(
                "message is not modified: specified new message content and reply markup are exactly the same as a \
                 current content and reply markup of the message",
            ));
        }
        sent.has_buttons_now = !buttons.is_empty();
        let keyboard = sent.has_buttons_now.then(|| keyboard_json(&buttons));
        if sent.has_buttons_now {
            sent.buttons = buttons;
        }
        let date = self.date();
        let chat = self.writable_chat(chat_id)?;
        let Some(message) = chat.messages.get_mut(&message_id).and_then(Value::as_object_mut) else {
            return Err(Refusal::bad_request("message to edit not found"));
        };
        message.remove("reply_markup");
        message.extend(keyboard.map(|keyboard| ("reply_markup".to_owned(), keyboard)));
        message.insert("edit_date".to_owned(), date.into());
        Ok(Value::Object(message.clone()))
    }

    pub(super) fn get_chat_member(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let chat = parameters.chat()?;
        let user =
            parameters.integer("user_id").ok_or_else(|| Refusal::bad_request("invalid user_id specified"))?;
        let (bot_id, bot) = (self.bot_id, self.bot_json());
        let chat = self.writable_chat(chat)?;
        if user == bot_id {
            return Ok(json!({ "user": bot, "status": chat.bot_status() }));
        }
        let status = match chat.members.iter().position(|member| *member == user) {
            Some(0) if chat.kind != ChatKind::Private => "creator",
            Some(_) => "member",
            None => "left",
        };
        Ok(json!({ "user": user_json(user), "status": status }))
    }
}
