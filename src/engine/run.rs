//! One turn, from its log to its end: load, decide, do, record, again.

use super::Engine;
use super::ending::{self, WayBack};
use crate::conversation::transcript::{InboundEvent, User, UserId};
use crate::conversation::turn::{Answer, Excuse, Step, Turn};
use crate::failpoint;
use crate::store::history;
use crate::store::ledger::Outcome;
use crate::store::turns::{self, End, Kind, Live, Plan};
use crate::store::users;

/// A chat turn as it stands, with what its steps need.
pub(super) struct Scene {
    pub(super) live: Live,
    pub(super) turn: Turn,
    pub(super) plan: Plan,
    pub(super) user: User,
    pub(super) events: Vec<InboundEvent>,
}

impl Scene {
    pub(super) fn way_back(&self) -> WayBack {
        WayBack::back(self.user.clone(), self.live.id, &self.events)
    }
}

/// Whether a turn goes on.
pub(super) enum Progress {
    GoesOn,
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
        // What was said before does not change while the turn runs.
        let conversation = live.conversation;
        let history = self.0.parts.db.read(move |conn| history::past_turns(conn, conversation)).await?;
        loop {
            let scene = self.scene(user, live).await?;
            let step = scene.turn.next(self.now(), &self.0.parts.settings.limits);
            let progress = match step {
                Step::AskModel(ask) => self.ask(&scene, &history, &ask).await?,
                Step::StartCalls(calls) => self.start_calls(&scene, &calls).await?,
                Step::AnswerCall(call, state) => self.record(call, state).await?,
                Step::SettleCall(call) => self.settle_call(&scene, call).await?,
                Step::Reply(answer) => {
                    self.reply(&scene, &answer).await?;
                    Progress::Ended
                }
                Step::Stop => {
                    self.stop(&scene).await?;
                    Progress::Ended
                }
            };
            if matches!(progress, Progress::Ended) {
                return Ok(());
            }
        }
    }

    pub(super) async fn scene(&self, user: UserId, live: Live) -> anyhow::Result<Scene> {
        let scene = self
            .0
            .parts
            .db
            .read(move |conn| {
                let turns::Loaded { turn, plan, events } = turns::load(conn, live)?;
                let user = users::get(conn, user)?;
                Ok(Scene { live, turn, plan, user, events })
            })
            .await?;
        Ok(scene)
    }

    async fn reply(&self, scene: &Scene, answer: &Answer) -> anyhow::Result<()> {
        let outcome = match answer {
            Answer::Code(Excuse::WentWrong) => Outcome::FailedNotified,
            Answer::Model(_) | Answer::Tools(_) | Answer::Code(_) => Outcome::Replied,
        };
        self.end(scene, ending::words(answer), outcome).await
    }

    /// The user took the turn back: what was changed by then is told, nothing else.
    async fn stop(&self, scene: &Scene) -> anyhow::Result<()> {
        let done = scene.turn.done_so_far().join(" ");
        if done.is_empty() || scene.user.opted_out {
            let (turn, now) = (scene.live.id, self.now());
            let end = move |conn: &mut _| {
                let outcome = Outcome::Skipped("taken_back");
                turns::finish(conn, &End { turn, outcome, answer: None, texts: Vec::new() }, now)
            };
            return Ok(self.0.parts.db.write(end).await?);
        }
        self.end(scene, &done, Outcome::Replied).await
    }

    async fn give_up(&self, user: UserId, live: Live) -> anyhow::Result<()> {
        let scene = self.scene(user, live).await?;
        self.end(&scene, Excuse::WentWrong.text(), Outcome::FailedNotified).await
    }

    async fn end(&self, scene: &Scene, answer: &str, outcome: Outcome) -> anyhow::Result<()> {
        let back = scene.way_back();
        let (whole, page) = back.page(answer);
        let (turn, now) = (scene.live.id, self.now());
        let texts = vec![back.reply(page.text)];
        let end =
            move |conn: &mut _| turns::finish(conn, &End { turn, outcome, answer: Some(&whole), texts }, now);
        self.0.parts.db.write(end).await?;
        failpoint::reached("turn.ended");
        self.0.parts.outbox.ring();
        Ok(())
    }
}
