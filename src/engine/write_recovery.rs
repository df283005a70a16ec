//! Recovery of a write without a response. The write is checked after its request has had time to arrive, then recorded
//! as done, started again, or reported as not done.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Engine;
use super::change_record::{self, OutcomeSource};
use super::tool_calls::{MAX_STARTS, find_call};
use super::turn_loop::{TurnContext, TurnProgress};
use crate::conversation::transcript::{
    CallFailure, CallRow, CallState, EffectLevel, MediaKind, MediaRef, ToolCall,
};
use crate::store::turns::calls::{self, CallStarts};
use crate::tools::formatting::format_media_title;
use crate::tools::{InterruptedRun, RecoveryOutcome, Tool};

impl Engine {
    /// Settles a call that was started and has no result. A read runs again, and a write is checked.
    pub(super) async fn recover_call(
        &self,
        scene: &TurnContext,
        row: CallRow,
    ) -> anyhow::Result<TurnProgress> {
        let Some(call) = find_call(scene, row) else { return Ok(TurnProgress::Reload) };
        let state = match (call.effect_level, self.0.parts.tools.get(&call.name)) {
            (EffectLevel::Read, _) => CallState::Created,
            (_, None) => CallState::Failed(CallFailure::outcome_unknown()),
            (_, Some(tool)) => {
                let starts = self.0.parts.db.read(move |conn| calls::load_starts(conn, row)).await?;
                let checked =
                    self.run_with_progress(scene, self.check_write(scene, call, tool, starts.last_at));
                match checked.await? {
                    RecoveryOutcome::Done(ran) => {
                        let note = change_record::outcome_entry(
                            scene,
                            row,
                            OutcomeSource::Lookup,
                            &call.name,
                            &ran.result,
                        );
                        return self.record_success(scene, row, ran, Some(note)).await;
                    }
                    RecoveryOutcome::NotDone => self.restart_or_fail(scene, call, tool, starts).await?,
                    RecoveryOutcome::Unknown => CallState::Failed(CallFailure::outcome_unknown()),
                }
            }
        };
        let note = change_record::failure_entry(scene, call, &state);
        self.record_with_audit_entry(scene, row, state, note).await
    }

    async fn check_write(
        &self,
        scene: &TurnContext,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        started_at: Option<Timestamp>,
    ) -> anyhow::Result<RecoveryOutcome> {
        self.wait_for_request_arrival(started_at).await;
        let world = self.load_tool_context(scene, call.effect_level).await?;
        let check = tool.recover_outcome(InterruptedRun::Call(&call.arguments), &world);
        Ok(match tokio::time::timeout(tool.timeout(), check).await {
            Ok(Ok(settled)) => settled,
            Ok(Err(_)) | Err(_) => RecoveryOutcome::Unknown,
        })
    }

    /// Waits until a request that was sent at `started_at` has had time to arrive, regardless of program restarts
    /// since. A clock that was set back does not extend the wait.
    pub(super) async fn wait_for_request_arrival(&self, started_at: Option<Timestamp>) {
        let since =
            started_at.map(|at| Duration::try_from(self.now().duration_since(at)).unwrap_or_default());
        let grace = self.0.parts.settings.recovery_delays.grace;
        self.0.parts.clock.sleep(grace.saturating_sub(since.unwrap_or_default())).await;
    }

    /// Restarts a write that was certainly not executed, while there is time. After that, the write is recorded as not
    /// done.
    async fn restart_or_fail(
        &self,
        scene: &TurnContext,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        starts: CallStarts,
    ) -> anyhow::Result<CallState> {
        let turn = &scene.turn;
        let in_time = self.now() < turn.deadline && !turn.is_given_up(&self.0.parts.settings.limits);
        if turn.cancel_requested || (starts.count < MAX_STARTS && in_time) {
            return Ok(CallState::Created);
        }
        let uses = tool.check_arguments(&call.arguments).map(|uses| uses.refs).unwrap_or_default();
        let title = self.load_shown_title(scene, uses.first()).await?;
        Ok(CallState::Failed(tool.not_done_failure(title.as_deref())))
    }

    /// Returns the title as shown by an earlier result of the conversation, such as `Dune (2021)`.
    async fn load_shown_title(
        &self,
        scene: &TurnContext,
        about: Option<&MediaRef>,
    ) -> anyhow::Result<Option<String>> {
        let (kind, id) = match about {
            Some(MediaRef::Tmdb(id)) => (MediaKind::Movie, *id),
            Some(MediaRef::Tvdb(id)) => (MediaKind::Series, *id),
            Some(MediaRef::Item { .. } | MediaRef::Download { .. }) | None => return Ok(None),
        };
        let conversation = scene.live.conversation;
        let shown = move |conn: &mut _| calls::find_shown_title(conn, conversation, kind, id);
        let shown = self.0.parts.db.read(shown).await?;
        Ok(shown.map(|(title, year)| format_media_title(&title, year)))
    }
}
