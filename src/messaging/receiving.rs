//! Received messages: polls of a channel's list, and requests of its webhook.

use std::time::Duration;

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};

use crate::conversation::channel::Channel;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::UserAddress;
use crate::store::queue::delivery_reports::DeliveryReport;
pub use crate::store::queue::delivery_reports::UnfinishedMessage;
use crate::store::queue::source_cursors::SourceCursor;

/// Poll of a list of received messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// `None` at the first poll of the list.
    pub cursor: Option<SourceCursor>,
    /// Age from which a message counts as missed. The webhook of a newer message may still arrive.
    pub min_age: SignedDuration,
    /// Accepted messages of the channel without a final delivery status.
    pub unfinished: Vec<UnfinishedMessage>,
    pub now: Timestamp,
}

impl Poll {
    /// Returns the cursor from which to read. A cursor in the future was stored before the clock was set back.
    pub fn start_cursor(&self) -> SourceCursor {
        let mut cursor =
            self.cursor.clone().unwrap_or(SourceCursor { read_until: self.now, mark: String::new() });
        cursor.read_until = cursor.read_until.min(self.now);
        cursor
    }
}

/// Findings of a poll.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundPage {
    /// Listed messages, oldest first. Some may be known.
    pub messages: Vec<ReceivedMessage>,
    /// Changed states of sent messages. They were read before the list, and are recorded after its messages are
    /// admitted.
    pub reports: Vec<DeliveryReport>,
    /// Gestures, oldest first. They are recorded before the work on the messages starts.
    pub gestures: Vec<Gesture>,
    /// Cursor to store once the messages are admitted.
    pub cursor: SourceCursor,
    pub next: PollDelay,
}

impl InboundPage {
    /// Returns a page without findings.
    pub fn empty(cursor: SourceCursor, next: PollDelay) -> Self {
        Self { messages: Vec::new(), reports: Vec::new(), gestures: Vec::new(), cursor, next }
    }
}

/// Gesture of a person in a chat, which is no message and never answers a prompt. Recording it again changes nothing, even
/// after later ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gesture {
    PollAnswer(PollAnswer),
    Reaction(PlacedReaction),
}

/// Reaction that a person placed on a message, or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedReaction {
    pub channel: Channel,
    /// Channel's id of the message.
    pub message: String,
    pub person: UserAddress,
    pub change: ReactionChange,
    /// Number of the report. Later reports have larger numbers.
    pub number: i64,
}

/// Change of the reaction of a person to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReactionChange {
    /// The person has this reaction now; `None` for one that is no emoji.
    Placed(Option<String>),
    Removed,
}

/// Answer of a person to a poll of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollAnswer {
    /// Channel's id of the poll.
    pub poll: String,
    pub voter: UserAddress,
    /// Number of the chosen option, from 1; `None` if the person withdrew the choice.
    pub choice: Option<u8>,
    /// Number of the report. Later reports have larger numbers.
    pub number: i64,
}

/// Delay until the next poll of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollDelay {
    Later,
    /// A message was too recent, so the next poll is early.
    Soon,
    /// Interval that the channel chooses.
    After(Duration),
}

/// Path of a webhook below `/webhook/WORD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookKind {
    /// Received messages, at the path itself.
    Messages,
    /// Reports about sent messages, at `/status`.
    Reports,
}

/// Request of a webhook.
#[derive(Debug, Clone, Copy)]
pub struct WebhookRequest<'a> {
    pub kind: WebhookKind,
    /// Path and query as requested.
    pub target: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    pub now: Timestamp,
}

/// Content of an authentic request of a webhook.
#[derive(Debug)]
pub enum WebhookContent {
    Message(Box<ReceivedMessage>),
    Report(Box<DeliveryReport>),
    Gesture(Gesture),
    /// The event means nothing here.
    Nothing,
}

/// Reason why the request of a webhook is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookRefusal {
    #[error("verify the signature")]
    Unsigned,
    /// The body cannot be parsed far enough to authenticate it.
    #[error("parse the body as a form")]
    NoForm,
    /// The request is authentic, and its content is not a message.
    #[error("parse the form: {description}")]
    Malformed { label: &'static str, description: String },
}
