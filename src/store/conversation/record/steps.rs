//! Records of model steps: the attempts at a response, their blocks, and the tool calls of the response.

use std::collections::{BTreeMap, HashMap};

use diesel::prelude::*;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::conversation::stream_events::{BlockKind, CallPhase};
use crate::conversation::transcript::{
    CallFailure, CallId, CallResult, CallRow, CallState, EffectLevel, ModelStep, Responder, ToolArguments,
    ToolCall, TurnId,
};
use crate::conversation::turn::StepFailure;
use crate::store::codec::{
    parse_arguments, parse_call_failure, parse_call_result, parse_stop_reason, unreadable_column,
};
use crate::store::column_types::{StoredCount, StoredJson, stored_enum};
use crate::store::conversation::record::turn_range::{TurnRange, select_turn_ids};
use crate::store::schema::{blocks, llm_steps, tool_calls};
use crate::store::stream::response_blocks::StreamedBlocks;
use crate::store::turns::model_steps::{AttemptId, StoredAttemptFailure};
use crate::store::{Conn, QueryResult};

/// Model step of a turn. A step without attempts has calls that code added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    pub number: u32,
    pub attempts: Vec<AttemptRecord>,
    pub calls: Vec<ToolCallRecord>,
}

/// One attempt at a response, with its recorded blocks or, while it runs, the blocks received so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    pub row: AttemptRow,
    pub blocks: Vec<BlockRecord>,
}

/// Attempt as stored, without its blocks.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = llm_steps)]
pub struct AttemptRow {
    #[serde(skip)]
    #[diesel(column_name = turn_id)]
    turn: TurnId,
    #[diesel(deserialize_as = StoredCount)]
    pub step: u32,
    #[diesel(deserialize_as = StoredCount)]
    pub attempt: u32,
    pub state: AttemptState,
    #[serde(rename = "answered_by")]
    #[diesel(column_name = brain)]
    pub responder: Responder,
    pub model: String,
    finish_reason: Option<String>,
    pub tokens_in: Option<i64>,
    pub tokens_cached: Option<i64>,
    pub tokens_out: Option<i64>,
    error: Option<StoredJson>,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

stored_enum! {
    /// State of an attempt.
    pub enum AttemptState {
        Started = "started",
        Complete = "complete",
        /// The attempt gave no response.
        Abandoned = "abandoned",
    }
}

/// Block of a response, or consecutive text of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRecord {
    pub kind: BlockKind,
    /// Index of the call in the response; 0 for text and thinking.
    pub ord: u32,
    /// Text of the block. A recorded block of a call contains only the name of the tool, since the arguments are stored
    /// with the call.
    pub text: String,
}

/// Tool call of a step.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = tool_calls)]
pub struct ToolCallRecord {
    #[serde(skip)]
    pub id: CallRow,
    #[serde(skip)]
    #[diesel(column_name = turn_id)]
    pub turn: TurnId,
    #[serde(skip)]
    #[diesel(deserialize_as = StoredCount)]
    pub step: u32,
    #[serde(skip)]
    #[diesel(deserialize_as = StoredCount)]
    pub ord: u32,
    #[serde(skip)]
    call_id: String,
    /// Turn that executes the call, if not the one that requested it.
    #[serde(skip)]
    #[diesel(column_name = run_turn_id)]
    pub run_turn: Option<TurnId>,
    #[diesel(column_name = tool_name)]
    pub tool: String,
    pub effect: EffectLevel,
    pub state: CallPhase,
    request: StoredJson,
    #[diesel(column_name = response)]
    result: Option<StoredJson>,
    error: Option<StoredJson>,
    created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// Outcome of a call, for users and for the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOutcome {
    pub for_user: Option<String>,
    pub for_model: Option<Value>,
}

impl ToolCallRecord {
    /// Removes the result, which mentions what somebody has watched.
    pub(super) fn hide_result(&mut self) {
        (self.result, self.error) = (None, None);
    }

    pub fn arguments(&self) -> QueryResult<ToolArguments> {
        parse_arguments(self.request.as_str())
    }

    pub fn result(&self) -> QueryResult<Option<CallResult>> {
        self.result.as_ref().map(|result| parse_call_result(result.as_str())).transpose()
    }

    fn failure(&self) -> QueryResult<CallFailure> {
        parse_call_failure(self.required_error()?.as_str())
    }

    fn required_error(&self) -> QueryResult<&StoredJson> {
        self.error.as_ref().ok_or_else(|| unreadable_column("call"))
    }

    pub fn outcome(&self) -> QueryResult<CallOutcome> {
        let (for_user, for_model) = match (self.result()?, self.state, &self.error) {
            (Some(result), ..) => (Some(result.for_user), Some(result.for_model)),
            (None, CallPhase::Error, Some(_)) => {
                let failure = self.failure()?;
                (failure.for_user.or_else(|| Some(failure.code.to_string())), Some(failure.for_model))
            }
            // The error column of a canceled call holds the reason of the cancellation.
            (None, _, Some(reason)) => (Some(reason.parse("reason")?), None),
            (None, _, None) => (None, None),
        };
        Ok(CallOutcome { for_user: for_user.filter(|text| !text.is_empty()), for_model })
    }

    pub(in crate::store) fn into_tool_call(self) -> QueryResult<ToolCall> {
        let state = match self.state {
            CallPhase::Created => CallState::Created,
            CallPhase::Running | CallPhase::Unknown => CallState::Running,
            CallPhase::Held => CallState::AwaitingConfirmation,
            CallPhase::Complete => CallState::Done(self.result()?.ok_or_else(|| unreadable_column("call"))?),
            CallPhase::Error => CallState::Failed(self.failure()?),
            CallPhase::Canceled => CallState::Canceled(self.required_error()?.parse("reason")?),
        };
        Ok(ToolCall {
            row: self.id,
            id: CallId::from_stored(self.call_id),
            step: self.step,
            arguments: parse_arguments(self.request.as_str())?,
            name: self.tool,
            effect_level: self.effect,
            state,
        })
    }
}

impl AttemptRecord {
    pub fn is_running(&self) -> bool {
        self.row.state == AttemptState::Started
    }

    /// Returns the text of all blocks of this kind; `None` if the response has none.
    pub fn text(&self, kind: BlockKind) -> Option<String> {
        let texts: Vec<&str> =
            self.blocks.iter().filter(|block| block.kind == kind).map(|block| block.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }
}

impl AttemptRow {
    fn id(&self) -> AttemptId {
        AttemptId { turn: self.turn, step: self.step, attempt: self.attempt }
    }

    fn failure(&self) -> QueryResult<StepFailure> {
        let error = self.error.as_ref().ok_or_else(|| unreadable_column("failure"))?;
        Ok(error.parse::<StoredAttemptFailure>("failure")?.into_step_failure(self.finished_at))
    }

    /// Returns the error message of an attempt that gave no response, or else the kind of its failure.
    pub fn failure_message(&self) -> QueryResult<Option<String>> {
        let Some(error) = &self.error else { return Ok(None) };
        let error: Value = error.parse("error of a step")?;
        let text_field = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        Ok(text_field("message").or_else(|| text_field("kind")).map(str::to_owned))
    }
}

impl StepRecord {
    /// Removes the texts, which may mention what somebody has watched.
    pub(super) fn hide_texts(&mut self) {
        for attempt in &mut self.attempts {
            attempt.blocks.retain(|block| block.kind == BlockKind::ToolCall);
        }
        self.calls.iter_mut().for_each(ToolCallRecord::hide_result);
    }

    /// Adds the blocks that running attempts have streamed so far.
    pub(super) fn add_streamed_blocks(&mut self, streamed: &StreamedBlocks) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.is_running()) {
            attempt.blocks = streamed.get(&attempt.row.id()).cloned().unwrap_or_default();
        }
    }

    fn is_complete(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.row.state == AttemptState::Complete)
    }

    /// Returns the response of the step; `None` while no attempt is complete.
    fn into_model_step(self) -> QueryResult<Option<ModelStep>> {
        let is_complete = |attempt: &&AttemptRecord| attempt.row.state == AttemptState::Complete;
        let Some(attempt) = self.attempts.iter().find(is_complete) else { return Ok(None) };
        let calls = self.calls.into_iter().map(ToolCallRecord::into_tool_call);
        Ok(Some(ModelStep {
            text: attempt.text(BlockKind::Text).unwrap_or_default(),
            stop: parse_stop_reason(attempt.row.finish_reason.as_deref().unwrap_or("stop")),
            responder: attempt.row.responder,
            calls: shrink(calls.collect::<QueryResult<_>>()?),
        }))
    }
}

/// Returns the responses of the complete steps of a turn.
pub(in crate::store) fn collect_model_steps(steps: Vec<StepRecord>) -> QueryResult<Vec<ModelStep>> {
    let steps = steps.into_iter().filter_map(|step| step.into_model_step().transpose());
    steps.collect::<QueryResult<_>>().map(shrink)
}

/// Returns the same values in no more memory than they need: the vector that a converted one is collected from leaves
/// its larger allocation to it. The converted values stay in memory as the history of conversations.
fn shrink<T>(mut values: Vec<T>) -> Vec<T> {
    values.shrink_to_fit();
    values
}

/// Returns the failed attempts at the step after the complete ones, oldest first.
pub(in crate::store) fn collect_step_failures(steps: &[StepRecord]) -> QueryResult<Vec<StepFailure>> {
    let completed = steps.iter().filter(|step| step.is_complete()).count();
    let next_step =
        steps.iter().filter(|step| usize::try_from(step.number).is_ok_and(|number| number == completed));
    let failed = next_step
        .flat_map(|step| &step.attempts)
        .filter(|attempt| attempt.row.state == AttemptState::Abandoned);
    failed.map(|attempt| attempt.row.failure()).collect()
}

/// Blocks to load with the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum LoadedBlocks {
    /// Only the text of recorded responses, as a model receives them.
    Text,
    /// All blocks of recorded responses.
    All,
}

/// Loads the steps of turns, in order.
pub(in crate::store) fn load_steps(
    conn: &mut Conn,
    turns: TurnRange,
    loaded_blocks: LoadedBlocks,
) -> QueryResult<HashMap<TurnId, Vec<StepRecord>>> {
    let attempts: Vec<AttemptRow> = llm_steps::table
        .filter(llm_steps::turn_id.eq_any(select_turn_ids(turns)))
        .order((llm_steps::turn_id, llm_steps::step, llm_steps::attempt))
        .select(AttemptRow::as_select())
        .load(conn)?;
    let mut recorded = load_recorded_blocks(conn, turns, loaded_blocks)?;
    let calls: Vec<ToolCallRecord> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(select_turn_ids(turns)))
        .order((tool_calls::turn_id, tool_calls::step, tool_calls::ord))
        .select(ToolCallRecord::as_select())
        .load(conn)?;
    let mut steps: BTreeMap<(TurnId, u32), StepRecord> = BTreeMap::new();
    for row in attempts {
        let blocks = recorded.remove(&row.id()).unwrap_or_default();
        step_entry(&mut steps, row.turn, row.step).attempts.push(AttemptRecord { row, blocks });
    }
    for call in calls {
        step_entry(&mut steps, call.turn, call.step).calls.push(call);
    }
    let mut by_turn: HashMap<TurnId, Vec<StepRecord>> = HashMap::new();
    for ((turn, _), step) in steps {
        by_turn.entry(turn).or_default().push(step);
    }
    Ok(by_turn)
}

fn step_entry(steps: &mut BTreeMap<(TurnId, u32), StepRecord>, turn: TurnId, number: u32) -> &mut StepRecord {
    let empty = || StepRecord { number, attempts: Vec::new(), calls: Vec::new() };
    steps.entry((turn, number)).or_insert_with(empty)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = blocks)]
struct BlockRow {
    #[diesel(column_name = turn_id)]
    turn: TurnId,
    #[diesel(deserialize_as = StoredCount)]
    step: u32,
    #[diesel(deserialize_as = StoredCount)]
    attempt: u32,
    #[diesel(column_name = type_)]
    kind: BlockKind,
    content: String,
}

fn load_recorded_blocks(
    conn: &mut Conn,
    turns: TurnRange,
    loaded_blocks: LoadedBlocks,
) -> QueryResult<HashMap<AttemptId, Vec<BlockRecord>>> {
    let rows = blocks::table
        .filter(blocks::turn_id.eq_any(select_turn_ids(turns)))
        .order((blocks::turn_id, blocks::idx))
        .select(BlockRow::as_select());
    let rows: Vec<BlockRow> = match loaded_blocks {
        LoadedBlocks::Text => rows.filter(blocks::type_.eq(BlockKind::Text)).load(conn)?,
        LoadedBlocks::All => rows.load(conn)?,
    };
    let mut recorded: HashMap<AttemptId, Vec<BlockRecord>> = HashMap::new();
    for row in rows {
        let blocks =
            recorded.entry(AttemptId { turn: row.turn, step: row.step, attempt: row.attempt }).or_default();
        let last_call = blocks.iter().rfind(|block| block.kind == BlockKind::ToolCall);
        let ord = match row.kind {
            BlockKind::Text | BlockKind::Thinking => 0,
            BlockKind::ToolCall => last_call.map_or(0, |call| call.ord + 1),
        };
        blocks.push(BlockRecord { kind: row.kind, ord, text: row.content });
    }
    Ok(recorded)
}
