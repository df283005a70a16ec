//! One turn, from its log to its end, as a loop: load, decide, execute, record.

use std::sync::Arc;

use jiff::Timestamp;

use super::ending::{self, WayBack};
use super::{Engine, SmsReactions};
use crate::conversation::facts::Facts;
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::prompt::PastTurn;
use crate::conversation::transcript::{CallState, Tier, User, UserId};
use crate::conversation::turn::{Answer, Excuse, Step, Turn};
use crate::failpoint;
use crate::store::history::{self, Window};
use crate::store::ledger::Outcome;
use crate::store::memory::facts;
use crate::store::turns::{self, End, Kind, Live, Plan, Triage};
use crate::store::{Conn, QueryResult, undone_if_failed, users};

/// Current state of a chat turn, with the data that its steps need.
pub(super) struct Scene {
    pub(super) live: Live,
    pub(super) turn: Turn,
    pub(super) plan: Plan,
    pub(super) user: User,
    pub(super) events: Vec<InboundEvent>,
    /// Stored facts about the user.
    pub(super) facts: Facts,
    run: u32,
}

impl Scene {
    pub(super) fn read(conn: &mut Conn, user: UserId, live: Live) -> QueryResult<Self> {
        let turns::Loaded { turn, plan, events, run } = turns::load(conn, live)?;
        let user = users::get(conn, user)?;
        let facts = facts::known(conn, user.id)?;
        Ok(Self { live, turn, plan, user, events, facts, run })
    }

    /// The same scene with the record of earlier turns.
    fn with_record(mut self, record: &Arc<[String]>) -> Self {
        self.turn.record = record.clone();
        self
    }

    /// Sentence that reports that the messages of this turn closed a confirmation prompt. The first run of a turn has
    /// sent it.
    pub(super) fn closing(&self) -> Option<&str> {
        self.plan.preface.as_deref().filter(|_| self.run <= 1)
    }

    pub(super) fn way_back(&self) -> WayBack {
        WayBack::back(self.user.clone(), self.live.id, &self.events).in_run(self.live.id, self.run)
    }
}

/// Messages and actions before a turn; they do not change while the turn runs.
pub(super) struct Past {
    /// Turns of this conversation.
    pub(super) turns: Vec<PastTurn>,
    /// Actions in earlier conversations of the day, newest first.
    pub(super) done_today: Vec<String>,
    /// Lines recalled from any earlier conversation, as far as they relate to the current messages.
    pub(super) recalled: Vec<String>,
}

impl Past {
    /// Reports of tools and code, newest first.
    fn record(&self) -> Arc<[String]> {
        let mut record = Vec::new();
        for past in self.turns.iter().rev() {
            record.extend(past.answer.clone());
            let calls = past.steps.iter().rev().flat_map(|step| step.calls.iter().rev());
            record.extend(calls.filter(|call| call.tier != Tier::Read).filter_map(
                |call| match &call.state {
                    CallState::Done(result) => Some(result.for_user.clone()),
                    CallState::Created
                    | CallState::Running
                    | CallState::Held
                    | CallState::Failed(_)
                    | CallState::Canceled(_) => None,
                },
            ));
        }
        record.extend(self.done_today.iter().cloned());
        // The user's own message in such a line is no record.
        let answers = self
            .recalled
            .iter()
            .map(|line| line.rsplit_once("\", you answered: ").map_or(line.as_str(), |(_, answer)| answer));
        record.extend(answers.map(str::to_owned));
        record.into()
    }
}

/// Progress of a turn after a step.
pub(super) enum Progress {
    /// The turn continues, and its state has to be loaded.
    GoesOn,
    /// The turn continues from this state, which was loaded in the commit of its last record.
    Stands(Box<Scene>),
    Ended,
}

impl Engine {
    /// Runs a turn until it ends or the program stops.
    pub(super) async fn run(&self, user: UserId, live: Live) -> anyhow::Result<()> {
        match live.kind {
            Kind::Chat => self.run_chat(user, live).await,
            Kind::Confirm => self.run_confirmed(user, live).await,
            // Code answers these in the transaction that begins them, so none is ever found unfinished.
            Kind::Deny | Kind::Command => self.give_up(user, live).await,
        }
    }

    async fn run_chat(&self, user: UserId, live: Live) -> anyhow::Result<()> {
        let conversation = live.conversation;
        let since = self.start_of_day();
        let read = move |conn: &mut _| {
            let window = history::window(conn, conversation)?;
            let done_today = history::done_before(conn, user, conversation, since)?;
            Ok((window, done_today, Scene::read(conn, user, live)?))
        };
        let (Window { turns, oldest }, done_today, scene) = self.0.parts.db.read(read).await?;
        let recalled = self.remembered(&scene, oldest).await;
        let past = Past { turns, done_today, recalled };
        let record = past.record();
        // A cancellation since then is noticed when the next step is recorded; triage calls the model without that
        // record.
        let mut known = Some(scene.with_record(&record)).filter(|scene| scene.plan.triage == Triage::Respond);
        loop {
            let scene = match known.take() {
                Some(scene) => scene,
                None => self.scene(user, live).await?.with_record(&record),
            };
            if scene.plan.triage != Triage::Respond && !scene.turn.cancel_requested {
                match self.triage(&scene, &past).await? {
                    Progress::Ended => return Ok(()),
                    // Meanwhile the turn may have been canceled.
                    Progress::GoesOn | Progress::Stands(_) => continue,
                }
            }
            let step = scene.turn.next(self.now(), &self.0.parts.settings.limits);
            let progress = match step {
                Step::AskModel(ask) => self.ask(&scene, &past, &ask).await?,
                Step::StartCalls(calls) => self.start_calls(&scene, &calls).await?,
                Step::AnswerCall(call, state) => self.record(&scene, call, state).await?,
                Step::SettleCall(call) => self.settle_call(&scene, call).await?,
                Step::Reply(answer) => self.end(self.with_answer(&scene, &answer)).await?,
                Step::Stop => self.end(taken_back(&scene)).await?,
            };
            match progress {
                Progress::GoesOn => {}
                Progress::Stands(scene) => known = Some(*scene),
                Progress::Ended => return Ok(()),
            }
        }
    }

    pub(super) async fn scene(&self, user: UserId, live: Live) -> anyhow::Result<Scene> {
        Ok(self.0.parts.db.read(move |conn| Scene::read(conn, user, live)).await?)
    }

    /// Records a result of a turn, and in the same commit its direct consequence: a turn that has its answer ends. The
    /// state of any other turn is loaded.
    pub(super) async fn record_and_go_on(
        &self,
        scene: &Scene,
        record: impl FnOnce(&mut Conn) -> QueryResult<()> + Send + 'static,
    ) -> anyhow::Result<Progress> {
        let (engine, user, live) = (self.clone(), scene.user.id, scene.live);
        let earlier = scene.turn.record.clone();
        let recorded = move |conn: &mut Conn| {
            record(conn)?;
            // A record is kept even if the rest fails: the next load of the turn reads it again and gets the error.
            Ok(engine.follow_up(conn, user, live, &earlier).unwrap_or(Progress::GoesOn))
        };
        let progress = self.0.parts.db.write(recorded).await?;
        if let Progress::Ended = progress {
            self.tell_of_end();
        }
        Ok(progress)
    }

    fn follow_up(
        &self,
        conn: &mut Conn,
        user: UserId,
        live: Live,
        record: &Arc<[String]>,
    ) -> QueryResult<Progress> {
        let (scene, now) = (Scene::read(conn, user, live)?.with_record(record), self.now());
        match self.end_by(&scene, &scene.turn.next(now, &self.0.parts.settings.limits)) {
            Some(end) => {
                undone_if_failed(conn, |conn| turns::finish(conn, &end, now))?;
                Ok(Progress::Ended)
            }
            None => Ok(Progress::Stands(Box::new(scene))),
        }
    }

    /// Returns the end of the turn if the step is its last.
    fn end_by(&self, scene: &Scene, step: &Step) -> Option<End> {
        match step {
            Step::Reply(answer) => Some(self.with_answer(scene, answer)),
            Step::Stop => Some(taken_back(scene)),
            Step::AskModel(_) | Step::StartCalls(_) | Step::AnswerCall(..) | Step::SettleCall(_) => None,
        }
    }

    fn with_answer(&self, scene: &Scene, answer: &Answer) -> End {
        let (id, back) = (scene.live.id, scene.way_back());
        let outcome = match answer {
            Answer::Code(Excuse::WentWrong) => Outcome::FailedNotified,
            Answer::Reaction(_) if self.reacts_silently(scene) => {
                return match scene.closing() {
                    Some(closing) => back.end(id, Outcome::Replied, closing),
                    None => End::without_a_text(id, Outcome::Reacted),
                };
            }
            Answer::Model(_) | Answer::Tools(_) | Answer::Code(_) | Answer::Reaction(_) => Outcome::Replied,
        };
        let words = ending::words(answer);
        match scene.closing() {
            Some(closing) => back.end(id, outcome, &ending::behind(closing, words)),
            None => back.end(id, outcome, words),
        }
    }

    /// True if a reaction is not sent. A phone cannot receive one; the terminal shows its emoji.
    fn reacts_silently(&self, scene: &Scene) -> bool {
        let shown = scene.events.last().is_some_and(|event| event.channel.shows_reactions());
        !shown && self.0.parts.settings.reactions == SmsReactions::Silent
    }

    /// Midnight in the household's zone.
    fn start_of_day(&self) -> Timestamp {
        let now = self.now();
        let zoned = now.to_zoned(self.0.parts.settings.zone.clone());
        zoned.start_of_day().map_or(now, |midnight| midnight.timestamp())
    }

    async fn give_up(&self, user: UserId, live: Live) -> anyhow::Result<()> {
        let scene = self.scene(user, live).await?;
        let end = scene.way_back().end(live.id, Outcome::FailedNotified, Excuse::WentWrong.text());
        self.end(end).await.map(drop)
    }

    async fn end(&self, end: End) -> anyhow::Result<Progress> {
        let now = self.now();
        self.0.parts.db.write(move |conn| turns::finish(conn, &end, now)).await?;
        self.tell_of_end();
        Ok(Progress::Ended)
    }

    pub(super) fn tell_of_end(&self) {
        failpoint::reached("turn.ended");
        self.0.parts.outbox.ring();
        self.0.answered.notify_one();
    }
}

/// End of a turn that the user canceled: only a closed confirmation prompt and the changes made by then are reported.
fn taken_back(scene: &Scene) -> End {
    let done: Vec<&str> = scene.closing().into_iter().chain(scene.turn.done_or_unknown()).collect();
    let done = done.join(" ");
    if done.is_empty() || scene.user.opted_out {
        return End::without_a_text(scene.live.id, Outcome::Skipped("taken_back"));
    }
    scene.way_back().end(scene.live.id, Outcome::Replied, &done)
}
