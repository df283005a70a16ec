//! One model call of a turn: the attempt is recorded, the answer streamed and recorded, a failure told apart.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;

use super::Engine;
use super::run::{Progress, Scene};
use super::stream::Recorder;
use crate::conversation::prompt::{self, Context, Material, ModelRequest, PastTurn};
use crate::conversation::transcript::{Brain, Stop};
use crate::conversation::turn::{Ask, Failure};
use crate::failpoint;
use crate::llm::{Model, ModelError, StepOut};
use crate::store::steps::{self, Attempt, NewCall, Response};
use crate::store::turns;

/// Longest time a model may take for one response.
const MODEL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the model is left alone when only an operator can help.
const MODEL_OFF_FOR: SignedDuration = SignedDuration::from_mins(5);

impl Engine {
    pub(super) async fn ask(
        &self,
        scene: &Scene,
        history: &[PastTurn],
        ask: &Ask,
    ) -> anyhow::Result<Progress> {
        if !ask.after.is_zero() {
            self.0.parts.clock.sleep(ask.after).await;
        }
        let request = self.request(scene, history, ask);
        let model = self.mind(ask.brain);
        let attempt = Attempt { turn: scene.live.id, step: ask.step, attempt: ask.attempt };
        let (brain, name, now) = (ask.brain, model.name().to_owned(), self.now());
        self.0.parts.db.write(move |conn| steps::start(conn, attempt, brain, &name, now)).await?;
        failpoint::reached("step.started");
        let answer = tokio::select! {
            answer = self.call(&*model, &request, attempt) => answer,
            () = self.taken_back(scene) => {
                // Dropping the call closes the connection, which ends the model's work.
                let now = self.now();
                let abandon = move |conn: &mut _| steps::abandon(conn, attempt, Failure::Interrupted, "taken back", now);
                self.0.parts.db.write(abandon).await?;
                return Ok(Progress::GoesOn);
            }
        };
        failpoint::reached("step.answered");
        match answer {
            Ok(answer) => self.record_step(attempt, answer).await?,
            Err(error) => self.record_failure(attempt, &error).await?,
        }
        failpoint::reached("step.recorded");
        Ok(Progress::GoesOn)
    }

    /// Returns once the user has taken the turn back. Every text of theirs rings the bell.
    async fn taken_back(&self, scene: &Scene) {
        let Some(bell) = self.bell(scene.user.id) else { return std::future::pending().await };
        let turn = scene.live.id;
        loop {
            bell.notified().await;
            // Where the database does not answer, the turn goes on to its next record and meets the error there.
            if self.0.parts.db.read(move |conn| turns::cancel_requested(conn, turn)).await.unwrap_or(false) {
                return;
            }
        }
    }

    fn mind(&self, brain: Brain) -> Arc<dyn Model> {
        match (brain, &self.0.parts.model) {
            (Brain::Model, Some(model)) => model.clone(),
            (Brain::Model, None) | (Brain::Keyword, _) => self.0.parts.keyword.clone(),
        }
    }

    fn request(&self, scene: &Scene, history: &[PastTurn], ask: &Ask) -> ModelRequest {
        let zone = self.0.parts.settings.zone.clone();
        let moment = self.now().to_zoned(zone).strftime("%a %b %-d %Y %H:%M %Q").to_string();
        prompt::build(&Material {
            tools: self.0.parts.tools.offered(scene.user.rights),
            history,
            turn: &scene.turn,
            context: Context { moment, user_name: scene.user.name.as_deref(), notes: &scene.plan.notes },
            style: ask.style,
        })
    }

    async fn call(
        &self,
        model: &dyn Model,
        request: &ModelRequest,
        attempt: Attempt,
    ) -> Result<StepOut, ModelError> {
        // Held around the call only, so that nobody waits for another's tools.
        let place = self.0.model_places.acquire().await;
        let mut recorder = Recorder::new(&self.0.parts.db, &self.0.parts.clock, attempt);
        let mut sink = |delta| recorder.take(delta);
        let answer = tokio::time::timeout(MODEL_TIMEOUT, model.step(request, &mut sink)).await;
        drop(place);
        recorder.finish().await;
        answer.unwrap_or(Err(ModelError::Timeout))
    }

    async fn record_step(&self, attempt: Attempt, answer: StepOut) -> anyhow::Result<()> {
        let StepOut { text, thinking, calls, stop, usage, response_id } = answer;
        // A response that was cut off or stopped may hold half a call: none of it runs.
        let whole = matches!(stop, Stop::Done | Stop::Other(_));
        let calls = calls.into_iter().filter(|_| whole).map(|call| NewCall {
            tier: self.0.parts.tools.tier(&call.name),
            name: call.name,
            arguments: call.arguments,
        });
        let response = Response { text, thinking, stop, calls: calls.collect(), tokens: usage, response_id };
        let now = self.now();
        self.0.parts.db.write(move |conn| steps::complete(conn, attempt, &response, now)).await?;
        Ok(())
    }

    async fn record_failure(&self, attempt: Attempt, error: &ModelError) -> anyhow::Result<()> {
        let now = self.now();
        tracing::warn!(turn = %attempt.turn, step = attempt.step, attempt = attempt.attempt, %error, "model call failed");
        if matches!(error, ModelError::Unauthorized(_) | ModelError::QuotaSpent(_)) {
            let mut off = self.0.model_off_until.lock().unwrap_or_else(PoisonError::into_inner);
            *off = Some(now + MODEL_OFF_FOR);
        }
        let trouble = error.trouble();
        let failure = if trouble.retriable {
            Failure::Transient { at: now, retry_after: trouble.retry_after }
        } else {
            Failure::Lasting
        };
        let message = error.to_string();
        self.0.parts.db.write(move |conn| steps::abandon(conn, attempt, failure, &message, now)).await?;
        Ok(())
    }
}
