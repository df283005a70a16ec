//! One model call of a turn: its maximum cost is reserved and the attempt recorded, the response streamed and recorded,
//! a failure classified, and the actual cost settled.

use std::sync::Arc;
use std::time::Duration;

use super::model_call::{ModelCall, ModelCallOutcome};
use super::run::{Past, Progress, Scene};
use super::stream::recorder::Recorder;
use super::{Engine, ending};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::prompt::{self, Context, Material};
use crate::conversation::spending::{Charge, Estimate};
use crate::conversation::transcript::{Brain, Stop};
use crate::conversation::turn::{Ask, Failure};
use crate::failpoint;
use crate::llm::{Model, ModelError, RawCall, StepOut};
use crate::store::Conn;
use crate::store::spend::{self, Day, Reservation};
use crate::store::steps::{self, Abandoned, Attempt, NewCall, Response};
use crate::store::stream::writing::{self, Piece};
use crate::store::turns;

/// Longest time a model may take for one response.
const MODEL_TIMEOUT: Duration = Duration::from_secs(30);
/// Notification for the admins, sent at most once a day.
const BUDGET_SPENT: &str = "Today's budget for the model is spent. Until midnight I only understand short commands such as ADD, STATUS and REMOVE.";

/// Model request, and the model that is to answer it.
struct Call {
    attempt: Attempt,
    brain: Brain,
    model: Arc<dyn Model>,
    request: ModelRequest,
    estimate: Estimate,
}

/// Response to a call, and the last streamed pieces of it that are not in the log yet.
struct Answered {
    step: StepOut,
    charge: Charge,
    rest: Vec<Piece>,
}

/// Call without a response.
struct Failed {
    error: ModelError,
    charge: Charge,
}

impl Engine {
    pub(super) async fn ask(&self, scene: &Scene, past: &Past, ask: &Ask) -> anyhow::Result<Progress> {
        if !ask.after.is_zero() {
            tokio::select! {
                () = self.0.parts.clock.sleep(ask.after) => {}
                () = self.taken_back(scene) => return Ok(Progress::GoesOn),
            }
        }
        let call = self.prepare(scene, past, ask);
        let metrics = &self.0.parts.metrics;
        if self.start(scene, &call).await? != Some(Reservation::Granted) {
            return Ok(Progress::GoesOn);
        }
        if ask.attempt > 1 {
            metrics.model_tried_again();
        }
        failpoint::reached("step.started");
        let answer = tokio::select! {
            answer = self.call(&call) => answer,
            () = self.taken_back(scene) => {
                // Dropping the call closes the connection, which ends the model's work.
                metrics.model_interrupted(call.brain);
                let (why, charge) = (Failure::Interrupted, Charge::Input);
                self.abandon(call.attempt, Abandoned { why, message: "taken back".to_owned(), charge }).await?;
                return Ok(Progress::GoesOn);
            }
        };
        failpoint::reached("step.answered");
        let progress = match answer {
            Ok(answer) => {
                metrics.model_answered(call.brain, answer.step.usage);
                self.record_step(scene, &call, answer).await?
            }
            Err(failed) => {
                metrics.model_failed(call.brain, &failed.error);
                self.record_failure(call.attempt, failed).await?;
                Progress::GoesOn
            }
        };
        failpoint::reached("step.recorded");
        Ok(progress)
    }

    fn prepare(&self, scene: &Scene, past: &Past, ask: &Ask) -> Call {
        let request = self.request(scene, past, ask);
        let (brain, model) = match (ask.brain, &self.0.parts.model) {
            (Brain::Model, Some(model)) => (Brain::Model, model.clone()),
            (Brain::Model, None) | (Brain::Keyword, _) => (Brain::Keyword, self.0.parts.keyword.clone()),
        };
        let attempt = Attempt { turn: scene.live.id, step: ask.step, attempt: ask.attempt };
        let estimate = Estimate::of(&request, self.0.parts.settings.prices);
        Call { attempt, brain, model, request, estimate }
    }

    /// Records the attempt. `None` if the turn was canceled after it was loaded. A call that does not fit into the
    /// day's budget ends here; the keyword responder costs nothing and is not counted.
    async fn start(&self, scene: &Scene, call: &Call) -> anyhow::Result<Option<Reservation>> {
        let (now, settings) = (self.now(), &self.0.parts.settings);
        let (attempt, brain, name) = (call.attempt, call.brain, call.model.name().to_owned());
        let day = Day::of(now, &settings.zone);
        let wanted = spend::Call { turn: attempt.turn, user: scene.user.id, day, estimate: call.estimate };
        let (budget, number) = (settings.budget, settings.number.clone());
        let start = move |conn: &mut _| {
            if turns::cancel_requested(conn, attempt.turn)? {
                return Ok(None);
            }
            steps::start(conn, attempt, brain, &name, now)?;
            let reservation = match brain {
                Brain::Model => spend::reserve(conn, &wanted, budget)?,
                Brain::Keyword => Reservation::Granted,
            };
            let message = match reservation {
                Reservation::Granted => return Ok(Some(reservation)),
                Reservation::Crowded => "the calls under way may use up the day's budget",
                Reservation::Exhausted => {
                    let key = format!("budget:{}", wanted.day);
                    ending::tell_admins(conn, number.as_ref(), &key, BUDGET_SPENT, now)?;
                    "the day's budget is spent"
                }
            };
            let why = Failure::Lasting;
            let abandoned = Abandoned { why, message: message.to_owned(), charge: Charge::Nothing };
            steps::abandon(conn, attempt, abandoned, now)?;
            Ok(Some(reservation))
        };
        let reservation = self.0.parts.db.write(start).await?;
        if let Some(reservation @ (Reservation::Crowded | Reservation::Exhausted)) = reservation {
            tracing::warn!(turn = %attempt.turn, ?reservation, "the day's budget has no room for a model call");
            self.0.parts.outbox.ring();
        }
        Ok(reservation)
    }

    /// Returns once the user or the operator has canceled the turn. Both ring the bell.
    pub(super) async fn taken_back(&self, scene: &Scene) {
        let Some(bell) = self.bell(scene.user.id) else { return std::future::pending().await };
        let turn = scene.live.id;
        loop {
            bell.notified().await;
            // If the database does not answer, the turn continues to its next record and gets the error there.
            if self.0.parts.db.read(move |conn| turns::cancel_requested(conn, turn)).await.unwrap_or(false) {
                return;
            }
        }
    }

    fn request(&self, scene: &Scene, past: &Past, ask: &Ask) -> ModelRequest {
        let zone = self.0.parts.settings.zone.clone();
        let known = scene.facts.lines();
        let moment = self.now().to_zoned(zone).strftime("%a %b %-d %Y %H:%M %Q").to_string();
        prompt::build(&Material {
            tools: self.0.parts.tools.offered(scene.user.rights),
            history: &past.turns,
            turn: &scene.turn,
            context: Context {
                moment,
                user_name: scene.user.name.as_deref(),
                known: &known,
                done_today: &past.done_today,
                notes: &scene.plan.notes,
                recalled: &past.recalled,
            },
            style: ask.style,
        })
    }

    async fn call(&self, call: &Call) -> Result<Answered, Failed> {
        let mut recorder = Recorder::new(&self.0.parts.db, &self.0.parts.clock, call.attempt);
        let Call { model, request, estimate, .. } = call;
        let asked = ModelCall { model: &**model, request, estimate: *estimate, timeout: MODEL_TIMEOUT };
        let ModelCallOutcome { response, charge } =
            self.call_model(asked, &mut |delta| recorder.take(delta)).await;
        let rest = recorder.finish().await;
        match response {
            Ok(step) => Ok(Answered { step, charge, rest }),
            Err(error) => Err(Failed { error, charge }),
        }
    }

    async fn record_step(
        &self,
        scene: &Scene,
        call: &Call,
        Answered { step, charge, rest }: Answered,
    ) -> anyhow::Result<Progress> {
        let StepOut { text, thinking, calls, stop, usage, response_id } = step;
        // A response that was cut off or stopped may hold half a call, so none of its calls run.
        let whole = matches!(stop, Stop::Done | Stop::Other(_));
        let calls = calls.into_iter().filter(|_| whole).map(|call| self.new_call(scene, call)).collect();
        let response = Response { text, thinking, stop, calls, tokens: usage, charge, response_id };
        let (attempt, now) = (call.attempt, self.now());
        let record = move |conn: &mut Conn| {
            writing::append(conn, attempt, &rest, now)?;
            steps::complete(conn, attempt, &response, now)
        };
        self.record_and_go_on(scene, record).await
    }

    /// Builds a call from the model's request with this user's preferences applied. The stored call is exactly the one
    /// that runs, also after a crash.
    fn new_call(&self, scene: &Scene, call: RawCall) -> NewCall {
        let tools = &self.0.parts.tools;
        let tool = tools.get(&call.name);
        let preferred =
            tool.and_then(|tool| tool.preferred(&call.arguments, &scene.facts, scene.user.rights));
        NewCall {
            tier: tools.tier(&call.name),
            arguments: preferred.unwrap_or(call.arguments),
            name: call.name,
        }
    }

    async fn record_failure(&self, attempt: Attempt, failed: Failed) -> anyhow::Result<()> {
        let now = self.now();
        let Failed { error, charge } = failed;
        tracing::warn!(turn = %attempt.turn, step = attempt.step, attempt = attempt.attempt, %error, "model call failed");
        let trouble = error.trouble();
        let why = if trouble.retriable {
            Failure::Transient { at: now, retry_after: trouble.retry_after }
        } else {
            Failure::Lasting
        };
        self.abandon(attempt, Abandoned { why, message: error.to_string(), charge }).await
    }

    async fn abandon(&self, attempt: Attempt, abandoned: Abandoned) -> anyhow::Result<()> {
        let now = self.now();
        self.0.parts.db.write(move |conn| steps::abandon(conn, attempt, abandoned, now)).await?;
        Ok(())
    }
}
