//! What people do: they write to the bot, press buttons, react, and block the bot.

use serde_json::{Value, json};

use super::chats::{BotMembership, ChatKind, FakeChat, remove_field};
use super::entities::text_json;
use super::server::{FakeTelegram, TelegramState, user_json};

/// Press of a button, which spins until the bot answers.
#[derive(Debug)]
pub(super) struct FakePress {
    pub(super) id: String,
    pub(super) is_answered: bool,
}

impl FakeTelegram {
    /// Opens the private chat with `/start`, as a link to the bot does, and returns the number of the message.
    pub fn start_bot(&self, person: i64, payload: &str) -> i64 {
        self.text(person, format!("/start {payload}").trim_end())
    }

    /// Writes a text to the bot, and returns its number. The first one opens the private chat.
    pub fn text(&self, person: i64, text: &str) -> i64 {
        self.write_private(person, &text_json(text))
    }

    /// Forwards a text of another person to the bot.
    pub fn forward_text(&self, person: i64, text: &str) -> i64 {
        let mut content = text_json(text);
        let date = self.lock_state().date();
        content["forward_origin"] =
            json!({ "type": "user", "sender_user": user_json(person + 1), "date": date - 60 });
        self.write_private(person, &content)
    }

    /// Edits a text to the bot, and reports it with the number of the original.
    pub fn edit_text(&self, person: i64, message_id: i64, text: &str) {
        self.change_state(|state| {
            let date = state.date();
            let chat = state.chats.get_mut(&person);
            let Some(message) = chat.and_then(|chat| chat.messages.get_mut(&message_id)) else { return };
            if message["from"]["id"] != person {
                return;
            }
            let content = text_json(text);
            message["text"] = content["text"].clone();
            match content.get("entities") {
                Some(entities) => message["entities"] = entities.clone(),
                None => remove_field(message, "entities"),
            }
            message["edit_date"] = date.into();
            let message = message.clone();
            state.updates.push("edited_message", message);
        });
    }

    pub fn send_voice(&self, person: i64) -> i64 {
        let voice = json!({ "duration": 3, "mime_type": "audio/ogg", "file_size": 9_000 });
        self.write_private(person, &json!({ "voice": with_file_id(voice, "voice") }))
    }

    pub fn send_sticker(&self, person: i64, emoji: &str) -> i64 {
        let sticker = json!({
            "width": 512, "height": 512, "emoji": emoji, "set_name": "Simulated", "is_animated": false,
            "is_video": false, "type": "regular", "file_size": 9_000,
        });
        self.write_private(person, &json!({ "sticker": with_file_id(sticker, "sticker") }))
    }

    pub fn send_photo(&self, person: i64, caption: Option<&str>) -> i64 {
        let size = |width: u32, id| {
            with_file_id(json!({ "width": width, "height": width, "file_size": 9 * width }), id)
        };
        let mut content = json!({ "photo": [size(90, "small"), size(800, "large")] });
        if let Some(caption) = caption {
            content["caption"] = caption.into();
        }
        self.write_private(person, &content)
    }

    /// Presses a button of a message, and returns whether the person sees such a button there.
    pub fn press(&self, person: i64, chat: i64, message_id: i64, label: &str) -> bool {
        self.change_state(|state| {
            let is_inside = state.chats.get(&chat).is_some_and(|chat| chat.members.contains(&person));
            let Some(sent) =
                state.find_sent(chat, message_id).filter(|sent| is_inside && sent.has_buttons_now)
            else {
                return false;
            };
            let button = sent.buttons.iter().flatten().find(|button| button.label == label);
            let Some(data) = button.map(|button| button.data.clone()) else { return false };
            state.add_press(person, chat, message_id, &data);
            true
        })
    }

    /// Presses a button that nobody sees, as a forged app can.
    pub fn press_data(&self, person: i64, chat: i64, message_id: i64, data: &str) {
        self.change_state(|state| state.add_press(person, chat, message_id, data));
    }

    /// Sets the reaction of a person to a message; an empty emoji removes it. In groups, only an administrator bot gets
    /// the update.
    pub fn react(&self, person: i64, chat: i64, message_id: i64, emoji: &str) {
        self.change_state(|state| {
            let Some(reacted) = state.chats.get_mut(&chat) else { return };
            if !reacted.messages.contains_key(&message_id) {
                return;
            }
            let old = match emoji {
                "" => reacted.reactions.remove(&(message_id, person)),
                emoji => reacted.reactions.insert((message_id, person), emoji.to_owned()),
            };
            let is_visible = match reacted.kind {
                ChatKind::Private => reacted.bot == BotMembership::Member,
                ChatKind::Group | ChatKind::Supergroup => reacted.bot == BotMembership::Administrator,
            };
            if !is_visible {
                return;
            }
            let reaction = |emoji: &str| json!({ "type": "emoji", "emoji": emoji });
            let new = Some(emoji).filter(|emoji| !emoji.is_empty());
            let change = json!({
                "chat": state.chat_json(chat), "message_id": message_id, "user": user_json(person),
                "date": state.date(),
                "old_reaction": old.as_deref().map(reaction).into_iter().collect::<Vec<_>>(),
                "new_reaction": new.map(reaction).into_iter().collect::<Vec<_>>(),
            });
            state.updates.push("message_reaction", change);
        });
    }

    /// Blocks the bot. It cannot write to the person until the person unblocks it or writes to it.
    pub fn block_bot(&self, person: i64) {
        self.change_state(|state| state.change_membership(person, person, BotMembership::Removed));
    }

    pub fn unblock_bot(&self, person: i64) {
        self.change_state(|state| {
            if state.chats.get(&person).is_some_and(|chat| chat.bot == BotMembership::Removed) {
                state.change_membership(person, person, BotMembership::Member);
            }
        });
    }

    fn write_private(&self, person: i64, content: &Value) -> i64 {
        self.change_state(|state| {
            state.open_private_chat(person);
            state.receive_message(person, person, content)
        })
    }
}

impl TelegramState {
    /// Opens the private chat. Telegram reports it only if the bot was blocked before.
    fn open_private_chat(&mut self, person: i64) {
        let chat = self.chats.entry(person).or_insert_with(|| FakeChat::new(person, &[person]));
        if chat.bot == BotMembership::Removed {
            self.change_membership(person, person, BotMembership::Member);
        } else {
            chat.bot = BotMembership::Member;
        }
    }

    fn add_press(&mut self, person: i64, chat: i64, message_id: i64, data: &str) {
        let message = self.chats.get(&chat).and_then(|chat| chat.messages.get(&message_id)).cloned();
        // A message that Telegram cannot show has the date 0.
        let message = message
            .unwrap_or_else(|| json!({ "chat": self.chat_json(chat), "message_id": message_id, "date": 0 }));
        let id = format!("{}", 4_300_000_000_000_001_u64 + self.presses.len() as u64);
        let query = json!({
            "id": id, "from": user_json(person), "message": message, "chat_instance": format!("{}", chat ^ 0x5ca1ab1e),
            "data": data,
        });
        self.presses.push(FakePress { id, is_answered: false });
        self.updates.push("callback_query", query);
    }
}

fn with_file_id(mut file: Value, id: &str) -> Value {
    file["file_id"] = format!("AgAD-{id}").into();
    file["file_unique_id"] = format!("unique-{id}").into();
    file
}
