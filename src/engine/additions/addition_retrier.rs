//! Retries of additions to a library that was unreachable. An addition is retried until it succeeds, is rejected or is
//! a day old, and one message reports the outcome. The table is the queue. An attempt with an unknown outcome is checked
//! before the next attempt.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::retry_outcomes::{
    AbandonedAddition, RetryOutcome, RetryRecorder, failed_addition_entry, tool_name,
};
use crate::clock::Clock;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::title_requests::{DeferredAdditionState, format_outcome_unknown, format_refused};
use crate::conversation::transcript::{
    CallFailure, CallId, CallState, EffectLevel, FailureCode, ToolCall, UserStatus,
};
use crate::engine::lifecycle::EngineLifecycle;
use crate::engine::parts::EngineParts;
use crate::engine::turns::change_record::{self, audit_entry};
use crate::engine::turns::tool_runner::{self, ToolRunner};
use crate::engine::turns::turn_context::TurnContext;
use crate::engine::work_signal::WorkSignal;
use crate::store::database::db::Db;
use crate::store::library::request_groups::{self, RequestGroup};
use crate::store::library::title_requests::{self, DeferredAddition};
use crate::store::service_identities::MovedSlots;
use crate::store::turns::calls::CallStartOutcome;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult, audit};
use crate::tools::approval::{self, CallDecision};
use crate::tools::{
    InterruptedRun, RecoveryOutcome, RequestTiming, Tool, ToolContext, ToolEffect, ToolError,
};

/// Interval at which the queue is checked in case a wake-up is lost or the clock is set.
const CHECK_INTERVAL: Duration = Duration::from_secs(300);
/// Delay before the next check of an addition after an internal error.
const ERROR_RETRY_DELAY: SignedDuration = SignedDuration::from_mins(5);

/// Worker that retries queued additions.
pub struct AdditionRetrier {
    db: Db,
    clock: Clock,
    parts: EngineParts,
    recorder: RetryRecorder,
    lifecycle: EngineLifecycle,
    addition_queued: WorkSignal,
}

impl AdditionRetrier {
    pub(crate) fn new(parts: &EngineParts, lifecycle: EngineLifecycle, addition_queued: WorkSignal) -> Self {
        let EngineParts { db, clock, .. } = parts.clone();
        Self {
            db,
            clock,
            parts: parts.clone(),
            recorder: RetryRecorder::new(parts),
            lifecycle,
            addition_queued,
        }
    }

    /// Lets the worker check its queue at once.
    pub(crate) fn wake_worker(&self) {
        self.addition_queued.notify();
    }

    /// Retries due additions until `stop` is canceled. An attempt that is dropped is checked at the next start.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = self.lifecycle.wait_for_turns() => {}
            () = stop.cancelled() => return,
        }
        while !stop.is_cancelled() && !self.lifecycle.is_draining() {
            let wait = match self.retry_due_additions().await {
                Ok(next) => next.map_or(CHECK_INTERVAL, |at| self.duration_until(at).min(CHECK_INTERVAL)),
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "failed to read the addition queue");
                    CHECK_INTERVAL
                }
            };
            tokio::select! {
                () = self.addition_queued.wait() => {}
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => {}
                () = self.lifecycle.wait_for_drain() => {}
            }
        }
    }

    /// Retries all due additions, one after another, and returns the time at which the next addition is due.
    async fn retry_due_additions(&self) -> anyhow::Result<Option<Timestamp>> {
        loop {
            let now = self.clock.now();
            let next = self.db.read(title_requests::load_next_addition).await?;
            let Some((id, _)) = next.filter(|(_, at)| *at <= now && !self.lifecycle.is_draining()) else {
                return Ok(next.map(|(_, at)| at));
            };
            let failure = match AssertUnwindSafe(self.retry_addition(id)).catch_unwind().await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => "the attempt panicked".to_owned(),
            };
            tracing::error!(request = id, error = failure, "failed to retry a queued addition");
            let at = self.clock.now() + ERROR_RETRY_DELAY;
            self.db.write(move |conn| request_groups::schedule_next_check(conn, &[id], at)).await?;
        }
    }

    async fn retry_addition(&self, id: i64) -> anyhow::Result<()> {
        let load = move |conn: &mut _| {
            let Some(addition) = title_requests::load_open_addition(conn, id)? else { return Ok(None) };
            let group = request_groups::load_request_group(conn, addition)?;
            Ok(Some((load_turn_context(conn, &group.merged)?, group)))
        };
        let loaded = match self.db.read(load).await {
            Err(error) if error.is_unreadable() => return self.recorder.give_up_unreadable(id, &error).await,
            loaded => loaded?,
        };
        let Some((context, group)) = loaded else { return Ok(()) };
        if context.user.status != UserStatus::Active || context.user.opted_out {
            let (user, now) = (group.merged.user, self.clock.now());
            return Ok(self
                .db
                .write(move |conn| title_requests::withdraw_additions(conn, user, now))
                .await?);
        }
        let Some(tool) = self.tool_runner().registry().get(tool_name(group.merged.title.kind)).cloned()
        else {
            let message = format_refused(&group.merged.title, None);
            let abandoned = AbandonedAddition::with_shared_message(message, FailureCode::NoSuchTool);
            return self.recorder.record_abandoned(&context, &group, abandoned).await;
        };
        let outcome = match group.merged.state {
            DeferredAdditionState::Waiting => self.try_addition(&context, &group, &tool).await?,
            DeferredAdditionState::InProgress if self.was_sent_to_moved_server(&context, &group).await? => {
                let message = format_outcome_unknown(&group.merged.title);
                let abandoned = AbandonedAddition::with_shared_message(message, FailureCode::OutcomeUnknown);
                return self.recorder.record_abandoned(&context, &group, abandoned).await;
            }
            DeferredAdditionState::InProgress => self.check_addition(&context, &group.merged, &tool).await?,
        };
        match outcome {
            RetryOutcome::Refused(failure) if group.parts().len() > 1 => {
                self.requeue_additions(&group).await?;
                match group.split_by_seasons().as_slice() {
                    [same_seasons] => self.retry_without_newest(same_seasons, failure, &tool).await,
                    parts => self.retry_parts(parts, &tool).await,
                }
            }
            outcome => self.recorder.record_attempt(&context, &group, outcome).await,
        }
    }

    /// Returns whether an earlier attempt may have been sent to a server that was replaced.
    async fn was_sent_to_moved_server(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
    ) -> anyhow::Result<bool> {
        let moved = self.db.read(MovedSlots::load).await?;
        Ok(moved.includes(&group.merged.title.instance, context.active_turn.id))
    }

    /// Retries the parts of a refused group one by one, each with its own outcome.
    async fn retry_parts(&self, parts: &[RequestGroup], tool: &Arc<dyn Tool>) -> anyhow::Result<()> {
        for part in parts {
            let context = self.load_turn_context(&part.merged).await?;
            match self.try_addition(&context, part, tool).await? {
                RetryOutcome::Refused(failure) if part.parts().len() > 1 => {
                    self.requeue_additions(part).await?;
                    self.retry_without_newest(part, failure, tool).await?;
                }
                outcome => self.recorder.record_attempt(&context, part, outcome).await?,
            }
        }
        Ok(())
    }

    /// Retries refused requests for the same seasons, leaving out the newest request each time. The outcome is reported
    /// with the reason of the first refusal.
    async fn retry_without_newest(
        &self,
        group: &RequestGroup,
        failure: CallFailure,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<()> {
        let (mut refused, mut failure) = (group.clone(), failure);
        while let Some(earlier) = refused.without_newest(failure.for_user.as_deref()) {
            let entry = failed_addition_entry(
                &self.load_turn_context(&refused.merged).await?,
                &refused.merged,
                &failure.code,
            );
            let now = self.clock.now();
            let record = move |conn: &mut Conn| {
                audit::record_outcome(conn, &entry, now);
                Ok(())
            };
            self.db.write(record).await?;
            let context = self.load_turn_context(&earlier.merged).await?;
            match self.try_addition(&context, &earlier, tool).await? {
                RetryOutcome::Refused(next_failure) if earlier.parts().len() > 1 => {
                    self.requeue_additions(&earlier).await?;
                    (refused, failure) = (earlier, next_failure);
                }
                outcome => return self.recorder.record_attempt(&context, &earlier, outcome).await,
            }
        }
        Ok(())
    }

    /// Returns the additions of a refused group to the queue, because none of them took effect.
    async fn requeue_additions(&self, group: &RequestGroup) -> anyhow::Result<()> {
        let (ids, now) = (group.request_ids(), self.clock.now());
        Ok(self.db.write(move |conn| request_groups::schedule_next_try(conn, &ids, now)).await?)
    }

    async fn load_turn_context(&self, addition: &DeferredAddition) -> anyhow::Result<TurnContext> {
        let addition = addition.clone();
        Ok(self.db.read(move |conn| load_turn_context(conn, &addition)).await?)
    }

    /// Tries to add a group, if the user's current permissions and quota allow the call. The call runs only after its
    /// intent is recorded.
    async fn try_addition(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<RetryOutcome> {
        let call = rebuild_call(&group.merged);
        let references = match tool.check_arguments(&call.arguments) {
            Ok(references) => references,
            Err(failure) => return Ok(RetryOutcome::Refused(failure)),
        };
        // The messages that showed the title may be erased by now, so the call's own references count as shown.
        let rights = context.user.rights;
        let decision = approval::decide_call(
            tool.spec(),
            &call,
            &references,
            (rights, Audience::Author),
            &references.refs,
        );
        let approved = match decision {
            CallDecision::Run(approved) => approved,
            CallDecision::Refuse(failure) => return Ok(RetryOutcome::Refused(failure)),
            CallDecision::Ask => anyhow::bail!("add a title without a confirmation prompt"),
        };
        if self.start_additions(context, group).await? == CallStartOutcome::NotStartable {
            return Ok(RetryOutcome::Unknown);
        }
        let tool_context = ToolContext {
            request_timing: RequestTiming::Earlier,
            ..self.tool_runner().load_context(context, EffectLevel::Write).await?
        };
        let result = tokio::time::timeout(tool.timeout(), tool.run(&approved, &tool_context)).await;
        Ok(match result {
            Ok(Ok(output)) if output.effects.iter().any(|effect| matches!(effect, ToolEffect::Queue(..))) => {
                RetryOutcome::NotAdded
            }
            Ok(Ok(output)) => RetryOutcome::Added(output),
            Ok(Err(ToolError::CallFailed(failure))) => RetryOutcome::Refused(failure),
            Ok(Err(ToolError::Fatal(error))) => return Err(error),
            Ok(Err(ToolError::Unknown(reason))) => {
                tracing::warn!(request = group.merged.id, reason, "addition outcome is unknown");
                RetryOutcome::Unknown
            }
            Err(_) => RetryOutcome::Unknown,
        })
    }

    /// Records the intent to add a group, with an audit entry for each call.
    async fn start_additions(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
    ) -> anyhow::Result<CallStartOutcome> {
        let (ids, now) = (group.request_ids(), self.clock.now());
        let intent_entry = |part: &DeferredAddition| {
            audit_entry(context, "write", part.call, change_record::intent_detail(&rebuild_call(part)))
        };
        let entries: Vec<audit::NewAuditEntry> = group.parts().iter().map(intent_entry).collect();
        let start = move |conn: &mut _| {
            let outcome = request_groups::start_addition(conn, &ids)?;
            if outcome == CallStartOutcome::Started {
                entries.iter().try_for_each(|entry| audit::record_intent(conn, entry, now))?;
            }
            Ok(outcome)
        };
        Ok(self.db.write(start).await?)
    }

    /// Checks the outcome of an earlier attempt.
    async fn check_addition(
        &self,
        context: &TurnContext,
        addition: &DeferredAddition,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<RetryOutcome> {
        // A lost request may still arrive.
        self.clock.sleep(self.parts.live.settings().recovery_delays.grace).await;
        let tool_context = self.tool_runner().load_context(context, EffectLevel::Write).await?;
        Ok(
            match tool_runner::recover_outcome(tool, InterruptedRun::Call(&addition.arguments), &tool_context)
                .await
            {
                RecoveryOutcome::Done(output) => RetryOutcome::Added(output),
                RecoveryOutcome::NotDone => RetryOutcome::NotAdded,
                RecoveryOutcome::Unknown => RetryOutcome::Unknown,
            },
        )
    }

    /// Returns a runner of the tools that are configured.
    fn tool_runner(&self) -> ToolRunner {
        ToolRunner::new(&self.parts, self.parts.live.current())
    }

    fn duration_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.clock.now())).unwrap_or_default()
    }
}

/// Loads the turn that requested an addition.
fn load_turn_context(conn: &mut Conn, addition: &DeferredAddition) -> QueryResult<TurnContext> {
    let turn = turn_lifecycle::load_turn_of_call(conn, addition.call)?;
    TurnContext::load_turn(conn, addition.user, turn)
}

/// Rebuilds the tool call of the turn.
fn rebuild_call(addition: &DeferredAddition) -> ToolCall {
    ToolCall {
        row: addition.call,
        id: CallId::from_stored(""),
        step: 0,
        name: tool_name(addition.title.kind).to_owned(),
        arguments: addition.arguments.clone(),
        effect_level: EffectLevel::Write,
        state: CallState::Created,
    }
}
