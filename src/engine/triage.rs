//! Triage of messages: the model decides whether a message needs a reply, before the turn continues.

use std::time::Duration;

use super::Engine;
use super::model_call::{ModelCall, ModelCallOutcome};
use super::turn_loop::{TurnContext, TurnHistory, TurnProgress};
use crate::conversation::grammar::triage;
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::prompt;
use crate::llm::{Model, ModelResponse};
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::turns::daily_budget::{self, Day, ReservationOutcome};
use crate::store::turns::turn_lifecycle::{self, TriageState, TurnEnd};

const SMALL_TALK: MessageOutcome = MessageOutcome::Skipped("small_talk");
/// Time limit of triage. The limit is short, since a user may be waiting for the reply.
const TRIAGE_TIMEOUT: Duration = Duration::from_secs(8);

impl Engine {
    /// Decides permanently whether the turn continues. Any response except a valid skip lets the turn continue.
    pub(super) async fn triage_turn(
        &self,
        scene: &TurnContext,
        past: &TurnHistory,
    ) -> anyhow::Result<TurnProgress> {
        let (verdict, charge) = match (scene.plan.triage, self.0.models.configured_model()) {
            (TriageState::Open, Some(model)) => self.classify_small_talk(model, scene, past).await?,
            (TriageState::Open, None) | (TriageState::Respond, _) => {
                (TriageState::Respond, ModelCharge::Nothing)
            }
            (TriageState::Skip, _) => (TriageState::Skip, ModelCharge::Nothing),
        };
        let (turn, now) = (scene.live.id, self.now());
        let record = move |conn: &mut _| {
            daily_budget::settle_call_cost(conn, turn, charge)?;
            turn_lifecycle::set_triage_state(conn, turn, verdict, now)?;
            match verdict {
                TriageState::Skip => {
                    turn_lifecycle::finish_turn(conn, &TurnEnd::without_message(turn, SMALL_TALK), now)
                }
                TriageState::Open | TriageState::Respond => Ok(()),
            }
        };
        self.0.parts.db.write(record).await?;
        Ok(match verdict {
            TriageState::Skip => TurnProgress::Ended,
            TriageState::Open | TriageState::Respond => TurnProgress::Reload,
        })
    }

    /// Returns the model's decision and its charge. If the day's budget has no room for the call, the model is not
    /// called.
    async fn classify_small_talk(
        &self,
        model: &dyn Model,
        scene: &TurnContext,
        past: &TurnHistory,
    ) -> anyhow::Result<(TriageState, ModelCharge)> {
        let settings = &self.0.parts.settings;
        let request = prompt::build_triage_request(&scene.turn.texts, past.turns.last());
        let estimate = CostEstimate::from_request(&request, settings.prices);
        let (turn, user, day) =
            (scene.live.id, scene.user.id, Day::from_timestamp(self.now(), &settings.zone));
        let (call, budget) = (daily_budget::BudgetedCall { turn, user, day, estimate }, settings.budget);
        let reserve = move |conn: &mut _| daily_budget::reserve_call_cost(conn, &call, budget);
        if self.0.parts.db.write(reserve).await? != ReservationOutcome::Granted {
            return Ok((TriageState::Respond, ModelCharge::Nothing));
        }
        let asked = ModelCall { model, request: &request, estimate, timeout: TRIAGE_TIMEOUT };
        let mut nobody = |_| {};
        let ModelCallOutcome { response, charge } = tokio::select! {
            outcome = self.0.models.call_model(asked, &mut nobody) => outcome,
            // Dropping the call closes the connection, which ends the model's work.
            () = self.wait_for_cancellation(scene) => return Ok((TriageState::Respond, ModelCharge::Input)),
        };
        let verdict = response.map(|step| parse_triage_response(&step)).unwrap_or_else(|error| {
            tracing::warn!(%turn, %error, "failed to triage a message");
            TriageState::Respond
        });
        Ok((verdict, charge))
    }
}

fn parse_triage_response(step: &ModelResponse) -> TriageState {
    let clean = step.calls.is_empty() && step.text.trim() == triage::SKIP;
    if clean { TriageState::Skip } else { TriageState::Respond }
}
