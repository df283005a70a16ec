//! Addresses of messages to users, and the formatting of these messages for SMS.

use jiff::Timestamp;

use crate::conversation::channel::{Alphabet, ContentSupport};
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::senders::Senders;
use crate::conversation::text::message_format::{self, EmojiPolicy, MessagePage};
use crate::conversation::text::segments::{SegmentCount, spell_in_fewer_segments};
use crate::conversation::transcript::{Address, AddressId, EventId, TurnId, User, UserAddress, UserId};
use crate::conversation::turn::FallbackReply;
use crate::store::people::addresses::{self, MessageRoute};
use crate::store::people::users;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
use crate::store::turns::finished_turns::TurnEnd;
use crate::store::{Conn, QueryResult};

/// Address of the messages to one user, on the same transport as the user's inbound message.
#[derive(Debug, Clone)]
pub(super) struct ReplyAddress {
    pub(super) user: User,
    /// Prefix of message keys, such as `turn:42`.
    source: String,
    turn: Option<TurnId>,
    address: Option<(AddressId, UserAddress)>,
    to: Address,
    from: Address,
    /// Channel's id of the message that replies quote: in a room, the last message of the turn.
    quotes: Option<String>,
    /// Room to which the messages are sent; `None` for a private chat.
    room: Option<UserId>,
    emoji: EmojiPolicy,
}

impl ReplyAddress {
    /// Returns the reply address of the sender of `events`, which are the messages of one turn.
    pub(super) fn from_turn(user: User, turn: TurnId, events: &[InboundEvent]) -> Self {
        Self { source: format!("turn:{turn}"), turn: Some(turn), ..Self::from_messages(user, events) }
    }

    /// Returns the same address for a later run of the turn, whose messages are sent in addition to those of the
    /// earlier runs.
    pub(super) fn with_run(self, turn: TurnId, run: u32) -> Self {
        if run <= 1 { self } else { Self { source: format!("turn:{turn}:run:{run}"), ..self } }
    }

    fn from_messages(user: User, events: &[InboundEvent]) -> Self {
        let from = match user.test {
            true => Address::console(),
            false => events.last().map_or_else(|| Address::new(""), |event| event.to.clone()),
        };
        let address = events.last().and_then(|event| event.from.clone()).filter(|_| !user.test);
        let to =
            address_behind(&from, address.as_ref().map(|(_, address)| address).or(user.address.as_ref()));
        let inbound_text: String = events.iter().map(|event| event.body.as_str()).collect();
        Self {
            user,
            source: String::new(),
            turn: None,
            address,
            to,
            from,
            quotes: events.iter().rev().find_map(quotable_id),
            room: events.last().and_then(|event| event.room),
            emoji: EmojiPolicy::from_text(&inbound_text),
        }
    }

    /// Returns the reply address of the sender of `event`, for a message that belongs to no turn.
    pub(super) fn from_message(user: &User, event: &InboundEvent) -> Self {
        let address = Self::from_messages(user.clone(), std::slice::from_ref(event));
        Self { source: format!("event:{}", event.id), ..address }
    }

    /// Returns the reply address for a stored message that cannot be parsed. `to` is our address that received it.
    pub(super) fn from_unreadable_message(user: &User, event: EventId, to: Address) -> Self {
        let from = if user.test { Address::console() } else { to };
        let to = address_behind(&from, user.address.as_ref());
        Self {
            user: user.clone(),
            source: format!("event:{event}"),
            turn: None,
            address: None,
            to,
            from,
            quotes: None,
            room: None,
            emoji: EmojiPolicy::Remove,
        }
    }

    /// Returns the same address for the answer of a turn.
    pub(super) fn with_turn(self, turn: TurnId) -> Self {
        Self { source: format!("turn:{turn}"), turn: Some(turn), ..self }
    }

    /// Returns the same address for text that is already formatted for SMS, whose emoji are kept.
    pub(super) fn with_emoji(self) -> Self {
        Self { emoji: EmojiPolicy::Keep, ..self }
    }

    /// Loads the address of a room, for a message that is not a reply.
    pub(super) fn load_for_room(conn: &mut Conn, room: &User, senders: &Senders) -> QueryResult<Self> {
        Ok(Self { room: Some(room.id), ..Self::load_for_user(conn, room, senders)? })
    }

    /// Returns the same address for a message to the private chat of the author of messages in a room.
    pub(super) fn in_private_chat(self, private: &(AddressId, UserAddress)) -> Self {
        let to = address_behind(&self.from, Some(&private.1));
        Self { address: Some(private.clone()), to, quotes: None, room: None, ..self }
    }

    /// Returns the formatted answer, and its first page with the remainder for MORE. The page is never empty, because
    /// carriers reject empty messages.
    pub(super) fn first_page(&self, answer: &str) -> (String, MessagePage) {
        let ContentSupport { max_length, page_length, .. } = self.from.channel().profile().content;
        let format = |emoji| {
            Some(message_format::format_for_sending(answer, emoji, max_length))
                .filter(|text| !text.is_empty())
        };
        let full_text = format(self.emoji).or_else(|| format(EmojiPolicy::Keep));
        let full_text = full_text.unwrap_or_else(|| FallbackReply::NothingFound.text().to_owned());
        let page = message_format::split_first_page(&full_text, page_length);
        (full_text, page)
    }

    /// Creates the end of a turn with an answer.
    pub(super) fn turn_end(&self, turn: TurnId, outcome: MessageOutcome, answer: &str) -> TurnEnd {
        let (full_text, page) = self.first_page(answer);
        TurnEnd { turn, outcome, answer: Some(full_text), messages: vec![self.reply_message(page.text)] }
    }

    pub(super) fn reply_message(&self, body: String) -> NewOutboundMessage {
        self.outbound_message("reply", OutboundKind::Reply, body)
    }

    /// Creates a confirmation prompt as one message of any length, since users must see everything that they agree to.
    pub(super) fn prompt_message(&self, body: &str) -> NewOutboundMessage {
        self.outbound_message(
            "question",
            OutboundKind::ConfirmPrompt,
            message_format::format_for_sms(body, EmojiPolicy::Remove),
        )
    }

    /// Loads the address of a user for a message that is not a reply. Such a message is sent on the channel that the user
    /// prefers or last used, from our current address there.
    pub(super) fn load_for_user(conn: &mut Conn, user: &User, senders: &Senders) -> QueryResult<Self> {
        let route = addresses::load_message_route(conn, user.id)?;
        Ok(Self::from_route(user, route, senders))
    }

    /// Loads one address of a user, for a message that is not a reply.
    pub(super) fn load_for_address(
        conn: &mut Conn,
        user: &User,
        address: AddressId,
        senders: &Senders,
    ) -> QueryResult<Self> {
        let route = addresses::load_route_to(conn, address)?;
        Ok(Self::from_route(user, route, senders))
    }

    /// Returns the address of a user on a loaded route, for a message that is not a reply.
    pub(super) fn from_route(user: &User, route: MessageRoute, senders: &Senders) -> Self {
        let MessageRoute { our_address, address } = route;
        let from = match (user.test, &address) {
            (true, _) => Some(Address::console()),
            (false, Some((_, address))) => senders.choose(our_address, address),
            (false, None) => None,
        };
        let from = from.unwrap_or_else(Address::local);
        let to = address_behind(&from, address.as_ref().map(|(_, address)| address));
        let address = address.filter(|_| !user.test);
        let source = String::new();
        Self {
            user: user.clone(),
            source,
            turn: None,
            address,
            to,
            from,
            quotes: None,
            room: None,
            emoji: EmojiPolicy::Remove,
        }
    }

    /// Returns the room to which the messages are sent.
    pub(super) fn room(&self) -> Option<UserId> {
        self.room
    }

    /// Returns our address that sends the messages.
    pub(super) fn our_address(&self) -> Address {
        self.from.clone()
    }

    /// Returns the address to which the messages are sent.
    pub(super) fn recipient(&self) -> Address {
        self.to.clone()
    }

    /// Returns the user's address; `None` if messages are only shown.
    pub(super) fn user_address(&self) -> Option<UserAddress> {
        self.address.as_ref().map(|(_, address)| address.clone())
    }

    /// Creates a notification as one message of any length. `key` is an idempotency key: the notification is sent once.
    pub(super) fn notification_message(&self, key: &str, body: &str) -> NewOutboundMessage {
        let body = message_format::format_for_sms(body, EmojiPolicy::Remove);
        NewOutboundMessage {
            key: format!("{key}:user:{}", self.user.id),
            ..self.outbound_message("", OutboundKind::Notice, body)
        }
    }

    /// Creates a picture message with a caption. Like a notification, a picture is never sent between a
    /// confirmation prompt and its answer.
    pub(super) fn picture_message(&self, key: &str, caption: &str, url: &str) -> NewOutboundMessage {
        NewOutboundMessage { media: Some(url.to_owned()), ..self.notification_message(key, caption) }
    }

    /// Creates a reaction to a message, for a channel that places reactions. `key` is an idempotency key.
    pub(super) fn reaction_message(
        &self,
        key: &str,
        target: &InboundEvent,
        emoji: &str,
    ) -> NewOutboundMessage {
        NewOutboundMessage {
            key: key.to_owned(),
            reacts_to: Some(target.external_id.clone()),
            quotes: None,
            ..self.outbound_message("", OutboundKind::Reply, emoji.to_owned())
        }
    }

    fn outbound_message(&self, key_suffix: &str, kind: OutboundKind, body: String) -> NewOutboundMessage {
        let body = match self.from.channel().profile().content.alphabet {
            Alphabet::Gsm7 => spell_in_fewer_segments(body),
            Alphabet::Unicode => body,
        };
        let segments = u32::try_from(SegmentCount::from_text(&body).count).unwrap_or(u32::MAX);
        NewOutboundMessage {
            key: format!("{}:{key_suffix}", self.source),
            user: self.user.id,
            address: self.address.as_ref().map(|(id, _)| *id),
            turn: self.turn,
            kind,
            to: self.to.clone(),
            from: self.from.clone(),
            body,
            media: None,
            reacts_to: None,
            quotes: self.quotes.clone(),
            room: self.room,
            vote: None,
            segments,
        }
    }
}

/// Returns the id of a message in a room that an answer can quote. A press is no message.
fn quotable_id(event: &InboundEvent) -> Option<String> {
    (event.room.is_some() && event.press.is_none()).then(|| event.external_id.clone())
}

/// Returns the user's address as messages from our address name it.
fn address_behind(from: &Address, address: Option<&UserAddress>) -> Address {
    Address::new(format!("{}{}", from.prefix(), address.map_or("", UserAddress::name)))
}

/// Prepends a sentence to `text`. A numbered list starts on a new line.
pub(super) fn prepend_sentence(sentence: &str, text: &str) -> String {
    let separator = if text.starts_with("1. ") { '\n' } else { ' ' };
    format!("{sentence}{separator}{text}")
}

/// Notifies every active admin, once for each `key`.
pub(super) fn notify_admins(
    conn: &mut Conn,
    senders: &Senders,
    key: &str,
    body: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let admins = users::load_admins(conn)?;
    notify_users(conn, (senders, &admins), (key, body), now)
}

/// Notifies these users, once for each `key`.
pub(super) fn notify_users(
    conn: &mut Conn,
    (senders, users): (&Senders, &[User]),
    (key, body): (&str, &str),
    now: Timestamp,
) -> QueryResult<()> {
    for user in users {
        let message = ReplyAddress::load_for_user(conn, user, senders)?.notification_message(key, body);
        outbox::queue_message_once(conn, &message, now)?;
    }
    Ok(())
}
