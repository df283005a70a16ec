//! Addresses of users, and the messages to them, formatted for SMS.

use jiff::Timestamp;

use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::text::message_format::{self, EmojiPolicy, MessagePage};
use crate::conversation::transcript::{Address, EventId, TurnId, User};
use crate::conversation::turn::FallbackReply;
use crate::messaging::segments::SegmentCount;
use crate::store::people::users;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
use crate::store::turns::turn_lifecycle::TurnEnd;
use crate::store::{Conn, QueryResult};

/// Reply address of an answer, on the same transport as the inbound message.
#[derive(Debug, Clone)]
pub(super) struct ReplyAddress {
    pub(super) user: User,
    /// Origin of the message in its key, such as `turn:42`.
    source: String,
    turn: Option<TurnId>,
    to: Address,
    from: Address,
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
        let to = Address::new(format!("{}{}", from.prefix(), user.phone.as_str()));
        let said: String = events.iter().map(|event| event.body.as_str()).collect();
        Self { user, source: String::new(), turn: None, to, from, emoji: EmojiPolicy::from_text(&said) }
    }

    /// Returns the reply address of the sender of `event`, for a message that belongs to no turn.
    pub(super) fn from_message(user: &User, event: &InboundEvent) -> Self {
        let back = Self::from_messages(user.clone(), std::slice::from_ref(event));
        Self { source: format!("event:{}", event.id), ..back }
    }

    /// Returns the reply address for a message that cannot be read. `to` is our address that received the message.
    pub(super) fn from_unreadable_message(user: &User, event: EventId, to: Address) -> Self {
        let from = if user.test { Address::console() } else { to };
        let to = Address::new(format!("{}{}", from.prefix(), user.phone.as_str()));
        Self {
            user: user.clone(),
            source: format!("event:{event}"),
            turn: None,
            to,
            from,
            emoji: EmojiPolicy::Remove,
        }
    }

    /// Returns the same address for the answer of a turn.
    pub(super) fn with_turn(self, turn: TurnId) -> Self {
        Self { source: format!("turn:{turn}"), turn: Some(turn), ..self }
    }

    /// Returns the same address for text that is already formatted for SMS. The remaining emoji of the text are sent.
    pub(super) fn with_emoji(self) -> Self {
        Self { emoji: EmojiPolicy::Keep, ..self }
    }

    /// Returns the whole formatted answer, and its first page with the rest for MORE. The page is never empty, because
    /// carriers refuse empty messages.
    pub(super) fn first_page(&self, answer: &str) -> (String, MessagePage) {
        let fit = |emoji| Some(message_format::format_for_sms(answer, emoji)).filter(|text| !text.is_empty());
        let whole = fit(self.emoji).or_else(|| fit(EmojiPolicy::Keep));
        let whole = whole.unwrap_or_else(|| FallbackReply::NothingFound.text().to_owned());
        let page = message_format::split_first_page(&whole);
        (whole, page)
    }

    /// Creates the end of a turn with an answer.
    pub(super) fn turn_end(&self, turn: TurnId, outcome: MessageOutcome, answer: &str) -> TurnEnd {
        let (whole, page) = self.first_page(answer);
        TurnEnd { turn, outcome, answer: Some(whole), messages: vec![self.reply_message(page.text)] }
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

    /// Loads the address of a user for a message that is not a reply. Such a message is sent from the address that the
    /// user last texted.
    pub(super) fn load_for_user(conn: &mut Conn, user: &User, number: Option<&Address>) -> QueryResult<Self> {
        let last = match user.test {
            true => Some(Address::console()),
            false => users::load_last_address(conn, user.id)?,
        };
        let from = last.or_else(|| number.cloned()).unwrap_or_else(Address::local);
        let to = Address::new(format!("{}{}", from.prefix(), user.phone.as_str()));
        let source = String::new();
        Ok(Self { user: user.clone(), source, turn: None, to, from, emoji: EmojiPolicy::Remove })
    }

    /// Returns our address that sends the messages.
    pub(super) fn our_address(&self) -> Address {
        self.from.clone()
    }

    /// Creates a notification as one whole message. `key` ensures that the notification is sent once.
    pub(super) fn notification_message(&self, key: &str, body: &str) -> NewOutboundMessage {
        let body = message_format::format_for_sms(body, EmojiPolicy::Remove);
        NewOutboundMessage {
            key: format!("{key}:user:{}", self.user.id),
            ..self.outbound_message("", OutboundKind::Notice, body)
        }
    }

    /// Creates a picture message with the picture's name. Like a notification, a picture is never sent between a
    /// confirmation prompt and its answer.
    pub(super) fn picture_message(&self, key: &str, name: &str, url: &str) -> NewOutboundMessage {
        NewOutboundMessage { media: Some(url.to_owned()), ..self.notification_message(key, name) }
    }

    fn outbound_message(&self, part: &str, kind: OutboundKind, body: String) -> NewOutboundMessage {
        let segments = u32::try_from(SegmentCount::from_text(&body).count).unwrap_or(u32::MAX);
        NewOutboundMessage {
            key: format!("{}:{part}", self.source),
            user: self.user.id,
            turn: self.turn,
            kind,
            to: self.to.clone(),
            from: self.from.clone(),
            body,
            media: None,
            segments,
        }
    }
}

/// Prepends our sentence to `text` in one message. A list begins on a new line.
pub(super) fn prepend_sentence(sentence: &str, text: &str) -> String {
    let space = if text.starts_with("1. ") { '\n' } else { ' ' };
    format!("{sentence}{space}{text}")
}

/// Notifies every active admin once about the subject of `key`.
pub(super) fn notify_admins(
    conn: &mut Conn,
    number: Option<&Address>,
    key: &str,
    body: &str,
    now: Timestamp,
) -> QueryResult<()> {
    for admin in users::load_admins(conn)? {
        let text = ReplyAddress::load_for_user(conn, &admin, number)?.notification_message(key, body);
        outbox::queue_message_once(conn, &text, now)?;
    }
    Ok(())
}
