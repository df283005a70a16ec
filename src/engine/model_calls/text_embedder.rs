//! Computes the vectors of queries and answers with the embeddings model.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::conversation::memory::answer_metadata;
use crate::llm::embeddings::{EmbedError, Embedder};
use crate::memory::vector::UnitVector;
use crate::store::memory::indexing_queue::EmbeddedAnswer;

/// Maximum number of concurrent requests for vectors.
const MAX_CONCURRENT_REQUESTS: usize = 2;
/// Time limit of a query's vector, since a user waits for the reply. After the timeout, only full-text search is used.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit of a request for the vectors of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Text that every embeddings model accepts.
const PROBE_TEXT: &str = "hello";

/// Vector of a query.
pub(crate) struct QueryEmbedding {
    pub(crate) vector_space: String,
    pub(crate) vector: UnitVector,
}

/// Caller of the embeddings model.
pub(crate) struct TextEmbedder {
    embedder: Arc<dyn Embedder>,
    permits: Semaphore,
    /// Vector space of the last computed vector. Only vectors of one space are comparable.
    vector_space: Mutex<Option<String>>,
}

impl TextEmbedder {
    pub(crate) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, permits: Semaphore::new(MAX_CONCURRENT_REQUESTS), vector_space: Mutex::new(None) }
    }

    /// Returns whether this is the caller of `embedder`.
    pub(crate) fn calls(&self, embedder: &Arc<dyn Embedder>) -> bool {
        Arc::ptr_eq(&self.embedder, embedder)
    }

    /// Computes the vector of a query. Returns `None` if the model fails or does not respond in time.
    pub(crate) async fn embed_query(&self, query: &str) -> Option<QueryEmbedding> {
        let texts = [query.to_owned()];
        // The wait for a permit counts toward the limit, since a user waits for the reply.
        let request = async {
            let _permit = self.permits.acquire().await;
            self.embedder.embed(&texts).await
        };
        match tokio::time::timeout(QUERY_TIMEOUT, request).await {
            Ok(Ok(vectors)) => {
                let vector = vectors.into_iter().next().and_then(UnitVector::new)?;
                let vector_space = self.record_vector_space(&vector);
                Some(QueryEmbedding { vector_space, vector })
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to embed a query, used full-text search only");
                None
            }
            Err(_) => {
                tracing::warn!("embedding of a query timed out, used full-text search only");
                None
            }
        }
    }

    /// Computes the vectors of a question and its answer in one request.
    pub(crate) async fn embed_exchange(
        &self,
        question: &str,
        answer: &str,
    ) -> Result<EmbeddedAnswer, EmbedError> {
        let embeds_question = answer_metadata::is_meaningful_question(question);
        let texts: Vec<String> =
            [answer].into_iter().chain(embeds_question.then_some(question)).map(str::to_owned).collect();
        let _permit = self.permits.acquire().await;
        let vectors = tokio::time::timeout(ANSWER_TIMEOUT, self.embedder.embed(&texts)).await;
        let mut vectors = vectors.unwrap_or(Err(EmbedError::Timeout))?.into_iter().map(UnitVector::new);
        let missing_vector = || EmbedError::Malformed("a vector is missing".to_owned());
        let response = vectors.next().flatten().ok_or_else(missing_vector)?;
        let trigger = vectors.next().flatten();
        Ok(EmbeddedAnswer { model: self.record_vector_space(&response), trigger, response })
    }

    /// Returns the vector space of newly computed vectors. If no vector was computed yet, a probe is embedded first.
    pub(crate) async fn vector_space(&self) -> Result<String, EmbedError> {
        let known = self.vector_space.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(space) => Ok(space),
            None => self.embed_exchange("", PROBE_TEXT).await.map(|vectors| vectors.model),
        }
    }

    /// Returns whether the model rejects every text, as a nonexistent model does.
    pub(crate) async fn rejects_every_text(&self) -> bool {
        self.embedder.embed(&[PROBE_TEXT.to_owned()]).await.is_err()
    }

    fn record_vector_space(&self, vector: &UnitVector) -> String {
        let space = vector.space_key(self.embedder.model());
        *self.vector_space.lock().unwrap_or_else(PoisonError::into_inner) = Some(space.clone());
        space
    }
}
