//! Execution of a confirmed deletion, item by item. The deletion is reported when every item has an outcome.

use std::sync::Arc;

use super::change_record::{self, result_status};
use super::confirmation_prompt::build_confirmation_prompt;
use super::log::deletion_records::DeletionEnd;
use super::log::turn_log::TurnLog;
use super::tool_runner::ToolRunner;
use super::turn_context::TurnContext;
use super::viewing_check::ViewingCheck;
use super::write_recovery::MAX_STARTS;
use crate::conversation::deletion::claimed_deletion::{ClaimedDeletion, DeletionItem, DeletionItemState};
use crate::conversation::deletion::deletion_messages::{self, ItemOutcome};
use crate::conversation::deletion::target::{DeletionTarget, ViewingKnowledge};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{EffectLevel, FailureCode};
use crate::conversation::turn::{Turn, TurnLimits};
use crate::engine::reply_address;
use crate::failpoint;
use crate::store::confirmation::deletion_items::ItemStartOutcome;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::telemetry;
use crate::tools::approval::{self, NotPermitted};
use crate::tools::{InterruptedRun, RecoveryOutcome, Tool, ToolError};

/// Next step of an item without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeletionStep {
    Start,
    /// Check the library for the title, because the item was started.
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

/// Runner of confirmed deletions.
pub(super) struct DeletionRunner {
    tools: Arc<ToolRunner>,
    limits: TurnLimits,
}

impl DeletionRunner {
    pub(super) fn new(tools: Arc<ToolRunner>, limits: TurnLimits) -> Self {
        Self { tools, limits }
    }

    pub(super) async fn run_confirmed_deletion(&self, log: &TurnLog) -> anyhow::Result<()> {
        // Not stored, so a report after a restart names nobody.
        let mut viewers = Vec::new();
        loop {
            let context = log.load_context().await?;
            let claimed = log.load_claimed_deletion().await?;
            let open_item = claimed
                .items()
                .iter()
                .find(|item| matches!(item.state, DeletionItemState::Held | DeletionItemState::Running));
            let Some(item) = open_item else {
                return self.report_deletion(log, &context, claimed, &viewers).await;
            };
            let step = match next_item_step(item, &context.turn, &self.limits) {
                DeletionStep::Check if self.was_moved(log, item).await? => {
                    DeletionStep::End(ItemOutcome::Unknown)
                }
                step => step,
            };
            let outcome = match (self.tools.registry().get(claimed.tool()), step) {
                (_, DeletionStep::End(outcome)) => Some(outcome),
                (None, DeletionStep::Start | DeletionStep::Check) => Some(ItemOutcome::Failed),
                (Some(tool), DeletionStep::Start) => {
                    self.delete_item(log, &context, (&claimed, item), (tool, &mut viewers)).await?
                }
                (Some(tool), DeletionStep::Check) => {
                    self.recover_item(log, &context, (&claimed, item), tool).await?
                }
            };
            if let Some(outcome) = outcome {
                let call = claimed.call();
                let entry = change_record::deletion_entry(&context, &claimed, item, Some(outcome));
                log.finish_item((call, item), outcome, entry).await?;
                failpoint::reached("item.recorded");
            }
        }
    }

    /// Returns whether the item's instance was moved to another server, on which nothing is looked up: the id may be
    /// another title's there.
    async fn was_moved(&self, log: &TurnLog, item: &DeletionItem) -> anyhow::Result<bool> {
        Ok(log.load_moved_slots().await?.includes(&item.target.instance, log.turn()))
    }

    /// Runs the deletion of one item. Returns `None` if the outcome has to be checked.
    async fn delete_item(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        (claimed, item): (&ClaimedDeletion, &DeletionItem),
        (tool, viewers): (&Arc<dyn Tool>, &mut Vec<String>),
    ) -> anyhow::Result<Option<ItemOutcome>> {
        let approved = match approval::approve_item(claimed, item, &context.user) {
            Ok(approved) => approved,
            Err(NotPermitted) => return Ok(Some(ItemOutcome::NotPermitted)),
        };
        if let Some(kept) = self.check_viewing(item, (viewers, context.audience())).await {
            return Ok(Some(kept));
        }
        let call = claimed.call();
        let intent = change_record::deletion_entry(context, claimed, item, None);
        match log.start_item((claimed, item), intent).await? {
            ItemStartOutcome::Started => {}
            ItemStartOutcome::NotStartable => return Ok(None),
            // An earlier start may have deleted the title from the earlier server.
            ItemStartOutcome::ServerMoved if item.attempts > 0 => return Ok(Some(ItemOutcome::Unknown)),
            ItemStartOutcome::ServerMoved => return Ok(Some(ItemOutcome::Stopped)),
            ItemStartOutcome::Protected => return Ok(Some(ItemOutcome::Protected)),
        }
        failpoint::reached("item.started");
        let tool_context = self.tools.load_context(context, EffectLevel::Destructive).await?;
        let run = tokio::time::timeout(tool.timeout(), tool.run(&approved, &tool_context));
        let result = self.tools.run_with_progress(context, run).await;
        failpoint::reached("item.ran");
        let was_started_before = item.attempts > 0;
        Ok(match result {
            // If the item was started before, that start without a response may have deleted the title.
            Ok(Ok(output))
                if result_status(&output.result) == Some("already_gone") && !was_started_before =>
            {
                Some(ItemOutcome::AlreadyGone)
            }
            Ok(Ok(_)) => Some(ItemOutcome::Deleted),
            Ok(Err(ToolError::CallFailed(failure))) if failure.code == FailureCode::Changed => {
                Some(ItemOutcome::Changed)
            }
            Ok(Err(ToolError::CallFailed(failure))) => {
                tracing::warn!(call = %call, code = %failure.code, "deletion failed");
                let is_still_there = failure.code == FailureCode::StillThere;
                let outcome = if is_still_there { ItemOutcome::StillThere } else { ItemOutcome::Failed };
                // An earlier start may still take effect, so the item is checked once more.
                Some(outcome).filter(|_| !was_started_before)
            }
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(call = %call, error = format!("{error:#}"), "deletion failed");
                Some(ItemOutcome::Failed).filter(|_| !was_started_before)
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) => None,
        })
    }

    /// Returns the outcome of an item that is kept because somebody is or may be watching it. A yes to a prompt that said
    /// that nobody can tell counts. Adds the names of those who are watching to `viewers`.
    async fn check_viewing(
        &self,
        item: &DeletionItem,
        (viewers, audience): (&mut Vec<String>, Audience),
    ) -> Option<ItemOutcome> {
        match (self.tools.check_viewing(&item.target, audience).await, item.target.fingerprint.viewing) {
            (ViewingCheck::Unwatched, _) | (ViewingCheck::Unknown, ViewingKnowledge::Unknown) => None,
            (ViewingCheck::Watched(names), _) => {
                viewers.extend(names.into_iter().filter(|name| !viewers.contains(name)).collect::<Vec<_>>());
                Some(ItemOutcome::BeingWatched)
            }
            (ViewingCheck::Unknown, ViewingKnowledge::Known) => Some(ItemOutcome::ViewingUnknown),
        }
    }

    /// Checks a started item with an unknown outcome. The item may start again only if the title is certainly still in
    /// the library.
    async fn recover_item(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        (claimed, item): (&ClaimedDeletion, &DeletionItem),
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Option<ItemOutcome>> {
        let (run, scope) = (InterruptedRun::Item(&item.target), (EffectLevel::Destructive, item.started_at));
        let check = self.tools.check_outcome(context, tool, run, scope);
        match self.tools.run_with_progress(context, check).await? {
            RecoveryOutcome::Done(_) => return Ok(Some(ItemOutcome::Deleted)),
            RecoveryOutcome::Unknown => return Ok(Some(ItemOutcome::Unknown)),
            RecoveryOutcome::NotDone => {}
        }
        let has_used_all_starts = i64::from(item.attempts) >= MAX_STARTS;
        if has_used_all_starts || is_stopped(&context.turn, &self.limits) {
            return Ok(Some(ItemOutcome::StillThere));
        }
        log.reset_item(claimed.call(), item.ord).await?;
        Ok(None)
    }

    /// Reports the outcome of each item. Items that had changed since the prompt, or of which it became unknown whether
    /// somebody is watching them, get a new confirmation prompt.
    async fn report_deletion(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        claimed: ClaimedDeletion,
        viewers: &[String],
    ) -> anyhow::Result<()> {
        let outcomes: Vec<(DeletionTarget, ItemOutcome)> = claimed
            .items()
            .iter()
            .filter_map(|item| match item.state {
                DeletionItemState::Ended(outcome) => Some((item.target.clone(), outcome)),
                DeletionItemState::Held | DeletionItemState::Running | DeletionItemState::Canceled => None,
            })
            .collect();
        let removal_request = log.load_executed_approval(claimed.call()).await?;
        let report = deletion_messages::format_report_naming(&outcomes, viewers);
        let report = context
            .closing_sentence()
            .map_or(report.clone(), |closing| reply_address::prepend_sentence(closing, &report));
        let changed: Vec<DeletionTarget> = outcomes
            .iter()
            .filter(|(_, outcome)| matches!(outcome, ItemOutcome::Changed | ItemOutcome::ViewingUnknown))
            .map(|(item, _)| item.clone())
            .collect();
        // The member would have to repeat the removal request.
        let refreshed = match removal_request {
            None if !is_stopped(&context.turn, &self.limits) => {
                self.refresh_changed_items(context, &claimed, &changed).await?
            }
            Some(_) | None => Vec::new(),
        };
        let settings = self.tools.newest_settings();
        let new_prompt = (!refreshed.is_empty())
            .then(|| build_confirmation_prompt(context, refreshed, (&report, claimed.agent()), &settings))
            .flatten();
        // A deletion that the operator requested is reported to the admin on whose behalf it runs, and to nobody else.
        let requested_by_other = removal_request.filter(|request| request.user != context.user.id);
        let notification = requested_by_other.zip(
            outcomes.first().map(|(item, outcome)| deletion_messages::format_removal_outcome(item, *outcome)),
        );
        let end = context.reply_address().turn_end(context.active_turn.id, MessageOutcome::Replied, &report);
        // An agent reads it, and is not told who is watching.
        let report = match claimed.agent() {
            Some(_) => deletion_messages::format_report_naming(&outcomes, &[]),
            None => report,
        };
        Ok(log.finish_deletion(DeletionEnd { claimed, report, notification, new_prompt, end }).await?)
    }

    /// Fetches the current state of the changed items; empty if a fetch fails.
    async fn refresh_changed_items(
        &self,
        context: &TurnContext,
        claimed: &ClaimedDeletion,
        changed: &[DeletionTarget],
    ) -> anyhow::Result<Vec<DeletionTarget>> {
        let Some(tool) = self.tools.registry().get(claimed.tool()).filter(|_| !changed.is_empty()) else {
            return Ok(Vec::new());
        };
        let tool_context = self.tools.load_context(context, EffectLevel::Destructive).await?;
        Ok(match tokio::time::timeout(tool.timeout(), tool.refresh_items(changed, &tool_context)).await {
            Ok(Ok(items)) => self.tools.check_items(items, context.audience()).await.deletable,
            Ok(Err(error)) => {
                tracing::warn!(error = telemetry::error_chain(&error), "failed to refresh changed items");
                Vec::new()
            }
            Err(_) => Vec::new(),
        })
    }
}
