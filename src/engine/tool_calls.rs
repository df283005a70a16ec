//! Tool calls of a turn. Each call is checked, approved, and run after its intent is recorded.

use std::sync::Arc;

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::Engine;
use super::change_record::{self, OutcomeSource};
use super::tool_effects::{self, EffectSource};
use super::turn_loop::{TurnContext, TurnProgress};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::transcript::{
    CLEARED, CallFailure, CallResult, CallRow, CallState, EffectLevel, FailureCode, MediaRef, ToolCall,
};
use crate::conversation::turn::prompt_preamble::format_prompt_preamble;
use crate::failpoint;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::pending_action::{self, HoldOutcome, NewPendingAction};
use crate::store::turns::calls::{self, CallStartOutcome};
use crate::store::{Conn, QueryResult};
use crate::tools::approval::{self, ApprovedCall, CallDecision, RecentMessages};
use crate::tools::{CallReferences, Tool, ToolError, ToolOutput};

/// Maximum length in bytes of a deletion report that precedes a confirmation prompt.
const MAX_BEFORE_QUESTION: usize = 600;
/// Number of starts of one write before the write is reported as not done.
pub(super) const MAX_STARTS: i64 = 3;

impl Engine {
    /// Starts the calls: several reads together, or one write or deletion.
    pub(super) async fn start_calls(
        &self,
        scene: &TurnContext,
        rows: &[CallRow],
    ) -> anyhow::Result<TurnProgress> {
        let conversation = scene.live.conversation;
        let shown = match self.needs_shown_ids(scene, rows) {
            true => self.0.parts.db.read(move |conn| calls::load_shown_media(conn, conversation)).await?,
            false => Vec::new(),
        };
        let calls = try_join_all(rows.iter().map(|row| self.start_call(scene, *row, &shown)));
        let writes = rows
            .iter()
            .filter_map(|row| find_call(scene, *row))
            .any(|call| call.effect_level == EffectLevel::Write);
        let progress = if writes {
            // The turn waits for a call that may have changed something until the outcome is recorded.
            calls.await?
        } else {
            tokio::select! {
                progress = calls => progress?,
                () = self.wait_for_cancellation(scene) => return self.cancel_calls(rows).await,
            }
        };
        Ok(match <[TurnProgress; 1]>::try_from(progress) {
            Ok([alone]) => alone,
            Err(several) if several.iter().any(|progress| matches!(progress, TurnProgress::Ended)) => {
                TurnProgress::Ended
            }
            // None of several concurrent calls has the outcomes of all, so the turn is loaded again.
            Err(_) => TurnProgress::Reload,
        })
    }

    /// Returns whether any of the calls refers to an id. An earlier result must have shown such an id.
    fn needs_shown_ids(&self, scene: &TurnContext, rows: &[CallRow]) -> bool {
        let calls = rows.iter().filter_map(|row| find_call(scene, *row));
        let mut uses = calls
            .filter_map(|call| self.0.parts.tools.get(&call.name)?.check_arguments(&call.arguments).ok());
        uses.any(|uses| !uses.refs.is_empty())
    }

    /// Cancels calls that only read, or that fetch the items of a confirmation prompt. A call with a result is
    /// unchanged.
    async fn cancel_calls(&self, rows: &[CallRow]) -> anyhow::Result<TurnProgress> {
        let (rows, now) = (rows.to_vec(), self.now());
        let canceled = CallState::Canceled(CLEARED.to_owned());
        let record = move |conn: &mut _| {
            rows.iter().try_for_each(|row| calls::finish_call(conn, *row, &canceled, now))
        };
        self.0.parts.db.write(record).await?;
        Ok(TurnProgress::Reload)
    }

    async fn start_call(
        &self,
        scene: &TurnContext,
        row: CallRow,
        shown: &[MediaRef],
    ) -> anyhow::Result<TurnProgress> {
        let Some(call) = find_call(scene, row) else { return Ok(TurnProgress::Reload) };
        let Some(tool) = self.0.parts.tools.get(&call.name) else {
            return self
                .record_call_state(scene, row, CallState::Failed(self.unknown_tool_failure(scene, call)))
                .await;
        };
        let uses = match tool.check_arguments(&call.arguments) {
            Ok(uses) => uses,
            Err(failure) => return self.record_call_state(scene, row, CallState::Failed(failure)).await,
        };
        match approval::decide_call(tool.spec(), call, &uses, scene.user.rights, shown) {
            CallDecision::Refuse(failure) => {
                let note = audit_entry(scene, "refused", row, failure.for_model.clone());
                self.record_with_audit_entry(scene, row, CallState::Failed(failure), Some(note)).await
            }
            CallDecision::Run(cleared) => {
                let tool = tool.clone();
                self.run_call(scene, call, &tool, &cleared).await
            }
            CallDecision::Ask => self.request_confirmation(scene, call, tool, &uses).await,
        }
    }

    async fn run_call(
        &self,
        scene: &TurnContext,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: &ApprovedCall,
    ) -> anyhow::Result<TurnProgress> {
        let (row, now) = (call.row, self.now());
        let intent = (call.effect_level != EffectLevel::Read)
            .then(|| audit_entry(scene, "write", row, change_record::intent_detail(call)));
        let records = self.load_tool_records(scene, call.effect_level);
        let start = move |conn: &mut _| {
            if calls::start_call(conn, row, now)? == CallStartOutcome::NotStartable {
                return Ok(None);
            }
            if let Some(intent) = &intent {
                audit::record_intent(conn, intent, now)?;
            }
            records(conn).map(Some)
        };
        let Some(records) = self.0.parts.db.write(start).await? else { return Ok(TurnProgress::Reload) };
        failpoint::reached("call.started");
        let world = self.build_tool_context(scene, records);
        let run = tokio::time::timeout(tool.timeout(), tool.run(cleared, &world));
        let ended = match call.effect_level {
            EffectLevel::Read => run.await,
            EffectLevel::Write | EffectLevel::Destructive => self.run_with_progress(scene, run).await,
        };
        failpoint::reached("call.ran");
        let state = match ended {
            Ok(Ok(ran)) => {
                let note = (call.effect_level == EffectLevel::Write).then(|| {
                    change_record::outcome_entry(scene, row, OutcomeSource::Response, &call.name, &ran.result)
                });
                return self.record_success(scene, row, ran, note).await;
            }
            Ok(Err(ToolError::CallFailed(failure))) => CallState::Failed(failure),
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(tool = call.name, error = format!("{error:#}"), "tool failed");
                CallState::Failed(internal_failure())
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) if call.effect_level == EffectLevel::Read => {
                CallState::Failed(timeout_failure())
            }
            // The intent is stored; the next step checks the outcome.
            Ok(Err(ToolError::Unknown(reason))) => {
                tracing::warn!(tool = call.name, reason, "tool call outcome is unknown");
                return Ok(TurnProgress::Reload);
            }
            Err(_) => {
                tracing::warn!(tool = call.name, "tool call timed out, outcome is unknown");
                return Ok(TurnProgress::Reload);
            }
        };
        let note = change_record::failure_entry(scene, call, &state);
        self.record_with_audit_entry(scene, row, state, note).await
    }

    /// Previews a deletion with fresh data and holds it as a pending action until the user confirms it. The
    /// confirmation prompt ends the turn.
    async fn request_confirmation(
        &self,
        scene: &TurnContext,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        uses: &CallReferences,
    ) -> anyhow::Result<TurnProgress> {
        let world = self.load_tool_context(scene, call.effect_level).await?;
        let previewed =
            tokio::time::timeout(tool.timeout(), tool.preview_items(&call.arguments, &world)).await;
        let items = match previewed {
            Ok(Ok(items)) => items,
            Ok(Err(ToolError::CallFailed(failure))) => {
                return self.record_call_state(scene, call.row, CallState::Failed(failure)).await;
            }
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(tool = call.name, error = format!("{error:#}"), "deletion preview failed");
                return self.record_call_state(scene, call.row, CallState::Failed(internal_failure())).await;
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) => {
                return self.record_call_state(scene, call.row, CallState::Failed(timeout_failure())).await;
            }
        };
        if let Err(failure) = approval::check_deletion_requested(&items, RecentMessages::from_context(&world))
        {
            let note = audit_entry(scene, "refused", call.row, failure.for_model.clone());
            return self
                .record_with_audit_entry(scene, call.row, CallState::Failed(failure), Some(note))
                .await;
        }
        let more = uses.refs.len().saturating_sub(items.len()) + self.count_other_items(scene, call);
        let before = format_prompt_preamble(
            scene.closing_sentence(),
            &scene.turn.preamble_sentences(),
            items.len(),
            more,
        );
        self.hold_call(scene, call.row, items, &before).await
    }

    /// Returns the number of titles in the deletions that are requested besides `call`. This turn ends before their
    /// confirmation prompts.
    fn count_other_items(&self, scene: &TurnContext, call: &ToolCall) -> usize {
        let others = scene.turn.other_deletions(call);
        let uses = others
            .filter_map(|other| self.0.parts.tools.get(&other.name)?.check_arguments(&other.arguments).ok());
        uses.map(|uses| uses.refs.len().max(1)).sum()
    }

    /// Stores the confirmation prompt and ends the turn with it, unless the turn was canceled.
    async fn hold_call(
        &self,
        scene: &TurnContext,
        call: CallRow,
        items: Vec<DeletionTarget>,
        before: &str,
    ) -> anyhow::Result<TurnProgress> {
        let question = self.build_confirmation_prompt(scene, items, before);
        let now = self.now();
        let holding = self
            .0
            .parts
            .db
            .write(move |conn| pending_action::hold_deletion(conn, call, &question, now))
            .await?;
        failpoint::reached("question.held");
        match holding {
            HoldOutcome::Held => {
                self.0.parts.outbox.notify();
                Ok(TurnProgress::Ended)
            }
            HoldOutcome::Canceled => Ok(TurnProgress::Reload),
        }
    }

    /// Builds the exact confirmation prompt about `items`. The text `before` precedes the prompt.
    pub(super) fn build_confirmation_prompt(
        &self,
        scene: &TurnContext,
        items: Vec<DeletionTarget>,
        before: &str,
    ) -> NewPendingAction {
        let settings = &self.0.parts.settings;
        let code = settings.code_policy.needs_code(&items).then(|| settings.codes.draw_confirmation_code());
        let words = deletion_messages::format_confirmation_prompt(&items, code.as_deref());
        // Users must read the whole prompt. The conversation already contains the report of earlier actions.
        let said = match before.len() {
            1..=MAX_BEFORE_QUESTION => format!("{before} {words}"),
            _ => words.clone(),
        };
        NewPendingAction {
            turn: scene.live.id,
            user: scene.user.id,
            conversation: scene.live.conversation,
            items,
            summary: words,
            code,
            prompt: scene.reply_address().prompt_message(&said),
        }
    }

    pub(super) async fn record_call_state(
        &self,
        scene: &TurnContext,
        row: CallRow,
        state: CallState,
    ) -> anyhow::Result<TurnProgress> {
        self.record_with_audit_entry(scene, row, state, None).await
    }

    /// Records a successful call, with its effects on our own records.
    pub(super) async fn record_success(
        &self,
        scene: &TurnContext,
        row: CallRow,
        ran: ToolOutput,
        note: Option<NewAuditEntry>,
    ) -> anyhow::Result<TurnProgress> {
        let ToolOutput { result, effects: deeds } = ran;
        if deeds.is_empty() {
            return self.record_with_audit_entry(scene, row, CallState::Done(result), note).await;
        }
        let (doer, settings, now) =
            (EffectSource::from_call(scene, row), self.0.parts.settings.clone(), self.now());
        let record = move |conn: &mut _| {
            if let Some(note) = &note {
                audit::record_outcome(conn, note, now);
            }
            calls::finish_call(conn, row, &CallState::Done(result), now)?;
            deeds
                .iter()
                .try_for_each(|deed| tool_effects::apply_tool_effect(conn, &doer, deed, &settings, now))
        };
        let progress = self.record_call(scene, record).await?;
        self.0.parts.outbox.notify();
        self.0.retries.notify_one();
        Ok(progress)
    }

    pub(super) async fn record_with_audit_entry(
        &self,
        scene: &TurnContext,
        row: CallRow,
        state: CallState,
        note: Option<NewAuditEntry>,
    ) -> anyhow::Result<TurnProgress> {
        let now = self.now();
        let record = move |conn: &mut _| {
            if let Some(note) = &note {
                audit::record_outcome(conn, note, now);
            }
            calls::finish_call(conn, row, &state, now)
        };
        self.record_call(scene, record).await
    }

    /// Records a call. If other calls are open, the turn is loaded again only after all of them are recorded.
    async fn record_call(
        &self,
        scene: &TurnContext,
        record: impl FnOnce(&mut Conn) -> QueryResult<()> + Send + 'static,
    ) -> anyhow::Result<TurnProgress> {
        let open = |call: &&ToolCall| matches!(call.state, CallState::Created | CallState::Running);
        let calls = scene.turn.steps.iter().flat_map(|step| &step.calls);
        let progress = if calls.filter(open).count() > 1 {
            self.0.parts.db.write(record).await?;
            TurnProgress::Reload
        } else {
            self.record_and_continue(scene, record).await?
        };
        failpoint::reached("call.recorded");
        Ok(progress)
    }

    fn unknown_tool_failure(&self, scene: &TurnContext, call: &ToolCall) -> CallFailure {
        let offered = self.0.parts.tools.offered_specs(scene.user.rights);
        let names: Vec<&str> = offered.iter().map(|spec| spec.name).collect();
        CallFailure::new(FailureCode::UnknownTool, json!({ "called": call.name, "tools": names }), None)
    }
}

/// Returns the audit log entry about a call of the turn's user.
pub(super) fn audit_entry(
    scene: &TurnContext,
    kind: &'static str,
    call: CallRow,
    detail: Value,
) -> NewAuditEntry {
    NewAuditEntry { actor: Actor::User(scene.user.id), kind, subject: AuditSubject::Call(call), detail }
}

pub(super) fn find_call(scene: &TurnContext, row: CallRow) -> Option<&ToolCall> {
    scene.turn.steps.iter().flat_map(|step| &step.calls).find(|call| call.row == row)
}

fn internal_failure() -> CallFailure {
    let sentence = "That did not work. Please try again later.";
    CallFailure::new(FailureCode::Failed, Value::Null, Some(sentence.to_owned()))
}

fn timeout_failure() -> CallFailure {
    let sentence = "That took too long. Please try again later.";
    CallFailure::new(FailureCode::TooSlow, Value::Null, Some(sentence.to_owned()))
}

/// Returns the status word of a deletion's outcome, such as `deleted`.
pub(super) fn deletion_status(result: &CallResult) -> Option<&str> {
    result.for_model.get("status").and_then(|status| status.as_str())
}
