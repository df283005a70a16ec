//! Execution of a confirmed deletion, item by item. Each item is checked again and started once, and its outcome is
//! known before the report.

use std::sync::Arc;

use super::Engine;
use super::change_record;
use super::removal_requests;
use super::tool_calls::{MAX_STARTS, deletion_status};
use super::turn_end::{self, ReplyAddress};
use super::turn_loop::TurnContext;
use crate::conversation::deletion::claimed_deletion::{ClaimedDeletion, DeletionItem, DeletionItemState};
use crate::conversation::deletion::deletion_messages::{self, ItemOutcome};
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::transcript::{EffectLevel, FailureCode, UserId};
use crate::conversation::turn::{Turn, TurnLimits};
use crate::failpoint;
use crate::store::audit;
use crate::store::confirmation::approvals;
use crate::store::confirmation::deletion_items::{self, ItemStartOutcome};
use crate::store::confirmation::pending_action;
use crate::store::people::users;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::queue::outbox;
use crate::store::turns::model_steps;
use crate::store::turns::turn_lifecycle::{self, ActiveTurn};
use crate::telemetry;
use crate::tools::approval::{self, NotPermitted};
use crate::tools::{InterruptedRun, RecoveryOutcome, Tool, ToolError};

/// Next step of an item that has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeletionStep {
    Start,
    /// The item was started, so the library is checked for the title.
    Check,
    End(ItemOutcome),
}

/// Returns the next step of an item. A started item is checked, regardless of the number of program starts since.
fn next_item_step(item: &DeletionItem, turn: &Turn, limits: &TurnLimits) -> DeletionStep {
    let was_started = item.state == DeletionItemState::Running || item.attempts > 0;
    if was_started && turn.has_failed_checks(limits) {
        DeletionStep::End(ItemOutcome::Unknown)
    } else if item.state == DeletionItemState::Running || (was_started && is_stopped(turn, limits)) {
        DeletionStep::Check
    } else if is_stopped(turn, limits) {
        DeletionStep::End(ItemOutcome::Stopped)
    } else {
        DeletionStep::Start
    }
}

/// Returns whether the turn was canceled or had too many internal failures. Nothing more is started then.
fn is_stopped(turn: &Turn, limits: &TurnLimits) -> bool {
    turn.cancel_requested || turn.is_given_up(limits)
}

impl Engine {
    pub(super) async fn run_confirmed_deletion(&self, user: UserId, live: ActiveTurn) -> anyhow::Result<()> {
        loop {
            let (scene, claimed) = self.load_claimed_deletion(user, live).await?;
            let open = claimed
                .items()
                .iter()
                .find(|item| matches!(item.state, DeletionItemState::Held | DeletionItemState::Running));
            let Some(item) = open else { return self.report_deletion(&scene, claimed).await };
            let limits = &self.0.parts.settings.limits;
            let outcome =
                match (self.0.parts.tools.get(claimed.tool()), next_item_step(item, &scene.turn, limits)) {
                    (_, DeletionStep::End(outcome)) => Some(outcome),
                    (None, DeletionStep::Start | DeletionStep::Check) => Some(ItemOutcome::Failed),
                    (Some(tool), DeletionStep::Start) => {
                        self.delete_item(&scene, &claimed, item, tool).await?
                    }
                    (Some(tool), DeletionStep::Check) => {
                        self.recover_item(&scene, &claimed, item, tool).await?
                    }
                };
            if let Some(outcome) = outcome {
                self.end_item(&scene, &claimed, item, outcome).await?;
                failpoint::reached("item.recorded");
            }
        }
    }

    /// Stores the outcome of an item and completes its row in the audit log.
    async fn end_item(
        &self,
        scene: &TurnContext,
        claimed: &ClaimedDeletion,
        item: &DeletionItem,
        outcome: ItemOutcome,
    ) -> anyhow::Result<()> {
        let (call, ord, now) = (claimed.call(), item.ord, self.now());
        let note = change_record::deletion_entry(scene, call, ord, &item.target, Some(outcome));
        let end = move |conn: &mut _| {
            audit::record_outcome(conn, &note, now);
            deletion_items::finish_item(conn, call, ord, outcome)
        };
        Ok(self.0.parts.db.write(end).await?)
    }

    async fn load_claimed_deletion(
        &self,
        user: UserId,
        live: ActiveTurn,
    ) -> anyhow::Result<(TurnContext, ClaimedDeletion)> {
        let scene = self.load_turn_context(user, live).await?;
        let claimed =
            self.0.parts.db.read(move |conn| pending_action::load_claimed_deletion(conn, live.id)).await?;
        let claimed = claimed.ok_or_else(|| anyhow::anyhow!("find the deletion of turn {}", live.id))?;
        Ok((scene, claimed))
    }

    /// Runs the deletion of one item. Returns `None` if the outcome has to be checked.
    async fn delete_item(
        &self,
        scene: &TurnContext,
        claimed: &ClaimedDeletion,
        item: &DeletionItem,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Option<ItemOutcome>> {
        let cleared = match approval::approve_item(claimed, item, &scene.user) {
            Ok(cleared) => cleared,
            Err(NotPermitted) => return Ok(Some(ItemOutcome::NotPermitted)),
        };
        let (call, ord, now) = (claimed.call(), item.ord, self.now());
        let intent = change_record::deletion_entry(scene, call, ord, &item.target, None);
        let start = move |conn: &mut _| {
            let start = deletion_items::start_item(conn, call, ord, now)?;
            if start == ItemStartOutcome::Started {
                audit::record_intent(conn, &intent, now)?;
            }
            Ok(start)
        };
        if self.0.parts.db.write(start).await? == ItemStartOutcome::NotStartable {
            return Ok(None);
        }
        failpoint::reached("item.started");
        let world = self.load_tool_context(scene, EffectLevel::Destructive).await?;
        let run = tokio::time::timeout(tool.timeout(), tool.run(&cleared, &world));
        let ended = self.run_with_progress(scene, run).await;
        failpoint::reached("item.ran");
        let tried_before = item.attempts > 0;
        Ok(match ended {
            // If the item was started before, the earlier start without a response has deleted the title.
            Ok(Ok(ran)) if deletion_status(&ran.result) == Some("already_gone") && !tried_before => {
                Some(ItemOutcome::AlreadyGone)
            }
            Ok(Ok(_)) => Some(ItemOutcome::Deleted),
            Ok(Err(ToolError::CallFailed(failure))) if failure.code == FailureCode::Changed => {
                Some(ItemOutcome::Changed)
            }
            Ok(Err(ToolError::CallFailed(failure))) => {
                tracing::warn!(call = %call, code = %failure.code, "deletion failed");
                let is_there = failure.code == FailureCode::StillThere;
                let outcome = if is_there { ItemOutcome::StillThere } else { ItemOutcome::Failed };
                // An earlier start may still have taken effect, so the item is checked once more.
                Some(outcome).filter(|_| !tried_before)
            }
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(call = %call, error = format!("{error:#}"), "deletion failed");
                Some(ItemOutcome::Failed).filter(|_| !tried_before)
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) => None,
        })
    }

    /// Checks a started item with an unknown outcome. The item may start again only if the title is certainly still in
    /// the library.
    async fn recover_item(
        &self,
        scene: &TurnContext,
        claimed: &ClaimedDeletion,
        item: &DeletionItem,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Option<ItemOutcome>> {
        match self.run_with_progress(scene, self.check_item(scene, item, tool)).await? {
            RecoveryOutcome::Done(_) => return Ok(Some(ItemOutcome::Deleted)),
            RecoveryOutcome::Unknown => return Ok(Some(ItemOutcome::Unknown)),
            RecoveryOutcome::NotDone => {}
        }
        let is_last = i64::from(item.attempts) >= MAX_STARTS;
        if is_last || is_stopped(&scene.turn, &self.0.parts.settings.limits) {
            return Ok(Some(ItemOutcome::StillThere));
        }
        let (call, ord) = (claimed.call(), item.ord);
        self.0.parts.db.write(move |conn| deletion_items::reset_item(conn, call, ord)).await?;
        Ok(None)
    }

    async fn check_item(
        &self,
        scene: &TurnContext,
        item: &DeletionItem,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<RecoveryOutcome> {
        self.wait_for_request_arrival(item.started_at).await;
        let world = self.load_tool_context(scene, EffectLevel::Destructive).await?;
        let check = tool.recover_outcome(InterruptedRun::Item(&item.target), &world);
        Ok(match tokio::time::timeout(tool.timeout(), check).await {
            Ok(Ok(settled)) => settled,
            Ok(Err(_)) | Err(_) => RecoveryOutcome::Unknown,
        })
    }

    /// Reports the outcome of each item. Items that had changed get a new confirmation prompt.
    async fn report_deletion(&self, scene: &TurnContext, claimed: ClaimedDeletion) -> anyhow::Result<()> {
        let outcomes: Vec<(DeletionTarget, ItemOutcome)> = claimed
            .items()
            .iter()
            .filter_map(|item| match item.state {
                DeletionItemState::Ended(outcome) => Some((item.target.clone(), outcome)),
                DeletionItemState::Held | DeletionItemState::Running | DeletionItemState::Canceled => None,
            })
            .collect();
        let call = claimed.call();
        let wish = self.0.parts.db.read(move |conn| approvals::load_executed_approval(conn, call)).await?;
        let report = deletion_messages::format_deletion_report(&outcomes);
        let report = scene
            .closing_sentence()
            .map_or(report.clone(), |closing| turn_end::prepend_sentence(closing, &report));
        let changed: Vec<DeletionTarget> = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == ItemOutcome::Changed)
            .map(|(item, _)| item.clone())
            .collect();
        // Only the member can repeat their removal request.
        let fresh = match wish {
            None if !is_stopped(&scene.turn, &self.0.parts.settings.limits) => {
                self.preview_changed_items(scene, &claimed, &changed).await?
            }
            Some(_) | None => Vec::new(),
        };
        let again = (!fresh.is_empty()).then(|| self.build_confirmation_prompt(scene, fresh, &report));
        let (now, turn) = (self.now(), scene.live.id);
        let told = wish.zip(
            outcomes.first().map(|(item, outcome)| deletion_messages::format_removal_outcome(item, *outcome)),
        );
        let number = self.0.parts.settings.number.clone();
        let told_whole = scene.reply_address().turn_end(turn, MessageOutcome::Replied, &report);
        let end = move |conn: &mut _| {
            pending_action::finish_claimed_deletion(conn, &claimed, &report, now)?;
            if let Some((wish, words)) = &told {
                let member = users::load_user(conn, wish.user)?;
                let way = ReplyAddress::load_for_user(conn, &member, number.as_ref())?;
                outbox::queue_message_once(
                    conn,
                    &way.notification_message(&removal_requests::done_key(wish.id), words),
                    now,
                )?;
            }
            // If the turn was canceled after it was loaded, the deleted items are reported and no further prompt is
            // sent.
            if let Some(question) = &again
                && !turn_lifecycle::is_cancel_requested(conn, turn)?
            {
                let call = model_steps::add_call(conn, turn, claimed.tool(), now)?;
                return pending_action::hold_deletion(conn, call, question, now).map(drop);
            }
            turn_lifecycle::finish_turn(conn, &told_whole, now)
        };
        self.0.parts.db.write(end).await?;
        failpoint::reached("deletion.reported");
        self.signal_turn_end();
        Ok(())
    }

    /// Fetches the current state of the changed items; empty if a fetch fails.
    async fn preview_changed_items(
        &self,
        scene: &TurnContext,
        claimed: &ClaimedDeletion,
        changed: &[DeletionTarget],
    ) -> anyhow::Result<Vec<DeletionTarget>> {
        let Some(tool) = self.0.parts.tools.get(claimed.tool()).filter(|_| !changed.is_empty()) else {
            return Ok(Vec::new());
        };
        let world = self.load_tool_context(scene, EffectLevel::Destructive).await?;
        Ok(match tokio::time::timeout(tool.timeout(), tool.refresh_items(changed, &world)).await {
            Ok(Ok(items)) => items,
            Ok(Err(error)) => {
                tracing::warn!(
                    error = telemetry::error_chain(&error),
                    "failed to fetch a changed item again"
                );
                Vec::new()
            }
            Err(_) => Vec::new(),
        })
    }
}
