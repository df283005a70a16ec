//! A confirmed deletion, item by item: each is re-checked, started once, and its outcome known before the report.

use std::sync::Arc;

use super::Engine;
use super::calling::{MAX_STARTS, status};
use super::run::Scene;
use crate::conversation::deletion::{self, ItemOutcome};
use crate::conversation::transcript::{CallRow, FrozenItem, UserId};
use crate::failpoint;
use crate::store::calls::{self, Note};
use crate::store::ledger::{self, Outcome};
use crate::store::pending::{self, Claimed, Item, ItemState, Start};
use crate::store::turns::{self, End, Live};
use crate::store::{steps, users};
use crate::tools::approval::{self, Cleared, NotPermitted};
use crate::tools::{Settled, Tool, ToolError};

impl Engine {
    pub(super) async fn run_confirmed(&self, user: UserId, live: Live) -> anyhow::Result<()> {
        loop {
            let (scene, claimed) = self.claimed(user, live).await?;
            let open = claimed
                .items()
                .iter()
                .find(|item| matches!(item.state, ItemState::Held | ItemState::Running));
            let Some(item) = open else { return self.report(&scene, claimed).await };
            if scene.turn.resumes > self.0.parts.settings.limits.resumes {
                // It keeps failing under us: what was not started is not started again, what was started is not guessed.
                let outcome = match item.state {
                    ItemState::Running => ItemOutcome::Unknown,
                    ItemState::Held | ItemState::Ended(_) | ItemState::Canceled => ItemOutcome::Failed,
                };
                let (call, ord) = (claimed.call(), item.ord);
                self.0.parts.db.write(move |conn| pending::end_item(conn, call, ord, outcome)).await?;
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
                let (call, ord) = (claimed.call(), item.ord);
                self.0.parts.db.write(move |conn| pending::end_item(conn, call, ord, outcome)).await?;
                failpoint::reached("item.recorded");
            }
        }
    }

    async fn claimed(&self, user: UserId, live: Live) -> anyhow::Result<(Scene, Claimed)> {
        let loaded = self
            .0
            .parts
            .db
            .read(move |conn| {
                let turns::Loaded { turn, plan } = turns::load(conn, live.id)?;
                let user = users::get(conn, user)?;
                let events = ledger::of_turn(conn, live.id)?;
                let claimed = pending::claimed(conn, live.id)?;
                Ok((Scene { live, turn, plan, user, events }, claimed))
            })
            .await?;
        let (scene, claimed) = loaded;
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
        if self.0.parts.db.write(move |conn| pending::start_item(conn, call, ord, now)).await?
            == Start::NotStartable
        {
            return Ok(None);
        }
        failpoint::reached("item.started");
        let world = self.world(scene);
        let ended = tokio::time::timeout(tool.timeout(), tool.run(&cleared, &world)).await;
        failpoint::reached("item.ran");
        Ok(match ended {
            Ok(Ok(result)) if status(&result) == Some("already_gone") => Some(ItemOutcome::AlreadyGone),
            Ok(Ok(_)) => Some(ItemOutcome::Deleted),
            Ok(Err(ToolError::TellModel(failure))) if failure.code == "changed" => Some(ItemOutcome::Changed),
            Ok(Err(ToolError::TellModel(failure))) => {
                tracing::warn!(call = %call, code = failure.code, "a deletion failed");
                Some(ItemOutcome::Failed)
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
        let cleared: Cleared = match approval::clear_item(claimed, item, &scene.user) {
            Ok(cleared) => cleared,
            Err(NotPermitted) => return Ok(Some(ItemOutcome::Unknown)),
        };
        let world = self.world(scene);
        Ok(match tokio::time::timeout(tool.timeout(), tool.settle(&cleared, &world)).await {
            Ok(Ok(Settled::Done(_))) => Some(ItemOutcome::Deleted),
            Ok(Ok(Settled::NotDone)) if i64::from(item.attempts) < MAX_STARTS => {
                let (call, ord) = (claimed.call(), item.ord);
                self.0.parts.db.write(move |conn| pending::take_back_item(conn, call, ord)).await?;
                None
            }
            Ok(Ok(Settled::NotDone)) => Some(ItemOutcome::Failed),
            Ok(Ok(Settled::Unknown) | Err(_)) | Err(_) => Some(ItemOutcome::Unknown),
        })
    }

    /// Tells what happened to each item; what had changed is asked about afresh.
    async fn report(&self, scene: &Scene, claimed: Claimed) -> anyhow::Result<()> {
        let outcomes: Vec<(FrozenItem, ItemOutcome)> = claimed
            .items()
            .iter()
            .filter_map(|item| match item.state {
                ItemState::Ended(outcome) => Some((item.item.clone(), outcome)),
                ItemState::Held | ItemState::Running | ItemState::Canceled => None,
            })
            .collect();
        let report = deletion::report(&outcomes);
        let changed: Vec<FrozenItem> = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == ItemOutcome::Changed)
            .map(|(item, _)| item.clone())
            .collect();
        let fresh = self.previewed(scene, &claimed, &changed).await;
        let (now, user, said, turn) = (self.now(), scene.user.id, report.clone(), scene.live.id);
        let call = claimed.call();
        let back = scene.way_back();
        let (whole, page) = back.page(&report);
        let text = back.reply(page.text);
        let asks = !fresh.is_empty();
        let tool = claimed.tool().to_owned();
        let again: Option<CallRow> = self
            .0
            .parts
            .db
            .write(move |conn| {
                pending::end_claimed(conn, &claimed, &said, now)?;
                let detail = serde_json::json!({ "told": said });
                calls::note(conn, &Note { user, kind: "delete", call, detail }, now)?;
                if asks {
                    return steps::add_call(conn, turn, &tool, now).map(Some);
                }
                let end = End { turn, outcome: Outcome::Replied, answer: Some(&whole), texts: vec![text] };
                turns::finish(conn, &end, now).map(|()| None)
            })
            .await?;
        if let Some(again) = again {
            self.hold(scene, again, &fresh, &report).await?;
        }
        self.0.parts.outbox.ring();
        Ok(())
    }

    /// The changed items as they are at this moment; none where they cannot be fetched.
    async fn previewed(&self, scene: &Scene, claimed: &Claimed, changed: &[FrozenItem]) -> Vec<FrozenItem> {
        let Some(tool) = self.0.parts.tools.get(claimed.tool()).filter(|_| !changed.is_empty()) else {
            return Vec::new();
        };
        let world = self.world(scene);
        match tokio::time::timeout(tool.timeout(), tool.refresh(changed, &world)).await {
            Ok(Ok(items)) => items,
            Ok(Err(error)) => {
                tracing::warn!(%error, "a changed item could not be fetched again");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }
}
