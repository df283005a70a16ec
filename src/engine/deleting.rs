//! Confirmed deletion, item by item: each item is re-checked and started once, and its outcome is known before the
//! report.

use std::sync::Arc;

use super::Engine;
use super::calling::{MAX_STARTS, status};
use super::change_record;
use super::ending::{self, WayBack};
use super::run::Scene;
use super::wishes;
use crate::conversation::claimed_deletion::{ClaimedDeletion, DeletionItem, DeletionItemState};
use crate::conversation::deletion::{self, ItemOutcome};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::transcript::{Tier, UserId};
use crate::conversation::turn::{Limits, Turn};
use crate::failpoint;
use crate::store::deletion_items::{self, Start};
use crate::store::ledger::Outcome;
use crate::store::pending;
use crate::store::steps;
use crate::store::turns::{self, Live};
use crate::store::{approvals, audit, outbox, users};
use crate::telemetry;
use crate::tools::approval::{self, NotPermitted};
use crate::tools::{Interrupted, STILL_THERE, Settled, Tool, ToolError};

/// Next step of an item that has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemStep {
    Start,
    /// The item was started: the library is checked for whether it is gone.
    Check,
    End(ItemOutcome),
}

/// Whatever was started is checked, however often the program was started since.
fn next_step(item: &DeletionItem, turn: &Turn, limits: &Limits) -> ItemStep {
    let was_started = item.state == DeletionItemState::Running || item.attempts > 0;
    if was_started && turn.is_beyond_checking(limits) {
        ItemStep::End(ItemOutcome::Unknown)
    } else if item.state == DeletionItemState::Running || (was_started && starts_nothing(turn, limits)) {
        ItemStep::Check
    } else if starts_nothing(turn, limits) {
        ItemStep::End(ItemOutcome::Stopped)
    } else {
        ItemStep::Start
    }
}

/// True if the turn was canceled or failed too often on our side: nothing more is started.
fn starts_nothing(turn: &Turn, limits: &Limits) -> bool {
    turn.cancel_requested || turn.is_given_up(limits)
}

impl Engine {
    pub(super) async fn run_confirmed(&self, user: UserId, live: Live) -> anyhow::Result<()> {
        loop {
            let (scene, claimed) = self.claimed(user, live).await?;
            let open = claimed
                .items()
                .iter()
                .find(|item| matches!(item.state, DeletionItemState::Held | DeletionItemState::Running));
            let Some(item) = open else { return self.report(&scene, claimed).await };
            let limits = &self.0.parts.settings.limits;
            let outcome = match (self.0.parts.tools.get(claimed.tool()), next_step(item, &scene.turn, limits))
            {
                (_, ItemStep::End(outcome)) => Some(outcome),
                (None, ItemStep::Start | ItemStep::Check) => Some(ItemOutcome::Failed),
                (Some(tool), ItemStep::Start) => self.delete(&scene, &claimed, item, tool).await?,
                (Some(tool), ItemStep::Check) => self.settle_item(&scene, &claimed, item, tool).await?,
            };
            if let Some(outcome) = outcome {
                self.end_item(&scene, &claimed, item, outcome).await?;
                failpoint::reached("item.recorded");
            }
        }
    }

    /// Stores the outcome of an item, and completes its row in the audit log.
    async fn end_item(
        &self,
        scene: &Scene,
        claimed: &ClaimedDeletion,
        item: &DeletionItem,
        outcome: ItemOutcome,
    ) -> anyhow::Result<()> {
        let (call, ord, now) = (claimed.call(), item.ord, self.now());
        let note = change_record::deletion(scene, call, ord, &item.item, Some(outcome));
        let end = move |conn: &mut _| {
            audit::record_outcome(conn, &note, now);
            deletion_items::end_item(conn, call, ord, outcome)
        };
        Ok(self.0.parts.db.write(end).await?)
    }

    async fn claimed(&self, user: UserId, live: Live) -> anyhow::Result<(Scene, ClaimedDeletion)> {
        let scene = self.scene(user, live).await?;
        let claimed = self.0.parts.db.read(move |conn| pending::claimed(conn, live.id)).await?;
        let claimed = claimed.ok_or_else(|| anyhow::anyhow!("find the deletion of turn {}", live.id))?;
        Ok((scene, claimed))
    }

    /// Runs the deletion of one item. `None` if its outcome has to be checked.
    async fn delete(
        &self,
        scene: &Scene,
        claimed: &ClaimedDeletion,
        item: &DeletionItem,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Option<ItemOutcome>> {
        let cleared = match approval::clear_item(claimed, item, &scene.user) {
            Ok(cleared) => cleared,
            Err(NotPermitted) => return Ok(Some(ItemOutcome::NotPermitted)),
        };
        let (call, ord, now) = (claimed.call(), item.ord, self.now());
        let intent = change_record::deletion(scene, call, ord, &item.item, None);
        let start = move |conn: &mut _| {
            let start = deletion_items::start_item(conn, call, ord, now)?;
            if start == Start::Started {
                audit::record_intent(conn, &intent, now)?;
            }
            Ok(start)
        };
        if self.0.parts.db.write(start).await? == Start::NotStartable {
            return Ok(None);
        }
        failpoint::reached("item.started");
        let world = self.world(scene, Tier::Destructive).await?;
        let run = tokio::time::timeout(tool.timeout(), tool.run(&cleared, &world));
        let ended = self.with_progress(scene, run).await;
        failpoint::reached("item.ran");
        let tried_before = item.attempts > 0;
        Ok(match ended {
            // If an earlier start had no response, that start has deleted the item.
            Ok(Ok(ran)) if status(&ran.result) == Some("already_gone") && !tried_before => {
                Some(ItemOutcome::AlreadyGone)
            }
            Ok(Ok(_)) => Some(ItemOutcome::Deleted),
            Ok(Err(ToolError::TellModel(failure))) if failure.code == "changed" => Some(ItemOutcome::Changed),
            Ok(Err(ToolError::TellModel(failure))) => {
                tracing::warn!(call = %call, code = failure.code, "a deletion failed");
                let is_there = failure.code == STILL_THERE;
                let outcome = if is_there { ItemOutcome::StillThere } else { ItemOutcome::Failed };
                // An earlier start may still have taken effect, so the item is checked once more.
                Some(outcome).filter(|_| !tried_before)
            }
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(call = %call, error = format!("{error:#}"), "a deletion failed");
                Some(ItemOutcome::Failed).filter(|_| !tried_before)
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) => None,
        })
    }

    /// Checks a started item with an unknown outcome, and only if it is certainly still there, lets it start again.
    async fn settle_item(
        &self,
        scene: &Scene,
        claimed: &ClaimedDeletion,
        item: &DeletionItem,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Option<ItemOutcome>> {
        match self.with_progress(scene, self.check_item(scene, item, tool)).await? {
            Settled::Done(_) => return Ok(Some(ItemOutcome::Deleted)),
            Settled::Unknown => return Ok(Some(ItemOutcome::Unknown)),
            Settled::NotDone => {}
        }
        let is_last = i64::from(item.attempts) >= MAX_STARTS;
        if is_last || starts_nothing(&scene.turn, &self.0.parts.settings.limits) {
            return Ok(Some(ItemOutcome::StillThere));
        }
        let (call, ord) = (claimed.call(), item.ord);
        self.0.parts.db.write(move |conn| deletion_items::take_back_item(conn, call, ord)).await?;
        Ok(None)
    }

    async fn check_item(
        &self,
        scene: &Scene,
        item: &DeletionItem,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Settled> {
        self.let_request_arrive(item.started_at).await;
        let world = self.world(scene, Tier::Destructive).await?;
        let check = tool.settle(Interrupted::Item(&item.item), &world);
        Ok(match tokio::time::timeout(tool.timeout(), check).await {
            Ok(Ok(settled)) => settled,
            Ok(Err(_)) | Err(_) => Settled::Unknown,
        })
    }

    /// Tells what happened to each item; what had changed is asked about afresh.
    async fn report(&self, scene: &Scene, claimed: ClaimedDeletion) -> anyhow::Result<()> {
        let outcomes: Vec<(FrozenItem, ItemOutcome)> = claimed
            .items()
            .iter()
            .filter_map(|item| match item.state {
                DeletionItemState::Ended(outcome) => Some((item.item.clone(), outcome)),
                DeletionItemState::Held | DeletionItemState::Running | DeletionItemState::Canceled => None,
            })
            .collect();
        let call = claimed.call();
        let wish = self.0.parts.db.read(move |conn| approvals::carried_out_by(conn, call)).await?;
        let report = deletion::report(&outcomes);
        let report = scene.closing().map_or(report.clone(), |closing| ending::behind(closing, &report));
        let changed: Vec<FrozenItem> = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == ItemOutcome::Changed)
            .map(|(item, _)| item.clone())
            .collect();
        // A removal request of a member has to be made again by that member.
        let fresh = match wish {
            None if !starts_nothing(&scene.turn, &self.0.parts.settings.limits) => {
                self.previewed(scene, &claimed, &changed).await?
            }
            Some(_) | None => Vec::new(),
        };
        let again = (!fresh.is_empty()).then(|| self.question(scene, fresh, &report));
        let (now, turn) = (self.now(), scene.live.id);
        let told = wish.zip(outcomes.first().map(|(item, outcome)| deletion::wish_outcome(item, *outcome)));
        let number = self.0.parts.settings.number.clone();
        let told_whole = scene.way_back().end(turn, Outcome::Replied, &report);
        let end = move |conn: &mut _| {
            pending::end_claimed(conn, &claimed, &report, now)?;
            if let Some((wish, words)) = &told {
                let member = users::get(conn, wish.user)?;
                let way = WayBack::to_user(conn, &member, number.as_ref())?;
                outbox::queue_once(conn, &way.notice(&wishes::done_key(wish.id), words), now)?;
            }
            // If the turn was canceled after it was loaded, the deleted items are reported and no further prompt is
            // sent.
            if let Some(question) = &again
                && !turns::cancel_requested(conn, turn)?
            {
                let call = steps::add_call(conn, turn, claimed.tool(), now)?;
                return pending::hold(conn, call, question, now).map(drop);
            }
            turns::finish(conn, &told_whole, now)
        };
        self.0.parts.db.write(end).await?;
        failpoint::reached("deletion.reported");
        self.tell_of_end();
        Ok(())
    }

    /// Current state of the changed items; empty if they cannot be fetched.
    async fn previewed(
        &self,
        scene: &Scene,
        claimed: &ClaimedDeletion,
        changed: &[FrozenItem],
    ) -> anyhow::Result<Vec<FrozenItem>> {
        let Some(tool) = self.0.parts.tools.get(claimed.tool()).filter(|_| !changed.is_empty()) else {
            return Ok(Vec::new());
        };
        let world = self.world(scene, Tier::Destructive).await?;
        Ok(match tokio::time::timeout(tool.timeout(), tool.refresh(changed, &world)).await {
            Ok(Ok(items)) => items,
            Ok(Err(error)) => {
                tracing::warn!(error = telemetry::chain(&error), "a changed item could not be fetched again");
                Vec::new()
            }
            Err(_) => Vec::new(),
        })
    }
}
