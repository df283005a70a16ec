//! Inbound messages, as received from a channel and as stored.

use jiff::Timestamp;

use super::button_press::{ButtonPress, PressedButton};
use super::message_origin::MessageOrigin;
use super::verification::FieldAuthority;
use crate::conversation::channel::Channel;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::transcript::{Address, AddressId, EventId, OptKeyword, UserAddress};

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
    /// Address of the sender. `None` for a message in the console, which is answered there, and for a message from
    /// before users could have several addresses.
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
}

impl InboundEvent {
    pub fn address_id(&self) -> Option<AddressId> {
        self.from.as_ref().map(|(id, _)| *id)
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
