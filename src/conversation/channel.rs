//! Channels: the ways by which messages reach us and are sent, and the capabilities that each declares.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Registered channel. The list is in [`super::channel_list`].
#[derive(Clone, Copy)]
pub struct Channel(&'static ChannelProfile);

/// Properties of a channel. Decisions depend on them, never on the channel itself.
#[derive(Debug)]
pub struct ChannelProfile {
    /// Word of the channel in the database and in webhook paths, which never changes.
    pub word: &'static str,
    /// Slot of the identity of the account, to which the records of the channel belong.
    pub account_slot: &'static str,
    /// Value of the label `channel` in metrics.
    pub metric_label: &'static str,
    /// Way in which a message was written, as the console shows it, such as "by phone".
    pub written: &'static str,
    pub addresses: AddressForm,
    pub user_names: UserNames,
    pub senders: SenderKind,
    pub opt_out: OptOutPolicy,
    pub delivery: DeliveryKnowledge,
    pub prompt_opening: PromptOpening,
    pub receiving: ReceivingWays,
    pub content: ContentSupport,
    pub cost: MessageCost,
}

/// Form of the addresses on a channel, by which an address tells its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressForm {
    /// Our address is this word, and users have their phone number.
    Fixed(&'static str),
    /// Each address begins with one of these prefixes, which end with a colon or are empty.
    Prefixed(&'static [AddressPrefix]),
}

/// Prefix of addresses, and the messenger that people know them by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPrefix {
    pub prefix: &'static str,
    pub messenger: &'static str,
}

/// Names by which a channel knows users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserNames {
    PhoneNumbers,
    /// Accounts of the channel.
    Accounts,
}

/// Parties that can send messages on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderKind {
    /// Anyone who knows our address.
    Anyone,
    /// The operator at the terminal of the machine, as an existing or new user.
    Terminal,
    /// The operator or a program, in the name of an existing user.
    Console,
}

/// Party that answers opt-out keywords such as STOP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOutPolicy {
    /// The carrier confirms STOP and START and answers HELP, and we honor them too.
    Carrier,
    /// We confirm STOP and START and answer HELP, because no carrier does.
    Ours,
    /// The words have no meaning, because messages are only shown.
    Ignored,
}

/// Source of the delivery status of a message after the channel has accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryKnowledge {
    /// The carrier reports it, and keeps a record in which a message can be looked up.
    Reported,
    /// The channel is asked for it, and a message can be looked up by its id.
    Polled,
    /// Acceptance is all that is ever known, and a message cannot be looked up.
    AcceptedOnly,
    /// The message is shown at once.
    Shown,
}

/// Time from which a confirmation prompt can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptOpening {
    /// The channel has accepted the prompt.
    Accepted,
    /// The prompt was sent. A prompt that is not sent in time is withdrawn.
    Sent,
}

/// Ways in which messages are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivingWays {
    /// The channel sends requests to `/webhook/WORD`.
    pub webhook: bool,
    /// The channel has a list of received messages, which is polled.
    pub polling: bool,
    /// Time in seconds within which the same text of a sender is the same message under another id.
    pub repeat_seconds: Option<i64>,
}

/// Form in which a reaction to a message of the user is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionSupport {
    /// Nothing can show it except a separate message with the emoji.
    AsMessage,
    /// The channel shows the stored reaction beside the message, and the emoji as an answer.
    Shown,
    /// The channel is asked to place it on the message.
    Placed,
}

/// Content that a channel transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentSupport {
    pub pictures: bool,
    pub reactions: ReactionSupport,
    /// The other party sees that an answer is being written.
    pub typing: bool,
    /// A message can refer to an earlier one.
    pub replies: bool,
    /// A message can have buttons that answer it.
    pub buttons: bool,
    /// A message to a room can be a poll.
    pub polls: bool,
    pub alphabet: Alphabet,
    /// Maximum length of a message in UTF-16 units.
    pub max_length: usize,
    /// Length of the pages into which a longer answer is split, in UTF-16 units.
    pub page_length: usize,
}

/// Alphabet in which a text takes the least room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// Alphabet of SMS: a character outside it more than halves the room of a segment.
    Gsm7,
    Unicode,
}

/// Cost of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageCost {
    /// The carrier charges for each segment.
    PerSegment,
    Free,
}

impl Channel {
    pub(super) const fn from_profile(profile: &'static ChannelProfile) -> Self {
        Self(profile)
    }

    pub const fn word(self) -> &'static str {
        self.0.word
    }

    pub const fn profile(self) -> &'static ChannelProfile {
        self.0
    }

    /// Returns whether messages on the channel are only shown on the operator's machine.
    pub fn is_shown(self) -> bool {
        self.0.delivery == DeliveryKnowledge::Shown
    }

    /// Returns our address on a channel whose messages are only shown.
    pub fn shown_address(self) -> Option<&'static str> {
        match self.0.addresses {
            AddressForm::Fixed(address) => Some(address),
            AddressForm::Prefixed(_) => None,
        }
    }

    /// Returns whether a prompt opens when it was sent, and not when it was accepted.
    pub fn opens_prompts_when_sent(self) -> bool {
        self.0.prompt_opening == PromptOpening::Sent
    }

    /// Returns whether an accepted message can be looked up later.
    pub fn keeps_records(self) -> bool {
        match self.0.delivery {
            DeliveryKnowledge::Reported | DeliveryKnowledge::Polled => true,
            DeliveryKnowledge::AcceptedOnly | DeliveryKnowledge::Shown => false,
        }
    }

    /// Returns whether the channel dates the messages of both sides by one clock.
    pub fn dates_both_sides(self) -> bool {
        self.0.delivery == DeliveryKnowledge::AcceptedOnly
    }

    /// Returns whether the carrier charges for messages on the channel.
    pub fn is_charged(self) -> bool {
        self.0.cost == MessageCost::PerSegment
    }

    /// Returns whether people text us on the channel, as opposed to the operator's own terminal and console.
    pub fn is_remote(self) -> bool {
        self.0.senders == SenderKind::Anyone
    }

    /// Returns whether the carrier answers HELP, STOP and START itself.
    pub fn carrier_answers_help(self) -> bool {
        match self.0.opt_out {
            OptOutPolicy::Carrier => true,
            OptOutPolicy::Ours | OptOutPolicy::Ignored => false,
        }
    }

    /// Returns whether we confirm STOP and START and answer HELP, because no carrier does.
    pub fn needs_own_opt_out_replies(self) -> bool {
        self.0.opt_out == OptOutPolicy::Ours
    }

    /// Returns whether opt-out keywords have a meaning on the channel.
    pub fn honors_opt_out(self) -> bool {
        match self.0.opt_out {
            OptOutPolicy::Carrier | OptOutPolicy::Ours => true,
            OptOutPolicy::Ignored => false,
        }
    }
}

impl PartialEq for Channel {
    fn eq(&self, other: &Self) -> bool {
        self.0.word == other.0.word
    }
}

impl Eq for Channel {}

impl Hash for Channel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.word.hash(state);
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.word)
    }
}
