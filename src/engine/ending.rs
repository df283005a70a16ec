//! Ends of turns: the answer's text, made fit for SMS, and the rows that carry it.

use jiff::Timestamp;

use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::text::{self, Emoji, Page};
use crate::conversation::transcript::{Address, EventId, TurnId, User};
use crate::conversation::turn::{Answer, Excuse};
use crate::messaging::segments::Segments;
use crate::store::ledger::Outcome;
use crate::store::outbox::{self, NewText, TextKind};
use crate::store::turns::End;
use crate::store::{Conn, QueryResult, users};

/// Reply address of an answer: the same transport on which the message came.
#[derive(Debug, Clone)]
pub(super) struct WayBack {
    pub(super) user: User,
    /// Origin of the message, as in its key: `turn:42`.
    source: String,
    turn: Option<TurnId>,
    to: Address,
    from: Address,
    emoji: Emoji,
}

impl WayBack {
    /// Reply address of the sender of `events`, which are the messages of one turn.
    pub(super) fn back(user: User, turn: TurnId, events: &[InboundEvent]) -> Self {
        Self { source: format!("turn:{turn}"), turn: Some(turn), ..Self::to_sender(user, events) }
    }

    /// The same address in a later run of the turn, whose messages are sent in addition to those of the earlier runs.
    pub(super) fn in_run(self, turn: TurnId, run: u32) -> Self {
        if run <= 1 { self } else { Self { source: format!("turn:{turn}:run:{run}"), ..self } }
    }

    fn to_sender(user: User, events: &[InboundEvent]) -> Self {
        let from = match user.test {
            true => Address::console(),
            false => events.last().map_or_else(|| Address::new(""), |event| event.to.clone()),
        };
        let to = Address::new(format!("{}{}", from.prefix(), user.phone.as_str()));
        let said: String = events.iter().map(|event| event.body.as_str()).collect();
        Self { user, source: String::new(), turn: None, to, from, emoji: Emoji::as_used_in(&said) }
    }

    /// Reply address of the sender of `event`, for a message that belongs to no turn.
    pub(super) fn without_turn(user: &User, event: &InboundEvent) -> Self {
        let back = Self::to_sender(user.clone(), std::slice::from_ref(event));
        Self { source: format!("event:{}", event.id), ..back }
    }

    /// Reply address for a message that cannot be read. `to` is the address of ours that received it.
    pub(super) fn to_failed_text(user: &User, event: EventId, to: Address) -> Self {
        let from = if user.test { Address::console() } else { to };
        let to = Address::new(format!("{}{}", from.prefix(), user.phone.as_str()));
        Self {
            user: user.clone(),
            source: format!("event:{event}"),
            turn: None,
            to,
            from,
            emoji: Emoji::Remove,
        }
    }

    /// The same address for the answer of a turn.
    pub(super) fn of_turn(self, turn: TurnId) -> Self {
        Self { source: format!("turn:{turn}"), turn: Some(turn), ..self }
    }

    /// The same address for text that was made fit before: emoji that are left in it are kept.
    pub(super) fn keeping_emoji(self) -> Self {
        Self { emoji: Emoji::Keep, ..self }
    }

    /// First page of an answer, as it will be sent, and the rest for MORE. The page is never empty: carriers refuse
    /// that.
    pub(super) fn page(&self, answer: &str) -> (String, Page) {
        let fit = |emoji| Some(text::for_sms(answer, emoji)).filter(|text| !text.is_empty());
        let whole = fit(self.emoji).or_else(|| fit(Emoji::Keep));
        let whole = whole.unwrap_or_else(|| Excuse::NothingFound.text().to_owned());
        let page = text::first_page(&whole);
        (whole, page)
    }

    /// End of a turn with an answer.
    pub(super) fn end(&self, turn: TurnId, outcome: Outcome, answer: &str) -> End {
        let (whole, page) = self.page(answer);
        End { turn, outcome, answer: Some(whole), texts: vec![self.reply(page.text)] }
    }

    pub(super) fn reply(&self, body: String) -> NewText {
        self.text("reply", TextKind::Reply, body)
    }

    /// Confirmation prompt as one message, however long: users must see everything that they agree to.
    pub(super) fn question(&self, body: &str) -> NewText {
        self.text("question", TextKind::ConfirmPrompt, text::for_sms(body, Emoji::Remove))
    }

    /// Address of a user for a message that no message of theirs requested, sent from the address they last texted.
    pub(super) fn to_user(conn: &mut Conn, user: &User, number: Option<&Address>) -> QueryResult<Self> {
        let last = match user.test {
            true => Some(Address::console()),
            false => users::last_address(conn, user.id)?,
        };
        let from = last.or_else(|| number.cloned()).unwrap_or_else(Address::local);
        let to = Address::new(format!("{}{}", from.prefix(), user.phone.as_str()));
        let source = String::new();
        Ok(Self { user: user.clone(), source, turn: None, to, from, emoji: Emoji::Remove })
    }

    /// Address of ours that the messages are sent from.
    pub(super) fn ours(&self) -> Address {
        self.from.clone()
    }

    /// Notification as one whole message; `key` ensures that it is sent once.
    pub(super) fn notice(&self, key: &str, body: &str) -> NewText {
        let body = text::for_sms(body, Emoji::Remove);
        NewText { key: format!("{key}:user:{}", self.user.id), ..self.text("", TextKind::Notice, body) }
    }

    /// Picture with its name. Like a notification, it is never sent between a confirmation prompt and its answer.
    pub(super) fn picture(&self, key: &str, name: &str, url: &str) -> NewText {
        NewText { media: Some(url.to_owned()), ..self.notice(key, name) }
    }

    fn text(&self, part: &str, kind: TextKind, body: String) -> NewText {
        let segments = u32::try_from(Segments::of(&body).count).unwrap_or(u32::MAX);
        NewText {
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

/// `text` behind a sentence of ours, in one message. A list begins on a line of its own.
pub(super) fn behind(sentence: &str, text: &str) -> String {
    let space = if text.starts_with("1. ") { '\n' } else { ' ' };
    format!("{sentence}{space}{text}")
}

/// Text of a turn's answer.
pub(super) fn words(answer: &Answer) -> &str {
    match answer {
        Answer::Model(text) | Answer::Tools(text) => text,
        Answer::Reaction(emoji) => emoji.as_str(),
        Answer::Code(excuse) => excuse.text(),
    }
}

/// Notifies every active admin once about the subject of `key`.
pub(super) fn tell_admins(
    conn: &mut Conn,
    number: Option<&Address>,
    key: &str,
    body: &str,
    now: Timestamp,
) -> QueryResult<()> {
    for admin in users::admins(conn)? {
        let text = WayBack::to_user(conn, &admin, number)?.notice(key, body);
        outbox::queue_once(conn, &text, now)?;
    }
    Ok(())
}
