//! Lifecycle of turns. A user has at most one running turn, which is stored with all data needed to continue it after a
//! crash.

use std::sync::Arc;

use diesel::dsl::{self, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::conversation::prompt::FrozenContext;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::stream_events::{StreamEventKind, StreamTurnState};
use crate::conversation::transcript::{CallRow, ConversationId, Responder, TurnId, UserId};
use crate::conversation::turn::{TURN_TIME, Turn};
use crate::store::Conn;
use crate::store::codec::{convert_integer, from_json, ms, to_json};
use crate::store::column_types::{StoredEnum, stored_enum};
use crate::store::conversation::conversations;
use crate::store::conversation::record::steps::{self, LoadedBlocks};
use crate::store::conversation::record::turn_range::TurnRange;
use crate::store::database::statement_cache::{CacheStatement, cached_update};
use crate::store::people::addresses::OptTarget;
use crate::store::people::rooms;
use crate::store::queue::inbound_messages;
use crate::store::schema::{conversations as conversation_rows, inbound_events, tool_calls, turns};
use crate::store::stream::recording::{self, record_event};

stored_enum! {
    /// Kind of a turn.
    pub enum TurnKind {
        Chat = "chat",
        /// Executes a deletion that a yes has claimed.
        Confirm = "confirm",
        Deny = "deny",
        /// Answers a command, or runs the call of an agent, without a model.
        Command = "command",
    }
}

/// Plan for answering a turn, made when the turn begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnPlan {
    pub responder: Responder,
    /// Notes for the model on events around the messages.
    pub notes: Vec<String>,
    /// Text sent before the answer, in the same message: `OK, Dune (2021) is kept.`
    pub preface: Option<String>,
    /// Triage status. An open triage is decided by the model before the turn is answered.
    pub triage: TriageState,
    /// Earlier request that the turn answers instead of its message, if the message only agrees to that request.
    pub request: Option<String>,
    /// Context of the turn's requests, once the first of them has started.
    pub context: Option<FrozenContext>,
}

stored_enum! {
    /// Triage status of a turn: whether its message needs an answer.
    pub enum TriageState {
        /// The model has not decided yet.
        Open = "open",
        /// The message needs an answer, or no triage was needed.
        Respond = "respond",
        Skip = "skip",
    }
}

impl TurnPlan {
    pub fn for_responder(responder: Responder) -> Self {
        Self {
            responder,
            notes: Vec::new(),
            preface: None,
            triage: TriageState::Respond,
            request: None,
            context: None,
        }
    }
}

/// Turn to create.
#[derive(Debug, Clone, Copy)]
pub struct NewTurn<'a> {
    pub user: UserId,
    pub conversation: ConversationId,
    pub kind: TurnKind,
    pub plan: &'a TurnPlan,
}

#[derive(Serialize, Deserialize)]
struct StoredPlan {
    /// `None` for a model.
    #[serde(rename = "brain", default, skip_serializing_if = "Option::is_none")]
    responder: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preface: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window_start: Option<i64>,
}

impl StoredPlan {
    fn responder(&self) -> QueryResult<Responder> {
        self.responder.as_deref().map_or(Ok(Responder::Model), Responder::from_text)
    }

    fn take_context(&mut self) -> Option<FrozenContext> {
        let window_start = self.window_start.map(TurnId);
        self.context.take().map(|block| FrozenContext { block, window_start })
    }
}

/// SQL expression for a stored plan with only its responder.
pub(in crate::store) const PLAN_WITHOUT_TEXT: &str =
    "json_object('brain', coalesce(turns.prompt ->> '$.brain', 'model'))";

pub fn create_turn(conn: &mut Conn, new: NewTurn<'_>, now: Timestamp) -> QueryResult<TurnId> {
    let responder = Some(new.plan.responder).filter(|responder| *responder != Responder::Model);
    let plan = to_json(&StoredPlan {
        responder: responder.map(|responder| responder.as_text().to_owned()),
        notes: new.plan.notes.clone(),
        preface: new.plan.preface.clone(),
        request: new.plan.request.clone(),
        context: None,
        window_start: None,
    })?;
    conversations::record_activity(conn, new.conversation, now)?;
    let id = diesel::insert_into(turns::table)
        .values((
            turns::user_id.eq(new.user),
            turns::conversation_id.eq(new.conversation),
            turns::kind.eq(new.kind),
            turns::state.eq(StreamTurnState::Created),
            turns::prompt.eq(plan),
            turns::triage.eq(Some(new.plan.triage).filter(|triage| *triage != TriageState::Respond)),
            turns::deadline_at.eq(ms(now + TURN_TIME)),
            turns::created_at.eq(ms(now)),
            turns::updated_at.eq(ms(now)),
        ))
        .returning(turns::id)
        .cached()
        .get_result(conn)?;
    recording::remember_conversation(id, new.conversation);
    record_event(conn, id, now, StreamEventKind::Turn(StreamTurnState::Created))?;
    Ok(id)
}

pub fn set_triage_state(conn: &mut Conn, id: TurnId, triage: TriageState, now: Timestamp) -> QueryResult<()> {
    cached_update(turns::table.find(id).filter(turns::finished_at.is_null()))
        .set((turns::triage.eq(triage), turns::updated_at.eq(ms(now))))
        .run(conn)
}

/// Parses the responder of a stored plan.
pub(in crate::store) fn parse_plan_responder(plan: &str) -> QueryResult<Responder> {
    from_json::<StoredPlan>("plan", plan)?.responder()
}

/// Parses the context in a stored plan.
pub(in crate::store) fn parse_plan_context(plan: &str) -> QueryResult<Option<FrozenContext>> {
    Ok(from_json::<StoredPlan>("plan", plan)?.take_context())
}

define_sql_function! {
    /// Sets the context and the window of a stored plan, each at its JSON path.
    #[sql_name = "json_set"]
    fn set_context(
        plan: Text,
        context_path: Text,
        context: Text,
        window_path: Text,
        window_start: Nullable<BigInt>,
    ) -> Text;
}

/// Stores the context of a turn whose first request starts.
pub(in crate::store) fn start_with_context(
    conn: &mut Conn,
    id: TurnId,
    context: &FrozenContext,
    now: Timestamp,
) -> QueryResult<()> {
    let window_start = context.window_start.map(|start| start.0);
    let plan = set_context(turns::prompt, "$.context", &context.block, "$.window_start", window_start);
    cached_update(turns::table.find(id).filter(turns::finished_at.is_null()))
        .set((
            turns::prompt.eq(plan),
            turns::state.eq(StreamTurnState::InProgress),
            turns::updated_at.eq(ms(now)),
        ))
        .run(conn)?;
    record_event(conn, id, now, StreamEventKind::Turn(StreamTurnState::InProgress))
}

/// Removes the contexts of the turns in the open conversation of a user, which later requests would repeat. They may
/// contain a fact that the user wants forgotten.
pub(in crate::store) fn erase_contexts(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    let Some(open) = conversations::load_open_conversation(conn, user)? else { return Ok(()) };
    recording::record_changed_history();
    diesel::update(turns::table.filter(turns::conversation_id.eq(open.id)))
        .set(turns::prompt.eq(sql::<Text>("json_remove(turns.prompt, '$.context')")))
        .execute(conn)?;
    Ok(())
}

/// Reference to a turn, usually the running one of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = turns)]
pub struct ActiveTurn {
    pub id: TurnId,
    pub kind: TurnKind,
    #[diesel(column_name = conversation_id)]
    pub conversation: ConversationId,
    /// Room in which it answers; `None` in a private chat.
    #[diesel(select_expression = rooms::room_of_turn())]
    pub room: Option<UserId>,
    /// Key of the agent whose call it runs; `None` if it answers people.
    #[diesel(select_expression = agent_of_turn())]
    pub agent: Option<i64>,
}

/// Key of the agent whose conversation contains the turn in the row of `turns`.
#[dsl::auto_type]
fn agent_of_turn() -> _ {
    conversation_rows::table
        .filter(conversation_rows::id.eq(turns::conversation_id))
        .select(conversation_rows::agent_key_id)
        .single_value()
}

pub fn load_active_turn(conn: &mut Conn, user: UserId) -> QueryResult<Option<ActiveTurn>> {
    turns::table
        .filter(turns::user_id.eq(user).and(turns::finished_at.is_null()))
        .select(ActiveTurn::as_select())
        .first(conn)
        .optional()
}

/// Loads the turn in which a call was made, running or finished.
pub fn load_turn_of_call(conn: &mut Conn, call: CallRow) -> QueryResult<ActiveTurn> {
    let turn: TurnId = tool_calls::table.find(call).select(tool_calls::turn_id).first(conn)?;
    turns::table.find(turn).select(ActiveTurn::as_select()).first(conn)
}

/// Loads the id of a turn's conversation.
pub fn load_conversation_id(conn: &mut Conn, turn: TurnId) -> QueryResult<ConversationId> {
    turns::table.find(turn).select(turns::conversation_id).first(conn)
}

/// Log of a turn, with its plan and its messages.
#[derive(Debug, Clone)]
pub struct LoadedTurn {
    pub turn: Turn,
    pub plan: TurnPlan,
    pub events: Vec<InboundEvent>,
    /// Number of the run of the turn, from 1. Each resume of a failed turn by the operator starts another run.
    pub run: u32,
}

/// Columns of a turn that are needed to continue it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = turns)]
struct LoadedTurnRow {
    prompt: String,
    deadline_at: Timestamp,
    attempts: i64,
    work_failures: i64,
    cancel_requested_at: Option<Timestamp>,
    triage: Option<TriageState>,
    runs: i64,
}

pub fn load_turn(conn: &mut Conn, active: ActiveTurn) -> QueryResult<LoadedTurn> {
    let id = active.id;
    let row: LoadedTurnRow = turns::table.find(id).select(LoadedTurnRow::as_select()).first(conn)?;
    let mut stored: StoredPlan = from_json("plan", &row.prompt)?;
    let (responder, context) = (stored.responder()?, stored.take_context());
    let StoredPlan { notes, preface, request, .. } = stored;
    let triage = row.triage.unwrap_or(TriageState::Respond);
    let plan = TurnPlan { responder, notes, preface, triage, request, context };
    let events = inbound_messages::load_turn_messages(conn, id)?;
    let range = TurnRange::single_turn(active.conversation, id);
    let steps = steps::load_steps(conn, range, LoadedBlocks::Text)?.remove(&id).unwrap_or_default();
    let failures = steps::collect_step_failures(&steps)?;
    let turn = Turn {
        steps: steps::collect_model_steps(steps)?,
        failures,
        resumes: convert_integer(row.attempts)?,
        work_failures: convert_integer(row.work_failures)?,
        cancel_requested: row.cancel_requested_at.is_some(),
        ..new_turn(id, &plan, &events, row.deadline_at)
    };
    Ok(LoadedTurn { turn, plan, events, run: convert_integer(row.runs)? })
}

/// Returns the log of a turn without steps.
fn new_turn(id: TurnId, plan: &TurnPlan, events: &[InboundEvent], deadline: Timestamp) -> Turn {
    Turn {
        id,
        responder: plan.responder,
        texts: match &plan.request {
            Some(request) => vec![request.clone()],
            None => events.iter().map(|event| event.body.clone()).collect(),
        },
        steps: Vec::new(),
        failures: Vec::new(),
        deadline,
        resumes: 0,
        work_failures: 0,
        cancel_requested: false,
        record: Arc::default(),
    }
}

impl LoadedTurn {
    /// Returns the state in which [`load_turn`] would load a turn right after its creation.
    pub fn from_start(id: TurnId, plan: TurnPlan, events: Vec<InboundEvent>, now: Timestamp) -> Self {
        Self { turn: new_turn(id, &plan, &events, now + TURN_TIME), plan, events, run: 1 }
    }
}

/// Records that the answer of the turn of a call mentions what people have watched. Its text is erased after a day.
pub fn mark_about_viewing(conn: &mut Conn, call: CallRow) -> QueryResult<()> {
    let turn = tool_calls::table.find(call).select(tool_calls::turn_id).single_value();
    diesel::update(turns::table.filter(turns::id.nullable().eq(turn)))
        .set(turns::about_viewing.eq(true))
        .execute(conn)
        .map(drop)
}

/// Requests that the user's running turn end before its next effect.
pub fn request_cancel(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    cached_update(turns::table.filter(turns::user_id.eq(user).and(turns::finished_at.is_null())))
        .set((turns::cancel_requested_at.eq(ms(now)), turns::updated_at.eq(ms(now))))
        .run(conn)
}

/// Like [`request_cancel`], unless the running turn answers another address of the user than `target`.
pub fn request_cancel_from(conn: &mut Conn, target: OptTarget, now: Timestamp) -> QueryResult<()> {
    let other_address = inbound_events::table
        .filter(inbound_events::turn_id.eq(turns::id.nullable()))
        .filter(inbound_events::address_id.ne(target.address));
    let running = turns::user_id.eq(target.user).and(turns::finished_at.is_null());
    diesel::update(turns::table.filter(running.and(dsl::not(dsl::exists(other_address)))))
        .set((turns::cancel_requested_at.eq(ms(now)), turns::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Like [`request_cancel`], for the turn that is running in a room.
pub fn request_cancel_in_room(conn: &mut Conn, room: UserId, now: Timestamp) -> QueryResult<()> {
    let in_room =
        conversation_rows::table.filter(conversation_rows::user_id.eq(room)).select(conversation_rows::id);
    let running =
        turns::table.filter(turns::finished_at.is_null().and(turns::conversation_id.eq_any(in_room)));
    diesel::update(running)
        .set((turns::cancel_requested_at.eq(ms(now)), turns::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Outcome of a request to cancel one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnCancelOutcome {
    /// The task of this user must be woken.
    Requested(UserId),
    AlreadyFinished,
    Unknown,
}

/// Like [`request_cancel`], for one turn.
pub fn cancel_turn(conn: &mut Conn, id: TurnId, now: Timestamp) -> QueryResult<TurnCancelOutcome> {
    let row: Option<(UserId, Option<Timestamp>)> =
        turns::table.find(id).select((turns::user_id, turns::finished_at)).first(conn).optional()?;
    match row {
        None => Ok(TurnCancelOutcome::Unknown),
        Some((_, Some(_))) => Ok(TurnCancelOutcome::AlreadyFinished),
        Some((user, None)) => {
            request_cancel(conn, user, now)?;
            Ok(TurnCancelOutcome::Requested(user))
        }
    }
}

pub fn is_cancel_requested(conn: &mut Conn, id: TurnId) -> QueryResult<bool> {
    let requested_at: Option<Timestamp> =
        turns::table.find(id).select(turns::cancel_requested_at).first(conn)?;
    Ok(requested_at.is_some())
}

/// Counts of a turn after an internal failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedTurn {
    /// Number of internal failures in this run.
    pub failures: u32,
    /// Number of the run of the turn, from 1.
    pub run: u32,
}

/// Counts a resume of a turn after a panic or an internal failure.
pub fn count_turn_resume(conn: &mut Conn, id: TurnId, now: Timestamp) -> QueryResult<FailedTurn> {
    let (failures, run): (i64, i64) = cached_update(turns::table.find(id))
        .set((
            turns::attempts.eq(turns::attempts + 1),
            turns::work_failures.eq(turns::work_failures + 1),
            turns::updated_at.eq(ms(now)),
        ))
        .returning((turns::work_failures, turns::runs))
        .get_result(conn)?;
    Ok(FailedTurn { failures: convert_integer(failures)?, run: convert_integer(run)? })
}

/// Sets the state of a running turn. Returns whether it had another state.
pub(in crate::store) fn set_turn_state(
    conn: &mut Conn,
    id: TurnId,
    state: StreamTurnState,
    now: Timestamp,
) -> QueryResult<bool> {
    let running = turns::table.find(id).filter(turns::finished_at.is_null());
    let changed: Option<TurnId> = cached_update(running.filter(turns::state.ne(state)))
        .set((turns::state.eq(state), turns::updated_at.eq(ms(now))))
        .returning(turns::id)
        .get_result(conn)
        .optional()?;
    Ok(changed.is_some())
}
