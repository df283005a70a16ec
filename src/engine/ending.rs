//! How turns end: the words, made fit for a text message, and the rows that carry them.

use crate::conversation::text::{self, Emoji, Page};
use crate::conversation::transcript::{Address, InboundEvent, TurnId, User};
use crate::conversation::turn::{Answer, Excuse};
use crate::messaging::segments::Segments;
use crate::store::outbox::{NewText, TextKind};

/// Where an answer goes: back the way the text came.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) user: User,
    pub(super) turn: TurnId,
    to: Address,
    from: Address,
    emoji: Emoji,
}

impl Route {
    /// The way back to the sender of `events`, which are the texts of one turn.
    pub(super) fn back(user: User, turn: TurnId, events: &[InboundEvent]) -> Self {
        let from = events.last().map_or_else(|| Address::new(""), |event| event.to.clone());
        let to = Address::new(format!("{}{}", from.prefix(), user.phone.as_str()));
        let said: String = events.iter().map(|event| event.body.as_str()).collect();
        Self { user, turn, to, from, emoji: Emoji::as_used_in(&said) }
    }

    /// A text about `event` that no turn stands behind.
    pub(super) fn notice(user: &User, event: &InboundEvent, body: &str) -> NewText {
        let back = Self::back(user.clone(), TurnId(0), std::slice::from_ref(event));
        NewText {
            key: format!("event:{}:failed", event.id),
            turn: None,
            ..back.text("notice", TextKind::Reply, body.to_owned())
        }
    }

    /// For words that were made fit before: what they kept, they keep.
    pub(super) fn keeping_emoji(self) -> Self {
        Self { emoji: Emoji::Keep, ..self }
    }

    /// The first page of an answer, as it will be sent, and the rest for MORE. Never empty: carriers refuse that.
    pub(super) fn page(&self, answer: &str) -> (String, Page) {
        let fit = |emoji| Some(text::for_sms(answer, emoji)).filter(|text| !text.is_empty());
        let whole = fit(self.emoji).or_else(|| fit(Emoji::Keep));
        let whole = whole.unwrap_or_else(|| Excuse::NothingFound.text().to_owned());
        let page = text::first_page(&whole);
        (whole, page)
    }

    pub(super) fn reply(&self, body: String) -> NewText {
        self.text("reply", TextKind::Reply, body)
    }

    /// A question is sent whole: a person must see all of what they agree to.
    pub(super) fn question(&self, body: &str) -> NewText {
        self.text("question", TextKind::ConfirmPrompt, text::for_sms(body, Emoji::Remove))
    }

    fn text(&self, part: &str, kind: TextKind, body: String) -> NewText {
        let segments = u32::try_from(Segments::of(&body).count).unwrap_or(u32::MAX);
        NewText {
            key: format!("turn:{}:{part}", self.turn),
            user: self.user.id,
            turn: Some(self.turn),
            kind,
            to: self.to.clone(),
            from: self.from.clone(),
            body,
            segments,
        }
    }
}

/// The words of a turn's end.
pub(super) fn words(answer: &Answer) -> &str {
    match answer {
        Answer::Model(text) | Answer::Tools(text) => text,
        Answer::Code(excuse) => excuse.text(),
    }
}
