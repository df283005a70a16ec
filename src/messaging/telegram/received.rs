//! Conversion of updates to received messages: what people write and press, and changes of chats with the bot.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::account::TelegramAccount;
use super::buttons;
use super::groups::AddressedText;
use super::port::PRESS_PREFIX;
use super::wire::{CallbackQuery, ChatMemberChange, Message, Person, Update};
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::rooms::RoomChange;
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{OptKeyword, UserAddress};

/// Number of hexadecimal digits of the chat in an id.
const CHAT_DIGITS: usize = 16;

impl TelegramAccount {
    /// Returns the id of a message: its number in the chat, and a hash of the chat, because several chats have the same
    /// numbers and an id is no place for the account of a person.
    pub(super) fn message_id(&self, chat: i64, number: i64) -> String {
        let digest = Sha256::digest(format!("{}:{chat}", self.token.bot_id()).as_bytes());
        let chat: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{number}.{}", &chat[..CHAT_DIGITS])
    }

    /// Converts an update; `None` if it is no message of a person and no change of a room. `username` is the name of the
    /// bot, by which a group mentions it.
    pub(super) fn received_message(
        &self,
        update: &Update,
        username: Option<&str>,
        via: MessageSource,
        now: Timestamp,
    ) -> Option<ReceivedMessage> {
        if let Some(message) = &update.message {
            return self.read_message(message, username, via, now);
        }
        if let Some(query) = &update.callback_query {
            return self.read_press(query, now);
        }
        self.read_membership(update.my_chat_member.as_ref()?, update.update_id, via, now)
    }

    fn read_message(
        &self,
        message: &Message,
        username: Option<&str>,
        via: MessageSource,
        now: Timestamp,
    ) -> Option<ReceivedMessage> {
        if message.migrate_to_chat_id.is_some() {
            return self.read_move(message, now);
        }
        let from = message.from.as_ref().filter(|from| is_person(from) && message.sender_chat.is_none())?;
        let media = message.media();
        let sticker = message.sticker.as_ref().and_then(|sticker| sticker.emoji.clone());
        let text = message.text.as_ref().or(message.caption.as_ref()).or(sticker.as_ref());
        let (text, room) = match message.chat.is_private() {
            true => (text.cloned(), None),
            false => {
                let text = text.map_or("", String::as_str);
                let AddressedText { text, is_addressed } =
                    self.read_addressed_text(message, text, username)?;
                // A mention alone asks what the bot can do.
                let is_bare = is_addressed && text.is_empty() && media.is_empty();
                let text = if is_bare { "help".to_owned() } else { text };
                (Some(text), Some(self.room_update(&message.chat, RoomChange::Message { is_addressed })?))
            }
        };
        let body = text.map_or_else(String::new, |text| plain_command(&text));
        if body.is_empty() && media.is_empty() {
            // A service message, such as a pinned message.
            return None;
        }
        // What was forwarded or written by a bot is not the person's own words.
        let is_own = message.forward_origin.is_none() && message.via_bot.is_none();
        let authority = if is_own { FieldAuthority::Certain } else { FieldAuthority::Unverified };
        Some(ReceivedMessage {
            external_id: self.message_id(message.chat.id, message.message_id),
            body,
            media,
            via,
            authority,
            room,
            provider_at: sent_at(message.date, now),
            ..self.empty_message(from, now)?
        })
    }

    /// Reads a press. It has no time of its own, but names its message, so it is never older than that.
    fn read_press(&self, query: &CallbackQuery, now: Timestamp) -> Option<ReceivedMessage> {
        let message = query.message.as_ref()?;
        let room = match message.chat.is_private() {
            true if message.chat.id == query.from.id => None,
            true => return None,
            false => Some(self.room_update(&message.chat, RoomChange::Message { is_addressed: true })?),
        };
        if !is_person(&query.from) {
            return None;
        }
        let (pressed, choice) = buttons::parse_press(query.data.as_deref()?)?;
        Some(ReceivedMessage {
            external_id: format!("{PRESS_PREFIX}{}", query.id),
            body: choice.to_text(),
            pressed: Some(pressed),
            room,
            ..self.empty_message(&query.from, now)?
        })
    }

    /// Reads that a person blocked the bot, or no longer blocks it.
    fn read_membership(
        &self,
        change: &ChatMemberChange,
        update: i64,
        via: MessageSource,
        now: Timestamp,
    ) -> Option<ReceivedMessage> {
        if !change.chat.is_private() {
            return self.read_group_membership(change, via, (sent_at(change.date, now), now));
        }
        if !is_person(&change.from) {
            return None;
        }
        let keyword = match change.new_chat_member.status.as_str() {
            "kicked" => OptKeyword::Out,
            "member" => OptKeyword::In,
            _ => return None,
        };
        Some(ReceivedMessage {
            external_id: format!("membership.{update}"),
            via,
            carrier_word: Some(keyword),
            provider_at: sent_at(change.date, now),
            ..self.empty_message(&change.from, now)?
        })
    }

    pub(super) fn empty_message(&self, from: &Person, now: Timestamp) -> Option<ReceivedMessage> {
        Some(ReceivedMessage {
            channel: channel_list::TELEGRAM,
            external_id: String::new(),
            from: UserAddress::parse(&format!("{}{}", channel_list::TELEGRAM_PREFIX, from.id))?,
            to: self.address(),
            body: String::new(),
            media: Vec::new(),
            via: MessageSource::Poll,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            pressed: None,
            room: None,
            provider_at: now,
            received_at: now,
        })
    }
}

impl Message {
    /// Returns what is attached. The files themselves are not fetched.
    fn media(&self) -> Vec<MessageMedia> {
        let kinds = [
            (&self.photo, "image/jpeg"),
            (&self.voice, "audio/ogg"),
            (&self.audio, "audio/mpeg"),
            (&self.video, "video/mp4"),
            (&self.video_note, "video/mp4"),
            (&self.animation, "video/mp4"),
            (&self.document, "application/octet-stream"),
            (&self.location, "application/geo+json"),
            (&self.contact, "text/vcard"),
        ];
        let attached = kinds.into_iter().filter(|(content, _)| content.is_some());
        let mut types: Vec<&str> = attached.map(|(_, content_type)| content_type).collect();
        if self.sticker.as_ref().is_some_and(|sticker| sticker.emoji.is_none()) {
            types.push("image/webp");
        }
        let media =
            |content_type: &str| MessageMedia { url: String::new(), content_type: content_type.to_owned() };
        types.into_iter().map(media).collect()
    }
}

pub(super) fn is_person(sender: &Person) -> bool {
    !sender.is_bot && sender.id > 0
}

/// Returns the time of a message in seconds as a timestamp, and ours if it is none.
fn sent_at(seconds: i64, now: Timestamp) -> Timestamp {
    Timestamp::from_second(seconds)
        .ok()
        .filter(|at| at.duration_since(now) < SignedDuration::from_hours(24))
        .unwrap_or(now)
}

/// Returns the text without the form of a command: `/help@home_bot` is "help", and `/start link-123456`, which a link
/// makes the app send, is "link 123456".
fn plain_command(text: &str) -> String {
    let Some(command) = text.strip_prefix('/') else { return text.to_owned() };
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let word = word.split('@').next().unwrap_or(word);
    match (word, rest.trim()) {
        ("start", payload) if !payload.is_empty() => payload.replace(['-', '_'], " "),
        (word, "") => word.to_owned(),
        (word, rest) => format!("{word} {rest}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::messaging::telegram::BotToken;

    fn account() -> TelegramAccount {
        let token = BotToken::parse("501:AAE").unwrap();
        TelegramAccount { api_url: "https://telegram.invalid".to_owned(), token, webhook_url: None }
    }

    fn receive(update: Value) -> Option<ReceivedMessage> {
        let update: Update = serde_json::from_value(update).unwrap();
        account().received_message(
            &update,
            Some("home_bot"),
            MessageSource::Poll,
            Timestamp::from_second(1000).unwrap(),
        )
    }

    fn private_message(fields: &Value) -> Value {
        let mut message = json!({
            "message_id": 7,
            "date": 990,
            "from": { "id": 9, "is_bot": false, "first_name": "Sam" },
            "chat": { "id": 9, "type": "private" },
        });
        for (name, value) in fields.as_object().unwrap() {
            message[name] = value.clone();
        }
        json!({ "update_id": 81, "message": message })
    }

    #[test]
    fn private_text_is_a_message_of_its_account() {
        let message = receive(private_message(&json!({ "text": "add heat" }))).unwrap();
        assert_eq!(message.from.to_text(), "telegram:9");
        assert_eq!((message.to.as_str(), message.body.as_str()), ("telegram:501", "add heat"));
        assert_eq!((message.provider_at.as_second(), message.authority), (990, FieldAuthority::Certain));
        assert!(message.external_id.starts_with("7.") && !message.external_id.contains(".9"));
    }

    #[test]
    fn only_people_are_read() {
        for fields in [
            json!({ "text": "yes", "chat": { "id": -1001, "type": "channel" } }),
            json!({ "text": "yes", "from": { "id": 9, "is_bot": true } }),
            json!({ "text": "yes", "sender_chat": { "id": -1002, "type": "channel" } }),
            json!({ "pinned_message": {} }),
        ] {
            assert_eq!(receive(private_message(&fields)), None, "{fields}");
        }
        let edited = json!({ "update_id": 1, "edited_message": { "message_id": 7, "text": "yes" } });
        assert_eq!(receive(edited), None);
    }

    #[test]
    fn edits_forwards_and_anonymous_admins_of_a_group_may_not_act() {
        let group = json!({ "id": -500, "type": "group", "title": "Family" });
        let write = |fields: Value| {
            let mut update = private_message(&fields);
            update["message"]["chat"] = group.clone();
            update
        };
        let own = receive(write(json!({ "text": "@home_bot yes" }))).unwrap();
        assert_eq!((own.body.as_str(), own.authority), ("yes", FieldAuthority::Certain));
        let room = own.room.unwrap();
        assert_eq!((room.address.to_text().as_str(), room.title.as_str()), ("telegram:-500", "Family"));
        assert_eq!(room.change, RoomChange::Message { is_addressed: true });
        let forwarded = json!({ "text": "@home_bot yes", "forward_origin": { "type": "user" } });
        assert_eq!(receive(write(forwarded)).unwrap().authority, FieldAuthority::Unverified);
        assert_eq!(receive(write(json!({ "text": "@home_bot yes", "sender_chat": group.clone() }))), None);
        let mut edited = write(json!({ "text": "@home_bot yes" }));
        edited["edited_message"] = edited["message"].take();
        assert_eq!(receive(edited), None);
    }

    #[test]
    fn forwarded_text_may_not_act() {
        for origin in ["forward_origin", "via_bot"] {
            let fields = json!({ "text": "yes", origin: { "type": "user", "id": 3, "is_bot": true } });
            assert_eq!(receive(private_message(&fields)).unwrap().authority, FieldAuthority::Unverified);
        }
    }

    #[test]
    fn command_is_read_as_its_words() {
        for (text, expected) in [
            ("/start", "start"),
            ("/start link-123456", "link 123456"),
            ("/help@home_bot", "help"),
            ("/add heat 1995", "add heat 1995"),
            ("1/2", "1/2"),
        ] {
            assert_eq!(receive(private_message(&json!({ "text": text }))).unwrap().body, expected);
        }
    }

    #[test]
    fn voice_has_no_text_and_a_sticker_is_its_emoji() {
        let voice = receive(private_message(&json!({ "voice": { "duration": 3 } }))).unwrap();
        assert_eq!((voice.body.as_str(), voice.media[0].content_type.as_str()), ("", "audio/ogg"));
        let sticker = receive(private_message(&json!({ "sticker": { "emoji": "👍" } }))).unwrap();
        assert_eq!((sticker.body.as_str(), sticker.media.len()), ("👍", 0));
        let picture = receive(private_message(&json!({ "photo": [], "caption": "this one?" }))).unwrap();
        assert_eq!((picture.body.as_str(), picture.media.len()), ("this one?", 1));
    }

    #[test]
    fn press_counts_as_the_text_of_its_choice() {
        let press = |data: &str, person: i64| {
            json!({ "update_id": 5, "callback_query": {
                "id": "991", "from": { "id": person }, "data": data,
                "message": { "message_id": 8, "chat": { "id": 9, "type": "private" } },
            }})
        };
        let message = receive(press("12.ab.yes", 9)).unwrap();
        assert_eq!((message.body.as_str(), message.pressed.unwrap().message.0), ("yes", 12));
        assert_eq!(receive(press("12.ab.yes", 10)), None);
        assert_eq!(receive(press("delete", 9)), None);
    }

    #[test]
    fn person_who_blocks_the_bot_opts_out() {
        let change = |status: &str| {
            json!({ "update_id": 6, "my_chat_member": {
                "chat": { "id": 9, "type": "private" }, "from": { "id": 9 }, "date": 995,
                "new_chat_member": { "status": status },
            }})
        };
        assert_eq!(receive(change("kicked")).unwrap().carrier_word, Some(OptKeyword::Out));
        assert_eq!(receive(change("member")).unwrap().carrier_word, Some(OptKeyword::In));
        assert_eq!(receive(change("restricted")), None);
    }
}
