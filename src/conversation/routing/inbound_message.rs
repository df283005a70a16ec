//! Inbound messages, as received from a channel and as stored.

use jiff::Timestamp;

use super::button_press::{ButtonPress, PressedButton};
use super::message_origin::MessageOrigin;
use super::rooms::{Audience, RoomUpdate};
use super::verification::FieldAuthority;
use crate::conversation::channel::Channel;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::transcript::{Address, AddressId, EventId, OptKeyword, UserAddress, UserId};

/// Source of a received message. Only a yes from [`Webhook`](Self::Webhook), [`Poll`](Self::Poll) or
/// [`Local`](Self::Local) can confirm a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSource {
    Webhook,
    Fallback,
    /// Poll without a gap, so that the message arrived after the poll before.
    Poll,
    /// List that was read after a gap, or because the webhook was missed.
    Recovery,
    Local,
}

/// Picture or other file that is attached to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageMedia {
    pub url: String,
    pub content_type: String,
}

/// Inbound message that is parsed but not yet stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub channel: Channel,
    /// Idempotency key, by which a repeated delivery is recognized: the `MessageSid` at Twilio.
    pub external_id: String,
    pub from: UserAddress,
    pub to: Address,
    pub body: String,
    pub media: Vec<MessageMedia>,
    pub via: MessageSource,
    pub authority: FieldAuthority,
    /// Opt-out or opt-in keyword that the carrier recognized in the message, if it reported one.
    pub carrier_word: Option<OptKeyword>,
    /// Button that was pressed, if the message was not typed. The body is the text that its choice counts as.
    pub pressed: Option<PressedButton>,
    /// Room in which it was written, and what happened there; `None` for a private chat.
    pub room: Option<RoomUpdate>,
    /// Time of the message at the carrier; the arrival time if the carrier reported none.
    pub provider_at: Timestamp,
    pub received_at: Timestamp,
}

/// Stored inbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundEvent {
    pub id: EventId,
    pub channel: Channel,
    /// Id of the message at the channel.
    pub external_id: String,
    /// Address to which the answer is sent: that of the sender, or of the room. `None` for a message in the console, which
    /// is answered there, and for a message from before users could have several addresses.
    pub from: Option<(AddressId, UserAddress)>,
    pub to: Address,
    pub body: String,
    pub media: Vec<MessageMedia>,
    pub via: MessageSource,
    pub authority: FieldAuthority,
    /// Opt-out or opt-in keyword that the carrier recognized in the message, if it reported one.
    pub carrier_word: Option<OptKeyword>,
    /// Press of a button, if the message was not typed.
    pub press: Option<ButtonPress>,
    /// Send time that the carrier reported; the arrival time if it reported none.
    pub sent_at: Timestamp,
    pub received_at: Timestamp,
    pub triage: TriageDecision,
    pub origin: MessageOrigin,
    /// Room in which it was written; `None` for a private chat.
    pub room: Option<UserId>,
    /// True if the message is meant for us. In a room, some are not.
    pub is_addressed: bool,
}

impl InboundEvent {
    pub fn address_id(&self) -> Option<AddressId> {
        self.from.as_ref().map(|(id, _)| *id)
    }

    /// Returns the owner of the conversation to which the message belongs: its room, or its author in a private chat.
    pub fn conversation_owner(&self, author: UserId) -> UserId {
        self.room.unwrap_or(author)
    }

    /// Returns who reads the answer.
    pub fn audience(&self) -> Audience {
        if self.room.is_some() { Audience::Room } else { Audience::Author }
    }

    /// Returns whether someone other than the operator may have sent the message to guess a code: by phone, or through
    /// a program. The operator can approve requests without a code.
    pub fn can_guess_codes(&self) -> bool {
        match self.origin {
            MessageOrigin::Sender => self.channel.is_remote(),
            MessageOrigin::ApiKey(_) => true,
            MessageOrigin::TestUser
            | MessageOrigin::Button
            | MessageOrigin::Operator
            | MessageOrigin::Session => false,
        }
    }
}
