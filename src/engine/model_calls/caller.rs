//! Model calls and their charges, for all components of the engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::call_schedule::CallPurpose;
use super::concurrency_limit::CallOutcome;
use super::model_queue::ModelQueue;
use crate::clock::Clock;
use crate::conversation::model_cost::{CostEstimate, ModelCharge, ModelPrices, TokenUsage, estimate_tokens};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::transcript::{Responder, ToolArguments};
use crate::llm::keyword::KeywordResponder;
use crate::llm::{DeltaSink, Model, ModelError, ModelResponse};
use crate::metrics::Metrics;

/// Pause of model calls after an error that only an operator can fix.
const OPERATOR_ERROR_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Period for which the outcome of the last request is the state of the model.
const OUTCOME_AGE: SignedDuration = SignedDuration::from_hours(1);

/// Model request, whose estimated cost fits into the day's budget.
pub(crate) struct ModelCall<'a> {
    pub(crate) purpose: CallPurpose,
    pub(crate) responder: Responder,
    pub(crate) request: &'a ModelRequest,
    pub(crate) estimate: CostEstimate,
    pub(crate) prices: ModelPrices,
    /// Time limit of the response.
    pub(crate) timeout: Duration,
}

/// Response to a model call, and its charge. A failed call may also have a charge.
pub(crate) struct ModelCallOutcome {
    pub(crate) response: Result<ModelResponse, ModelError>,
    pub(crate) charge: ModelCharge,
}

/// Caller of the models, which adapts the number of concurrent calls to the model server, and pauses calls after errors
/// that only an operator can fix.
pub(crate) struct ModelCaller {
    /// `None` if none is configured: the keyword responder answers.
    model: Option<Arc<dyn Model>>,
    keyword: KeywordResponder,
    clock: Clock,
    queue: ModelQueue,
    /// Highest limit of concurrent calls.
    max_calls: usize,
    /// End of the pause after an error that only an operator can fix.
    paused_until: Mutex<Option<Timestamp>>,
    /// Time and outcome of the last request to the model's server.
    last_outcome: Mutex<Option<(Timestamp, Result<(), ModelError>)>>,
    /// True from a test in which the model did not call the requested tool until it calls one.
    lacks_tools: AtomicBool,
}

/// State of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelState {
    pub(crate) name: String,
    pub(crate) outcome: Result<ToolSupport, ModelError>,
}

/// Whether a model calls tools when it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolSupport {
    /// The model calls tools, or was not tested.
    Usable,
    /// The model did not call the requested tool in its last test.
    Missing,
}

impl ModelCaller {
    pub(crate) fn new(
        model: Option<Arc<dyn Model>>,
        max_calls: usize,
        clock: Clock,
        metrics: Metrics,
    ) -> Self {
        Self {
            keyword: KeywordResponder::from_model(model.as_ref()),
            model,
            clock,
            queue: ModelQueue::new(max_calls, metrics),
            max_calls,
            paused_until: Mutex::new(None),
            last_outcome: Mutex::new(None),
            lacks_tools: AtomicBool::new(false),
        }
    }

    /// Returns whether this is the caller of `model` with this limit of concurrent calls.
    pub(crate) fn calls(&self, model: Option<&Arc<dyn Model>>, max_calls: usize) -> bool {
        let is_same_model = match (&self.model, model) {
            (Some(ours), Some(other)) => Arc::ptr_eq(ours, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same_model && self.max_calls == max_calls
    }

    /// Returns whether a model is configured, besides the keyword responder.
    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Returns the requested responder with its model, or the keyword responder if no model is configured.
    pub(crate) fn select_model(&self, requested: Responder) -> (Responder, &dyn Model) {
        match (requested, &self.model) {
            (Responder::Model, Some(model)) => (Responder::Model, &**model),
            (Responder::Model, None) | (Responder::Keyword, _) => (Responder::Keyword, &self.keyword),
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

    /// Calls the model when its turn comes. The time limit does not include the wait.
    pub(crate) async fn call_model(&self, call: ModelCall<'_>, sink: DeltaSink<'_>) -> ModelCallOutcome {
        let (responder, model) = self.select_model(call.responder);
        // A slot is held only during the call, so that no call waits for the tools of another turn.
        let slot = match responder {
            Responder::Model => Some(self.queue.wait_for_slot(call.purpose).await),
            Responder::Keyword => None,
        };
        let (started_at, mut first_output_at) = (Instant::now(), None);
        let mut on_delta = |delta| {
            first_output_at.get_or_insert_with(Instant::now);
            sink(delta);
        };
        let response =
            tokio::time::timeout(call.timeout, model.next_response(call.request, &mut on_delta)).await;
        let response = response.unwrap_or(Err(ModelError::Timeout));
        if let Some(slot) = slot {
            let latency = first_output_at.unwrap_or_else(Instant::now) - started_at;
            slot.end_call(call_outcome(call.purpose, &response, latency));
            // A conversation that is too long says nothing about other requests.
            if !matches!(response, Err(ModelError::ContextTooLong)) {
                self.record_outcome(response.as_ref().map(drop).map_err(Clone::clone));
            }
            if response.as_ref().is_ok_and(|response| !response.calls.is_empty()) {
                self.lacks_tools.store(false, Ordering::Relaxed);
            }
        }
        let charge = match &response {
            Ok(step) => charge_of_response(step, &call),
            Err(error) if first_output_at.is_none() => charge_of_failure(error),
            Err(_) => ModelCharge::Input,
        };
        if matches!(response, Err(ModelError::Unauthorized(_) | ModelError::QuotaSpent(_))) {
            *self.lock_paused_until() = Some(self.clock.now() + OPERATOR_ERROR_PAUSE);
        }
        ModelCallOutcome { response, charge }
    }

    /// Returns the state of the model: by its last request or, if there was none for an hour, by a request for the list of
    /// models. Returns `None` without a model.
    pub(crate) async fn check_server(&self) -> Option<ModelState> {
        let model = self.model.as_ref()?;
        let last = self.lock_last_outcome().clone();
        let outcome = match last {
            // An unreachable server may be back.
            Some((at, outcome))
                if self.clock.now().duration_since(at) < OUTCOME_AGE
                    && !matches!(outcome, Err(ModelError::Unavailable(_))) =>
            {
                outcome
            }
            _ => {
                let outcome = model.check_server().await;
                self.record_outcome(outcome.clone());
                outcome
            }
        };
        let support = match self.lacks_tools.load(Ordering::Relaxed) {
            true => ToolSupport::Missing,
            false => ToolSupport::Usable,
        };
        Some(ModelState { name: model.name().to_owned(), outcome: outcome.map(|()| support) })
    }

    /// Records the outcome of a test of the model's server. A response ends the pause of model calls.
    pub(crate) fn record_test(&self, outcome: Result<ToolSupport, ModelError>) {
        if let Ok(support) = outcome {
            *self.lock_paused_until() = None;
            self.lacks_tools.store(support == ToolSupport::Missing, Ordering::Relaxed);
        }
        self.record_outcome(outcome.map(drop));
    }

    fn record_outcome(&self, outcome: Result<(), ModelError>) {
        *self.lock_last_outcome() = Some((self.clock.now(), outcome));
    }

    fn lock_last_outcome(&self) -> MutexGuard<'_, Option<(Timestamp, Result<(), ModelError>)>> {
        self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_paused_until(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.paused_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the outcome of a call for the limit of concurrent calls.
fn call_outcome(
    purpose: CallPurpose,
    response: &Result<ModelResponse, ModelError>,
    latency: Duration,
) -> CallOutcome {
    match (response, purpose) {
        (Ok(_), CallPurpose::Answer(_)) => CallOutcome::Answered(latency),
        (Err(ModelError::RateLimited { .. } | ModelError::Unavailable(_) | ModelError::Timeout), _) => {
            CallOutcome::Overloaded
        }
        (Ok(_), CallPurpose::Triage(_) | CallPurpose::Notes) => CallOutcome::Unmeasured,
        (
            Err(
                ModelError::Malformed(_)
                | ModelError::ContextTooLong
                | ModelError::Unauthorized(_)
                | ModelError::QuotaSpent(_)
                | ModelError::Rejected(_),
            ),
            _,
        ) => CallOutcome::Unmeasured,
    }
}

/// Returns the charge of a response. If the server reports no usage, the response is charged by its length.
fn charge_of_response(response: &ModelResponse, call: &ModelCall<'_>) -> ModelCharge {
    let tokens = response.usage.unwrap_or_else(|| TokenUsage {
        input: call.estimate.input.tokens,
        cached: 0,
        output: estimate_tokens(response_length(response)),
    });
    ModelCharge::Used { tokens, cost: call.prices.cost(tokens) }
}

/// Returns the charge of a call that failed without output. A call that the server rejects costs nothing.
fn charge_of_failure(error: &ModelError) -> ModelCharge {
    match error {
        ModelError::Timeout | ModelError::Malformed(_) => ModelCharge::Input,
        ModelError::RateLimited { .. }
        | ModelError::Unavailable(_)
        | ModelError::ContextTooLong
        | ModelError::Unauthorized(_)
        | ModelError::QuotaSpent(_)
        | ModelError::Rejected(_) => ModelCharge::Nothing,
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
