//! Records of the tool calls of a turn.

use jiff::Timestamp;

use super::turn_log::{TurnLog, TurnProgress};
use crate::conversation::transcript::{CallFailure, CallRow, CallState, MediaKind, MediaRef, TURN_CANCELED};
use crate::conversation::turn::TurnUpdate;
use crate::engine::turns::call_failures::other_question_open;
use crate::engine::turns::tool_effects::{self, EffectSource};
use crate::engine::turns::turn_context::TurnContext;
use crate::failpoint;
use crate::store::audit::{self, NewAuditEntry};
use crate::store::confirmation::pending_action::{self, HoldOutcome, NewPendingAction};
use crate::store::database::db::{DbError, Durability};
use crate::store::service_identities::MovedSlots;
use crate::store::turns::calls::{self, CallStartOutcome, CallStarts};
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult, agent_calls};
use crate::tools::ToolOutput;

impl TurnLog {
    /// Loads the ids that earlier results of the conversation have shown.
    pub(crate) async fn load_shown_media(&self) -> Result<Vec<MediaRef>, DbError> {
        let conversation = self.active_turn.conversation;
        self.read(move |conn| calls::load_shown_media(conn, conversation)).await
    }

    /// Loads the title and year as shown by an earlier result of the conversation.
    pub(crate) async fn load_shown_title(
        &self,
        kind: MediaKind,
        id: i64,
    ) -> Result<Option<(String, u16)>, DbError> {
        let conversation = self.active_turn.conversation;
        self.read(move |conn| calls::find_shown_title(conn, conversation, kind, id)).await
    }

    /// Loads the instances that were moved to another server.
    pub(crate) async fn load_moved_slots(&self) -> Result<MovedSlots, DbError> {
        self.read(MovedSlots::load).await
    }

    pub(crate) async fn load_call_starts(&self, call: CallRow) -> Result<CallStarts, DbError> {
        self.read(move |conn| calls::load_call_starts(conn, call)).await
    }

    /// Starts a call, and loads `records`. The intent of a change is on disk when this function returns; a read needs
    /// none, because it can be repeated. Returns `None` if the call may not start.
    pub(crate) async fn start_call<T: Send + 'static>(
        &self,
        call: CallRow,
        intent: Option<NewAuditEntry>,
        records: impl Fn(&mut Conn) -> QueryResult<T> + Send + 'static,
    ) -> Result<Option<T>, DbError> {
        let now = self.now();
        let Some(intent) = intent else {
            self.logs.db.event_log().append_call_start(
                self.active_turn.conversation,
                (self.active_turn.id, call),
                now,
            );
            let turn = self.active_turn.id;
            let load = move |conn: &mut Conn| match turn_lifecycle::is_cancel_requested(conn, turn)? {
                true => Ok(None),
                false => records(conn).map(Some),
            };
            return self.read(load).await;
        };
        let start = move |conn: &mut Conn| {
            if calls::start_call(conn, call, now)? == CallStartOutcome::NotStartable {
                return Ok(None);
            }
            audit::record_intent(conn, &intent, now)?;
            records(conn).map(Some)
        };
        self.write(start).await
    }

    /// Applies the result of a read to the turn, and defers its record, which needs no commit of its own.
    pub(crate) fn defer_read_result(
        &self,
        context: &TurnContext,
        (call, started_at): (CallRow, Timestamp),
        state: CallState,
    ) -> TurnProgress {
        let mut context = context.clone();
        context.turn.apply_update(TurnUpdate::CallChanged(call, state.clone()));
        let now = self.now();
        self.defer_record(move |conn| calls::finish_read(conn, call, &state, (started_at, now)));
        // While other calls are open, the next step of the turn is not decided yet.
        match context.turn.open_call_count() {
            0 => TurnProgress::Loaded(Box::new(context)),
            _ => TurnProgress::Reload,
        }
    }

    /// Cancels calls that only read, or that preview a deletion. Calls that already have a result do not change.
    pub(crate) async fn cancel_calls(&self, calls: &[CallRow]) -> anyhow::Result<TurnProgress> {
        let (rows, now) = (calls.to_vec(), self.now());
        let canceled = CallState::Canceled(TURN_CANCELED.to_owned());
        let record = move |conn: &mut Conn| {
            rows.iter().try_for_each(|row| calls::finish_call(conn, *row, &canceled, now))
        };
        self.write(record).await?;
        Ok(TurnProgress::Reload)
    }

    /// Records the state of a call, and the outcome of the change in the audit log.
    pub(crate) async fn record_call_state(
        &self,
        context: &TurnContext,
        call: CallRow,
        state: CallState,
        entry: Option<NewAuditEntry>,
    ) -> anyhow::Result<TurnProgress> {
        let now = self.now();
        let durability = if entry.is_some() { Durability::Synced } else { Durability::Unsynced };
        let record = move |conn: &mut Conn, context: &mut TurnContext| {
            finish_call(conn, context, call, (&state, entry.as_ref()), now)
        };
        self.record_call(context, durability, record).await
    }

    /// Records a successful call, with its effects on our own records.
    pub(crate) async fn record_success(
        &self,
        context: &TurnContext,
        call: CallRow,
        output: ToolOutput,
        entry: Option<NewAuditEntry>,
    ) -> anyhow::Result<TurnProgress> {
        let ToolOutput { result, effects } = output;
        let state = CallState::Done(result);
        if effects.is_empty() {
            return self.record_call_state(context, call, state, entry).await;
        }
        let (source, settings, now) =
            (EffectSource::from_call(context, call), self.logs.settings(), self.now());
        let record = move |conn: &mut Conn, context: &mut TurnContext| {
            let refused = tool_effects::start_requested_vote(conn, &source, &effects, &settings, now)?;
            let state = refused.map_or_else(|| state.clone(), CallState::Failed);
            finish_call(conn, context, call, (&state, entry.as_ref()), now)?;
            for effect in &effects {
                tool_effects::apply_tool_effect(conn, &source, effect, &settings, now)?;
            }
            context.reload_facts(conn)
        };
        let progress = self.record_call(context, Durability::Synced, record).await?;
        self.logs.outbox.notify();
        self.logs.addition_queued.notify();
        Ok(progress)
    }

    /// Records a call. While other calls are open, the next step of the turn is not decided yet.
    async fn record_call(
        &self,
        context: &TurnContext,
        durability: Durability,
        record: impl Fn(&mut Conn, &mut TurnContext) -> QueryResult<()> + Send + Sync + 'static,
    ) -> anyhow::Result<TurnProgress> {
        let progress = if context.turn.open_call_count() > 1 {
            let before = context.clone();
            let record = move |conn: &mut Conn| record(conn, &mut before.clone());
            self.write_with(durability, record).await?;
            TurnProgress::Reload
        } else {
            self.record_and_continue(context, durability, record).await?
        };
        failpoint::reached("call.recorded");
        Ok(progress)
    }

    /// Stores the confirmation prompt of a call and ends the turn with it, unless the turn was canceled.
    pub(crate) async fn hold_deletion(
        &self,
        call: CallRow,
        prompt: NewPendingAction,
    ) -> anyhow::Result<TurnProgress> {
        let now = self.now();
        let hold = move |conn: &mut Conn| {
            let moved = MovedSlots::load(conn)?;
            if prompt.items.iter().any(|item| moved.includes(&item.instance, prompt.turn)) {
                calls::finish_call(conn, call, &CallState::Failed(CallFailure::server_moved()), now)?;
                return Ok(HoldOutcome::Canceled);
            }
            if prompt.asked_by_agent && !agent_calls::start_question(conn, (call, prompt.user), now)? {
                calls::finish_call(conn, call, &CallState::Failed(other_question_open()), now)?;
                return Ok(HoldOutcome::Canceled);
            }
            pending_action::hold_deletion(conn, call, &prompt, now)
        };
        let outcome = self.write(hold).await?;
        failpoint::reached("question.held");
        match outcome {
            HoldOutcome::Held => {
                self.logs.outbox.notify();
                Ok(TurnProgress::Ended)
            }
            HoldOutcome::Canceled => Ok(TurnProgress::Reload),
        }
    }
}

fn finish_call(
    conn: &mut Conn,
    context: &mut TurnContext,
    call: CallRow,
    (state, entry): (&CallState, Option<&NewAuditEntry>),
    now: Timestamp,
) -> QueryResult<()> {
    if let Some(entry) = entry {
        audit::record_outcome(conn, entry, now);
    }
    calls::finish_call(conn, call, state, now)?;
    context.turn.apply_update(TurnUpdate::CallChanged(call, state.clone()));
    Ok(())
}
