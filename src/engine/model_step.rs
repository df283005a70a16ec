//! One model call of a turn: reserves the maximum cost, records the attempt, streams and records the response,
//! classifies a failure, and settles the actual cost.

use std::sync::Arc;
use std::time::Duration;

use super::model_call::{ModelCall, ModelCallOutcome};
use super::stream::recorder::DeltaRecorder;
use super::turn_loop::{TurnContext, TurnHistory, TurnProgress};
use super::{Engine, reply_address};
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::prompt::{self, PromptContext, PromptMaterial};
use crate::conversation::transcript::{Responder, StopReason};
use crate::conversation::turn::{ModelCallPlan, StepFailure};
use crate::failpoint;
use crate::llm::{Model, ModelError, ModelResponse, RawCall};
use crate::store::Conn;
use crate::store::stream::delta_writer::{self, BlockChunk};
use crate::store::turns::daily_budget::{self, Day, ReservationOutcome};
use crate::store::turns::model_steps::{self, AbandonedAttempt, AttemptId, NewCall, RecordedResponse};
use crate::store::turns::turn_lifecycle;

/// Time limit of one model response.
const MODEL_TIMEOUT: Duration = Duration::from_secs(30);
/// Text of the budget notification for the admins, sent at most once a day.
const BUDGET_SPENT: &str = "Today's budget for the model is spent. Until midnight I only understand short commands such as ADD, STATUS and REMOVE.";

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

impl Engine {
    pub(super) async fn run_model_step(
        &self,
        scene: &TurnContext,
        past: &TurnHistory,
        ask: &ModelCallPlan,
    ) -> anyhow::Result<TurnProgress> {
        if !ask.delay.is_zero() {
            tokio::select! {
                () = self.0.parts.clock.sleep(ask.delay) => {}
                () = self.wait_for_cancellation(scene) => return Ok(TurnProgress::Reload),
            }
        }
        let call = self.prepare_model_call(scene, past, ask);
        let metrics = &self.0.parts.metrics;
        if self.start_attempt(scene, &call).await? != Some(ReservationOutcome::Granted) {
            return Ok(TurnProgress::Reload);
        }
        if ask.attempt > 1 {
            metrics.model_tried_again();
        }
        failpoint::reached("step.started");
        let answer = tokio::select! {
            answer = self.stream_model_call(&call) => answer,
            () = self.wait_for_cancellation(scene) => {
                // Dropping the call closes the connection, which ends the model's work.
                metrics.model_interrupted(call.responder);
                let (why, charge) = (StepFailure::Interrupted, ModelCharge::Input);
                self.abandon_attempt(call.attempt, AbandonedAttempt { failure: why, message: "taken back".to_owned(), charge }).await?;
                return Ok(TurnProgress::Reload);
            }
        };
        failpoint::reached("step.answered");
        let progress = match answer {
            Ok(answer) => {
                metrics.model_answered(call.responder, answer.step.usage);
                self.record_step(scene, &call, answer).await?
            }
            Err(failed) => {
                metrics.model_failed(call.responder, &failed.error);
                self.record_failure(call.attempt, failed).await?;
                TurnProgress::Reload
            }
        };
        failpoint::reached("step.recorded");
        Ok(progress)
    }

    fn prepare_model_call(
        &self,
        scene: &TurnContext,
        past: &TurnHistory,
        ask: &ModelCallPlan,
    ) -> PreparedCall {
        let request = self.build_model_request(scene, past, ask);
        let (brain, model) = self.0.models.select_model(ask.responder);
        let attempt = AttemptId { turn: scene.live.id, step: ask.step, attempt: ask.attempt };
        let estimate = CostEstimate::from_request(&request, self.0.parts.settings.prices);
        PreparedCall { attempt, responder: brain, model, request, estimate }
    }

    /// Records the attempt. Returns `None` if the turn was canceled after it was loaded. A call that does not fit into
    /// the day's budget ends here. The keyword responder costs nothing and is not counted.
    async fn start_attempt(
        &self,
        scene: &TurnContext,
        call: &PreparedCall,
    ) -> anyhow::Result<Option<ReservationOutcome>> {
        let (now, settings) = (self.now(), &self.0.parts.settings);
        let (attempt, brain, name) = (call.attempt, call.responder, call.model.name().to_owned());
        let day = Day::from_timestamp(now, &settings.zone);
        let wanted = daily_budget::BudgetedCall {
            turn: attempt.turn,
            user: scene.user.id,
            day,
            estimate: call.estimate,
        };
        let (budget, number) = (settings.budget, settings.number.clone());
        let start = move |conn: &mut _| {
            if turn_lifecycle::is_cancel_requested(conn, attempt.turn)? {
                return Ok(None);
            }
            model_steps::start_attempt(conn, attempt, brain, &name, now)?;
            let reservation = match brain {
                Responder::Model => daily_budget::reserve_call_cost(conn, &wanted, budget)?,
                Responder::Keyword => ReservationOutcome::Granted,
            };
            let message = match reservation {
                ReservationOutcome::Granted => return Ok(Some(reservation)),
                ReservationOutcome::Crowded => "the calls under way may use up the day's budget",
                ReservationOutcome::Exhausted => {
                    let key = format!("budget:{}", wanted.day);
                    reply_address::notify_admins(conn, number.as_ref(), &key, BUDGET_SPENT, now)?;
                    "the day's budget is spent"
                }
            };
            let why = StepFailure::Lasting;
            let abandoned =
                AbandonedAttempt { failure: why, message: message.to_owned(), charge: ModelCharge::Nothing };
            model_steps::abandon_attempt(conn, attempt, abandoned, now)?;
            Ok(Some(reservation))
        };
        let reservation = self.0.parts.db.write(start).await?;
        if let Some(reservation @ (ReservationOutcome::Crowded | ReservationOutcome::Exhausted)) = reservation
        {
            tracing::warn!(turn = %attempt.turn, ?reservation, "skipped a model call that exceeds the day's budget");
            self.0.parts.outbox.notify();
        }
        Ok(reservation)
    }

    /// Waits until the user or the operator has canceled the turn. Both cancellations notify the user's task.
    pub(super) async fn wait_for_cancellation(&self, scene: &TurnContext) {
        let Some(bell) = self.user_bell(scene.user.id) else { return std::future::pending().await };
        let turn = scene.live.id;
        loop {
            bell.notified().await;
            // If the database does not answer, the turn continues to its next record and gets the error there.
            if self
                .0
                .parts
                .db
                .read(move |conn| turn_lifecycle::is_cancel_requested(conn, turn))
                .await
                .unwrap_or(false)
            {
                return;
            }
        }
    }

    fn build_model_request(
        &self,
        scene: &TurnContext,
        past: &TurnHistory,
        ask: &ModelCallPlan,
    ) -> ModelRequest {
        let zone = self.0.parts.settings.zone.clone();
        let known = scene.facts.prompt_lines();
        let moment = self.now().to_zoned(zone).strftime("%a %b %-d %Y %H:%M %Q").to_string();
        prompt::build_request(&PromptMaterial {
            tools: self.0.parts.tools.offered_specs(scene.user.rights),
            history: &past.turns,
            turn: &scene.turn,
            context: PromptContext {
                moment,
                user_name: scene.user.name.as_deref(),
                facts: &known,
                done_today: &past.done_today,
                notes: &scene.plan.notes,
                recalled: &past.recalled,
            },
            style: ask.style,
        })
    }

    async fn stream_model_call(&self, call: &PreparedCall) -> Result<CallResponse, FailedCall> {
        let mut recorder = DeltaRecorder::new(&self.0.parts.db, &self.0.parts.clock, call.attempt);
        let PreparedCall { model, request, estimate, .. } = call;
        let asked = ModelCall { model: &**model, request, estimate: *estimate, timeout: MODEL_TIMEOUT };
        let ModelCallOutcome { response, charge } =
            self.0.models.call_model(asked, &mut |delta| recorder.queue_delta(delta)).await;
        let rest = recorder.finish().await;
        match response {
            Ok(step) => Ok(CallResponse { step, charge, last_pieces: rest }),
            Err(error) => Err(FailedCall { error, charge }),
        }
    }

    async fn record_step(
        &self,
        scene: &TurnContext,
        call: &PreparedCall,
        CallResponse { step, charge, last_pieces: rest }: CallResponse,
    ) -> anyhow::Result<TurnProgress> {
        let ModelResponse { text, thinking, calls, stop, usage, response_id } = step;
        // A response that was cut off or stopped may contain an incomplete call, so none of its calls run.
        let whole = matches!(stop, StopReason::Done | StopReason::Other(_));
        let calls =
            calls.into_iter().filter(|_| whole).map(|call| self.build_tool_call(scene, call)).collect();
        let response = RecordedResponse { text, thinking, stop, calls, tokens: usage, charge, response_id };
        let (attempt, now) = (call.attempt, self.now());
        let record = move |conn: &mut Conn| {
            delta_writer::append_chunks(conn, attempt, &rest, now)?;
            model_steps::complete_attempt(conn, attempt, &response, now)
        };
        self.record_and_continue(scene, record).await
    }

    /// Builds a call from the model's request with this user's preferences applied. The stored call is exactly the one
    /// that runs, also after a crash.
    fn build_tool_call(&self, scene: &TurnContext, call: RawCall) -> NewCall {
        let tools = &self.0.parts.tools;
        let tool = tools.get(&call.name);
        let preferred =
            tool.and_then(|tool| tool.apply_preferences(&call.arguments, &scene.facts, scene.user.rights));
        NewCall {
            tier: tools.effect_level(&call.name),
            arguments: preferred.unwrap_or(call.arguments),
            name: call.name,
        }
    }

    async fn record_failure(&self, attempt: AttemptId, failed: FailedCall) -> anyhow::Result<()> {
        let now = self.now();
        let FailedCall { error, charge } = failed;
        tracing::warn!(turn = %attempt.turn, step = attempt.step, attempt = attempt.attempt, %error, "model call failed");
        let trouble = error.failure_class();
        let why = if trouble.retriable {
            StepFailure::Transient { at: now, retry_after: trouble.retry_after }
        } else {
            StepFailure::Lasting
        };
        self.abandon_attempt(attempt, AbandonedAttempt { failure: why, message: error.to_string(), charge })
            .await
    }

    async fn abandon_attempt(&self, attempt: AttemptId, abandoned: AbandonedAttempt) -> anyhow::Result<()> {
        let now = self.now();
        self.0
            .parts
            .db
            .write(move |conn| model_steps::abandon_attempt(conn, attempt, abandoned, now))
            .await?;
        Ok(())
    }
}
