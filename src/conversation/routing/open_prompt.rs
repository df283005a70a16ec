//! Open confirmation prompt, and the messages that can confirm it.

use jiff::Timestamp;

use super::inbound_message::{InboundEvent, MessageSource};
use super::message_origin::MessageOrigin;
use crate::conversation::channel::Channel;
use crate::conversation::grammar::confirmation_reply::ConfirmationCode;
use crate::conversation::transcript::{AddressId, MediaKind, OutboxId};

/// Open confirmation prompt, with the data that determines whether a reply to it is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPrompt {
    /// Names of its items, with which a yes may name them.
    pub titles: Vec<String>,
    pub code: Option<ConfirmationCode>,
    /// Message that asks it, whose buttons answer it.
    pub message: OutboxId,
    /// Number of times the prompt was repeated.
    pub repeats: u32,
    /// Time when the prompt was accepted for sending; an earlier message cannot be a reply to it.
    pub armed_at: Option<Timestamp>,
    /// Time of the prompt by the clock of its channel, if that also dates the user's messages; an earlier text cannot be
    /// a reply to it, although it may be received later.
    pub dated_at: Option<Timestamp>,
    /// True if another message was sent to the user after the prompt.
    pub was_followed: bool,
    /// True if the user sent a no after this message.
    pub denied_since: bool,
    /// Channel of the prompt.
    pub channel: Channel,
    /// Address of the user to which the prompt was sent; `None` if it is only shown.
    pub address: Option<AddressId>,
    /// Kind of the titles, if all of them are of one kind.
    pub kind: Option<MediaKind>,
}

impl OpenPrompt {
    /// Returns whether a yes is valid: it was sent after the prompt, from the address to which the prompt was sent, on the
    /// same channel, and came directly from its sender. A user on the phone has not read a prompt that a program received in their name.
    pub(super) fn is_confirmed_by(&self, event: &InboundEvent) -> bool {
        let is_direct = match event.via {
            MessageSource::Webhook | MessageSource::Poll | MessageSource::Local => true,
            MessageSource::Fallback | MessageSource::Recovery => false,
        };
        let has_same_channel = event.to.channel() == self.channel;
        // The address of a prompt from before users could have several is not stored.
        let has_same_address = self.address.is_none_or(|address| event.address_id() == Some(address));
        // A button belongs to one prompt, regardless of later messages.
        let is_for_this_prompt = match event.press {
            Some(press) => press.is_on(self.message),
            None => !self.was_followed || event.origin == MessageOrigin::Button,
        };
        // A press has no date of its own, and names its prompt. Dates may be whole seconds, and nobody has read a prompt in
        // the second in which it was sent.
        let is_dated_later = event.press.is_some() || self.dated_at.is_none_or(|dated| event.sent_at > dated);
        is_direct
            && is_dated_later
            && event.origin != MessageOrigin::Operator
            && event.authority.may_act()
            && has_same_channel
            && has_same_address
            && is_for_this_prompt
            && self.armed_at.is_some_and(|armed| event.received_at > armed)
    }
}
