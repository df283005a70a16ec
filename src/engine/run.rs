//! One turn, from its log to its end: load, decide, do, record, again.

use jiff::Timestamp;

use super::ending::{self, WayBack};
use super::{Engine, SmsReactions};
use crate::conversation::facts::Facts;
use crate::conversation::prompt::PastTurn;
use crate::conversation::transcript::{InboundEvent, User, UserId};
use crate::conversation::turn::{Answer, Excuse, Step, Turn};
use crate::failpoint;
use crate::store::history;
use crate::store::ledger::Outcome;
use crate::store::memory::facts;
use crate::store::turns::{self, End, Kind, Live, Plan, Triage};
use crate::store::{Conn, QueryResult, users};

/// A chat turn as it stands, with what its steps need.
pub(super) struct Scene {
    pub(super) live: Live,
    pub(super) turn: Turn,
    pub(super) plan: Plan,
    pub(super) user: User,
    pub(super) events: Vec<InboundEvent>,
    /// What is known of the user.
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

    pub(super) fn way_back(&self) -> WayBack {
        WayBack::back(self.user.clone(), self.live.id, &self.events).in_run(self.live.id, self.run)
    }
}

/// What was said and done before a turn; it does not change while the turn runs.
pub(super) struct Past {
    /// Of this conversation.
    pub(super) turns: Vec<PastTurn>,
    /// In earlier conversations of the day, newest first.
    pub(super) done_today: Vec<String>,
    /// In any earlier conversation, as far as it has to do with what is said now.
    pub(super) recalled: Vec<String>,
}

/// Whether a turn goes on.
pub(super) enum Progress {
    /// How it stands is to be read.
    GoesOn,
    /// It goes on from here: read in the commit of its last record.
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
            let turns = history::past_turns(conn, conversation)?;
            let done_today = history::done_before(conn, user, conversation, since)?;
            let shown = history::oldest_shown(conn, conversation)?;
            Ok((turns, done_today, shown, Scene::read(conn, user, live)?))
        };
        let (turns, done_today, shown, scene) = self.0.parts.db.read(read).await?;
        let recalled = self.remembered(&scene, shown).await;
        let past = Past { turns, done_today, recalled };
        // What was remembered may have been waited for: how the turn stands is read anew.
        let mut known = None;
        loop {
            let scene = match known.take() {
                Some(scene) => scene,
                None => self.scene(user, live).await?,
            };
            if scene.plan.triage != Triage::Respond && !scene.turn.cancel_requested {
                match self.triage(&scene, &past).await? {
                    Progress::Ended => return Ok(()),
                    // Meanwhile the turn may have been taken back.
                    Progress::GoesOn | Progress::Stands(_) => continue,
                }
            }
            let step = scene.turn.next(self.now(), &self.0.parts.settings.limits);
            let progress = match step {
                Step::AskModel(ask) => self.ask(&scene, &past, &ask).await?,
                Step::StartCalls(calls) => self.start_calls(&scene, &calls).await?,
                Step::AnswerCall(call, state) => self.record(&scene, call, state).await?,
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

    /// Records something of a turn, and reads in the same commit how it stands with it. A record stays, whatever becomes
    /// of the reading: whoever goes on reads it again and meets the error.
    pub(super) async fn record_and_go_on(
        &self,
        scene: &Scene,
        record: impl FnOnce(&mut Conn) -> QueryResult<()> + Send + 'static,
    ) -> anyhow::Result<Progress> {
        let (user, live) = (scene.user.id, scene.live);
        let recorded = move |conn: &mut _| {
            record(conn)?;
            Ok(Scene::read(conn, user, live).ok())
        };
        let scene = self.0.parts.db.write(recorded).await?;
        Ok(scene.map_or(Progress::GoesOn, |scene| Progress::Stands(Box::new(scene))))
    }

    async fn reply(&self, scene: &Scene, answer: &Answer) -> anyhow::Result<()> {
        let outcome = match answer {
            Answer::Code(Excuse::WentWrong) => Outcome::FailedNotified,
            Answer::Reaction(_) if self.reacts_silently(scene) => {
                return self.end_without_a_text(scene, Outcome::Reacted).await;
            }
            Answer::Model(_) | Answer::Tools(_) | Answer::Code(_) | Answer::Reaction(_) => Outcome::Replied,
        };
        self.end(scene, ending::words(answer), outcome).await
    }

    /// A phone cannot be sent a reaction; the terminal shows its emoji.
    fn reacts_silently(&self, scene: &Scene) -> bool {
        let shown = scene.events.last().is_some_and(|event| event.channel.shows_reactions());
        !shown && self.0.parts.settings.reactions == SmsReactions::Silent
    }

    pub(super) async fn end_without_a_text(&self, scene: &Scene, outcome: Outcome) -> anyhow::Result<()> {
        let (turn, now) = (scene.live.id, self.now());
        let end = move |conn: &mut _| {
            turns::finish(conn, &End { turn, outcome, answer: None, texts: Vec::new() }, now)
        };
        Ok(self.0.parts.db.write(end).await?)
    }

    /// Midnight in the household's zone.
    fn start_of_day(&self) -> Timestamp {
        let now = self.now();
        let zoned = now.to_zoned(self.0.parts.settings.zone.clone());
        zoned.start_of_day().map_or(now, |midnight| midnight.timestamp())
    }

    /// The user took the turn back: what was changed by then is told, nothing else.
    async fn stop(&self, scene: &Scene) -> anyhow::Result<()> {
        let done = scene.turn.done_or_unknown().join(" ");
        if done.is_empty() || scene.user.opted_out {
            return self.end_without_a_text(scene, Outcome::Skipped("taken_back")).await;
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
        self.0.answered.notify_one();
        Ok(())
    }
}
