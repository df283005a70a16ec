//! The ways a text leaves us, and what is known about its arrival.

pub mod console;
pub mod error_codes;
pub mod fake;
pub mod messages;
pub mod numbers;
pub mod outbox;
pub mod recovery;
pub mod segments;
pub mod signature;
pub mod terminal;
pub mod twilio;
pub mod webhook;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::conversation::transcript::{Address, OutboxId};
use crate::conversation::trouble::Trouble;
use crate::conversation::verification::TextFields;
use crate::store::callbacks::CallbackWord;

#[async_trait]
pub trait Channel: Send + Sync {
    /// Hands one text over, once. Retrying is the outbox's business.
    async fn send(&self, text: &Outgoing) -> Result<Accepted, SendError>;

    /// Looks for a text whose fate is unknown among those that the carrier took since `since`. Several may match: two
    /// equal texts to one person are legitimate, and which of them are accounted for, the outbox knows.
    async fn find(&self, text: &Outgoing, since: Timestamp) -> Result<Vec<Accepted>, LookError>;

    /// Fetches the carrier's record of a text that somebody sent us; `None` where it has none with this id.
    async fn fetch_received(&self, sid: &str) -> Result<Option<TextFields>, LookError>;
}

/// The carrier's record could not be read.
#[derive(Debug, thiserror::Error)]
#[error("read the carrier's list of messages: {0}")]
pub struct LookError(pub String);

/// One outbox row on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub id: OutboxId,
    pub attempt: u32,
    pub to: Address,
    pub from: Address,
    pub body: String,
    pub media: Vec<String>,
    /// The word by which status callbacks name its row.
    pub word: CallbackWord,
}

/// The carrier has taken the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The carrier's id (`MessageSid`).
    pub sid: String,
    /// The carrier's time, where it told one.
    pub created_at: Option<Timestamp>,
}

/// Why a text was not handed over, by what the outbox does next.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Certainly not created: send later.
    #[error("send now: {reason}")]
    Later { retry_after: Option<Duration>, reason: String },
    /// It may have been created: look before sending again.
    #[error("learn whether the text was taken: {0}")]
    Unknown(String),
    /// The person has opted out (21610): nothing more may be sent.
    #[error("send to someone who opted out")]
    OptedOut,
    /// This text will never be taken.
    #[error("send: {meaning}{}", in_brackets(.code))]
    Permanent { code: Option<u32>, meaning: String },
    /// Nothing will be taken until an operator acts: wrong token, unregistered number.
    #[error("send: an operator must act: {meaning}{}", in_brackets(.code))]
    Misconfigured { code: Option<u32>, meaning: String },
}

impl SendError {
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::Later { retry_after, .. } => Trouble::PASSING.after(*retry_after),
            Self::Unknown(_) => Trouble::UNKNOWN,
            // Sent once an operator has acted; until then it is tried rarely.
            Self::Misconfigured { .. } => Trouble::PASSING.after(Some(Duration::MAX)),
            Self::OptedOut | Self::Permanent { .. } => Trouble::LASTING,
        }
    }
}

fn in_brackets(code: &Option<u32>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}
