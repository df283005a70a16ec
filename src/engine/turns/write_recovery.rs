//! Recovery of writes without a response. After a grace period for the request, the write is checked, and then recorded
//! as done, started again, or reported as not done.

use std::sync::Arc;

use super::change_record::{self, OutcomeSource};
use super::log::turn_log::{TurnLog, TurnProgress};
use super::tool_runner::ToolRunner;
use super::turn_context::TurnContext;
use crate::clock::Clock;
use crate::conversation::transcript::{
    CallFailure, CallRow, CallState, EffectLevel, MediaKind, MediaRef, ToolCall,
};
use crate::conversation::turn::TurnLimits;
use crate::store::turns::calls::CallStarts;
use crate::tools::formatting::format_media_title;
use crate::tools::{InterruptedRun, RecoveryOutcome, Tool};

/// Number of starts of one write before the write is reported as not done.
pub(super) const MAX_STARTS: i64 = 3;

/// Recovery of tool calls that were started and have no result.
pub(super) struct WriteRecovery {
    tools: Arc<ToolRunner>,
    clock: Clock,
    limits: TurnLimits,
}

impl WriteRecovery {
    pub(super) fn new(tools: Arc<ToolRunner>, clock: Clock, limits: TurnLimits) -> Self {
        Self { tools, clock, limits }
    }

    /// Settles a call that was started and has no result. A read runs again, and a write is checked.
    pub(super) async fn recover_call(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        row: CallRow,
    ) -> anyhow::Result<TurnProgress> {
        let Some(call) = context.find_call(row) else { return Ok(TurnProgress::Reload) };
        let state = match (call.effect_level, self.tools.registry().get(&call.name)) {
            (EffectLevel::Read, _) => CallState::Created,
            (_, None) => CallState::Failed(CallFailure::outcome_unknown()),
            (_, Some(tool)) if self.may_concern_moved_server(log, context, (call, tool)).await? => {
                CallState::Failed(CallFailure::outcome_unknown())
            }
            (_, Some(tool)) => {
                let starts = log.load_call_starts(row).await?;
                let scope = (call.effect_level, starts.last_at);
                let check =
                    self.tools.check_outcome(context, tool, InterruptedRun::Call(&call.arguments), scope);
                match self.tools.run_with_progress(context, check).await? {
                    RecoveryOutcome::Done(output) => {
                        let entry = change_record::outcome_entry(
                            context,
                            row,
                            OutcomeSource::Lookup,
                            &call.name,
                            &output.result,
                        );
                        return log.record_success(context, row, output, Some(entry)).await;
                    }
                    RecoveryOutcome::NotDone => {
                        self.restart_or_fail(log, context, (call, tool), starts).await?
                    }
                    RecoveryOutcome::Unknown => CallState::Failed(CallFailure::outcome_unknown()),
                }
            }
        };
        let entry = change_record::failure_entry(context, call, &state);
        log.record_call_state(context, row, state, entry).await
    }

    /// Returns whether a write may have been sent to a server that was replaced.
    async fn may_concern_moved_server(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        (call, tool): (&ToolCall, &Arc<dyn Tool>),
    ) -> anyhow::Result<bool> {
        let references = tool.check_arguments(&call.arguments).unwrap_or_default();
        Ok(log.load_moved_slots().await?.may_concern(&references.refs, context.active_turn.id))
    }

    /// Returns the state of a write that was certainly not executed: restarted while there are time and starts left,
    /// and failed otherwise.
    async fn restart_or_fail(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        (call, tool): (&ToolCall, &Arc<dyn Tool>),
        starts: CallStarts,
    ) -> anyhow::Result<CallState> {
        let turn = &context.turn;
        let in_time = self.clock.now() < turn.deadline && !turn.is_given_up(&self.limits);
        if turn.cancel_requested || (starts.count < MAX_STARTS && in_time) {
            return Ok(CallState::Created);
        }
        let references =
            tool.check_arguments(&call.arguments).map(|references| references.refs).unwrap_or_default();
        let title = load_shown_title(log, references.first()).await?;
        Ok(CallState::Failed(tool.not_done_failure(title.as_deref())))
    }
}

/// Returns the title as shown by an earlier result of the conversation, such as `Dune (2021)`.
async fn load_shown_title(log: &TurnLog, media: Option<&MediaRef>) -> anyhow::Result<Option<String>> {
    let (kind, id) = match media {
        Some(MediaRef::Tmdb(id)) => (MediaKind::Movie, *id),
        Some(MediaRef::Tvdb(id)) => (MediaKind::Series, *id),
        Some(MediaRef::Item { .. } | MediaRef::Download { .. }) | None => return Ok(None),
    };
    let shown = log.load_shown_title(kind, id).await?;
    Ok(shown.map(|(title, year)| format_media_title(&title, year)))
}
