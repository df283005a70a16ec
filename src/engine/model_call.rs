//! Model calls and their charges, for all components of the engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;

use super::parts::EngineParts;
use crate::clock::Clock;
use crate::conversation::model_cost::{CostEstimate, ModelCharge, ModelPrices, TokenUsage, estimate_tokens};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::transcript::{Responder, ToolArguments};
use crate::llm::{DeltaSink, Model, ModelError, ModelResponse};

/// Pause of model calls after an error that only an operator can fix.
const OPERATOR_ERROR_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Model request, whose estimated cost fits into the day's budget.
pub(crate) struct ModelCall<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) request: &'a ModelRequest,
    pub(crate) estimate: CostEstimate,
    /// Time limit of the response.
    pub(crate) timeout: Duration,
}

/// Response to a model call, and its charge. A failed call may also have a charge.
pub(crate) struct ModelCallOutcome {
    pub(crate) response: Result<ModelResponse, ModelError>,
    pub(crate) charge: ModelCharge,
}

/// Caller of the models, which limits concurrent calls, and pauses calls after errors that only an operator can fix.
pub(crate) struct ModelCaller {
    /// `None` if none is configured: the keyword responder answers.
    model: Option<Arc<dyn Model>>,
    keyword: Arc<dyn Model>,
    prices: ModelPrices,
    clock: Clock,
    permits: Semaphore,
    /// End of the pause after an error that only an operator can fix.
    paused_until: Mutex<Option<Timestamp>>,
}

impl ModelCaller {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { model, keyword, clock, .. } = parts.clone();
        Self {
            model,
            keyword,
            prices: parts.settings.prices,
            clock,
            permits: Semaphore::new(parts.settings.max_model_calls),
            paused_until: Mutex::new(None),
        }
    }

    /// Returns the configured model, without the keyword responder.
    pub(crate) fn configured_model(&self) -> Option<&dyn Model> {
        self.model.as_deref()
    }

    /// Returns the requested responder with its model, or the keyword responder if no model is configured.
    pub(crate) fn select_model(&self, requested: Responder) -> (Responder, Arc<dyn Model>) {
        match (requested, &self.model) {
            (Responder::Model, Some(model)) => (Responder::Model, model.clone()),
            (Responder::Model, None) | (Responder::Keyword, _) => (Responder::Keyword, self.keyword.clone()),
        }
    }

    /// Returns the responder of a turn that starts at `now`.
    pub(crate) fn current_responder(&self, now: Timestamp) -> Responder {
        let is_paused = self.lock_paused_until().is_some_and(|until| now < until);
        if self.model.is_none() || is_paused { Responder::Keyword } else { Responder::Model }
    }

    /// Shifts the end of the pause by a step of the wall clock.
    pub(crate) fn apply_clock_step(&self, step: SignedDuration) {
        if let Some(until) = self.lock_paused_until().as_mut() {
            *until = until.saturating_add(step).unwrap_or(Timestamp::MAX);
        }
    }

    pub(crate) async fn call_model(&self, call: ModelCall<'_>, sink: DeltaSink<'_>) -> ModelCallOutcome {
        // The permit is held only during the call, so that no call waits for the tools of another turn.
        let permit = self.permits.acquire().await;
        let mut streamed = StreamedOutput::Nothing;
        let mut on_delta = |delta| {
            streamed = StreamedOutput::Something;
            sink(delta);
        };
        let response =
            tokio::time::timeout(call.timeout, call.model.next_response(call.request, &mut on_delta)).await;
        drop(permit);
        let response = response.unwrap_or(Err(ModelError::Timeout));
        let charge = match &response {
            Ok(step) => self.charge_of_response(step, call.estimate),
            Err(error) => charge_of_failure(error, streamed),
        };
        if matches!(response, Err(ModelError::Unauthorized(_) | ModelError::QuotaSpent(_))) {
            *self.lock_paused_until() = Some(self.clock.now() + OPERATOR_ERROR_PAUSE);
        }
        ModelCallOutcome { response, charge }
    }

    /// Returns the charge of a response. If the server reports no usage, the response is charged by its length.
    fn charge_of_response(&self, response: &ModelResponse, estimate: CostEstimate) -> ModelCharge {
        let tokens = response.usage.unwrap_or_else(|| TokenUsage {
            input: estimate.input.tokens,
            cached: 0,
            output: estimate_tokens(response_length(response)),
        });
        ModelCharge::Used { tokens, cost: self.prices.cost(tokens) }
    }

    fn lock_paused_until(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.paused_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Part of a response that arrived before the call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamedOutput {
    Nothing,
    Something,
}

/// Returns the charge of a failed call. A call that the server rejects costs nothing.
fn charge_of_failure(error: &ModelError, streamed: StreamedOutput) -> ModelCharge {
    match (error, streamed) {
        (_, StreamedOutput::Something)
        | (ModelError::Timeout | ModelError::Malformed(_), StreamedOutput::Nothing) => ModelCharge::Input,
        (
            ModelError::RateLimited { .. }
            | ModelError::Unavailable(_)
            | ModelError::ContextTooLong
            | ModelError::Unauthorized(_)
            | ModelError::QuotaSpent(_)
            | ModelError::Rejected(_),
            StreamedOutput::Nothing,
        ) => ModelCharge::Nothing,
    }
}

/// Returns the length of the whole response in bytes.
fn response_length(response: &ModelResponse) -> usize {
    let calls = response.calls.iter().map(|call| {
        let arguments = match &call.arguments {
            ToolArguments::Object(map) => serde_json::Value::Object(map.clone()).to_string().len(),
            ToolArguments::Malformed(text) => text.len(),
        };
        call.name.len() + arguments
    });
    response.text.len() + response.thinking.len() + calls.sum::<usize>()
}
