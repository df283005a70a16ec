//! Model calls of a turn: reserves the maximum cost, records the attempt, streams and records the response, classifies a
//! failure, and settles the actual cost.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::log::model_records::NewAttempt;
use super::log::turn_log::{TurnLog, TurnProgress};
use super::turn_context::TurnContext;
use super::turn_history::TurnHistory;
use crate::clock::Clock;
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::prompt::{self, PromptMaterial};
use crate::conversation::transcript::{Responder, StopReason, ToolCall, UserId};
use crate::conversation::turn::{ModelCallPlan, NextStep, StepFailure};
use crate::engine::model_calls::call_schedule::CallPurpose;
use crate::engine::model_calls::caller::{ModelCall, ModelCallOutcome};
use crate::engine::parts::ConfiguredParts;
use crate::failpoint;
use crate::llm::{ModelError, ModelResponse, RawCall};
use crate::metrics::Metrics;
use crate::store::turns::model_steps::{AbandonedAttempt, AttemptId, NewCall, RecordedResponse};

/// Time limit of one model response.
const MODEL_TIMEOUT: Duration = Duration::from_secs(30);

/// Model request, with the responder that it is sent to.
pub(super) struct PreparedCall {
    attempt: AttemptId,
    user: UserId,
    responder: Responder,
    request: ModelRequest,
    estimate: CostEstimate,
    /// The response may mention what somebody has watched, so it is not streamed to the console.
    is_private: bool,
}

/// Response to a call.
struct CallResponse {
    step: ModelResponse,
    charge: ModelCharge,
    is_private: bool,
}

/// Failure of a call without a response.
struct FailedCall {
    error: ModelError,
    charge: ModelCharge,
}

/// Runner of model calls.
pub(super) struct ModelStepRunner {
    parts: Arc<ConfiguredParts>,
    clock: Clock,
    metrics: Metrics,
}

impl ModelStepRunner {
    pub(super) fn new(parts: Arc<ConfiguredParts>, clock: Clock, metrics: Metrics) -> Self {
        Self { parts, clock, metrics }
    }

    /// Returns the parts on which the turn runs.
    pub(super) fn parts(&self) -> &Arc<ConfiguredParts> {
        &self.parts
    }

    pub(super) async fn run_model_step(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        history: &TurnHistory,
        plan: &ModelCallPlan,
    ) -> anyhow::Result<TurnProgress> {
        if !plan.delay.is_zero() {
            tokio::select! {
                () = self.clock.sleep(plan.delay) => {}
                () = log.wait_for_cancellation() => return Ok(TurnProgress::Reload),
            }
        }
        let (call, attempt) = self.prepare_model_call(context, history, plan);
        if !log.start_attempt(attempt).await? {
            return Ok(TurnProgress::Reload);
        }
        if plan.attempt > 1 {
            self.metrics.model_retried();
        }
        self.make_call(log, context, call).await
    }

    /// Makes a call whose attempt has started, and records its response or failure.
    pub(super) async fn make_call(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        call: PreparedCall,
    ) -> anyhow::Result<TurnProgress> {
        let metrics = &self.metrics;
        failpoint::reached("step.started");
        let result = tokio::select! {
            result = self.stream_model_call(log, &call) => result,
            () = log.wait_for_cancellation() => {
                // Dropping the call closes the connection, which ends the model's work.
                metrics.model_interrupted(call.responder);
                let abandoned = AbandonedAttempt {
                    failure: StepFailure::Interrupted,
                    message: "taken back".to_owned(),
                };
                log.abandon_attempt(call.attempt, abandoned, ModelCharge::Input).await?;
                return Ok(TurnProgress::Reload);
            }
        };
        failpoint::reached("step.answered");
        let progress = match result {
            Ok(response) => {
                metrics.model_answered(call.responder, response.step.usage);
                self.record_step(log, context, (call.attempt, call.responder), response).await?
            }
            Err(failed) => {
                metrics.model_failed(call.responder, &failed.error);
                self.record_failure(log, call.attempt, failed).await?;
                TurnProgress::Reload
            }
        };
        failpoint::reached("step.recorded");
        Ok(progress)
    }

    /// Prepares the first call of a turn that was just created. Returns `None` if the turn does not call a model at once.
    pub(super) fn prepare_first_call(
        &self,
        context: &TurnContext,
        history: &TurnHistory,
        now: Timestamp,
    ) -> Option<(PreparedCall, NewAttempt)> {
        let NextStep::CallModel(plan) = context.turn.next_step(now, &self.parts.settings.limits) else {
            return None;
        };
        let (call, attempt) = self.prepare_model_call(context, history, &plan);
        (plan.delay.is_zero() && attempt.responder == Responder::Model).then_some((call, attempt))
    }

    fn prepare_model_call(
        &self,
        context: &TurnContext,
        history: &TurnHistory,
        plan: &ModelCallPlan,
    ) -> (PreparedCall, NewAttempt) {
        let request = self.build_model_request(context, history, plan);
        let (responder, model) = self.parts.models.select_model(plan.responder);
        let id = AttemptId { turn: context.active_turn.id, step: plan.step, attempt: plan.attempt };
        let estimate = CostEstimate::from_request(&request, self.parts.settings.prices);
        let is_private =
            self.has_read_viewing(context) || history.turns.iter().any(|turn| turn.about_viewing);
        let is_first = responder == Responder::Model && context.plan.context.is_none() && plan.step == 0;
        let frozen = is_first.then(|| history.context.clone());
        let attempt = NewAttempt { id, responder, model: model.name().to_owned(), estimate, context: frozen };
        (
            PreparedCall { attempt: id, user: context.user.id, responder, request, estimate, is_private },
            attempt,
        )
    }

    /// Returns whether an earlier call of the turn has read what people have watched.
    fn has_read_viewing(&self, context: &TurnContext) -> bool {
        let reads_viewing = |call: &ToolCall| {
            self.parts.tools.get(&call.name).is_some_and(|tool| tool.reads_viewing(&call.arguments))
        };
        context.turn.steps.iter().flat_map(|step| &step.calls).any(reads_viewing)
    }

    fn build_model_request(
        &self,
        context: &TurnContext,
        history: &TurnHistory,
        plan: &ModelCallPlan,
    ) -> ModelRequest {
        // The keyword responder reads the words alone.
        let author = context.author().filter(|_| plan.responder == Responder::Model);
        prompt::build_request(&PromptMaterial {
            tools: self.parts.tools.offered_tools(context.user.rights, context.audience(), plan.responder),
            history: &history.messages,
            turn: &context.turn,
            author: author.as_deref(),
            context_block: &history.context.block,
            addition: self.parts.settings.prompt_addition.as_deref(),
            style: plan.style,
        })
    }

    async fn stream_model_call(
        &self,
        log: &TurnLog,
        call: &PreparedCall,
    ) -> Result<CallResponse, FailedCall> {
        let mut recorder = log.delta_recorder(call.attempt);
        let model_call = ModelCall {
            purpose: CallPurpose::Answer(call.user),
            responder: call.responder,
            request: &call.request,
            estimate: call.estimate,
            prices: self.parts.settings.prices,
            timeout: MODEL_TIMEOUT,
        };
        let ModelCallOutcome { response, charge } = self
            .parts
            .models
            .call_model(model_call, &mut |delta| {
                if !call.is_private {
                    recorder.queue_delta(delta);
                }
            })
            .await;
        recorder.finish().await;
        match response {
            Ok(step) => Ok(CallResponse { step, charge, is_private: call.is_private }),
            Err(error) => Err(FailedCall { error, charge }),
        }
    }

    async fn record_step(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        attempt: (AttemptId, Responder),
        CallResponse { step, charge, is_private }: CallResponse,
    ) -> anyhow::Result<TurnProgress> {
        let ModelResponse { text, thinking, calls, stop, usage, response_id } = step;
        // A response that was cut off or stopped may contain an incomplete call, so none of its calls run.
        let is_complete = matches!(stop, StopReason::Done | StopReason::Other(_));
        let calls = calls
            .into_iter()
            .filter(|_| is_complete)
            .map(|call| self.build_tool_call(context, call))
            .collect();
        let tokens = usage;
        let response = RecordedResponse { text, thinking, stop, calls, tokens, response_id, is_private };
        log.complete_attempt(context, attempt, response, charge).await
    }

    /// Builds a tool call from the model's request, with the user's preferences applied. The call is stored in this
    /// form, so that the same call runs after a crash.
    fn build_tool_call(&self, context: &TurnContext, call: RawCall) -> NewCall {
        let tool = self.parts.tools.get(&call.name);
        let preferred = tool
            .and_then(|tool| tool.apply_preferences(&call.arguments, &context.facts, context.user.rights));
        NewCall {
            effect: self.parts.tools.effect_level(&call.name),
            arguments: preferred.unwrap_or(call.arguments),
            name: call.name,
        }
    }

    async fn record_failure(
        &self,
        log: &TurnLog,
        attempt: AttemptId,
        failed: FailedCall,
    ) -> anyhow::Result<()> {
        let now = self.clock.now();
        let FailedCall { error, charge } = failed;
        tracing::warn!(turn = %attempt.turn, step = attempt.step, attempt = attempt.attempt, %error, "model call failed");
        let class = error.failure_class();
        let failure = if class.retriable {
            StepFailure::Transient { at: now, retry_after: class.retry_after }
        } else {
            StepFailure::Permanent
        };
        let abandoned = AbandonedAttempt { failure, message: error.to_string() };
        Ok(log.abandon_attempt(attempt, abandoned, charge).await?)
    }
}
