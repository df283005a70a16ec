//! Message channels: sending of outbound messages, and the carrier's records of inbound and outbound ones.

pub mod alert_sender;
pub mod alert_targets;
pub mod console;
pub mod error_codes;
pub mod fake;
pub mod message_log;
pub mod missed_messages;
pub mod outbox_relay;
pub mod segments;
pub mod signature;
pub mod terminal;
pub mod twilio;
pub mod twilio_account;
pub mod webhook;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::conversation::retry_policy::FailureClass;
use crate::conversation::routing::verification::MessageFields;
use crate::conversation::transcript::{Address, OutboxId};
use crate::store::queue::callbacks::CallbackToken;

/// Channel that sends messages and looks up their records.
#[async_trait]
pub trait MessageChannel: Send + Sync {
    /// Makes one attempt to send a message. The outbox relay handles retries.
    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError>;

    /// Finds the accepted messages since `since` that may be this one, to resolve an unknown delivery status. Several may
    /// match, because identical messages are legitimate. The outbox knows which of them are already accounted for.
    async fn find_accepted(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError>;

    /// Fetches the carrier's record of an inbound message; `None` if there is none with this id.
    async fn fetch_received(&self, sid: &str) -> Result<Option<MessageFields>, LookupError>;

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
    /// Random token with which status callbacks refer to the row.
    pub callback_token: CallbackToken,
}

/// Receipt of a message that the carrier has accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReceipt {
    /// Id at the carrier (`MessageSid`).
    pub sid: String,
    /// Time at the carrier, if it reported one.
    pub created_at: Option<Timestamp>,
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
