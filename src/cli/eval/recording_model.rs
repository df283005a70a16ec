//! Model wrapper that records the requests, their latency and tokens, and any failure.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::conversation::model_cost::TokenUsage;
use crate::conversation::model_request::ModelRequest;
use crate::llm::{DeltaSink, Model, ModelError, ModelResponse};

/// Longest wait granted to a server that limits its callers. The simulated clock does not wait for anything.
const MAX_WAIT: Duration = Duration::from_secs(10);

pub(super) struct RecordingModel {
    model: Arc<dyn Model>,
    seen: Mutex<ModelActivity>,
}

/// Model activity since the last check.
#[derive(Debug, Default)]
pub(super) struct ModelActivity {
    pub(super) requests: Vec<ModelRequest>,
    pub(super) tokens: TokenUsage,
    /// Reason that the last request has no response.
    pub(super) failure: Option<ModelError>,
}

impl RecordingModel {
    pub(super) fn new(model: Arc<dyn Model>) -> Self {
        Self { model, seen: Mutex::default() }
    }

    pub(super) fn take_activity(&self) -> ModelActivity {
        std::mem::take(&mut *self.lock_activity())
    }

    fn lock_activity(&self) -> MutexGuard<'_, ModelActivity> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for RecordingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        {
            let mut seen = self.lock_activity();
            seen.requests.push(request.clone());
            // A caller that stops waiting drops this call, and then the failure stays a timeout.
            seen.failure = Some(ModelError::Timeout);
        }
        let answer = self.model.next_response(request, sink).await;
        if let Err(ModelError::RateLimited { retry_after: Some(wait) }) = &answer {
            tokio::time::sleep((*wait).min(MAX_WAIT)).await;
        }
        let mut seen = self.lock_activity();
        seen.failure = answer.as_ref().err().cloned();
        if let Ok(ModelResponse { usage: Some(used), .. }) = &answer {
            seen.tokens = seen.tokens.plus(*used);
        }
        drop(seen);
        answer
    }
}
