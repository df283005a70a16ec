//! Calls of the models and their charges, for all parts of the engine that make one.

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
const MODEL_OFF_FOR: SignedDuration = SignedDuration::from_mins(5);

/// Request that the day's budget has room for.
pub(crate) struct ModelCall<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) request: &'a ModelRequest,
    pub(crate) estimate: CostEstimate,
    /// Time limit of the response.
    pub(crate) timeout: Duration,
}

/// Response to a model call, and the charge of the call, which a failed call may also have.
pub(crate) struct ModelCallOutcome {
    pub(crate) response: Result<ModelResponse, ModelError>,
    pub(crate) charge: ModelCharge,
}

/// Caller of the models, which limits concurrent calls and pauses calls that only an operator can repair.
pub(crate) struct ModelCaller {
    /// `None` if none is configured: the keyword responder answers.
    model: Option<Arc<dyn Model>>,
    keyword: Arc<dyn Model>,
    prices: ModelPrices,
    clock: Clock,
    permits: Semaphore,
    /// End of the time without model calls, because an operator has to act first.
    off_until: Mutex<Option<Timestamp>>,
}

impl ModelCaller {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { model, keyword, clock, .. } = parts.clone();
        Self {
            model,
            keyword,
            prices: parts.settings.prices,
            clock,
            permits: Semaphore::new(parts.settings.model_calls),
            off_until: Mutex::new(None),
        }
    }

    /// Returns the configured model, without the keyword responder.
    pub(crate) fn configured_model(&self) -> Option<&dyn Model> {
        self.model.as_deref()
    }

    /// Returns the model of a responder, and the responder that it is: without a model, the keyword responder.
    pub(crate) fn select_model(&self, wanted: Responder) -> (Responder, Arc<dyn Model>) {
        match (wanted, &self.model) {
            (Responder::Model, Some(model)) => (Responder::Model, model.clone()),
            (Responder::Model, None) | (Responder::Keyword, _) => (Responder::Keyword, self.keyword.clone()),
        }
    }

    /// Returns the responder of a turn that begins at this time.
    pub(crate) fn current_responder(&self, now: Timestamp) -> Responder {
        let is_off = self.lock_off_until().is_some_and(|until| now < until);
        if self.model.is_none() || is_off { Responder::Keyword } else { Responder::Model }
    }

    /// Shifts the end of the time without model calls by a step of the wall clock.
    pub(crate) fn follow_clock_step(&self, step: SignedDuration) {
        if let Some(until) = self.lock_off_until().as_mut() {
            *until = until.saturating_add(step).unwrap_or(Timestamp::MAX);
        }
    }

    pub(crate) async fn call_model(&self, call: ModelCall<'_>, sink: DeltaSink<'_>) -> ModelCallOutcome {
        // The permit is held only during the call, so that no call waits for the tools of another turn.
        let place = self.permits.acquire().await;
        let mut heard = ResponseReceipt::Nothing;
        let mut listen = |delta| {
            heard = ResponseReceipt::Something;
            sink(delta);
        };
        let response =
            tokio::time::timeout(call.timeout, call.model.next_response(call.request, &mut listen)).await;
        drop(place);
        let response = response.unwrap_or(Err(ModelError::Timeout));
        let charge = match &response {
            Ok(step) => self.charge_of_response(step, call.estimate),
            Err(error) => charge_of_failure(error, heard),
        };
        if matches!(response, Err(ModelError::Unauthorized(_) | ModelError::QuotaSpent(_))) {
            *self.lock_off_until() = Some(self.clock.now() + MODEL_OFF_FOR);
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

    fn lock_off_until(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.off_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Flag for the receipt of at least one piece of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseReceipt {
    Nothing,
    Something,
}

/// Returns the charge of a failed call. A server that refuses a call charges nothing for the call.
fn charge_of_failure(error: &ModelError, heard: ResponseReceipt) -> ModelCharge {
    match (error, heard) {
        (_, ResponseReceipt::Something)
        | (ModelError::Timeout | ModelError::Malformed(_), ResponseReceipt::Nothing) => ModelCharge::Input,
        (
            ModelError::RateLimited { .. }
            | ModelError::Unavailable(_)
            | ModelError::ContextTooLong
            | ModelError::Unauthorized(_)
            | ModelError::QuotaSpent(_)
            | ModelError::Rejected(_),
            ResponseReceipt::Nothing,
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
