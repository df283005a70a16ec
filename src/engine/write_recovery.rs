//! Recovery of a write whose response never came: the write is checked once its request has had time to arrive, then
//! recorded as done, started again, or reported as not done.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Engine;
use super::calling::{MAX_STARTS, find, outcome_unknown};
use super::change_record::{self, OutcomeSource};
use super::run::{Progress, Scene};
use crate::conversation::transcript::{CallRow, CallState, MediaKind, MediaRef, Tier, ToolCall};
use crate::store::calls::{self, CallStarts};
use crate::tools::answers::named;
use crate::tools::{Interrupted, Settled, Tool};

impl Engine {
    /// Settles a call that was started and has no result: a read runs again, a write is checked.
    pub(super) async fn settle_call(&self, scene: &Scene, row: CallRow) -> anyhow::Result<Progress> {
        let Some(call) = find(scene, row) else { return Ok(Progress::GoesOn) };
        let state = match (call.tier, self.0.parts.tools.get(&call.name)) {
            (Tier::Read, _) => CallState::Created,
            (_, None) => CallState::Failed(outcome_unknown()),
            (_, Some(tool)) => {
                let starts = self.0.parts.db.read(move |conn| calls::load_starts(conn, row)).await?;
                let checked = self.with_progress(scene, self.check_write(scene, call, tool, starts.last_at));
                match checked.await? {
                    Settled::Done(ran) => {
                        let note = change_record::outcome(
                            scene,
                            row,
                            OutcomeSource::Lookup,
                            &call.name,
                            &ran.result,
                        );
                        return self.record_ran(scene, row, ran, Some(note)).await;
                    }
                    Settled::NotDone => self.again_or_not_done(scene, call, tool, starts).await?,
                    Settled::Unknown => CallState::Failed(outcome_unknown()),
                }
            }
        };
        let note = change_record::failure(scene, call, &state);
        self.record_noted(scene, row, state, note).await
    }

    async fn check_write(
        &self,
        scene: &Scene,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        started_at: Option<Timestamp>,
    ) -> anyhow::Result<Settled> {
        self.let_request_arrive(started_at).await;
        let world = self.world(scene, call.tier).await?;
        let check = tool.settle(Interrupted::Call(&call.arguments), &world);
        Ok(match tokio::time::timeout(tool.timeout(), check).await {
            Ok(Ok(settled)) => settled,
            Ok(Err(_)) | Err(_) => Settled::Unknown,
        })
    }

    /// Waits until a request that was sent at `started_at` has had the time to arrive, however often the program has
    /// restarted since. A clock that was set back adds nothing to the wait.
    pub(super) async fn let_request_arrive(&self, started_at: Option<Timestamp>) {
        let since =
            started_at.map(|at| Duration::try_from(self.now().duration_since(at)).unwrap_or_default());
        let grace = self.0.parts.settings.pace.grace;
        self.0.parts.clock.sleep(grace.saturating_sub(since.unwrap_or_default())).await;
    }

    /// Restarts a write that was certainly not carried out, while there is time; afterwards its result is that it was
    /// not done.
    async fn again_or_not_done(
        &self,
        scene: &Scene,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        starts: CallStarts,
    ) -> anyhow::Result<CallState> {
        let turn = &scene.turn;
        let in_time = self.now() < turn.deadline && !turn.is_given_up(&self.0.parts.settings.limits);
        if turn.cancel_requested || (starts.count < MAX_STARTS && in_time) {
            return Ok(CallState::Created);
        }
        let uses = tool.check(&call.arguments).map(|uses| uses.refs).unwrap_or_default();
        let title = self.title_shown(scene, uses.first()).await?;
        Ok(CallState::Failed(tool.not_done(title.as_deref())))
    }

    /// Returns the title as an earlier result of the conversation showed it: `Dune (2021)`.
    async fn title_shown(&self, scene: &Scene, about: Option<&MediaRef>) -> anyhow::Result<Option<String>> {
        let (kind, id) = match about {
            Some(MediaRef::Tmdb(id)) => (MediaKind::Movie, *id),
            Some(MediaRef::Tvdb(id)) => (MediaKind::Series, *id),
            Some(MediaRef::Item { .. } | MediaRef::Download { .. }) | None => return Ok(None),
        };
        let conversation = scene.live.conversation;
        let shown = move |conn: &mut _| calls::title_shown(conn, conversation, kind, id);
        let shown = self.0.parts.db.read(shown).await?;
        Ok(shown.map(|(title, year)| named(&title, year)))
    }
}
