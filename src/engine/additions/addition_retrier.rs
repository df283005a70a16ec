//! Retries of additions to a library that was unreachable. An addition is retried until it is made, refused or a day
//! old, and one message reports the outcome. The table is the queue. A try with an unknown outcome is checked before
//! the next try.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::retry_outcomes::{GivenUp, RetryOutcome, RetryRecorder, failed_addition_entry, tool_name};
use crate::clock::Clock;
use crate::conversation::title_requests as words;
use crate::conversation::title_requests::DeferredAdditionState;
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
use crate::store::turns::calls::CallStartOutcome;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult, audit};
use crate::tools::approval::{self, CallDecision};
use crate::tools::{
    InterruptedRun, RecoveryOutcome, RequestTiming, Tool, ToolContext, ToolEffect, ToolError,
};

/// Interval at which the queue is checked, in case a wake-up is lost or the clock is set.
const CHECK_INTERVAL: Duration = Duration::from_secs(300);
/// Pause of an addition after an internal error.
const FAILURE_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Worker that tries queued additions again.
pub struct AdditionRetrier {
    db: Db,
    clock: Clock,
    /// Time that a request gets to arrive before its outcome is checked.
    grace: Duration,
    tools: Arc<ToolRunner>,
    recorder: RetryRecorder,
    lifecycle: EngineLifecycle,
    addition_queued: WorkSignal,
}

impl AdditionRetrier {
    pub(crate) fn new(
        parts: &EngineParts,
        tools: Arc<ToolRunner>,
        lifecycle: EngineLifecycle,
        addition_queued: WorkSignal,
    ) -> Self {
        let EngineParts { db, clock, .. } = parts.clone();
        Self {
            db,
            clock,
            grace: parts.settings.recovery_delays.grace,
            tools,
            recorder: RetryRecorder::new(parts),
            lifecycle,
            addition_queued,
        }
    }

    /// Lets the worker check its queue at once.
    pub(crate) fn wake_worker(&self) {
        self.addition_queued.notify();
    }

    /// Tries due additions until `stop` is canceled. A try that is dropped is checked at the next start.
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

    /// Tries all due additions, one after another, and returns the time at which the next addition is due.
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
                Err(_) => "it panicked".to_owned(),
            };
            tracing::error!(request = id, error = failure, "failed to try a queued addition");
            let at = self.clock.now() + FAILURE_PAUSE;
            self.db.write(move |conn| request_groups::schedule_next_check(conn, &[id], at)).await?;
        }
    }

    async fn retry_addition(&self, id: i64) -> anyhow::Result<()> {
        let load = move |conn: &mut _| {
            let Some(open) = title_requests::load_open_addition(conn, id)? else { return Ok(None) };
            let group = request_groups::load_request_group(conn, open)?;
            Ok(Some((scene_of(conn, &group.merged)?, group)))
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
        let Some(tool) = self.tools.registry().get(tool_name(group.merged.title.kind)).cloned() else {
            let told = words::format_refused(&group.merged.title, None);
            return self
                .recorder
                .end_addition_as_given_up(&context, &group, GivenUp::to_all(told, FailureCode::NoSuchTool))
                .await;
        };
        let outcome = match group.merged.state {
            DeferredAdditionState::Waiting => self.try_addition(&context, &group, &tool).await?,
            DeferredAdditionState::InProgress => self.check_addition(&context, &group.merged, &tool).await?,
        };
        match outcome {
            RetryOutcome::Refused(failure) if group.parts().len() > 1 => {
                self.take_back(&group).await?;
                match group.split_by_seasons().as_slice() {
                    [same_seasons] => self.try_earlier(same_seasons, failure, &tool).await,
                    parts => self.try_parts(parts, &tool).await,
                }
            }
            outcome => self.recorder.record_try(&context, &group, outcome).await,
        }
    }

    /// Tries the parts of a refused group one by one, each with its own outcome.
    async fn try_parts(&self, parts: &[RequestGroup], tool: &Arc<dyn Tool>) -> anyhow::Result<()> {
        for part in parts {
            let context = self.scene_of(&part.merged).await?;
            match self.try_addition(&context, part, tool).await? {
                RetryOutcome::Refused(failure) if part.parts().len() > 1 => {
                    self.take_back(part).await?;
                    self.try_earlier(part, failure, tool).await?;
                }
                outcome => self.recorder.record_try(&context, part, outcome).await?,
            }
        }
        Ok(())
    }

    /// Tries refused requests for the same seasons without the newest one, then without the next one. The outcome is
    /// reported with the first reason.
    async fn try_earlier(
        &self,
        group: &RequestGroup,
        failure: CallFailure,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<()> {
        let (mut tried, mut failure) = (group.clone(), failure);
        while let Some(earlier) = tried.without_newest(failure.for_user.as_deref()) {
            let refused =
                failed_addition_entry(&self.scene_of(&tried.merged).await?, &tried.merged, &failure.code);
            let now = self.clock.now();
            let record = move |conn: &mut Conn| {
                audit::record_outcome(conn, &refused, now);
                Ok(())
            };
            self.db.write(record).await?;
            let context = self.scene_of(&earlier.merged).await?;
            match self.try_addition(&context, &earlier, tool).await? {
                RetryOutcome::Refused(again) if earlier.parts().len() > 1 => {
                    self.take_back(&earlier).await?;
                    (tried, failure) = (earlier, again);
                }
                outcome => return self.recorder.record_try(&context, &earlier, outcome).await,
            }
        }
        Ok(())
    }

    /// Returns the additions of a refused group to the queue, because none of them was made.
    async fn take_back(&self, group: &RequestGroup) -> anyhow::Result<()> {
        let (ids, now) = (group.request_ids(), self.clock.now());
        Ok(self.db.write(move |conn| request_groups::schedule_next_try(conn, &ids, now)).await?)
    }

    async fn scene_of(&self, open: &DeferredAddition) -> anyhow::Result<TurnContext> {
        let open = open.clone();
        Ok(self.db.read(move |conn| scene_of(conn, &open)).await?)
    }

    /// Tries a group, if a new decision with the current rights and quota allows the call. The call runs only after the
    /// intent is recorded.
    async fn try_addition(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<RetryOutcome> {
        let call = rebuild_call(&group.merged);
        let uses = match tool.check_arguments(&call.arguments) {
            Ok(uses) => uses,
            Err(failure) => return Ok(RetryOutcome::Refused(failure)),
        };
        // The messages that showed the title may be erased by now, so the call's own references count as shown.
        let cleared = match approval::decide_call(tool.spec(), &call, &uses, context.user.rights, &uses.refs)
        {
            CallDecision::Run(cleared) => cleared,
            CallDecision::Refuse(failure) => return Ok(RetryOutcome::Refused(failure)),
            CallDecision::Ask => anyhow::bail!("ask about an addition"),
        };
        if self.start_additions(context, group).await? == CallStartOutcome::NotStartable {
            return Ok(RetryOutcome::Unknown);
        }
        let tool_context = ToolContext {
            request_timing: RequestTiming::Earlier,
            ..self.tools.load_context(context, EffectLevel::Write).await?
        };
        let ended = tokio::time::timeout(tool.timeout(), tool.run(&cleared, &tool_context)).await;
        Ok(match ended {
            Ok(Ok(ran)) if ran.effects.iter().any(|deed| matches!(deed, ToolEffect::Queue(..))) => {
                RetryOutcome::NotMade
            }
            Ok(Ok(ran)) => RetryOutcome::Added(ran),
            Ok(Err(ToolError::CallFailed(failure))) => RetryOutcome::Refused(failure),
            Ok(Err(ToolError::Fatal(error))) => return Err(error),
            Ok(Err(ToolError::Unknown(reason))) => {
                tracing::warn!(request = group.merged.id, reason, "addition outcome is unknown");
                RetryOutcome::Unknown
            }
            Err(_) => RetryOutcome::Unknown,
        })
    }

    /// Records the intent to add, with an audit row for each call.
    async fn start_additions(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
    ) -> anyhow::Result<CallStartOutcome> {
        let (ids, now) = (group.request_ids(), self.clock.now());
        let intent = |part: &DeferredAddition| {
            audit_entry(context, "write", part.call, change_record::intent_detail(&rebuild_call(part)))
        };
        let intended: Vec<audit::NewAuditEntry> = group.parts().iter().map(intent).collect();
        let start = move |conn: &mut _| {
            let start = request_groups::start_addition(conn, &ids)?;
            if start == CallStartOutcome::Started {
                intended.iter().try_for_each(|entry| audit::record_intent(conn, entry, now))?;
            }
            Ok(start)
        };
        Ok(self.db.write(start).await?)
    }

    async fn check_addition(
        &self,
        context: &TurnContext,
        open: &DeferredAddition,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<RetryOutcome> {
        self.clock.sleep(self.grace).await;
        let tool_context = self.tools.load_context(context, EffectLevel::Write).await?;
        Ok(
            match tool_runner::recover_outcome(tool, InterruptedRun::Call(&open.arguments), &tool_context)
                .await
            {
                RecoveryOutcome::Done(ran) => RetryOutcome::Added(ran),
                RecoveryOutcome::NotDone => RetryOutcome::NotMade,
                RecoveryOutcome::Unknown => RetryOutcome::Unknown,
            },
        )
    }

    fn duration_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.clock.now())).unwrap_or_default()
    }
}

/// Loads the user of an addition and the turn that requested it.
fn scene_of(conn: &mut Conn, open: &DeferredAddition) -> QueryResult<TurnContext> {
    let turn = turn_lifecycle::load_turn_of_call(conn, open.call)?;
    TurnContext::load_turn(conn, open.user, turn)
}

/// Rebuilds the call as the turn made it.
fn rebuild_call(open: &DeferredAddition) -> ToolCall {
    ToolCall {
        row: open.call,
        id: CallId::from_stored(""),
        step: 0,
        name: tool_name(open.title.kind).to_owned(),
        arguments: open.arguments.clone(),
        effect_level: EffectLevel::Write,
        state: CallState::Created,
    }
}
