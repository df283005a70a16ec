//! Triage: asks the model whether a message wants an answer at all, before its turn continues.

use std::time::Duration;

use super::Engine;
use super::model_call::{ModelCall, ModelCallOutcome};
use super::run::{Past, Progress, Scene};
use crate::conversation::prompt;
use crate::conversation::spending::{Charge, Estimate};
use crate::conversation::triage;
use crate::llm::{Model, StepOut};
use crate::store::ledger::Outcome;
use crate::store::spend::{self, Day, Reservation};
use crate::store::turns::{self, End, Triage};

const SMALL_TALK: Outcome = Outcome::Skipped("small_talk");
/// Longest time for triage, since a user may be waiting for the answer itself.
const PATIENCE: Duration = Duration::from_secs(8);

impl Engine {
    /// Decides permanently whether the turn continues. Any response but a clean skip lets it continue.
    pub(super) async fn triage(&self, scene: &Scene, past: &Past) -> anyhow::Result<Progress> {
        let (verdict, charge) = match (scene.plan.triage, &self.0.parts.model) {
            (Triage::Open, Some(model)) => self.small_talk(&**model, scene, past).await?,
            (Triage::Open, None) | (Triage::Respond, _) => (Triage::Respond, Charge::Nothing),
            (Triage::Skip, _) => (Triage::Skip, Charge::Nothing),
        };
        let (turn, now) = (scene.live.id, self.now());
        let record = move |conn: &mut _| {
            spend::settle(conn, turn, charge)?;
            turns::set_triage(conn, turn, verdict, now)?;
            match verdict {
                Triage::Skip => turns::finish(conn, &End::without_a_text(turn, SMALL_TALK), now),
                Triage::Open | Triage::Respond => Ok(()),
            }
        };
        self.0.parts.db.write(record).await?;
        Ok(match verdict {
            Triage::Skip => Progress::Ended,
            Triage::Open | Triage::Respond => Progress::GoesOn,
        })
    }

    /// Returns the model's verdict and its charge. If the day's budget has no room for the call, the model is not
    /// asked.
    async fn small_talk(
        &self,
        model: &dyn Model,
        scene: &Scene,
        past: &Past,
    ) -> anyhow::Result<(Triage, Charge)> {
        let settings = &self.0.parts.settings;
        let request = prompt::triage(&scene.turn.texts, past.turns.last());
        let estimate = Estimate::of(&request, settings.prices);
        let (turn, user, day) = (scene.live.id, scene.user.id, Day::of(self.now(), &settings.zone));
        let (call, budget) = (spend::Call { turn, user, day, estimate }, settings.budget);
        let reserve = move |conn: &mut _| spend::reserve(conn, &call, budget);
        if self.0.parts.db.write(reserve).await? != Reservation::Granted {
            return Ok((Triage::Respond, Charge::Nothing));
        }
        let asked = ModelCall { model, request: &request, estimate, timeout: PATIENCE };
        let mut nobody = |_| {};
        let ModelCallOutcome { response, charge } = tokio::select! {
            outcome = self.call_model(asked, &mut nobody) => outcome,
            // Dropping the call closes the connection, which ends the model's work.
            () = self.taken_back(scene) => return Ok((Triage::Respond, Charge::Input)),
        };
        let verdict = response.map(|step| verdict(&step)).unwrap_or_else(|error| {
            tracing::warn!(%turn, %error, "the model could not tell whether a text wants an answer");
            Triage::Respond
        });
        Ok((verdict, charge))
    }
}

fn verdict(step: &StepOut) -> Triage {
    let clean = step.calls.is_empty() && step.text.trim() == triage::SKIP;
    if clean { Triage::Skip } else { Triage::Respond }
}
