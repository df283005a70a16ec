//! Responders for a turn: an OpenAI-compatible server, the keyword brain, a script.

pub mod accumulate;
pub mod dialect;
pub mod embeddings;
mod failure;
mod inline_thinking;
pub mod keyword;
pub mod openai;
pub mod scripted;
mod transport;
pub mod wire;

use std::time::Duration;

use async_trait::async_trait;

use crate::conversation::model_request::ModelRequest;
use crate::conversation::spending::Tokens;
use crate::conversation::transcript::{Arguments, Stop};
use crate::conversation::trouble::Trouble;

#[async_trait]
pub trait Model: Send + Sync {
    /// Name under which the step is recorded.
    fn name(&self) -> &str;

    /// Produces one response. Deltas are sent to `sink` in order during production; the returned step is the whole
    /// response.
    async fn step(&self, request: &ModelRequest, sink: DeltaSink<'_>) -> Result<StepOut, ModelError>;
}

pub type DeltaSink<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// Piece of a response during streaming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    /// Another piece of call number `ord`; the name comes with its first piece.
    ToolCall {
        ord: u32,
        name: Option<String>,
        arguments: String,
    },
}

/// One whole response.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOut {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<RawCall>,
    pub stop: Stop,
    /// Token usage from the server; `None` if the server reported none.
    pub usage: Option<Tokens>,
    pub response_id: Option<String>,
}

/// Call as the server sent it; the caller creates its id.
#[derive(Debug, Clone, PartialEq)]
pub struct RawCall {
    pub name: String,
    pub arguments: Arguments,
}

/// Cause of a missing response, classified by the caller's next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("get a turn at the model: rate limited")]
    RateLimited { retry_after: Option<Duration> },
    /// The connection was refused, the status was 5xx, or the stream contained an error.
    #[error("reach the model: {0}")]
    Unavailable(String),
    #[error("get an answer from the model in time")]
    Timeout,
    /// The response was cut off or made no sense, in two attempts.
    #[error("read the model's answer: {0}")]
    Garbled(String),
    #[error("fit the conversation into the model's context")]
    ContextTooLong,
    /// The key is wrong or has no access to the model: an operator must act.
    #[error("sign in at the model: {0}")]
    Unauthorized(String),
    /// The account has no credit left: an operator must act.
    #[error("pay for the model: {0}")]
    QuotaSpent(String),
    #[error("have the request accepted: {0}")]
    Rejected(String),
}

impl ModelError {
    /// Returns the failure class. A model call changes nothing, so it may always be repeated; the class states whether
    /// a repeat can help.
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::RateLimited { retry_after } => Trouble::PASSING.after(*retry_after),
            Self::Unavailable(_) | Self::Timeout | Self::Garbled(_) => Trouble::PASSING,
            Self::ContextTooLong | Self::Unauthorized(_) | Self::QuotaSpent(_) | Self::Rejected(_) => {
                Trouble::LASTING
            }
        }
    }
}
