//! The minds that can answer a turn: an OpenAI-compatible server, the keyword brain, a script.

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
    /// What the step is recorded as.
    fn name(&self) -> &str;

    /// One response. Deltas go to `sink` in order while it is produced; the returned step is the whole of it.
    async fn step(&self, request: &ModelRequest, sink: DeltaSink<'_>) -> Result<StepOut, ModelError>;
}

pub type DeltaSink<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// A piece of a response on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    /// A further piece of call number `ord`; the name comes with its first piece.
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
    /// As the server counted; `None` where it told nothing.
    pub usage: Option<Tokens>,
    pub response_id: Option<String>,
}

/// A call as the server sent it; its id is ours to mint.
#[derive(Debug, Clone, PartialEq)]
pub struct RawCall {
    pub name: String,
    pub arguments: Arguments,
}

/// Why there is no response, by what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("get a turn at the model: rate limited")]
    RateLimited { retry_after: Option<Duration> },
    /// Refused connection, 5xx, an error inside the stream.
    #[error("reach the model: {0}")]
    Unavailable(String),
    #[error("get an answer from the model in time")]
    Timeout,
    /// The answer was cut off or made no sense, twice over.
    #[error("read the model's answer: {0}")]
    Garbled(String),
    #[error("fit the conversation into the model's context")]
    ContextTooLong,
    /// Wrong key or no right to the model: an operator must act.
    #[error("sign in at the model: {0}")]
    Unauthorized(String),
    /// No credit left: an operator must act.
    #[error("pay for the model: {0}")]
    QuotaSpent(String),
    #[error("have the request accepted: {0}")]
    Rejected(String),
}

impl ModelError {
    /// A model call changes nothing, so it may always be made again; whether that helps differs.
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
