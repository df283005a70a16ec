//! A confirmed deletion, item by item: each is re-checked, started once, and its outcome known before the report.

use std::sync::Arc;

use super::Engine;
use super::calling::{MAX_STARTS, status};
use super::change_record;
use super::ending::{self, WayBack};
use super::run::Scene;
use crate::conversation::deletion::{self, ItemOutcome};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::transcript::{Tier, UserId};
use crate::failpoint;
use crate::store::ledger::Outcome;
use crate::store::pending::{self, Claimed, Item, ItemState, Start};
use crate::store::steps;
use crate::store::turns::{self, Live};
use crate::store::{approvals, audit, outbox, users};
use crate::telemetry;
use crate::tools::approval::{self, NotPermitted};
use crate::tools::{Interrupted, Settled, Tool, ToolError};

impl Engine {
    pub(super) async fn run_confirmed(&self, user: UserId, live: Live) -> anyhow::Result<()> {
        loop {
            let (scene, claimed) = self.claimed(user, live).await?;
            let tired = scene.turn.resumes > self.0.parts.settings.limits.resumes;
            let open = claimed
                .items()
                .iter()
                .find(|item| matches!(item.state, ItemState::Held | ItemState::Running));
            let Some(item) = open else { return self.report(&scene, claimed, tired).await };
            if tired {
                // It keeps failing under us: what was not started is not started again, what was started is not guessed.
                let outcome = match item.state {
                    ItemState::Running => ItemOutcome::Unknown,
                    ItemState::Held | ItemState::Ended(_) | ItemState::Canceled => ItemOutcome::Failed,
                };
                self.end_item(&scene, &claimed, item, outcome).await?;
                continue;
            }
            if scene.turn.cancel_requested && item.state == ItemState::Held {
                // An earlier try whose answer was lost may still take effect.
                let outcome = if item.attempts == 0 { ItemOutcome::Stopped } else { ItemOutcome::Unknown };
                self.end_item(&scene, &claimed, item, outcome).await?;
                continue;
            }
            let outcome = match self.0.parts.tools.get(claimed.tool()) {
                None => Some(ItemOutcome::Failed),
                Some(tool) => match item.state {
                    ItemState::Running => self.settle_item(&scene, &claimed, item, tool).await?,
                    ItemState::Held | ItemState::Ended(_) | ItemState::Canceled => {
                        self.delete(&scene, &claimed, item, tool).await?
                    }
                },
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
        claimed: &Claimed,
        item: &Item,
        outcome: ItemOutcome,
    ) -> anyhow::Result<()> {
        let (call, ord, now) = (claimed.call(), item.ord, self.now());
        let note = change_record::deletion(scene, call, ord, &item.item, Some(outcome));
        let end = move |conn: &mut _| {
            audit::record_outcome(conn, &note, now);
            pending::end_item(conn, call, ord, outcome)
        };
        Ok(self.0.parts.db.write(end).await?)
    }

    async fn claimed(&self, user: UserId, live: Live) -> anyhow::Result<(Scene, Claimed)> {
        let scene = self.scene(user, live).await?;
        let claimed = self.0.parts.db.read(move |conn| pending::claimed(conn, live.id)).await?;
        let claimed = claimed.ok_or_else(|| anyhow::anyhow!("find the deletion of turn {}", live.id))?;
        Ok((scene, claimed))
    }

    /// Runs one item. `None`: its outcome has to be looked into.
    async fn delete(
        &self,
        scene: &Scene,
        claimed: &Claimed,
        item: &Item,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Option<ItemOutcome>> {
        let cleared = match approval::clear_item(claimed, item, &scene.user) {
            Ok(cleared) => cleared,
            Err(NotPermitted) => return Ok(Some(ItemOutcome::NotPermitted)),
        };
        let (call, ord, now) = (claimed.call(), item.ord, self.now());
        let intent = change_record::deletion(scene, call, ord, &item.item, None);
        let start = move |conn: &mut _| {
            let start = pending::start_item(conn, call, ord, now)?;
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
        let ended = tokio::time::timeout(tool.timeout(), tool.run(&cleared, &world)).await;
        failpoint::reached("item.ran");
        Ok(match ended {
            Ok(Ok(ran)) if status(&ran.result) == Some("already_gone") => Some(ItemOutcome::AlreadyGone),
            Ok(Ok(_)) => Some(ItemOutcome::Deleted),
            Ok(Err(ToolError::TellModel(failure))) if failure.code == "changed" => Some(ItemOutcome::Changed),
            Ok(Err(ToolError::TellModel(failure))) => {
                tracing::warn!(call = %call, code = failure.code, "a deletion failed");
                // An earlier try whose answer was lost may still take effect.
                Some(if item.attempts == 0 { ItemOutcome::Failed } else { ItemOutcome::Unknown })
            }
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(call = %call, error = format!("{error:#}"), "a deletion failed");
                Some(ItemOutcome::Failed)
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) => None,
        })
    }

    /// The item was started and nothing is known: look, and only if it is surely still there, try again.
    async fn settle_item(
        &self,
        scene: &Scene,
        claimed: &Claimed,
        item: &Item,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Option<ItemOutcome>> {
        self.0.parts.clock.sleep(self.0.parts.settings.pace.grace).await;
        let world = self.world(scene, Tier::Destructive).await?;
        let looked =
            tokio::time::timeout(tool.timeout(), tool.settle(Interrupted::Item(&item.item), &world)).await;
        Ok(match looked {
            Ok(Ok(Settled::Done(_))) => Some(ItemOutcome::Deleted),
            Ok(Ok(Settled::NotDone)) if i64::from(item.attempts) < MAX_STARTS => {
                let (call, ord) = (claimed.call(), item.ord);
                self.0.parts.db.write(move |conn| pending::take_back_item(conn, call, ord)).await?;
                None
            }
            Ok(Ok(Settled::NotDone | Settled::Unknown) | Err(_)) | Err(_) => Some(ItemOutcome::Unknown),
        })
    }

    /// Tells what happened to each item; what had changed is asked about afresh.
    async fn report(&self, scene: &Scene, claimed: Claimed, tired: bool) -> anyhow::Result<()> {
        let outcomes: Vec<(FrozenItem, ItemOutcome)> = claimed
            .items()
            .iter()
            .filter_map(|item| match item.state {
                ItemState::Ended(outcome) => Some((item.item.clone(), outcome)),
                ItemState::Held | ItemState::Running | ItemState::Canceled => None,
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
        // What a member wished for is theirs to ask for again.
        let fresh = match wish {
            None if !tired && !scene.turn.cancel_requested => {
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
                let key = format!("approval:{}:done", wish.id);
                let way = WayBack::to_user(conn, &member, number.as_ref())?;
                outbox::queue_once(conn, &way.notice(&key, words), now)?;
            }
            // Taken back since it was looked at: what is deleted is told, and nothing more is asked.
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

    /// The changed items as they are at this moment; none where they cannot be fetched.
    async fn previewed(
        &self,
        scene: &Scene,
        claimed: &Claimed,
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
