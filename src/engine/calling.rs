//! Tool calls of a turn: each is checked, approved, and run after its intent is recorded.

use std::sync::Arc;

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::Engine;
use super::change_record::{self, OutcomeSource};
use super::deeds::{self, Doer};
use super::run::{Progress, Scene};
use crate::conversation::deletion;
use crate::conversation::frozen::FrozenItem;
use crate::conversation::transcript::{
    CLEARED, CallFailure, CallResult, CallRow, CallState, MediaRef, Tier, ToolCall,
};
use crate::conversation::turn::before_question::before_question;
use crate::failpoint;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::calls::{self, Start};
use crate::store::pending::{self, Holding, Question};
use crate::store::{Conn, QueryResult};
use crate::tools::approval::{self, Cleared, Decision, Words};
use crate::tools::{Ran, Tool, ToolError, Uses};

/// Longest report of a deletion, in bytes, that is put ahead of a confirmation prompt.
const MAX_BEFORE_QUESTION: usize = 600;
/// Failure code of a write with an unknown outcome.
pub(super) const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// Number of starts of one write before it is reported as not done.
pub(super) const MAX_STARTS: i64 = 3;

impl Engine {
    /// Starts the calls: several reads together, or one write or deletion.
    pub(super) async fn start_calls(&self, scene: &Scene, rows: &[CallRow]) -> anyhow::Result<Progress> {
        let conversation = scene.live.conversation;
        let shown = match self.is_any_about_an_id(scene, rows) {
            true => self.0.parts.db.read(move |conn| calls::shown(conn, conversation)).await?,
            false => Vec::new(),
        };
        let calls = try_join_all(rows.iter().map(|row| self.start_call(scene, *row, &shown)));
        let writes = rows.iter().filter_map(|row| find(scene, *row)).any(|call| call.tier == Tier::Write);
        let progress = if writes {
            // A call that may have changed something is waited for until its outcome is recorded.
            calls.await?
        } else {
            tokio::select! {
                progress = calls => progress?,
                () = self.taken_back(scene) => return self.drop_calls(rows).await,
            }
        };
        Ok(match <[Progress; 1]>::try_from(progress) {
            Ok([alone]) => alone,
            Err(several) if several.iter().any(|progress| matches!(progress, Progress::Ended)) => {
                Progress::Ended
            }
            // None of several calls has seen the outcome of all.
            Err(_) => Progress::GoesOn,
        })
    }

    /// Returns whether any of the calls refers to an id, which an earlier result must have shown.
    fn is_any_about_an_id(&self, scene: &Scene, rows: &[CallRow]) -> bool {
        let calls = rows.iter().filter_map(|row| find(scene, *row));
        let mut uses =
            calls.filter_map(|call| self.0.parts.tools.get(&call.name)?.check(&call.arguments).ok());
        uses.any(|uses| !uses.refs.is_empty())
    }

    /// Cancels calls that only read, or that fetch the items of a confirmation prompt. A call with a result keeps it.
    async fn drop_calls(&self, rows: &[CallRow]) -> anyhow::Result<Progress> {
        let (rows, now) = (rows.to_vec(), self.now());
        let canceled = CallState::Canceled(CLEARED.to_owned());
        let record =
            move |conn: &mut _| rows.iter().try_for_each(|row| calls::finish(conn, *row, &canceled, now));
        self.0.parts.db.write(record).await?;
        Ok(Progress::GoesOn)
    }

    async fn start_call(&self, scene: &Scene, row: CallRow, shown: &[MediaRef]) -> anyhow::Result<Progress> {
        let Some(call) = find(scene, row) else { return Ok(Progress::GoesOn) };
        let Some((spec, tool)) = self.0.parts.tools.find(&call.name) else {
            return self.record(scene, row, CallState::Failed(self.unknown_tool(scene, call))).await;
        };
        let uses = match tool.check(&call.arguments) {
            Ok(uses) => uses,
            Err(failure) => return self.record(scene, row, CallState::Failed(failure)).await,
        };
        match approval::decide(spec, call, &uses, scene.user.rights, shown) {
            Decision::Refuse(failure) => {
                let note = entry(scene, "refused", row, failure.for_model.clone());
                self.record_noted(scene, row, CallState::Failed(failure), Some(note)).await
            }
            Decision::Run(cleared) => {
                let tool = tool.clone();
                self.run_call(scene, call, &tool, &cleared).await
            }
            Decision::Ask => self.ask_user(scene, call, tool, &uses).await,
        }
    }

    async fn run_call(
        &self,
        scene: &Scene,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: &Cleared,
    ) -> anyhow::Result<Progress> {
        let (row, now) = (call.row, self.now());
        let intent =
            (call.tier != Tier::Read).then(|| entry(scene, "write", row, change_record::intent(call)));
        let records = self.records(scene, call.tier);
        let start = move |conn: &mut _| {
            if calls::start(conn, row, now)? == Start::NotStartable {
                return Ok(None);
            }
            if let Some(intent) = &intent {
                audit::record_intent(conn, intent, now)?;
            }
            records(conn).map(Some)
        };
        let Some(records) = self.0.parts.db.write(start).await? else { return Ok(Progress::GoesOn) };
        failpoint::reached("call.started");
        let world = self.world_with(scene, records);
        let run = tokio::time::timeout(tool.timeout(), tool.run(cleared, &world));
        let ended = match call.tier {
            Tier::Read => run.await,
            Tier::Write | Tier::Destructive => self.with_progress(scene, run).await,
        };
        failpoint::reached("call.ran");
        let state = match ended {
            Ok(Ok(ran)) => {
                let note = (call.tier == Tier::Write).then(|| {
                    change_record::outcome(scene, row, OutcomeSource::Response, &call.name, &ran.result)
                });
                return self.record_ran(scene, row, ran, note).await;
            }
            Ok(Err(ToolError::TellModel(failure))) => CallState::Failed(failure),
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(tool = call.name, error = format!("{error:#}"), "tool failed");
                CallState::Failed(internal())
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) if call.tier == Tier::Read => {
                CallState::Failed(too_slow())
            }
            // The intent is stored; the next step checks the outcome.
            Ok(Err(ToolError::Unknown(reason))) => {
                tracing::warn!(tool = call.name, reason, "outcome unknown");
                return Ok(Progress::GoesOn);
            }
            Err(_) => {
                tracing::warn!(tool = call.name, "no answer in time, outcome unknown");
                return Ok(Progress::GoesOn);
            }
        };
        let note = change_record::failure(scene, call, &state);
        self.record_noted(scene, row, state, note).await
    }

    /// Previews a deletion with fresh data and holds it for the user's yes: the confirmation prompt ends the turn.
    async fn ask_user(
        &self,
        scene: &Scene,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        uses: &Uses,
    ) -> anyhow::Result<Progress> {
        let world = self.world(scene, call.tier).await?;
        let previewed = tokio::time::timeout(tool.timeout(), tool.preview(&call.arguments, &world)).await;
        let items = match previewed {
            Ok(Ok(items)) => items,
            Ok(Err(ToolError::TellModel(failure))) => {
                return self.record(scene, call.row, CallState::Failed(failure)).await;
            }
            Ok(Err(ToolError::Fatal(error))) => {
                tracing::error!(tool = call.name, error = format!("{error:#}"), "preview failed");
                return self.record(scene, call.row, CallState::Failed(internal())).await;
            }
            Ok(Err(ToolError::Unknown(_))) | Err(_) => {
                return self.record(scene, call.row, CallState::Failed(too_slow())).await;
            }
        };
        if let Err(failure) = approval::requested(&items, Words::of(&world)) {
            let note = entry(scene, "refused", call.row, failure.for_model.clone());
            return self.record_noted(scene, call.row, CallState::Failed(failure), Some(note)).await;
        }
        let more = uses.refs.len().saturating_sub(items.len()) + self.other_items(scene, call);
        let before =
            before_question(scene.closing(), &scene.turn.sentences_before_question(), items.len(), more);
        self.hold(scene, call.row, items, &before).await
    }

    /// Number of titles in the deletions that are requested beside `call`: this turn ends before their confirmation
    /// prompts.
    fn other_items(&self, scene: &Scene, call: &ToolCall) -> usize {
        let others = scene.turn.other_deletions(call);
        let uses =
            others.filter_map(|other| self.0.parts.tools.get(&other.name)?.check(&other.arguments).ok());
        uses.map(|uses| uses.refs.len().max(1)).sum()
    }

    /// Stores the confirmation prompt and ends the turn with it, unless the turn was canceled.
    async fn hold(
        &self,
        scene: &Scene,
        call: CallRow,
        items: Vec<FrozenItem>,
        before: &str,
    ) -> anyhow::Result<Progress> {
        let question = self.question(scene, items, before);
        let now = self.now();
        let holding = self.0.parts.db.write(move |conn| pending::hold(conn, call, &question, now)).await?;
        failpoint::reached("question.held");
        match holding {
            Holding::Held => {
                self.0.parts.outbox.ring();
                Ok(Progress::Ended)
            }
            Holding::TakenBack => Ok(Progress::GoesOn),
        }
    }

    /// Builds the exact confirmation prompt about `items`. `before` is sent ahead of it.
    pub(super) fn question(&self, scene: &Scene, items: Vec<FrozenItem>, before: &str) -> Question {
        let settings = &self.0.parts.settings;
        let code = settings.code_policy.needs_code(&items).then(|| settings.codes.draw());
        let words = deletion::question(&items, code.as_deref());
        // The prompt must be read whole; a report of earlier actions is in the conversation anyway.
        let said = match before.len() {
            1..=MAX_BEFORE_QUESTION => format!("{before} {words}"),
            _ => words.clone(),
        };
        Question {
            turn: scene.live.id,
            user: scene.user.id,
            conversation: scene.live.conversation,
            items,
            words,
            code,
            text: scene.way_back().question(&said),
        }
    }

    pub(super) async fn record(
        &self,
        scene: &Scene,
        row: CallRow,
        state: CallState,
    ) -> anyhow::Result<Progress> {
        self.record_noted(scene, row, state, None).await
    }

    /// Records a call that succeeded, with its effects on our own records.
    pub(super) async fn record_ran(
        &self,
        scene: &Scene,
        row: CallRow,
        ran: Ran,
        note: Option<Entry>,
    ) -> anyhow::Result<Progress> {
        let Ran { result, deeds } = ran;
        if deeds.is_empty() {
            return self.record_noted(scene, row, CallState::Done(result), note).await;
        }
        let (doer, settings, now) = (Doer::of(scene, row), self.0.parts.settings.clone(), self.now());
        let record = move |conn: &mut _| {
            if let Some(note) = &note {
                audit::record_outcome(conn, note, now);
            }
            calls::finish(conn, row, &CallState::Done(result), now)?;
            deeds.iter().try_for_each(|deed| deeds::perform(conn, &doer, deed, &settings, now))
        };
        let progress = self.record_call(scene, record).await?;
        self.0.parts.outbox.ring();
        self.0.retries.notify_one();
        Ok(progress)
    }

    pub(super) async fn record_noted(
        &self,
        scene: &Scene,
        row: CallRow,
        state: CallState,
        note: Option<Entry>,
    ) -> anyhow::Result<Progress> {
        let now = self.now();
        let record = move |conn: &mut _| {
            if let Some(note) = &note {
                audit::record_outcome(conn, note, now);
            }
            calls::finish(conn, row, &state, now)
        };
        self.record_call(scene, record).await
    }

    /// Records a call. If other calls are open beside it, the turn is loaded again only after all of them are recorded.
    async fn record_call(
        &self,
        scene: &Scene,
        record: impl FnOnce(&mut Conn) -> QueryResult<()> + Send + 'static,
    ) -> anyhow::Result<Progress> {
        let open = |call: &&ToolCall| matches!(call.state, CallState::Created | CallState::Running);
        let calls = scene.turn.steps.iter().flat_map(|step| &step.calls);
        let progress = if calls.filter(open).count() > 1 {
            self.0.parts.db.write(record).await?;
            Progress::GoesOn
        } else {
            self.record_and_go_on(scene, record).await?
        };
        failpoint::reached("call.recorded");
        Ok(progress)
    }

    fn unknown_tool(&self, scene: &Scene, call: &ToolCall) -> CallFailure {
        let offered = self.0.parts.tools.offered(scene.user.rights);
        let names: Vec<&str> = offered.iter().map(|spec| spec.name).collect();
        failure("unknown_tool", json!({ "error": "unknown_tool", "called": call.name, "tools": names }), None)
    }
}

/// Audit log entry about a call of the scene's user.
pub(super) fn entry(scene: &Scene, kind: &'static str, call: CallRow, detail: Value) -> Entry {
    Entry { by: By::User(scene.user.id), kind, subject: Subject::Call(call), detail }
}

pub(super) fn find(scene: &Scene, row: CallRow) -> Option<&ToolCall> {
    scene.turn.steps.iter().flat_map(|step| &step.calls).find(|call| call.row == row)
}

fn failure(code: &str, for_model: Value, for_user: Option<&str>) -> CallFailure {
    CallFailure { code: code.to_owned(), for_model, for_user: for_user.map(str::to_owned) }
}

fn internal() -> CallFailure {
    failure("failed", json!({ "error": "failed" }), Some("That did not work. Please try again later."))
}

fn too_slow() -> CallFailure {
    failure("too_slow", json!({ "error": "too_slow" }), Some("That took too long. Please try again later."))
}

pub(super) fn outcome_unknown() -> CallFailure {
    failure(
        OUTCOME_UNKNOWN,
        json!({ "error": OUTCOME_UNKNOWN, "hint": "it may or may not have happened; say so" }),
        Some("I could not find out whether that worked. Please have a look."),
    )
}

/// Status word of a deletion's outcome, such as `deleted`.
pub(super) fn status(result: &CallResult) -> Option<&str> {
    result.for_model.get("status").and_then(|status| status.as_str())
}
