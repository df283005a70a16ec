//! Embedders that convert texts into comparable vectors: an OpenAI-compatible server, or hashed letters.

pub mod hashing;
pub mod openai;
mod vector_checks;

use std::time::Duration;

use async_trait::async_trait;

/// Default similarity above which two texts count as similar, measured with all-minilm-l6-v2.
pub const DEFAULT_SIMILARITY_FLOOR: f32 = 0.30;

/// Embeddings model that computes the vectors of texts.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns the model name that is stored with the vectors. Vectors of two models are not comparable.
    fn model(&self) -> &str;

    /// Returns one vector of unit length per text, in the order of the texts, all with the same number of dimensions.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Cause of a failed embedding request, classified by the caller's next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// A text has no content to compare, and servers refuse such texts. The caller can repeat the request without the
    /// text. The number is the zero-based index of the first such text.
    #[error("embed text {text}, which is blank")]
    Blank { text: usize },
    #[error("get a turn at the embeddings model: rate limited")]
    RateLimited { retry_after: Option<Duration> },
    /// The connection was refused, the status was 5xx, or the response contained an error.
    #[error("reach the embeddings model: {0}")]
    Unavailable(String),
    #[error("get vectors from the embeddings model in time")]
    Timeout,
    /// The response had too few vectors, vectors of different lengths or vectors without a direction.
    #[error("read the vectors: {0}")]
    Garbled(String),
    /// The key is wrong or has no access to the model, so an operator must act.
    #[error("sign in at the embeddings model: {0}")]
    Unauthorized(String),
    /// The account has no credit left, so an operator must act.
    #[error("pay for the embeddings model: {0}")]
    QuotaSpent(String),
    #[error("have the texts accepted: {0}")]
    Rejected(String),
}
