//! One call of a model and its charge, shared by all parts of the engine that make one.

use std::sync::PoisonError;
use std::time::Duration;

use jiff::SignedDuration;

use super::Engine;
use crate::conversation::model_cost::{CostEstimate, ModelCharge, TokenUsage, estimate_tokens};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::transcript::ToolArguments;
use crate::llm::{DeltaSink, Model, ModelError, ModelResponse};

/// Pause of model calls after an error that only an operator can fix.
const MODEL_OFF_FOR: SignedDuration = SignedDuration::from_mins(5);

/// Request that the day's budget has room for.
pub(super) struct ModelCall<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) request: &'a ModelRequest,
    pub(super) estimate: CostEstimate,
    /// Time limit of the response.
    pub(super) timeout: Duration,
}

/// Response to a model call, and the charge of the call, which a failed call may also have.
pub(super) struct ModelCallOutcome {
    pub(super) response: Result<ModelResponse, ModelError>,
    pub(super) charge: ModelCharge,
}

impl Engine {
    pub(super) async fn call_model(&self, call: ModelCall<'_>, sink: DeltaSink<'_>) -> ModelCallOutcome {
        // The permit is held only during the call, so that no call waits for the tools of another turn.
        let place = self.0.model_permits.acquire().await;
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
            let mut off = self.0.model_off_until.lock().unwrap_or_else(PoisonError::into_inner);
            *off = Some(self.now() + MODEL_OFF_FOR);
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
        ModelCharge::Used { tokens, cost: self.0.parts.settings.prices.cost(tokens) }
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
        | (ModelError::Timeout | ModelError::Garbled(_), ResponseReceipt::Nothing) => ModelCharge::Input,
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
