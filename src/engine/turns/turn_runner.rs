//! Loop of one turn: loads its log, decides the next step, executes the step and records it, until the turn ends.

use std::sync::Arc;

use tokio::sync::Notify;

use super::agent_turn::AgentTurnRunner;
use super::deletion::DeletionRunner;
use super::log::turn_log::{LoadedHistory, TurnLog, TurnLogs, TurnProgress};
use super::model_step::ModelStepRunner;
use super::tool_calls::ToolCallRunner;
use super::tool_runner::ToolRunner;
use super::triage::MessageTriage;
use super::turn_context::{TurnContext, TurnHistory};
use super::turn_end;
use super::typing_indicator::TypingIndicator;
use super::write_recovery::WriteRecovery;
use crate::clock::Clock;
use crate::conversation::memory::recall;
use crate::conversation::prompt::{self, FrozenContext, PromptContext};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{Responder, TurnId, UserId};
use crate::conversation::turn::NextStep;
use crate::engine::memory::recall::AnswerRecall;
use crate::engine::parts::EngineParts;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::channel_ports::ChannelPorts;
use crate::store::memory::search::RecallRange;
use crate::store::people::rooms::Room;
use crate::store::stream::event_log::HistoryVersion;
use crate::store::turns::turn_lifecycle::{ActiveTurn, TriageState, TurnKind};

/// Source of turn runners, each with the parts that were configured when its turn began.
pub(crate) struct TurnRunners {
    parts: EngineParts,
    logs: Arc<TurnLogs>,
    recall: Arc<AnswerRecall>,
}

impl TurnRunners {
    pub(crate) fn new(parts: &EngineParts, logs: TurnLogs, recall: Arc<AnswerRecall>) -> Self {
        Self { parts: parts.clone(), logs: Arc::new(logs), recall }
    }

    /// Returns a runner with the newest parts. Its turn ends on them, even if they are replaced.
    pub(crate) fn current_runner(&self) -> TurnRunner {
        let EngineParts { clock, metrics, live, .. } = &self.parts;
        let parts = live.current();
        let (settings, limits) = (parts.settings.clone(), parts.settings.limits);
        let channels = parts.channels.clone();
        let tools = Arc::new(ToolRunner::new(&self.parts, parts.clone()));
        let tool_calls = Arc::new(ToolCallRunner::new(tools.clone()));
        let recovery = Arc::new(WriteRecovery::new(tools.clone(), clock.clone(), limits));
        let agent_turns = AgentTurnRunner::new(clock.clone(), (tool_calls.clone(), recovery.clone()), limits);
        TurnRunner {
            logs: self.logs.clone(),
            clock: clock.clone(),
            settings,
            recall: self.recall.clone(),
            triage: MessageTriage::new(parts.clone()),
            model_steps: ModelStepRunner::new(parts, clock.clone(), metrics.clone()),
            tool_calls,
            recovery,
            agent_turns,
            deletions: DeletionRunner::new(tools, limits),
            channels,
        }
    }
}

/// Runner of one turn, which decides each step and passes it to the component that executes it.
pub(crate) struct TurnRunner {
    logs: Arc<TurnLogs>,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    recall: Arc<AnswerRecall>,
    triage: MessageTriage,
    model_steps: ModelStepRunner,
    tool_calls: Arc<ToolCallRunner>,
    recovery: Arc<WriteRecovery>,
    agent_turns: AgentTurnRunner,
    deletions: DeletionRunner,
    channels: ChannelPorts,
}

impl TurnRunner {
    /// Runs a chat turn, which was just created, until it ends. `loaded_at` is the version of the history before its
    /// creation. `wakeup` wakes the task of its user, e.g. after a cancellation.
    pub(crate) async fn run_started_turn(
        &self,
        context: TurnContext,
        loaded_at: HistoryVersion,
        wakeup: Arc<Notify>,
    ) -> anyhow::Result<()> {
        let log = self.logs.open_log((context.user.id, context.active_turn), loaded_at, wakeup);
        let history = log.load_history().await?;
        self.run_chat_turn(log, context, history).await
    }

    /// Runs a stored turn until it ends.
    pub(crate) async fn resume_turn(
        &self,
        user: UserId,
        active_turn: ActiveTurn,
        wakeup: Arc<Notify>,
    ) -> anyhow::Result<()> {
        let log = self.logs.open_log((user, active_turn), self.logs.history_version(), wakeup);
        if active_turn.agent.is_some() {
            return self.agent_turns.run(&log).await;
        }
        match active_turn.kind {
            TurnKind::Chat => {
                let (context, history) = log.load_with_history().await?;
                self.run_chat_turn(log, context, history).await
            }
            TurnKind::Confirm => self.deletions.run_confirmed_deletion(&log).await,
            // Code answers these turns in the transaction that creates them, so none of them should be unfinished.
            TurnKind::Deny | TurnKind::Command => {
                let end = turn_end::failed_turn_end(&log.load_context().await?);
                log.end_turn(end).await.map(drop)
            }
        }
    }

    async fn run_chat_turn(
        &self,
        log: TurnLog,
        context: TurnContext,
        LoadedHistory { mut turns, mut done_today }: LoadedHistory,
    ) -> anyhow::Result<()> {
        if !context.has_memory() {
            turns.clear();
            done_today.clear();
        }
        if let Some(changed_after) = context.reader_limit.changed_after {
            turns.retain(|turn| turn.id > changed_after);
            done_today.clear();
        }
        prompt::trim_to_window(&mut turns, context.plan.context.as_ref());
        let window_start = turns.first().map(|turn| turn.id);
        let _typing = TypingIndicator::start(&self.channels, &context.reply_address());
        let recalled = self.recall_lines(&log, &context, (window_start, &done_today)).await;
        let frozen = context.plan.context.clone().unwrap_or_else(|| {
            let block = self.build_context_block(&context, &done_today, &recalled);
            FrozenContext { block, window_start }
        });
        let messages = prompt::build_past_messages(&turns);
        let history = TurnHistory { turns, messages, context: frozen, done_today, recalled };
        let reports = history.action_reports();
        let log = log.with_earlier_reports(reports.clone());
        // Recall takes time, so the turn may have been canceled. Recording the next step detects that, but triage calls
        // the model before anything is recorded, so its context is loaded again.
        let mut loaded = Some(context.with_earlier_reports(&reports))
            .filter(|context| context.plan.triage == TriageState::Respond);
        loop {
            let context = match loaded.take() {
                Some(context) => context,
                None => log.load_context().await?,
            };
            match self.run_step(&log, &context, &history).await? {
                TurnProgress::Reload => {}
                TurnProgress::Loaded(context) => loaded = Some(*context),
                TurnProgress::Ended => return Ok(()),
            }
        }
    }

    async fn run_step(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        history: &TurnHistory,
    ) -> anyhow::Result<TurnProgress> {
        if context.plan.triage != TriageState::Respond && !context.turn.cancel_requested {
            return self.triage.triage_turn(log, context, history).await;
        }
        let step = context.turn.next_step(self.clock.now(), &self.settings.limits);
        match step {
            NextStep::CallModel(plan) => self.model_steps.run_model_step(log, context, history, &plan).await,
            NextStep::StartCalls(calls) => self.tool_calls.start_calls(log, context, &calls).await,
            NextStep::AnswerCall(call, state) => log.record_call_state(context, call, state, None).await,
            NextStep::RecoverCall(call) => self.recovery.recover_call(log, context, call).await,
            NextStep::Reply(reply) => {
                log.end_turn(turn_end::reply_turn_end(context, &reply, self.settings.reactions)).await
            }
            NextStep::Cancel => log.end_turn(turn_end::canceled_turn_end(context)).await,
        }
    }

    fn build_context_block(
        &self,
        context: &TurnContext,
        done_today: &[String],
        recalled: &[String],
    ) -> String {
        let zone = self.settings.zone.clone();
        // Everybody in a room reads the answer, so the model knows nothing about the author there.
        let facts = match context.audience() {
            Audience::Author => context.facts.prompt_lines(),
            Audience::Room | Audience::Agent => Vec::new(),
        };
        prompt::build_context_block(&PromptContext {
            moment: self.clock.now().to_zoned(zone).strftime("%a %b %-d %Y %H:%M %Q").to_string(),
            user_name: context.user.name.as_deref(),
            room: context.room.as_ref().map(Room::name),
            rights: context.user.rights,
            facts: &facts,
            done_today,
            notes: &context.plan.notes,
            recalled,
        })
    }

    /// Returns the recalled lines for a turn's prompt, without what the prompt already contains: answers from turn
    /// `oldest` on, and the changes of the day. Returns no lines if recall fails, or if the turn is canceled.
    async fn recall_lines(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        (oldest, done_today): (Option<TurnId>, &[String]),
    ) -> Vec<String> {
        let query = context.turn.texts.join(" ");
        if context.plan.responder == Responder::Keyword
            || context.turn.cancel_requested
            || !context.has_memory()
        {
            return Vec::new();
        }
        let range = RecallRange { before: oldest, only_own_after: context.reader_limit.changed_after };
        let result = tokio::select! {
            result = self.recall.recall_answers(context.conversation_owner(), &query, range) => result,
            () = log.wait_for_cancellation() => return Vec::new(),
        };
        match result {
            Ok(answers) => recall::format_recall_lines(&answers, done_today, &self.settings.zone),
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::error!(turn = %context.active_turn.id, error = format!("{error:#}"), "failed to search the memory");
                Vec::new()
            }
        }
    }
}
