//! Tool calls of a turn: each call is checked, and runs or waits for a confirmation. Changes run only after their intent
//! is recorded.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::call_failures::{being_watched, internal_failure, timeout_failure, unknown_tool_failure};
use super::change_record::{self, OutcomeSource, audit_entry};
use super::confirmation_prompt::build_confirmation_prompt;
use super::log::turn_log::{TurnLog, TurnProgress};
use super::tool_context::RecordScope;
use super::tool_runner::ToolRunner;
use super::turn_context::TurnContext;
use super::viewing_check::CheckedItems;
use crate::conversation::deletion::deletion_messages::format_not_asked;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::transcript::{
    CallFailure, CallRow, CallState, EffectLevel, MediaRef, Responder, ToolCall,
};
use crate::conversation::turn::prompt_preamble::format_prompt_preamble;
use crate::engine::reply_address::prepend_sentence;
use crate::failpoint;
use crate::tools::approval::{self, ApprovedCall, CallDecision, DeletionSource};
use crate::tools::{CallReferences, Tool, ToolContext, ToolError, ToolOutput};

/// Runner of the tool calls that the model requests.
pub(super) struct ToolCallRunner {
    tools: Arc<ToolRunner>,
}

impl ToolCallRunner {
    pub(super) fn new(tools: Arc<ToolRunner>) -> Self {
        Self { tools }
    }

    /// Starts the calls: several reads together, or one write or deletion.
    pub(super) async fn start_calls(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        rows: &[CallRow],
    ) -> anyhow::Result<TurnProgress> {
        let shown_media = match self.refers_to_media(context, rows) {
            true => log.load_shown_media().await?,
            false => Vec::new(),
        };
        let calls = try_join_all(rows.iter().map(|row| self.start_call(log, context, *row, &shown_media)));
        let has_write = rows
            .iter()
            .filter_map(|row| context.find_call(*row))
            .any(|call| call.effect_level == EffectLevel::Write);
        let progress = if has_write {
            // A write may change something, so a cancellation does not interrupt it.
            calls.await?
        } else {
            tokio::select! {
                progress = calls => progress?,
                () = log.wait_for_cancellation() => return log.cancel_calls(rows).await,
            }
        };
        Ok(match <[TurnProgress; 1]>::try_from(progress) {
            Ok([single]) => single,
            Err(all) if all.iter().any(|progress| matches!(progress, TurnProgress::Ended)) => {
                TurnProgress::Ended
            }
            // No single call has loaded the outcomes of all concurrent calls, so the turn is loaded again.
            Err(_) => TurnProgress::Reload,
        })
    }

    /// Returns whether any of the calls refers to media, which an earlier result must have shown.
    fn refers_to_media(&self, context: &TurnContext, rows: &[CallRow]) -> bool {
        let calls = rows.iter().filter_map(|row| context.find_call(*row));
        let mut references = calls
            .filter_map(|call| self.tools.registry().get(&call.name)?.check_arguments(&call.arguments).ok());
        references.any(|references| !references.refs.is_empty())
    }

    async fn start_call(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        row: CallRow,
        shown_media: &[MediaRef],
    ) -> anyhow::Result<TurnProgress> {
        let Some(call) = context.find_call(row) else { return Ok(TurnProgress::Reload) };
        let Some(tool) = self.tools.registry().get(&call.name) else {
            let failure = self.unknown_tool_failure(context, call);
            return log.record_call_state(context, row, CallState::Failed(failure), None).await;
        };
        let references = match tool.check_arguments(&call.arguments) {
            Ok(references) => references,
            Err(failure) => {
                return log.record_call_state(context, row, CallState::Failed(failure), None).await;
            }
        };
        match approval::decide_call(
            tool.spec(),
            call,
            &references,
            (context.user.rights, context.audience()),
            shown_media,
        ) {
            CallDecision::Refuse(failure) => {
                let entry = audit_entry(context, "refused", row, failure.for_model.clone());
                log.record_call_state(context, row, CallState::Failed(failure), Some(entry)).await
            }
            CallDecision::Run(approved) => {
                let tool = tool.clone();
                self.run_call(log, context, call, (&tool, &approved)).await
            }
            CallDecision::Ask => self.request_confirmation(log, context, call, (tool, &references)).await,
        }
    }

    async fn run_call(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        call: &ToolCall,
        (tool, approved): (&Arc<dyn Tool>, &ApprovedCall),
    ) -> anyhow::Result<TurnProgress> {
        let row = call.row;
        let intent = (call.effect_level != EffectLevel::Read)
            .then(|| audit_entry(context, "write", row, change_record::intent_detail(call)));
        let reads_viewing = tool.reads_viewing(&call.arguments);
        let reads_own_titles = tool.reads_own_titles();
        let (reads_space_records, gathers_people) = (tool.reads_space_records(), tool.gathers_people());
        let scope = RecordScope {
            reads_viewing,
            reads_own_titles,
            reads_space_records,
            gathers_people,
            ..RecordScope::from(call.effect_level)
        };
        let records = self.tools.records_query(context, scope);
        let Some(records) = log.start_call(row, intent, records).await? else {
            return Ok(TurnProgress::Reload);
        };
        failpoint::reached("call.started");
        let started_at = log.now();
        let tool_context = self.tools.build_context(context, records);
        let run = tokio::time::timeout(tool.timeout(), tool.run(approved, &tool_context));
        let result = match call.effect_level {
            EffectLevel::Read => run.await,
            EffectLevel::Write | EffectLevel::Destructive => self.tools.run_with_progress(context, run).await,
        };
        failpoint::reached("call.ran");
        let state = match result {
            Ok(Ok(ToolOutput { result, effects }))
                if call.effect_level == EffectLevel::Read && effects.is_empty() =>
            {
                CallState::Done(result)
            }
            Ok(Ok(output)) => {
                let entry = (call.effect_level == EffectLevel::Write).then(|| {
                    change_record::outcome_entry(
                        context,
                        row,
                        OutcomeSource::Response,
                        &call.name,
                        &output.result,
                    )
                });
                return log.record_success(context, row, output, entry).await;
            }
            Ok(Err(ToolError::CallFailed(failure))) => CallState::Failed(failure),
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(tool = call.name, error = format!("{error:#}"), "tool failed");
                CallState::Failed(internal_failure())
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) if call.effect_level == EffectLevel::Read => {
                CallState::Failed(timeout_failure())
            }
            // The next step checks the outcome, because the intent is recorded.
            Ok(Err(ToolError::Unknown(reason))) => {
                tracing::warn!(tool = call.name, reason, "tool call outcome is unknown");
                return Ok(TurnProgress::Reload);
            }
            Err(_) => {
                tracing::warn!(tool = call.name, "tool call timed out, outcome is unknown");
                return Ok(TurnProgress::Reload);
            }
        };
        if call.effect_level == EffectLevel::Read {
            return Ok(log.defer_read_result(context, (row, started_at), state));
        }
        let entry = change_record::failure_entry(context, call, &state);
        log.record_call_state(context, row, state, entry).await
    }

    /// Previews a deletion with fresh data and holds it as a pending action until the user confirms it. The
    /// confirmation prompt ends the turn.
    async fn request_confirmation(
        &self,
        log: &TurnLog,
        context: &TurnContext,
        call: &ToolCall,
        (tool, references): (&Arc<dyn Tool>, &CallReferences),
    ) -> anyhow::Result<TurnProgress> {
        let tool_context = self.tools.load_context(context, call.effect_level).await?;
        let items = match preview_items(call, tool, &tool_context).await {
            Ok(items) => items,
            Err(failure) => {
                return log.record_call_state(context, call.row, CallState::Failed(failure), None).await;
            }
        };
        if let Err(failure) =
            approval::check_deletion_requested(&items, DeletionSource::from_context(&tool_context))
        {
            let entry = audit_entry(context, "refused", call.row, failure.for_model.clone());
            return log.record_call_state(context, call.row, CallState::Failed(failure), Some(entry)).await;
        }
        let CheckedItems { deletable: items, watched, viewers } =
            self.tools.check_items(items, context.audience()).await;
        if items.is_empty() {
            let failure = CallState::Failed(being_watched(&watched, &viewers));
            return log.record_call_state(context, call.row, failure, None).await;
        }
        let remaining = references.refs.len().saturating_sub(items.len() + watched.len())
            + self.count_other_items(context, call);
        let preamble = format_prompt_preamble(
            context.closing_sentence(),
            &context.turn.preamble_sentences(),
            items.len(),
            remaining,
        );
        let preamble = match watched.as_slice() {
            [] => preamble,
            watched => prepend_sentence(&format_not_asked(watched, &viewers), &preamble),
        };
        let (agent, settings) = (context.agent_caller(), self.tools.newest_settings());
        match build_confirmation_prompt(context, items, (&preamble, agent), &settings) {
            Some(prompt) => log.hold_deletion(call.row, prompt).await,
            None => {
                let failure = CallState::Failed(approval::no_private_chat());
                log.record_call_state(context, call.row, failure, None).await
            }
        }
    }

    /// Returns the number of items in the other deletions of the turn, which do not get a confirmation prompt in this
    /// turn.
    fn count_other_items(&self, context: &TurnContext, call: &ToolCall) -> usize {
        let others = context.turn.other_deletions(call);
        let references = others.filter_map(|other| {
            self.tools.registry().get(&other.name)?.check_arguments(&other.arguments).ok()
        });
        references.map(|references| references.refs.len().max(1)).sum()
    }

    fn unknown_tool_failure(&self, context: &TurnContext, call: &ToolCall) -> CallFailure {
        let offered =
            self.tools.registry().offered_tools(context.user.rights, context.audience(), Responder::Model);
        let names: Vec<&str> = offered.iter().map(|spec| spec.name).collect();
        unknown_tool_failure(&call.name, &names)
    }
}

/// Fetches the items of a deletion with fresh data.
async fn preview_items(
    call: &ToolCall,
    tool: &Arc<dyn Tool>,
    tool_context: &ToolContext,
) -> Result<Vec<DeletionTarget>, CallFailure> {
    match tokio::time::timeout(tool.timeout(), tool.preview_items(&call.arguments, tool_context)).await {
        Ok(Ok(items)) => Ok(items),
        Ok(Err(ToolError::CallFailed(failure))) => Err(failure),
        Ok(Err(ToolError::Fatal(error))) => {
            tracing::error!(tool = call.name, error = format!("{error:#}"), "deletion preview failed");
            Err(internal_failure())
        }
        Ok(Err(ToolError::Unknown(_))) | Err(_) => Err(timeout_failure()),
    }
}
