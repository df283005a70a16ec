//! Inbound messages: as a channel delivers one, and as the store holds it.

use jiff::Timestamp;

use super::message_origin::MessageOrigin;
use super::verification::FieldAuthority;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::transcript::{Address, ChannelKind, EventId, OptWord, PhoneNumber};

/// Source of a received message. Only a yes from the direct source counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSource {
    Webhook,
    Fallback,
    Recovery,
    Local,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageMedia {
    pub url: String,
    pub content_type: String,
}

/// Received message, parsed but not yet stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub channel: ChannelKind,
    /// `MessageSid` at Twilio: the key that makes a repeated delivery harmless.
    pub external_id: String,
    pub from: PhoneNumber,
    pub to: Address,
    pub body: String,
    pub media: Vec<MessageMedia>,
    pub via: MessageSource,
    pub authority: FieldAuthority,
    /// Opt word that the carrier itself recognized in the message, if it reported one.
    pub carrier_word: Option<OptWord>,
    /// Carrier's time of the message; the arrival time if the carrier reported none.
    pub provider_at: Timestamp,
    pub received_at: Timestamp,
}

/// Received message as the store holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundEvent {
    pub id: EventId,
    pub channel: ChannelKind,
    pub to: Address,
    pub body: String,
    pub media: Vec<MessageMedia>,
    pub via: MessageSource,
    pub authority: FieldAuthority,
    /// Opt word that the carrier itself recognized in the message, if it reported one.
    pub carrier_word: Option<OptWord>,
    /// Send time, as far as the carrier reports it.
    pub sent_at: Timestamp,
    pub received_at: Timestamp,
    pub triage: TriageDecision,
    pub origin: MessageOrigin,
}

impl InboundEvent {
    /// Returns whether the sender can be another person who guesses codes: on the phone, or a program. The operator in
    /// the console and at the terminal has other ways to do the same.
    pub fn can_guess_codes(&self) -> bool {
        match self.origin {
            MessageOrigin::Sender => self.channel == ChannelKind::Twilio,
            MessageOrigin::Key(_) => true,
            MessageOrigin::TestUser | MessageOrigin::Button | MessageOrigin::Session => false,
        }
    }
}
