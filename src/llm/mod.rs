//! Models that respond in a turn: an OpenAI-compatible server, the keyword responder, or a script.

pub mod chat_completions;
pub mod dialect;
pub mod embeddings;
mod error_response;
pub mod keyword;
pub mod openai;
pub mod response_accumulator;
pub mod scripted;
mod thinking_splitter;
mod transport;

use std::time::Duration;

use async_trait::async_trait;

use crate::conversation::model_cost::TokenUsage;
use crate::conversation::model_request::ModelRequest;
use crate::conversation::retry_policy::FailureClass;
use crate::conversation::transcript::{StopReason, ToolArguments};

/// Responder that produces the next response of a turn.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the name that is recorded with the step.
    fn name(&self) -> &str;

    /// Produces one response. Sends its deltas to `sink` in order, and returns the whole response at the end.
    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError>;

    /// Checks that the server responds and accepts the key, without a call of the model.
    async fn check_server(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// Receiver of the deltas of a streamed response.
pub type DeltaSink<'a> = &'a mut (dyn FnMut(ResponseDelta) + Send);

/// Increment of a streamed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseDelta {
    Text(String),
    Thinking(String),
    /// Next part of call number `ord`. The first part of a call has its name.
    ToolCall {
        ord: u32,
        name: Option<String>,
        arguments: String,
    },
}

/// Whole response of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelResponse {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<RawCall>,
    pub stop: StopReason,
    /// Token usage from the server. `None` if the server reported no usage.
    pub usage: Option<TokenUsage>,
    pub response_id: Option<String>,
}

/// Tool call from the server without an id, which the caller creates.
#[derive(Debug, Clone, PartialEq)]
pub struct RawCall {
    pub name: String,
    pub arguments: ToolArguments,
}

/// Error of a model call. The variants differ in how the caller reacts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("call the model: rate limited")]
    RateLimited { retry_after: Option<Duration> },
    /// The connection was refused, the status was 5xx, or the stream contained an error.
    #[error("reach the model: {0}")]
    Unavailable(String),
    #[error("get a response from the model in time")]
    Timeout,
    /// The response could not be parsed, was empty or was too large.
    #[error("parse the model's response: {0}")]
    Malformed(String),
    #[error("fit the conversation into the model's context")]
    ContextTooLong,
    /// The key is wrong or has no access to the model. The operator has to change it.
    #[error("authenticate with the model server: {0}")]
    Unauthorized(String),
    /// The account has no credit left. The operator has to add some.
    #[error("call the model: no credit left: {0}")]
    QuotaSpent(String),
    #[error("call the model: the server rejected the request: {0}")]
    Rejected(String),
}

impl ModelError {
    /// Returns the failure class. A model call changes nothing, so it may always be repeated; the class states whether
    /// a repeat can help.
    pub fn failure_class(&self) -> FailureClass {
        match self {
            Self::RateLimited { retry_after } => FailureClass::TRANSIENT.with_retry_after(*retry_after),
            Self::Unavailable(_) | Self::Timeout | Self::Malformed(_) => FailureClass::TRANSIENT,
            Self::ContextTooLong | Self::Unauthorized(_) | Self::QuotaSpent(_) | Self::Rejected(_) => {
                FailureClass::PERMANENT
            }
        }
    }
}
