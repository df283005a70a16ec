//! Triage of messages: before the turn continues, the model decides whether a message needs a reply.

use std::sync::Arc;
use std::time::Duration;

use super::log::turn_log::{TurnLog, TurnProgress};
use super::turn_context::TurnContext;
use super::turn_history::TurnHistory;
use crate::conversation::grammar::triage;
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::prompt;
use crate::conversation::transcript::Responder;
use crate::engine::model_calls::call_schedule::CallPurpose;
use crate::engine::model_calls::caller::{ModelCall, ModelCallOutcome};
use crate::engine::parts::ConfiguredParts;
use crate::llm::ModelResponse;
use crate::store::turns::turn_lifecycle::TriageState;

/// Time limit of triage. The limit is short, since a user may be waiting for the reply.
const TRIAGE_TIMEOUT: Duration = Duration::from_secs(8);

/// Triage of messages by the model.
pub(super) struct MessageTriage {
    parts: Arc<ConfiguredParts>,
}

impl MessageTriage {
    pub(super) fn new(parts: Arc<ConfiguredParts>) -> Self {
        Self { parts }
    }

    /// Decides whether the turn continues, and records the decision. The turn ends only after a valid skip response.
    pub(super) async fn triage_turn(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        history: &TurnHistory,
    ) -> anyhow::Result<TurnProgress> {
        let (decision, charge) = match (context.plan.triage, self.parts.models.has_model()) {
            (TriageState::Open, true) => self.classify_small_talk(log, context, history).await?,
            (TriageState::Open, false) => (undecided(context), ModelCharge::Nothing),
            (TriageState::Respond, _) => (TriageState::Respond, ModelCharge::Nothing),
            (TriageState::Skip, _) => (TriageState::Skip, ModelCharge::Nothing),
        };
        Ok(log.record_triage(decision, charge).await?)
    }

    /// Returns the model's decision and its charge. Without a decision, the message counts as needing a reply, unless nobody
    /// addressed it to us.
    async fn classify_small_talk(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        history: &TurnHistory,
    ) -> anyhow::Result<(TriageState, ModelCharge)> {
        let last_turn = history.turns.last().map(|turn| &**turn);
        let request = prompt::build_triage_request(
            &context.turn.texts,
            last_turn,
            undecided(context) == TriageState::Respond,
        );
        let prices = self.parts.settings.prices;
        let estimate = CostEstimate::from_request(&request, prices);
        if !log.reserve_triage_cost(estimate).await? {
            return Ok((undecided(context), ModelCharge::Nothing));
        }
        let call = ModelCall {
            purpose: CallPurpose::Triage(context.user.id),
            responder: Responder::Model,
            request: &request,
            estimate,
            prices,
            timeout: TRIAGE_TIMEOUT,
        };
        let mut ignore_deltas = |_| {};
        let ModelCallOutcome { response, charge } = tokio::select! {
            outcome = self.parts.models.call_model(call, &mut ignore_deltas) => outcome,
            // Dropping the call closes the connection, which ends the model's work.
            () = log.wait_for_cancellation() => return Ok((TriageState::Respond, ModelCharge::Input)),
        };
        let decision = response.map(|response| parse_triage_response(&response)).unwrap_or_else(|error| {
            tracing::warn!(turn = %context.active_turn.id, %error, "failed to triage a message");
            undecided(context)
        });
        Ok((decision, charge))
    }
}

/// Returns the decision if the model makes none.
fn undecided(context: &TurnContext) -> TriageState {
    match context.events.iter().any(|event| event.is_addressed) {
        true => TriageState::Respond,
        false => TriageState::Skip,
    }
}

fn parse_triage_response(response: &ModelResponse) -> TriageState {
    let is_skip = response.calls.is_empty() && response.text.trim() == triage::SKIP_REPLY;
    if is_skip { TriageState::Skip } else { TriageState::Respond }
}
