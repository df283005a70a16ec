//! Embedders, which convert texts into comparable vectors: an OpenAI-compatible server, or feature hashing.

pub mod hashing;
pub mod openai;
mod vector_checks;

use std::time::Duration;

use async_trait::async_trait;

/// Default similarity above which two texts count as similar. Measured with all-minilm-l6-v2.
pub const DEFAULT_SIMILARITY_FLOOR: f32 = 0.30;

/// Model that computes the vectors of texts.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns the model name that is stored with the vectors. Vectors of two models are not comparable.
    fn model(&self) -> &str;

    /// Returns one vector of unit length per text, in the order of the texts, all with the same number of dimensions.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Error of an embedding request. The variants differ in how the caller reacts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// A text is blank, and servers reject such texts. The caller can repeat the request without it. `text` is the
    /// zero-based index of the first blank text.
    #[error("embed text {text}: it is blank")]
    Blank { text: usize },
    #[error("call the embeddings model: rate limited")]
    RateLimited { retry_after: Option<Duration> },
    /// The connection was refused, the status was 5xx, or the response contained an error.
    #[error("reach the embeddings model: {0}")]
    Unavailable(String),
    #[error("get vectors from the embeddings model in time")]
    Timeout,
    /// The response had too few vectors, vectors of different lengths, or a vector that cannot be normalized.
    #[error("parse the vectors: {0}")]
    Malformed(String),
    /// The key is wrong or has no access to the model. The operator has to change it.
    #[error("authenticate with the embeddings server: {0}")]
    Unauthorized(String),
    /// The account has no credit left. The operator has to add some.
    #[error("call the embeddings model: no credit left: {0}")]
    QuotaSpent(String),
    #[error("embed the texts: the server rejected the request: {0}")]
    Rejected(String),
}
