//! Loop of one turn: loads its log, decides the next step, executes the step and records it, until the turn ends.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::agent_turn::AgentTurnRunner;
use super::deletion::DeletionRunner;
use super::first_call::{FirstCall, StartedCall, StartedTurn};
use super::log::turn_log::{TurnLog, TurnLogs, TurnProgress};
use super::model_step::ModelStepRunner;
use super::tool_calls::ToolCallRunner;
use super::tool_runner::ToolRunner;
use super::triage::MessageTriage;
use super::turn_context::TurnContext;
use super::turn_end;
use super::turn_history::{LoadedHistory, PromptHistory, TurnHistory};
use super::typing_indicator::TypingIndicator;
use super::write_recovery::WriteRecovery;
use crate::clock::Clock;
use crate::conversation::memory::recall;
use crate::conversation::transcript::{Responder, TurnId, UserId};
use crate::conversation::turn::NextStep;
use crate::engine::memory::recall::AnswerRecall;
use crate::engine::parts::{ConfiguredParts, EngineParts};
use crate::engine::settings::HouseholdSettings;
use crate::messaging::channel_ports::ChannelPorts;
use crate::store::Conn;
use crate::store::memory::search::RecallRange;
use crate::store::stream::event_log::HistoryVersion;
use crate::store::turns::turn_lifecycle::{ActiveTurn, TriageState, TurnKind};

/// Source of turn runners, each with the parts that were configured when its turn began.
pub(crate) struct TurnRunners {
    parts: EngineParts,
    logs: Arc<TurnLogs>,
    recall: Arc<AnswerRecall>,
    /// Most recently created runner, which is replaced once its parts are.
    newest: Mutex<Option<Arc<TurnRunner>>>,
}

impl TurnRunners {
    pub(crate) fn new(parts: &EngineParts, logs: TurnLogs, recall: Arc<AnswerRecall>) -> Self {
        Self { parts: parts.clone(), logs: Arc::new(logs), recall, newest: Mutex::default() }
    }

    /// Returns a runner with the newest parts. Its turn ends on them, even if they are replaced.
    pub(crate) fn current_runner(&self) -> Arc<TurnRunner> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = self.parts.live.current();
        match &*newest {
            Some(runner) if Arc::ptr_eq(runner.model_steps.parts(), &parts) => runner.clone(),
            _ => newest.insert(Arc::new(self.create_runner(parts))).clone(),
        }
    }

    fn create_runner(&self, parts: Arc<ConfiguredParts>) -> TurnRunner {
        let EngineParts { clock, metrics, .. } = &self.parts;
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
            model_steps: Arc::new(ModelStepRunner::new(parts, clock.clone(), metrics.clone())),
            tool_calls,
            recovery,
            agent_turns,
            deletions: DeletionRunner::new(tools, limits),
            channels,
        }
    }
}

/// Runner of turns on the same parts, which decides each step and passes it to the component that executes it.
pub(crate) struct TurnRunner {
    logs: Arc<TurnLogs>,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    recall: Arc<AnswerRecall>,
    triage: MessageTriage,
    model_steps: Arc<ModelStepRunner>,
    tool_calls: Arc<ToolCallRunner>,
    recovery: Arc<WriteRecovery>,
    agent_turns: AgentTurnRunner,
    deletions: DeletionRunner,
    channels: ChannelPorts,
}

impl TurnRunner {
    /// Prepares the first call of a turn that the due messages of a user probably start. Returns `None` if the turn does not
    /// call a model at once, e.g. because the memory is searched with a vector from a server.
    pub(crate) fn prepare_first_call(
        &self,
        conn: &mut Conn,
        user: UserId,
        now: Timestamp,
    ) -> Option<FirstCall> {
        let responder = self.model_steps.parts().models.current_responder(now);
        if responder != Responder::Model || self.recall.needs_vectors() {
            return None;
        }
        let first_call = FirstCall::load(conn, user, (&self.logs, &self.model_steps), &self.recall, now);
        // The turn loads the same rows again and handles the error.
        first_call
            .inspect_err(|error| tracing::warn!(%error, "failed to prepare the first call of a turn"))
            .ok()
            .flatten()
    }

    /// Runs a chat turn, which was just created, until it ends. `loaded_at` is the version of the history before its
    /// creation. `wakeup` wakes the task of its user, e.g. after a cancellation.
    pub(crate) async fn run_started_turn(
        &self,
        StartedTurn { context, first_call }: StartedTurn,
        loaded_at: HistoryVersion,
        wakeup: Arc<Notify>,
    ) -> anyhow::Result<()> {
        let log = self.logs.open_log((context.user.id, context.active_turn), loaded_at, wakeup);
        let Some(StartedCall { history, call, attempt }) = first_call else {
            let history = log.load_history().await?;
            return self.run_chat_turn(log, context, history).await;
        };
        log.adopt_first_attempt(attempt);
        let _typing = TypingIndicator::start(&self.channels, &context.reply_address());
        let reports = history.action_reports();
        let log = log.with_earlier_reports(reports.clone());
        let context = context.with_earlier_reports(&reports);
        let progress = self.model_steps.make_call(&log, &context, call).await?;
        self.run_steps(&log, &history, progress).await
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
        mut loaded: LoadedHistory,
    ) -> anyhow::Result<()> {
        loaded.limit_to_readers(&context);
        let window_start = loaded.trim_to_window(context.plan.context.as_ref());
        let _typing = TypingIndicator::start(&self.channels, &context.reply_address());
        let recalled = self.recall_lines(&log, &context, (window_start, &loaded.done_today)).await;
        let now = self.clock.now().to_zoned(self.settings.zone.clone());
        let history = TurnHistory::new(PromptHistory::new(loaded, recalled), &context, &now);
        let reports = history.action_reports();
        let log = log.with_earlier_reports(reports.clone());
        // Recall takes time, so the turn may have been canceled. Recording the next step detects that, but triage calls
        // the model before anything is recorded, so its context is loaded again.
        let progress = match context.plan.triage {
            TriageState::Respond => TurnProgress::Loaded(Box::new(context.with_earlier_reports(&reports))),
            TriageState::Open | TriageState::Skip => TurnProgress::Reload,
        };
        self.run_steps(&log, &history, progress).await
    }

    async fn run_steps(
        &self,
        log: &TurnLog,
        history: &TurnHistory,
        mut progress: TurnProgress,
    ) -> anyhow::Result<()> {
        loop {
            let context = match progress {
                TurnProgress::Reload => log.load_context().await?,
                TurnProgress::Loaded(context) => *context,
                TurnProgress::Ended => return Ok(()),
            };
            progress = self.run_step(log, &context, history).await?;
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
