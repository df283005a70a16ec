//! Channels for outbound messages, and the records of their arrival.

pub mod console;
pub mod error_codes;
pub mod fake;
pub mod message_log;
pub mod missed_messages;
pub mod outbox_relay;
pub mod phone_numbers;
pub mod segments;
pub mod signature;
pub mod terminal;
pub mod twilio;
pub mod webhook;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::conversation::retry_policy::FailureClass;
use crate::conversation::routing::verification::MessageFields;
use crate::conversation::transcript::{Address, OutboxId};
use crate::store::queue::callbacks::CallbackToken;

#[async_trait]
pub trait MessageChannel: Send + Sync {
    /// Sends one message, once. The outbox handles retries.
    async fn send(&self, text: &OutboundMessage) -> Result<CarrierReceipt, SendError>;

    /// Searches for a message with unknown delivery status among those that the carrier accepted since `since`. Several
    /// may match: two equal messages to one user are legitimate, and the outbox knows which of them are accounted for.
    async fn find_accepted(
        &self,
        text: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookError>;

    /// Fetches the carrier's record of an inbound message; `None` if there is none with this id.
    async fn fetch_received(&self, sid: &str) -> Result<Option<MessageFields>, LookError>;
}

/// Error: the carrier's record could not be read.
#[derive(Debug, thiserror::Error)]
#[error("read the carrier's list of messages: {0}")]
pub struct LookError(pub String);

/// One outbox row that is being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundMessage {
    pub id: OutboxId,
    pub attempt: u32,
    pub to: Address,
    pub from: Address,
    pub body: String,
    pub media: Vec<String>,
    /// Random value by which status callbacks name the row.
    pub word: CallbackToken,
}

/// Receipt of a message that the carrier has accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReceipt {
    /// Id at the carrier (`MessageSid`).
    pub sid: String,
    /// Time at the carrier, if it reported one.
    pub created_at: Option<Timestamp>,
}

/// Cause of a message that was not sent, classified by the outbox's next step.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Message that was certainly not created: send later.
    #[error("send now: {reason}")]
    Later { retry_after: Option<Duration>, reason: String },
    /// Message that may have been created: check before sending again.
    #[error("learn whether the text was taken: {0}")]
    Unknown(String),
    /// Message to a user who has opted out (21610): nothing more may be sent.
    #[error("send to someone who opted out")]
    OptedOut,
    /// Message that the carrier will never accept.
    #[error("send: {meaning}{}", in_brackets(.code))]
    Permanent { code: Option<u32>, meaning: String },
    /// Refusal of all messages until an operator acts: wrong token, unregistered number.
    #[error("send: an operator must act: {meaning}{}", in_brackets(.code))]
    Misconfigured { code: Option<u32>, meaning: String },
}

impl SendError {
    pub fn failure_class(&self) -> FailureClass {
        match self {
            Self::Later { retry_after, .. } => FailureClass::TRANSIENT.with_retry_after(*retry_after),
            Self::Unknown(_) => FailureClass::UNKNOWN,
            // The message is sent once an operator has acted; until then, attempts are rare.
            Self::Misconfigured { .. } => FailureClass::TRANSIENT.with_retry_after(Some(Duration::MAX)),
            Self::OptedOut | Self::Permanent { .. } => FailureClass::PERMANENT,
        }
    }
}

fn in_brackets(code: &Option<u32>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}
