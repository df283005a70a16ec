//! Triage of messages: the model decides whether a message needs a reply, before the turn continues.

use std::sync::Arc;
use std::time::Duration;

use super::log::turn_log::{TurnLog, TurnProgress};
use super::turn_context::{TurnContext, TurnHistory};
use crate::conversation::grammar::triage;
use crate::conversation::model_cost::{CostEstimate, ModelCharge, ModelPrices};
use crate::conversation::prompt;
use crate::engine::model_call::{ModelCall, ModelCallOutcome, ModelCaller};
use crate::engine::parts::EngineParts;
use crate::llm::{Model, ModelResponse};
use crate::store::turns::daily_budget::ReservationOutcome;
use crate::store::turns::turn_lifecycle::TriageState;

/// Time limit of triage. The limit is short, since a user may be waiting for the reply.
const TRIAGE_TIMEOUT: Duration = Duration::from_secs(8);

/// Triage of messages by the model.
pub(super) struct MessageTriage {
    models: Arc<ModelCaller>,
    prices: ModelPrices,
}

impl MessageTriage {
    pub(super) fn new(parts: &EngineParts, models: Arc<ModelCaller>) -> Self {
        Self { models, prices: parts.settings.prices }
    }

    /// Decides permanently whether the turn continues. Any response except a valid skip lets the turn continue.
    pub(super) async fn triage_turn(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        past: &TurnHistory,
    ) -> anyhow::Result<TurnProgress> {
        let (verdict, charge) = match (context.plan.triage, self.models.configured_model()) {
            (TriageState::Open, Some(model)) => self.classify_small_talk(model, log, context, past).await?,
            (TriageState::Open, None) | (TriageState::Respond, _) => {
                (TriageState::Respond, ModelCharge::Nothing)
            }
            (TriageState::Skip, _) => (TriageState::Skip, ModelCharge::Nothing),
        };
        Ok(log.record_triage(verdict, charge).await?)
    }

    /// Returns the model's decision and its charge. If the day's budget has no room for the call, the model is not
    /// called.
    async fn classify_small_talk(
        &self,
        model: &dyn Model,
        log: &TurnLog,
        context: &TurnContext,
        past: &TurnHistory,
    ) -> anyhow::Result<(TriageState, ModelCharge)> {
        let request = prompt::build_triage_request(&context.turn.texts, past.turns.last());
        let estimate = CostEstimate::from_request(&request, self.prices);
        if log.reserve_triage_cost(estimate).await? != ReservationOutcome::Granted {
            return Ok((TriageState::Respond, ModelCharge::Nothing));
        }
        let asked = ModelCall { model, request: &request, estimate, timeout: TRIAGE_TIMEOUT };
        let mut nobody = |_| {};
        let ModelCallOutcome { response, charge } = tokio::select! {
            outcome = self.models.call_model(asked, &mut nobody) => outcome,
            // Dropping the call closes the connection, which ends the model's work.
            () = log.wait_for_cancellation() => return Ok((TriageState::Respond, ModelCharge::Input)),
        };
        let verdict = response.map(|step| parse_triage_response(&step)).unwrap_or_else(|error| {
            tracing::warn!(turn = %context.active_turn.id, %error, "failed to triage a message");
            TriageState::Respond
        });
        Ok((verdict, charge))
    }
}

fn parse_triage_response(step: &ModelResponse) -> TriageState {
    let clean = step.calls.is_empty() && step.text.trim() == triage::SKIP_REPLY;
    if clean { TriageState::Skip } else { TriageState::Respond }
}
