//! One call of a model and its charge, shared by all parts of the engine that make one.

use std::sync::PoisonError;
use std::time::Duration;

use jiff::SignedDuration;

use super::Engine;
use crate::conversation::model_request::ModelRequest;
use crate::conversation::spending::{Charge, Estimate, Tokens, tokens_in};
use crate::conversation::transcript::Arguments;
use crate::llm::{DeltaSink, Model, ModelError, StepOut};

/// Duration for which the model is not called when only an operator can help.
const MODEL_OFF_FOR: SignedDuration = SignedDuration::from_mins(5);

/// Request that the day's budget has room for.
pub(super) struct ModelCall<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) request: &'a ModelRequest,
    pub(super) estimate: Estimate,
    /// Longest time for the response.
    pub(super) timeout: Duration,
}

/// Response to a call, and its charge with or without one.
pub(super) struct ModelCallOutcome {
    pub(super) response: Result<StepOut, ModelError>,
    pub(super) charge: Charge,
}

impl Engine {
    pub(super) async fn call_model(&self, call: ModelCall<'_>, sink: DeltaSink<'_>) -> ModelCallOutcome {
        // Held around the call only, so that no call waits for the tools of another turn.
        let place = self.0.model_places.acquire().await;
        let mut heard = Heard::Nothing;
        let mut listen = |delta| {
            heard = Heard::Something;
            sink(delta);
        };
        let response = tokio::time::timeout(call.timeout, call.model.step(call.request, &mut listen)).await;
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

    /// Charges a response. The response of a server that reports no usage is charged by its length.
    fn charge_of_response(&self, response: &StepOut, estimate: Estimate) -> Charge {
        let tokens = response.usage.unwrap_or_else(|| Tokens {
            input: estimate.input.tokens,
            cached: 0,
            output: tokens_in(length(response)),
        });
        Charge::Used { tokens, cost: self.0.parts.settings.prices.cost(tokens) }
    }
}

/// Flag for whether a piece of a response was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nothing,
    Something,
}

/// Charge of a failed call. A server that refuses a call charges nothing for it.
fn charge_of_failure(error: &ModelError, heard: Heard) -> Charge {
    match (error, heard) {
        (_, Heard::Something) | (ModelError::Timeout | ModelError::Garbled(_), Heard::Nothing) => {
            Charge::Input
        }
        (
            ModelError::RateLimited { .. }
            | ModelError::Unavailable(_)
            | ModelError::ContextTooLong
            | ModelError::Unauthorized(_)
            | ModelError::QuotaSpent(_)
            | ModelError::Rejected(_),
            Heard::Nothing,
        ) => Charge::Nothing,
    }
}

/// Length of everything that the model wrote, in bytes.
fn length(response: &StepOut) -> usize {
    let calls = response.calls.iter().map(|call| {
        let arguments = match &call.arguments {
            Arguments::Object(map) => serde_json::Value::Object(map.clone()).to_string().len(),
            Arguments::Malformed(text) => text.len(),
        };
        call.name.len() + arguments
    });
    response.text.len() + response.thinking.len() + calls.sum::<usize>()
}
