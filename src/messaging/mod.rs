//! Message channels: the port that each implements, and the relay that sends the outbox.

pub mod alert_sender;
pub mod alert_targets;
pub mod channel_ports;
pub mod console;
mod message_assembly;
mod outbox_lookups;
pub mod outbox_relay;
mod receiving;
pub mod smsgate;
pub mod telegram;
pub mod terminal;
pub mod twilio;

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderMap;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::conversation::channel::Channel;
use crate::conversation::retry_policy::FailureClass;
use crate::conversation::routing::button_press::ButtonChoice;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::routing::verification::MessageFields;
use crate::conversation::transcript::{Address, OutboxId};
use crate::conversation::votes::VoteQuestion;
use crate::store::queue::callbacks::CallbackToken;
pub use receiving::{
    Gesture, InboundPage, PlacedReaction, Poll, PollAnswer, PollDelay, ReactionChange, UnfinishedMessage,
    WebhookContent, WebhookKind, WebhookRefusal, WebhookRequest,
};

/// Time limit of a poll that does not wait for a message.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// Port of a channel: sends messages, looks them up, and receives messages. A channel implements what its profile
/// declares.
#[async_trait]
pub trait ChannelPort: Send + Sync {
    fn channel(&self) -> Channel;

    /// Reserves the time at which a message may be sent below the limits of the channel; `None` for at once.
    fn reserve_slot(&self, _message: &OutboundMessage) -> Result<Option<Instant>, SendError> {
        Ok(None)
    }

    /// Makes one attempt to send a message, at the reserved time. The outbox relay handles retries.
    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError>;

    /// Finds the accepted messages since `since` that may be this one, to resolve an unknown delivery status. Several may
    /// match, because identical messages are legitimate. The outbox knows which of them are already accounted for.
    async fn find_accepted(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError>;

    /// Fetches the carrier's record of an inbound message; `None` if there is none with this id.
    async fn fetch_received(&self, _id: &str) -> Result<Option<MessageFields>, LookupError> {
        Ok(None)
    }

    /// Returns the name of the list of received messages, which its cursor is stored under; `None` if nothing is polled.
    fn source(&self) -> Option<String> {
        None
    }

    /// Reads the messages in the list since the cursor of `poll`.
    async fn poll_received(&self, poll: &Poll) -> Result<InboundPage, LookupError> {
        let cursor = poll.start_cursor();
        Ok(InboundPage::empty(cursor, PollDelay::Later))
    }

    /// Returns whether a request has the header of an authentic webhook, before its body is read.
    fn claims_authenticity(&self, _headers: &HeaderMap) -> bool {
        false
    }

    /// Authenticates and parses the request of a webhook.
    fn read_webhook(&self, _request: &WebhookRequest<'_>) -> Result<WebhookContent, WebhookRefusal> {
        Err(WebhookRefusal::Unsigned)
    }

    /// Returns the media type and the body of the response to an accepted message.
    fn acknowledgement(&self, _message: &ReceivedMessage) -> Option<(&'static str, Cow<'static, str>)> {
        None
    }

    /// Returns the time limit of one poll. A list may answer only once it has a message.
    fn poll_timeout(&self) -> Duration {
        POLL_TIMEOUT
    }

    /// Returns the beginning of a link that opens a chat with us, to which a payload is appended; `None` if the channel
    /// has no such links. The payload arrives as a text, in which hyphens are spaces.
    fn start_link(&self) -> Option<String> {
        None
    }

    /// Shows that an answer is being written, for a few seconds or until it arrives.
    async fn show_typing(&self, _to: &Address) {}

    /// Records that a request was abandoned because it took too long.
    fn record_timeout(&self) {}

    /// Returns whether the account was usable in the last request, or why not; `None` before the first request.
    fn last_outcome(&self) -> Option<Result<(), String>> {
        None
    }

    /// Returns the identity of the carrier account, to which its records belong; `None` if the channel has no account.
    fn account_identity(&self) -> Option<String> {
        None
    }
}

/// Failure to read the carrier's records.
#[derive(Debug, thiserror::Error)]
#[error("read the carrier's list of messages: {0}")]
pub struct LookupError(pub String);

/// Outbox row that is being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundMessage {
    pub id: OutboxId,
    pub attempt: u32,
    pub to: Address,
    pub from: Address,
    pub body: String,
    pub media: Vec<String>,
    /// Channel's id of the received message that the message is a reaction to. The body is the emoji.
    pub reacts_to: Option<String>,
    /// Channel's id of the received message that the message quotes.
    pub quotes: Option<String>,
    /// Poll that the message asks or ends, if the channel has polls.
    pub poll: Option<PollAction>,
    /// Buttons that answer the message, if the channel has buttons.
    pub buttons: Vec<ButtonChoice>,
    /// Period in which the channel may still send the message.
    pub valid_for: Duration,
    /// Random token with which status callbacks refer to the row.
    pub callback_token: CallbackToken,
}

/// Effect of a message on polls of its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollAction {
    /// Send the message as a poll.
    Ask(VoteQuestion),
    /// End the polls in these messages, by the channel's ids of the messages, before the message is sent.
    End(Vec<String>),
}

/// Receipt of a message that the carrier has accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReceipt {
    /// Id at the carrier (`MessageSid`).
    pub sid: String,
    /// Time at the carrier, if it reported one.
    pub created_at: Option<Timestamp>,
    /// Id of the poll that was sent.
    pub poll: Option<String>,
}

/// Cause of a failed send, classified by the outbox's next step.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The message was certainly not created: retry later.
    #[error("send now: {reason}")]
    Later { retry_after: Option<Duration>, reason: String },
    /// The message may have been created: look it up before a retry.
    #[error("determine whether the message was accepted: {0}")]
    Unknown(String),
    /// The user has opted out (21610): nothing more may be sent.
    #[error("send to a user who has opted out")]
    OptedOut,
    /// The carrier will never accept the message.
    #[error("send the message: {meaning}{}", format_code(.code))]
    Permanent { code: Option<u32>, meaning: String },
    /// The carrier rejects all messages until an operator acts, e.g. because of a wrong token or an unregistered number.
    #[error("send the message without operator action: {meaning}{}", format_code(.code))]
    Misconfigured { code: Option<u32>, meaning: String },
}

impl SendError {
    pub fn failure_class(&self) -> FailureClass {
        match self {
            Self::Later { retry_after, .. } => FailureClass::TRANSIENT.with_retry_after(*retry_after),
            Self::Unknown(_) => FailureClass::UNKNOWN,
            // Retries use the longest delay, because they fail until an operator acts.
            Self::Misconfigured { .. } => FailureClass::TRANSIENT.with_retry_after(Some(Duration::MAX)),
            Self::OptedOut | Self::Permanent { .. } => FailureClass::PERMANENT,
        }
    }
}

fn format_code(code: &Option<u32>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}
