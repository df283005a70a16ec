//! Vectors of queries and answers, from the embeddings model.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::conversation::memory::answer_metadata;
use crate::llm::embeddings::{EmbedError, Embedder};
use crate::memory::vector::UnitVector;
use crate::store::memory::indexing_queue::EmbeddedAnswer;

/// Maximum number of concurrent requests for vectors.
const EMBEDDINGS_AT_ONCE: usize = 2;
/// Maximum wait for vectors while a user waits for the reply. If no vectors arrive in time, only the text is searched.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit of a request for the vectors of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Text that every embeddings model can read.
const PROBE_TEXT: &str = "hello";

/// Vector of a text, computed by an embeddings model.
pub(super) struct QueryEmbedding {
    pub(super) model: String,
    pub(super) vector: UnitVector,
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
        Self { embedder, permits: Semaphore::new(EMBEDDINGS_AT_ONCE), vector_space: Mutex::new(None) }
    }

    /// Computes the vector of a query. If the model does not respond in time, memory is searched without the vector.
    pub(super) async fn embed_query(&self, query: &str) -> Option<QueryEmbedding> {
        let texts = [query.to_owned()];
        // The wait for a permit counts toward the limit, since a user waits for the reply.
        let ask = async {
            let _place = self.permits.acquire().await;
            self.embedder.embed(&texts).await
        };
        let asked = tokio::time::timeout(QUERY_TIMEOUT, ask).await;
        match asked {
            Ok(Ok(vectors)) => {
                let vector = vectors.into_iter().next().and_then(UnitVector::new)?;
                let model = self.note_vector_space(&vector);
                Some(QueryEmbedding { model, vector })
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to embed the query, searched the memory by text only");
                None
            }
            Err(_) => {
                tracing::warn!("embedding of the query timed out, searched the memory by text only");
                None
            }
        }
    }

    /// Computes the vectors of a question and its answer in one request.
    pub(super) async fn embed_exchange(
        &self,
        question: &str,
        answer: &str,
    ) -> Result<EmbeddedAnswer, EmbedError> {
        let asked = answer_metadata::is_meaningful_question(question);
        let texts: Vec<String> =
            [answer].into_iter().chain(asked.then_some(question)).map(str::to_owned).collect();
        let _place = self.permits.acquire().await;
        let vectors = tokio::time::timeout(ANSWER_TIMEOUT, self.embedder.embed(&texts)).await;
        let mut vectors = vectors.unwrap_or(Err(EmbedError::Timeout))?.into_iter().map(UnitVector::new);
        let none = || EmbedError::Malformed("a vector is missing".to_owned());
        let response = vectors.next().flatten().ok_or_else(none)?;
        let trigger = vectors.next().flatten();
        Ok(EmbeddedAnswer { model: self.note_vector_space(&response), trigger, response })
    }

    /// Returns the vector space of newly computed vectors. Only vectors of one space are comparable. The space is
    /// unknown before the first vector.
    pub(super) async fn vector_space(&self) -> Result<String, EmbedError> {
        let known = self.vector_space.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(space) => Ok(space),
            None => self.embed_exchange("", PROBE_TEXT).await.map(|vectors| vectors.model),
        }
    }

    /// Returns whether the model refuses every text, as a nonexistent model does.
    pub(super) async fn refuses_every_text(&self) -> bool {
        self.embedder.embed(&[PROBE_TEXT.to_owned()]).await.is_err()
    }

    fn note_vector_space(&self, vector: &UnitVector) -> String {
        let space = vector.space_key(self.embedder.model());
        *self.vector_space.lock().unwrap_or_else(PoisonError::into_inner) = Some(space.clone());
        space
    }
}
