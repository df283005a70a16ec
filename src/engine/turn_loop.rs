//! Loop of one turn from its log to its end: load, decide, execute, record.

use std::sync::Arc;

use jiff::Timestamp;

use super::Engine;
use super::reply_address::{self, ReplyAddress};
use super::settings::SmsReactions;
use crate::conversation::memory::recall;
use crate::conversation::people::facts::UserFacts;
use crate::conversation::prompt::PastTurn;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::{CallState, EffectLevel, Responder, TurnId, User, UserId};
use crate::conversation::turn::{FallbackReply, NextStep, Turn, TurnReply};
use crate::failpoint;
use crate::store::conversation::history::{self, ConversationWindow};
use crate::store::memory::facts;
use crate::store::people::users;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::turns::turn_lifecycle::{self, ActiveTurn, TriageState, TurnEnd, TurnKind, TurnPlan};
use crate::store::{Conn, QueryResult, with_savepoint};

/// Current state of a chat turn, with the data that its steps need.
pub(super) struct TurnContext {
    pub(super) live: ActiveTurn,
    pub(super) turn: Turn,
    pub(super) plan: TurnPlan,
    pub(super) user: User,
    pub(super) events: Vec<InboundEvent>,
    /// Stored facts about the user.
    pub(super) facts: UserFacts,
    run: u32,
}

impl TurnContext {
    pub(super) fn load_turn(conn: &mut Conn, user: UserId, live: ActiveTurn) -> QueryResult<Self> {
        let turn_lifecycle::LoadedTurn { turn, plan, events, run } = turn_lifecycle::load_turn(conn, live)?;
        let user = users::load_user(conn, user)?;
        let facts = facts::load_facts(conn, user.id)?;
        Ok(Self { live, turn, plan, user, events, facts, run })
    }

    /// Returns the same context with the record of earlier turns.
    fn with_record(mut self, record: &Arc<[String]>) -> Self {
        self.turn.record = record.clone();
        self
    }

    /// Returns the sentence that reports that the messages of this turn closed a confirmation prompt. The first run of
    /// a turn has sent the sentence.
    pub(super) fn closing_sentence(&self) -> Option<&str> {
        self.plan.preface.as_deref().filter(|_| self.run <= 1)
    }

    pub(super) fn reply_address(&self) -> ReplyAddress {
        ReplyAddress::from_turn(self.user.clone(), self.live.id, &self.events)
            .with_run(self.live.id, self.run)
    }
}

/// Messages and actions before a turn, which do not change while the turn runs.
pub(super) struct TurnHistory {
    /// Turns of this conversation.
    pub(super) turns: Vec<PastTurn>,
    /// Actions in earlier conversations of the day, newest first.
    pub(super) done_today: Vec<String>,
    /// Recalled lines from any earlier conversation that relate to the current messages.
    pub(super) recalled: Vec<String>,
}

impl TurnHistory {
    /// Returns the reports of tools and code, newest first.
    fn action_record(&self) -> Arc<[String]> {
        let mut record = Vec::new();
        for past in self.turns.iter().rev() {
            record.extend(past.answer.clone());
            let calls = past.steps.iter().rev().flat_map(|step| step.calls.iter().rev());
            record.extend(calls.filter(|call| call.effect_level != EffectLevel::Read).filter_map(|call| {
                match &call.state {
                    CallState::Done(result) => Some(result.for_user.clone()),
                    CallState::Created
                    | CallState::Running
                    | CallState::Held
                    | CallState::Failed(_)
                    | CallState::Canceled(_) => None,
                }
            }));
        }
        record.extend(self.done_today.iter().cloned());
        // The user's own message in such a line is not a record of an action.
        let answers = self
            .recalled
            .iter()
            .map(|line| line.rsplit_once("\", you answered: ").map_or(line.as_str(), |(_, answer)| answer));
        record.extend(answers.map(str::to_owned));
        record.into()
    }
}

/// Progress of a turn after a step.
pub(super) enum TurnProgress {
    /// The turn continues after a load of its state.
    Reload,
    /// The turn continues from this state, which was loaded in the commit of the last record.
    Loaded(Box<TurnContext>),
    Ended,
}

impl Engine {
    /// Runs a turn until it ends or the program stops.
    pub(super) async fn run_turn(&self, user: UserId, live: ActiveTurn) -> anyhow::Result<()> {
        match live.kind {
            TurnKind::Chat => self.run_chat_turn(user, live).await,
            TurnKind::Confirm => self.run_confirmed_deletion(user, live).await,
            // Code answers these turns in the transaction that begins them, so none of them is ever unfinished.
            TurnKind::Deny | TurnKind::Command => self.give_up_turn(user, live).await,
        }
    }

    async fn run_chat_turn(&self, user: UserId, live: ActiveTurn) -> anyhow::Result<()> {
        let conversation = live.conversation;
        let since = self.start_of_day();
        let read = move |conn: &mut _| {
            let window = history::load_conversation_window(conn, conversation)?;
            let done_today = history::load_earlier_changes(conn, user, conversation, since)?;
            Ok((window, done_today, TurnContext::load_turn(conn, user, live)?))
        };
        let (ConversationWindow { turns, oldest }, done_today, scene) = self.0.parts.db.read(read).await?;
        let recalled = self.recall_lines(&scene, oldest).await;
        let past = TurnHistory { turns, done_today, recalled };
        let record = past.action_record();
        // A later cancellation is detected when the next step is recorded. Triage calls the model without that record.
        let mut known =
            Some(scene.with_record(&record)).filter(|scene| scene.plan.triage == TriageState::Respond);
        loop {
            let scene = match known.take() {
                Some(scene) => scene,
                None => self.load_turn_context(user, live).await?.with_record(&record),
            };
            if scene.plan.triage != TriageState::Respond && !scene.turn.cancel_requested {
                match self.triage_turn(&scene, &past).await? {
                    TurnProgress::Ended => return Ok(()),
                    // The turn may have been canceled meanwhile.
                    TurnProgress::Reload | TurnProgress::Loaded(_) => continue,
                }
            }
            let step = scene.turn.next_step(self.now(), &self.0.parts.settings.limits);
            let progress = match step {
                NextStep::CallModel(ask) => self.run_model_step(&scene, &past, &ask).await?,
                NextStep::StartCalls(calls) => self.start_calls(&scene, &calls).await?,
                NextStep::AnswerCall(call, state) => self.record_call_state(&scene, call, state).await?,
                NextStep::RecoverCall(call) => self.recover_call(&scene, call).await?,
                NextStep::Reply(answer) => self.end_turn(self.end_with_reply(&scene, &answer)).await?,
                NextStep::Cancel => self.end_turn(canceled_turn_end(&scene)).await?,
            };
            match progress {
                TurnProgress::Reload => {}
                TurnProgress::Loaded(scene) => known = Some(*scene),
                TurnProgress::Ended => return Ok(()),
            }
        }
    }

    /// Returns the recalled lines for a turn's prompt, without the exchanges from turn `shown` on, which the prompt
    /// already contains. If the memory cannot be read, the turn continues without the lines. A canceled turn needs no
    /// lines.
    async fn recall_lines(&self, scene: &TurnContext, shown: Option<TurnId>) -> Vec<String> {
        let query = scene.turn.texts.join(" ");
        if scene.plan.brain == Responder::Keyword || scene.turn.cancel_requested {
            return Vec::new();
        }
        let found = tokio::select! {
            found = self.0.recall.recall_answers(scene.user.id, &query, shown) => found,
            () = self.wait_for_cancellation(scene) => return Vec::new(),
        };
        match found {
            Ok(recalled) => recall::format_recall_lines(&recalled, &self.0.parts.settings.zone),
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::error!(turn = %scene.live.id, error = format!("{error:#}"), "failed to search the memory");
                Vec::new()
            }
        }
    }

    pub(super) async fn load_turn_context(
        &self,
        user: UserId,
        live: ActiveTurn,
    ) -> anyhow::Result<TurnContext> {
        Ok(self.0.parts.db.read(move |conn| TurnContext::load_turn(conn, user, live)).await?)
    }

    /// Records a result of a turn, and in the same commit its direct consequence: a turn with an answer ends, and the
    /// state of any other turn is loaded.
    pub(super) async fn record_and_continue(
        &self,
        scene: &TurnContext,
        record: impl FnOnce(&mut Conn) -> QueryResult<()> + Send + 'static,
    ) -> anyhow::Result<TurnProgress> {
        let (engine, user, live) = (self.clone(), scene.user.id, scene.live);
        let earlier = scene.turn.record.clone();
        let recorded = move |conn: &mut Conn| {
            record(conn)?;
            // The record is committed even if the rest fails. The next load of the turn reads the record again and gets
            // the error.
            Ok(engine.end_or_load_turn(conn, user, live, &earlier).unwrap_or(TurnProgress::Reload))
        };
        let progress = self.0.parts.db.write(recorded).await?;
        if let TurnProgress::Ended = progress {
            self.signal_turn_end();
        }
        Ok(progress)
    }

    fn end_or_load_turn(
        &self,
        conn: &mut Conn,
        user: UserId,
        live: ActiveTurn,
        record: &Arc<[String]>,
    ) -> QueryResult<TurnProgress> {
        let (scene, now) = (TurnContext::load_turn(conn, user, live)?.with_record(record), self.now());
        match self.final_turn_end(&scene, &scene.turn.next_step(now, &self.0.parts.settings.limits)) {
            Some(end) => {
                with_savepoint(conn, |conn| turn_lifecycle::finish_turn(conn, &end, now))?;
                Ok(TurnProgress::Ended)
            }
            None => Ok(TurnProgress::Loaded(Box::new(scene))),
        }
    }

    /// Returns the end of the turn if the step is its last.
    fn final_turn_end(&self, scene: &TurnContext, step: &NextStep) -> Option<TurnEnd> {
        match step {
            NextStep::Reply(answer) => Some(self.end_with_reply(scene, answer)),
            NextStep::Cancel => Some(canceled_turn_end(scene)),
            NextStep::CallModel(_)
            | NextStep::StartCalls(_)
            | NextStep::AnswerCall(..)
            | NextStep::RecoverCall(_) => None,
        }
    }

    fn end_with_reply(&self, scene: &TurnContext, answer: &TurnReply) -> TurnEnd {
        let (id, back) = (scene.live.id, scene.reply_address());
        let outcome = match answer {
            TurnReply::Code(FallbackReply::WentWrong) => MessageOutcome::FailedNotified,
            TurnReply::Reaction(_) if self.is_silent_reaction(scene) => {
                return match scene.closing_sentence() {
                    Some(closing) => back.turn_end(id, MessageOutcome::Replied, closing),
                    None => TurnEnd::without_message(id, MessageOutcome::Reacted),
                };
            }
            TurnReply::Model(_) | TurnReply::Tools(_) | TurnReply::Code(_) | TurnReply::Reaction(_) => {
                MessageOutcome::Replied
            }
        };
        let words = turn_reply_text(answer);
        match scene.closing_sentence() {
            Some(closing) => back.turn_end(id, outcome, &reply_address::prepend_sentence(closing, words)),
            None => back.turn_end(id, outcome, words),
        }
    }

    /// Returns whether a reaction is not sent. A phone cannot receive a reaction. The terminal shows the emoji.
    fn is_silent_reaction(&self, scene: &TurnContext) -> bool {
        let shown = scene.events.last().is_some_and(|event| event.channel.shows_reactions());
        !shown && self.0.parts.settings.reactions == SmsReactions::Silent
    }

    /// Returns the last midnight in the household's time zone.
    fn start_of_day(&self) -> Timestamp {
        let now = self.now();
        let zoned = now.to_zoned(self.0.parts.settings.zone.clone());
        zoned.start_of_day().map_or(now, |midnight| midnight.timestamp())
    }

    async fn give_up_turn(&self, user: UserId, live: ActiveTurn) -> anyhow::Result<()> {
        let scene = self.load_turn_context(user, live).await?;
        let end = scene.reply_address().turn_end(
            live.id,
            MessageOutcome::FailedNotified,
            FallbackReply::WentWrong.text(),
        );
        self.end_turn(end).await.map(drop)
    }

    async fn end_turn(&self, end: TurnEnd) -> anyhow::Result<TurnProgress> {
        let now = self.now();
        self.0.parts.db.write(move |conn| turn_lifecycle::finish_turn(conn, &end, now)).await?;
        self.signal_turn_end();
        Ok(TurnProgress::Ended)
    }

    pub(super) fn signal_turn_end(&self) {
        failpoint::reached("turn.ended");
        self.0.parts.outbox.notify();
        self.0.turn_answered.notify();
    }
}

/// Creates the end of a turn that the user canceled. Only a closed confirmation prompt and the completed changes are
/// reported.
fn canceled_turn_end(scene: &TurnContext) -> TurnEnd {
    let done: Vec<&str> = scene.closing_sentence().into_iter().chain(scene.turn.possible_changes()).collect();
    let done = done.join(" ");
    if done.is_empty() || scene.user.opted_out {
        return TurnEnd::without_message(scene.live.id, MessageOutcome::Skipped("taken_back"));
    }
    scene.reply_address().turn_end(scene.live.id, MessageOutcome::Replied, &done)
}

/// Returns the text of a turn's answer.
fn turn_reply_text(answer: &TurnReply) -> &str {
    match answer {
        TurnReply::Model(text) | TurnReply::Tools(text) => text,
        TurnReply::Reaction(emoji) => emoji.as_str(),
        TurnReply::Code(excuse) => excuse.text(),
    }
}
