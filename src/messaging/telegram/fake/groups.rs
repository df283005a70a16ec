//! What people do in groups: they write, reply, and add or remove the bot.

use serde_json::json;

use super::chats::{BotMembership, ChatKind, FakeChat, remove_field};
use super::entities::text_json;
use super::server::FakeTelegram;

impl FakeTelegram {
    /// Creates a group without the bot. The first member owns it. An id that begins with `-100` makes it a supergroup.
    pub fn create_group(&self, chat: i64, members: &[i64]) {
        self.change_state(|state| drop(state.chats.insert(chat, FakeChat::new(chat, members))));
    }

    /// Gives a group another name. The bot sees it with the next message there.
    pub fn rename_group(&self, chat: i64, title: &str) {
        self.change_state(|state| {
            if let Some(group) = state.chats.get_mut(&chat) {
                title.clone_into(&mut group.title);
            }
        });
    }

    /// Adds the bot to a group, which then has the current privacy mode.
    pub fn add_bot_to_group(&self, chat: i64, person: i64) {
        self.change_state(|state| {
            state.change_membership(chat, person, BotMembership::Member);
            let bot = state.bot_json();
            let content = json!({ "new_chat_member": bot, "new_chat_members": [bot] });
            state.receive_service_message(chat, Some(person), &content);
        });
    }

    /// Makes the bot an administrator, which sees all messages and the reactions.
    pub fn promote_bot(&self, chat: i64, person: i64) {
        self.change_state(|state| state.change_membership(chat, person, BotMembership::Administrator));
    }

    pub fn remove_bot_from_group(&self, chat: i64, person: i64) {
        self.change_state(|state| state.change_membership(chat, person, BotMembership::Removed));
    }

    /// Writes a text in a group, and returns its number.
    pub fn group_text(&self, chat: i64, person: i64, text: &str) -> i64 {
        self.change_state(|state| state.receive_message(chat, person, &text_json(text)))
    }

    /// Replies to a message in a group, and returns the number of the reply.
    pub fn reply_in_group(&self, chat: i64, person: i64, to_message: i64, text: &str) -> i64 {
        self.change_state(|state| {
            let mut content = text_json(text);
            let target = state.chats.get(&chat).and_then(|chat| chat.messages.get(&to_message));
            if let Some(mut target) = target.cloned() {
                // Telegram shows only one level of replies.
                remove_field(&mut target, "reply_to_message");
                content["reply_to_message"] = target;
            }
            state.receive_message(chat, person, &content)
        })
    }

    /// Sets the privacy mode. As at Telegram, a group follows only after the bot was removed and added again.
    pub fn set_privacy_mode(&self, on: bool) {
        self.change_state(|state| state.has_privacy_mode = on);
    }

    /// Makes a basic group a supergroup with another id. The old id is refused from then on.
    pub fn migrate_group(&self, from: i64, to: i64) {
        self.change_state(|state| {
            let Some(old) = state.chats.get_mut(&from) else { return };
            let owner = old.members.first().copied().unwrap_or_default();
            let mut new = FakeChat::new(to, &old.members);
            (new.kind, new.bot, new.shows_all_to_bot) = (ChatKind::Supergroup, old.bot, old.shows_all_to_bot);
            state.chats.insert(to, new);
            state.receive_service_message(from, Some(owner), &json!({ "migrate_to_chat_id": to }));
            state.receive_service_message(to, None, &json!({ "migrate_from_chat_id": from }));
            if let Some(old) = state.chats.get_mut(&from) {
                old.migrated_to = Some(to);
            }
        });
    }
}
