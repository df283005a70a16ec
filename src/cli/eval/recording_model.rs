//! Model wrapper that records requests, tokens and failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::conversation::model_cost::TokenUsage;
use crate::conversation::model_request::ModelRequest;
use crate::llm::{DeltaSink, Model, ModelError, ModelResponse};

/// Longest real delay after a rate-limit response. The simulated clock does not advance by itself.
const MAX_RATE_LIMIT_DELAY: Duration = Duration::from_secs(10);

pub(super) struct RecordingModel {
    model: Arc<dyn Model>,
    activity: Mutex<ModelActivity>,
}

/// Requests and results since the last call of `take_activity`.
#[derive(Debug, Default)]
pub(super) struct ModelActivity {
    pub(super) requests: Vec<ModelRequest>,
    pub(super) tokens: TokenUsage,
    /// Error of the last request.
    pub(super) failure: Option<ModelError>,
}

impl RecordingModel {
    pub(super) fn new(model: Arc<dyn Model>) -> Self {
        Self { model, activity: Mutex::default() }
    }

    pub(super) fn take_activity(&self) -> ModelActivity {
        std::mem::take(&mut *self.lock_activity())
    }

    fn lock_activity(&self) -> MutexGuard<'_, ModelActivity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
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
            let mut activity = self.lock_activity();
            activity.requests.push(request.clone());
            // If the caller times out, it drops this future, and the failure stays a timeout.
            activity.failure = Some(ModelError::Timeout);
        }
        let response = self.model.next_response(request, sink).await;
        if let Err(ModelError::RateLimited { retry_after: Some(delay) }) = &response {
            tokio::time::sleep((*delay).min(MAX_RATE_LIMIT_DELAY)).await;
        }
        let mut activity = self.lock_activity();
        activity.failure = response.as_ref().err().cloned();
        if let Ok(ModelResponse { usage: Some(usage), .. }) = &response {
            activity.tokens = activity.tokens.plus(*usage);
        }
        drop(activity);
        response
    }
}
