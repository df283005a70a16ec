//! A model under watch: what it was asked, what that took, and whether it failed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::conversation::model_request::ModelRequest;
use crate::conversation::spending::Tokens;
use crate::llm::{DeltaSink, Model, ModelError, StepOut};

/// Longest wait that a server which limits its callers is granted. The played clock does not wait for anyone.
const MAX_WAIT: Duration = Duration::from_secs(10);

pub(super) struct Watched {
    model: Arc<dyn Model>,
    seen: Mutex<Seen>,
}

/// What happened since the last look.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) requests: Vec<ModelRequest>,
    pub(super) tokens: Tokens,
    /// Why the last request has no answer.
    pub(super) failure: Option<ModelError>,
}

impl Watched {
    pub(super) fn new(model: Arc<dyn Model>) -> Self {
        Self { model, seen: Mutex::default() }
    }

    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut *self.seen())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for Watched {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn step(&self, request: &ModelRequest, sink: DeltaSink<'_>) -> Result<StepOut, ModelError> {
        {
            let mut seen = self.seen();
            seen.requests.push(request.clone());
            // Who gives up waiting drops this call, and then it stays at that.
            seen.failure = Some(ModelError::Timeout);
        }
        let answer = self.model.step(request, sink).await;
        if let Err(ModelError::RateLimited { retry_after: Some(wait) }) = &answer {
            tokio::time::sleep((*wait).min(MAX_WAIT)).await;
        }
        let mut seen = self.seen();
        seen.failure = answer.as_ref().err().cloned();
        if let Ok(StepOut { usage: Some(used), .. }) = &answer {
            seen.tokens = seen.tokens.plus(*used);
        }
        drop(seen);
        answer
    }
}
