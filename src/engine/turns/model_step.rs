//! One model call of a turn: reserves the maximum cost, records the attempt, streams and records the response,
//! classifies a failure, and settles the actual cost.

use std::sync::Arc;
use std::time::Duration;

use super::log::model_records::NewAttempt;
use super::log::turn_log::{TurnLog, TurnProgress};
use super::turn_context::{TurnContext, TurnHistory};
use crate::clock::Clock;
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::prompt::{self, PromptContext, PromptMaterial};
use crate::conversation::transcript::{Responder, StopReason};
use crate::conversation::turn::{ModelCallPlan, StepFailure};
use crate::engine::model_call::{ModelCall, ModelCallOutcome, ModelCaller};
use crate::engine::parts::EngineParts;
use crate::engine::settings::HouseholdSettings;
use crate::failpoint;
use crate::llm::{Model, ModelError, ModelResponse, RawCall};
use crate::metrics::Metrics;
use crate::store::stream::delta_writer::BlockChunk;
use crate::store::turns::daily_budget::ReservationOutcome;
use crate::store::turns::model_steps::{AbandonedAttempt, AttemptId, NewCall, RecordedResponse};
use crate::tools::registry::ToolRegistry;

/// Time limit of one model response.
const MODEL_TIMEOUT: Duration = Duration::from_secs(30);

/// Model request, and the model that answers it.
struct PreparedCall {
    attempt: AttemptId,
    responder: Responder,
    model: Arc<dyn Model>,
    request: ModelRequest,
    estimate: CostEstimate,
}

/// Response to a call, and its last streamed pieces that are not in the log yet.
struct CallResponse {
    step: ModelResponse,
    charge: ModelCharge,
    last_pieces: Vec<BlockChunk>,
}

/// Failure of a call without a response.
struct FailedCall {
    error: ModelError,
    charge: ModelCharge,
}

/// Runner of model calls.
pub(super) struct ModelStepRunner {
    models: Arc<ModelCaller>,
    tools: Arc<ToolRegistry>,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    metrics: Metrics,
}

impl ModelStepRunner {
    pub(super) fn new(parts: &EngineParts, models: Arc<ModelCaller>) -> Self {
        let EngineParts { tools, clock, settings, metrics, .. } = parts.clone();
        Self { models, tools, clock, settings, metrics }
    }

    pub(super) async fn run_model_step(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        past: &TurnHistory,
        ask: &ModelCallPlan,
    ) -> anyhow::Result<TurnProgress> {
        if !ask.delay.is_zero() {
            tokio::select! {
                () = self.clock.sleep(ask.delay) => {}
                () = log.wait_for_cancellation() => return Ok(TurnProgress::Reload),
            }
        }
        let call = self.prepare_model_call(context, past, ask);
        let metrics = &self.metrics;
        let (responder, model) = (call.responder, call.model.name().to_owned());
        let new = NewAttempt { id: call.attempt, responder, model, estimate: call.estimate };
        if log.start_attempt(new).await? != Some(ReservationOutcome::Granted) {
            return Ok(TurnProgress::Reload);
        }
        if ask.attempt > 1 {
            metrics.model_tried_again();
        }
        failpoint::reached("step.started");
        let answer = tokio::select! {
            answer = self.stream_model_call(log, &call) => answer,
            () = log.wait_for_cancellation() => {
                // Dropping the call closes the connection, which ends the model's work.
                metrics.model_interrupted(call.responder);
                let (why, charge) = (StepFailure::Interrupted, ModelCharge::Input);
                log.abandon_attempt(call.attempt, AbandonedAttempt { failure: why, message: "taken back".to_owned(), charge }).await?;
                return Ok(TurnProgress::Reload);
            }
        };
        failpoint::reached("step.answered");
        let progress = match answer {
            Ok(answer) => {
                metrics.model_answered(call.responder, answer.step.usage);
                self.record_step(log, context, call.attempt, answer).await?
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

    fn prepare_model_call(
        &self,
        context: &TurnContext,
        past: &TurnHistory,
        ask: &ModelCallPlan,
    ) -> PreparedCall {
        let request = self.build_model_request(context, past, ask);
        let (brain, model) = self.models.select_model(ask.responder);
        let attempt = AttemptId { turn: context.active_turn.id, step: ask.step, attempt: ask.attempt };
        let estimate = CostEstimate::from_request(&request, self.settings.prices);
        PreparedCall { attempt, responder: brain, model, request, estimate }
    }

    fn build_model_request(
        &self,
        context: &TurnContext,
        past: &TurnHistory,
        ask: &ModelCallPlan,
    ) -> ModelRequest {
        let zone = self.settings.zone.clone();
        let known = context.facts.prompt_lines();
        let moment = self.clock.now().to_zoned(zone).strftime("%a %b %-d %Y %H:%M %Q").to_string();
        prompt::build_request(&PromptMaterial {
            tools: self.tools.offered_specs(context.user.rights),
            history: &past.turns,
            turn: &context.turn,
            context: PromptContext {
                moment,
                user_name: context.user.name.as_deref(),
                facts: &known,
                done_today: &past.done_today,
                notes: &context.plan.notes,
                recalled: &past.recalled,
            },
            style: ask.style,
        })
    }

    async fn stream_model_call(
        &self,
        log: &TurnLog,
        call: &PreparedCall,
    ) -> Result<CallResponse, FailedCall> {
        let mut recorder = log.delta_recorder(call.attempt);
        let PreparedCall { model, request, estimate, .. } = call;
        let asked = ModelCall { model: &**model, request, estimate: *estimate, timeout: MODEL_TIMEOUT };
        let ModelCallOutcome { response, charge } =
            self.models.call_model(asked, &mut |delta| recorder.queue_delta(delta)).await;
        let rest = recorder.finish().await;
        match response {
            Ok(step) => Ok(CallResponse { step, charge, last_pieces: rest }),
            Err(error) => Err(FailedCall { error, charge }),
        }
    }

    async fn record_step(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        attempt: AttemptId,
        CallResponse { step, charge, last_pieces: rest }: CallResponse,
    ) -> anyhow::Result<TurnProgress> {
        let ModelResponse { text, thinking, calls, stop, usage, response_id } = step;
        // A response that was cut off or stopped may contain an incomplete call, so none of its calls run.
        let whole = matches!(stop, StopReason::Done | StopReason::Other(_));
        let calls =
            calls.into_iter().filter(|_| whole).map(|call| self.build_tool_call(context, call)).collect();
        let response = RecordedResponse { text, thinking, stop, calls, tokens: usage, charge, response_id };
        log.complete_attempt(attempt, rest, response).await
    }

    /// Builds a call from the model's request with this user's preferences applied. The stored call is exactly the one
    /// that runs, also after a crash.
    fn build_tool_call(&self, context: &TurnContext, call: RawCall) -> NewCall {
        let tool = self.tools.get(&call.name);
        let preferred = tool
            .and_then(|tool| tool.apply_preferences(&call.arguments, &context.facts, context.user.rights));
        NewCall {
            effect: self.tools.effect_level(&call.name),
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
        let trouble = error.failure_class();
        let why = if trouble.retriable {
            StepFailure::Transient { at: now, retry_after: trouble.retry_after }
        } else {
            StepFailure::Permanent
        };
        let abandoned = AbandonedAttempt { failure: why, message: error.to_string(), charge };
        Ok(log.abandon_attempt(attempt, abandoned).await?)
    }
}
