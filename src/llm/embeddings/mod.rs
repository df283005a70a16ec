//! What turns texts into vectors that can be compared: an OpenAI-compatible server, or letters alone.

mod bounds;
pub mod hashing;
pub mod openai;

use std::time::Duration;

use async_trait::async_trait;

use crate::conversation::trouble::Trouble;

/// From which likeness on two texts count as alike where nobody said otherwise; measured with all-minilm-l6-v2.
pub const USUAL_FLOOR: f32 = 0.30;

#[async_trait]
pub trait Embedder: Send + Sync {
    /// What its vectors are stored under: vectors of two models say nothing about each other.
    fn model(&self) -> &str;

    /// A vector of unit length for each text, in their order, and all of the same dimensions.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Why there are no vectors, by what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// There is nothing to compare in it, and servers refuse it: ask again without. The first such text, counted from 0.
    #[error("embed text {text}, which is blank")]
    Blank { text: usize },
    #[error("get a turn at the embeddings model: rate limited")]
    RateLimited { retry_after: Option<Duration> },
    /// Refused connection, 5xx, an error inside the answer.
    #[error("reach the embeddings model: {0}")]
    Unavailable(String),
    #[error("get vectors from the embeddings model in time")]
    Timeout,
    /// Too few vectors, of different lengths or without a direction.
    #[error("read the vectors: {0}")]
    Garbled(String),
    /// Wrong key or no right to the model: an operator must act.
    #[error("sign in at the embeddings model: {0}")]
    Unauthorized(String),
    /// No credit left: an operator must act.
    #[error("pay for the embeddings model: {0}")]
    QuotaSpent(String),
    #[error("have the texts accepted: {0}")]
    Rejected(String),
}

impl EmbedError {
    /// Embedding changes nothing, so it may always be asked for again; whether that helps differs.
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::RateLimited { retry_after } => Trouble::PASSING.after(*retry_after),
            Self::Unavailable(_) | Self::Timeout | Self::Garbled(_) => Trouble::PASSING,
            Self::Blank { .. } | Self::Unauthorized(_) | Self::QuotaSpent(_) | Self::Rejected(_) => {
                Trouble::LASTING
            }
        }
    }
}
