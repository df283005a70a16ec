//! Chats with their messages, the bot's membership in them, and what the bot sees of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::api::Refusal;
use super::entities;
use super::server::{TelegramState, user_json};

/// Id of the account in whose name Telegram shows anonymous administrators.
const ANONYMOUS_ADMIN: i64 = 1_087_968_824;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatKind {
    Private,
    /// Basic group, which may become a supergroup.
    Group,
    Supergroup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BotMembership {
    /// The bot was never in the group, or the person has not started it.
    Absent,
    Member,
    Administrator,
    /// The bot was removed from the group, or the person has blocked it.
    Removed,
}

/// Chat with the messages that people and the bot wrote.
#[derive(Debug)]
pub(super) struct FakeChat {
    pub(super) kind: ChatKind,
    /// Name of a group.
    pub(super) title: String,
    pub(super) members: Vec<i64>,
    pub(super) bot: BotMembership,
    /// Whether privacy mode was off when the bot joined.
    pub(super) shows_all_to_bot: bool,
    pub(super) migrated_to: Option<i64>,
    /// Messages by their number in the chat, as the API shows them.
    pub(super) messages: BTreeMap<i64, Value>,
    pub(super) bot_reactions: BTreeMap<i64, String>,
    /// Reactions of people by message and person.
    pub(super) reactions: BTreeMap<(i64, i64), String>,
    pub(super) typing_count: usize,
}

impl ChatKind {
    /// Returns the kind that Telegram's ids show: `-100...` is a supergroup.
    pub(super) fn from_id(chat: i64) -> Self {
        match chat {
            0.. => Self::Private,
            _ if chat.to_string().starts_with("-100") => Self::Supergroup,
            _ => Self::Group,
        }
    }

    fn api_name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Group => "group",
            Self::Supergroup => "supergroup",
        }
    }
}

impl FakeChat {
    pub(super) fn new(chat: i64, members: &[i64]) -> Self {
        Self {
            kind: ChatKind::from_id(chat),
            title: format!("Group {chat}"),
            members: members.to_vec(),
            bot: BotMembership::Absent,
            shows_all_to_bot: false,
            migrated_to: None,
            messages: BTreeMap::new(),
            bot_reactions: BTreeMap::new(),
            reactions: BTreeMap::new(),
            typing_count: 0,
        }
    }

    fn has_bot(&self) -> bool {
        matches!(self.bot, BotMembership::Member | BotMembership::Administrator) && self.migrated_to.is_none()
    }

    /// Returns the status of the bot as `getChatMember` and `my_chat_member` name it.
    pub(super) fn bot_status(&self) -> &'static str {
        match (self.bot, self.kind) {
            (BotMembership::Member, _) => "member",
            (BotMembership::Administrator, _) => "administrator",
            (BotMembership::Removed, ChatKind::Private | ChatKind::Supergroup) => "kicked",
            (BotMembership::Removed, ChatKind::Group) | (BotMembership::Absent, _) => "left",
        }
    }
}

impl TelegramState {
    pub(super) fn chat_json(&self, chat: i64) -> Value {
        let kind = self.chats.get(&chat).map_or_else(|| ChatKind::from_id(chat), |chat| chat.kind);
        match kind {
            ChatKind::Private => {
                json!({ "id": chat, "first_name": format!("Person {chat}"), "type": kind.api_name() })
            }
            ChatKind::Group | ChatKind::Supergroup => {
                let title = self.chats.get(&chat).map_or("", |chat| chat.title.as_str());
                json!({ "id": chat, "title": title, "type": kind.api_name() })
            }
        }
    }

    /// Returns a chat to which the bot may write.
    pub(super) fn writable_chat(&mut self, chat: i64) -> Result<&mut FakeChat, Refusal> {
        let is_known = self.chats.values().any(|group| group.members.contains(&chat));
        let not_started = || {
            if chat > 0 && is_known {
                Refusal::forbidden("bot can't initiate conversation with a user")
            } else {
                Refusal::bad_request("chat not found")
            }
        };
        let found = self.chats.get_mut(&chat).ok_or_else(not_started)?;
        if let Some(new_id) = found.migrated_to {
            return Err(Refusal::migrated(new_id));
        }
        match (found.bot, found.kind) {
            (BotMembership::Member | BotMembership::Administrator, _) => Ok(found),
            (BotMembership::Absent, _) => Err(not_started()),
            (BotMembership::Removed, ChatKind::Private) => {
                Err(Refusal::forbidden("bot was blocked by the user"))
            }
            (BotMembership::Removed, kind) => {
                Err(Refusal::forbidden(&format!("bot was kicked from the {} chat", kind.api_name())))
            }
        }
    }

    /// Adds a message to a chat, and returns it as the API shows it. Its number follows the last one of the chat.
    pub(super) fn add_message(&mut self, chat: i64, from: &Value, content: &Value) -> (i64, Value) {
        let mut message = json!({ "from": from, "chat": self.chat_json(chat), "date": self.date() });
        merge(&mut message, content);
        let messages = &mut self.chats.entry(chat).or_insert_with(|| FakeChat::new(chat, &[])).messages;
        let id = messages.last_key_value().map_or(1, |(last, _)| last + 1);
        message["message_id"] = id.into();
        messages.insert(id, message.clone());
        (id, message)
    }

    /// Adds a message of a person, and reports it to the bot if the bot sees it.
    pub(super) fn receive_message(&mut self, chat: i64, person: i64, content: &Value) -> i64 {
        let (id, message) = self.add_message(chat, &user_json(person), content);
        if self.is_visible(chat, &message) {
            self.updates.push("message", message);
        }
        id
    }

    /// Adds a message that Telegram writes about a change of the group, and reports it to a bot in the group.
    pub(super) fn receive_service_message(&mut self, chat: i64, person: Option<i64>, content: &Value) {
        let from = person.map_or_else(
            || json!({ "id": ANONYMOUS_ADMIN, "is_bot": true, "first_name": "Group", "username": "GroupAnonymousBot" }),
            user_json,
        );
        let mut content = content.clone();
        if person.is_none() {
            content["sender_chat"] = self.chat_json(chat);
        }
        let (_, message) = self.add_message(chat, &from, &content);
        if self.chats.get(&chat).is_some_and(FakeChat::has_bot) {
            self.updates.push("message", message);
        }
    }

    /// Returns whether the bot sees a message: in privacy mode, only commands, mentions and replies.
    fn is_visible(&self, chat: i64, message: &Value) -> bool {
        let Some(chat) = self.chats.get(&chat).filter(|chat| chat.has_bot()) else { return false };
        let is_reply = message["reply_to_message"]["from"]["id"] == self.bot_id;
        let text = message["text"].as_str().unwrap_or_default();
        chat.kind == ChatKind::Private
            || chat.bot == BotMembership::Administrator
            || chat.shows_all_to_bot
            || is_reply
            || entities::are_addressed(text, &self.username)
    }

    /// Changes the membership of the bot, and reports the change.
    pub(super) fn change_membership(&mut self, chat: i64, person: i64, to: BotMembership) {
        let has_privacy_mode = self.has_privacy_mode;
        let changed = self.chats.entry(chat).or_insert_with(|| FakeChat::new(chat, &[person]));
        if changed.bot == to {
            return;
        }
        let old = changed.bot_status();
        if to == BotMembership::Member {
            changed.shows_all_to_bot = !has_privacy_mode;
        }
        changed.bot = to;
        let new = changed.bot_status();
        let bot = self.bot_json();
        let mut new_member = json!({ "user": bot, "status": new });
        if new == "kicked" {
            new_member["until_date"] = 0.into();
        }
        let change = json!({
            "chat": self.chat_json(chat), "from": user_json(person), "date": self.date(),
            "old_chat_member": { "user": bot, "status": old }, "new_chat_member": new_member,
        });
        self.updates.push("my_chat_member", change);
    }
}

/// Removes a field of an object.
pub(super) fn remove_field(object: &mut Value, name: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(name);
    }
}

/// Adds the fields of an object to another one.
fn merge(object: &mut Value, fields: &Value) {
    if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
        object.extend(fields.clone());
    }
}
