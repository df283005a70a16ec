//! Messages and changes in groups. A bot sees only what its privacy mode shows it.

use jiff::Timestamp;

use super::account::TelegramAccount;
use super::wire::{Chat, ChatMemberChange, Message};
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::rooms::{RoomChange, RoomUpdate};
use crate::conversation::transcript::UserAddress;

/// Text of a message in a group, without what only addresses the bot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AddressedText {
    pub(super) text: String,
    pub(super) is_addressed: bool,
}

impl TelegramAccount {
    /// Returns the update of a room that a message is part of; `None` if it is a message in a private chat.
    pub(super) fn room_update(&self, chat: &Chat, change: RoomChange) -> Option<RoomUpdate> {
        let address = room_address(chat.id).filter(|_| chat.is_group())?;
        Some(RoomUpdate { address, title: chat.title.clone().unwrap_or_default(), change })
    }

    /// Reads that the group has become a supergroup with another id.
    pub(super) fn read_move(&self, message: &Message, now: Timestamp) -> Option<ReceivedMessage> {
        let to = room_address(message.migrate_to_chat_id?)?;
        let room = self.room_update(&message.chat, RoomChange::Moved(to))?;
        Some(ReceivedMessage { room: Some(room), ..self.empty_message(message.from.as_ref()?, now)? })
    }

    /// Reads that somebody added the bot to a group, or removed it.
    pub(super) fn read_group_membership(
        &self,
        change: &ChatMemberChange,
        via: MessageSource,
        (at, now): (Timestamp, Timestamp),
    ) -> Option<ReceivedMessage> {
        let what = match change.new_chat_member.status.as_str() {
            "member" | "administrator" => RoomChange::Joined,
            "left" | "kicked" => RoomChange::Left,
            _ => return None,
        };
        let room = self.room_update(&change.chat, what)?;
        Some(ReceivedMessage {
            via,
            provider_at: at,
            room: Some(room),
            ..self.empty_message(&change.from, now)?
        })
    }

    /// Returns the text of a message in a group, and whether it is meant for the bot: it mentions the bot, begins with its
    /// name, replies to it, or is a command for it. `None` for a command for another bot.
    pub(super) fn read_addressed_text(
        &self,
        message: &Message,
        text: &str,
        username: Option<&str>,
    ) -> Option<AddressedText> {
        let replies_to_bot = message
            .reply_to_message
            .as_ref()
            .and_then(|quoted| quoted.from.as_ref())
            .is_some_and(|author| author.id == self.token.bot_id());
        if let Some(command) = text.strip_prefix('/') {
            let word = command.split(char::is_whitespace).next().unwrap_or_default();
            let is_ours = match word.split_once('@') {
                Some((_, bot)) => username.is_some_and(|name| name.eq_ignore_ascii_case(bot)),
                None => true,
            };
            return is_ours.then(|| AddressedText { text: text.to_owned(), is_addressed: true });
        }
        match username.and_then(|name| without_mention(text, name)) {
            Some(text) => Some(AddressedText { text, is_addressed: true }),
            None => Some(AddressedText { text: text.to_owned(), is_addressed: replies_to_bot }),
        }
    }
}

/// Returns the address of a group.
fn room_address(chat: i64) -> Option<UserAddress> {
    UserAddress::parse(&format!("{}{chat}", channel_list::TELEGRAM_PREFIX)).filter(UserAddress::is_group)
}

/// Returns the text without the mention of a bot; `None` if it does not mention the bot. The mention of a longer name that
/// begins with this name is none.
fn without_mention(text: &str, username: &str) -> Option<String> {
    let mention = format!("@{username}");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = String::new();
    let mut is_mentioned = false;
    for word in text.split_inclusive(char::is_whitespace) {
        let is_mention = word.get(..mention.len()).is_some_and(|start| start.eq_ignore_ascii_case(&mention))
            && !word[mention.len()..].starts_with(is_name);
        is_mentioned |= is_mention;
        rest.push_str(if is_mention { word[mention.len()..].trim_start_matches([',', ':']) } else { word });
    }
    is_mentioned.then(|| rest.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mention_is_removed_from_the_text() {
        for (text, expected) in [
            ("@home_bot add heat", Some("add heat")),
            ("@Home_Bot: add heat", Some("add heat")),
            ("add heat please, @home_bot!", Some("add heat please, !")),
            ("@home_bot", Some("")),
            ("@home_bots add heat", None),
            ("mail sam@home_bot", None),
            ("add heat", None),
        ] {
            assert_eq!(without_mention(text, "home_bot").as_deref(), expected, "{text}");
        }
    }
}
