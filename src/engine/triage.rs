//! Asking the model whether a text wants an answer at all, before its turn goes on.

use std::time::Duration;

use super::Engine;
use super::run::{Past, Progress, Scene};
use crate::conversation::prompt;
use crate::conversation::triage;
use crate::llm::Model;
use crate::store::ledger::Outcome;
use crate::store::turns::{self, Triage};

/// Somebody may be waiting for the answer itself.
const PATIENCE: Duration = Duration::from_secs(8);

impl Engine {
    /// Decides once and for all whether the turn goes on. Anything but a clean word to skip lets it.
    pub(super) async fn triage(&self, scene: &Scene, past: &Past) -> anyhow::Result<Progress> {
        let verdict = match (scene.plan.triage, &self.0.parts.model) {
            (Triage::Open, Some(model)) => self.small_talk(&**model, scene, past).await,
            (Triage::Open, None) | (Triage::Respond, _) => Triage::Respond,
            (Triage::Skip, _) => Triage::Skip,
        };
        let (turn, now) = (scene.live.id, self.now());
        self.0.parts.db.write(move |conn| turns::set_triage(conn, turn, verdict, now)).await?;
        if verdict == Triage::Skip {
            self.end_without_a_text(scene, Outcome::Skipped("small_talk")).await?;
            return Ok(Progress::Ended);
        }
        Ok(Progress::GoesOn)
    }

    async fn small_talk(&self, model: &dyn Model, scene: &Scene, past: &Past) -> Triage {
        let request = prompt::triage(&scene.turn.texts, past.turns.last());
        let place = self.0.model_places.acquire().await;
        let answer = tokio::time::timeout(PATIENCE, model.step(&request, &mut |_| {})).await;
        drop(place);
        match answer {
            Ok(Ok(step)) if step.calls.is_empty() && step.text.trim() == triage::SKIP => Triage::Skip,
            Ok(Ok(_)) => Triage::Respond,
            Ok(Err(error)) => {
                tracing::warn!(turn = %scene.live.id, %error, "the model could not tell whether a text wants an answer");
                Triage::Respond
            }
            Err(_) => Triage::Respond,
        }
    }
}
