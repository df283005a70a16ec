//! Steps of the responder behind an answer: the attempts, their thinking and text, the tool calls and their results.

use std::collections::{BTreeMap, HashMap};

use diesel::prelude::*;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{RowsByTurn, group_rows_by_turn};
use crate::conversation::stream_events::{BlockKind, CallPhase};
use crate::conversation::transcript::{CallRow, EffectLevel, Responder, ToolArguments};
use crate::store::codec::{
    brain, convert_integer, from_json, if_readable, parse_arguments, parse_call_failure, parse_call_result,
    part, tier, timestamp_from_ms, unreadable_column,
};
use crate::store::schema::{blocks, llm_steps, stream_events, tool_calls};
use crate::store::stream::event_reader::parse_call_phase;
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone)]
pub struct StepEntry {
    pub number: u32,
    pub attempts: Vec<AttemptEntry>,
    pub calls: Vec<ToolCallEntry>,
}

/// One attempt at a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEntry {
    pub brain: Responder,
    pub model: String,
    pub state: AttemptState,
    pub tokens: Option<AttemptTokens>,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub thinking: String,
    pub text: String,
    /// Tool calls that are still being written.
    pub drafts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    Running,
    Complete,
    /// The attempt gave no response, for this reason.
    Abandoned(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptTokens {
    pub input: i64,
    pub cached: i64,
    pub output: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallEntry {
    pub row: CallRow,
    pub tool: String,
    pub tier: EffectLevel,
    pub arguments: ToolArguments,
    pub phase: CallPhase,
    /// Result of the tool, as a sentence for users.
    pub outcome: Option<String>,
    /// Result that the model receives.
    pub for_model: Option<Value>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

type StepsByNumber = BTreeMap<u32, StepEntry>;

pub(super) fn load_step_entries(conn: &mut Conn, turns: &[i64]) -> QueryResult<RowsByTurn<StepEntry>> {
    let mut by_turn: HashMap<i64, StepsByNumber> = HashMap::new();
    for (turn, step, attempt) in load_attempt_entries(conn, turns)? {
        step_entry_mut(&mut by_turn, turn, step).attempts.push(attempt);
    }
    let calls: Vec<ToolCallEntryRow> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(turns))
        .order((tool_calls::turn_id, tool_calls::step, tool_calls::ord))
        .select(ToolCallEntryRow::as_select())
        .load(conn)?;
    for record in calls {
        let (turn, step) = (record.turn_id, convert_integer(record.step)?);
        // An unreadable call is skipped, so that the page still shows the rest of the turn.
        step_entry_mut(&mut by_turn, turn, step).calls.extend(if_readable(record.into_call())?);
    }
    Ok(by_turn.into_iter().map(|(turn, steps)| (turn, steps.into_values().collect())).collect())
}

fn step_entry_mut(turns: &mut HashMap<i64, StepsByNumber>, turn: i64, number: u32) -> &mut StepEntry {
    let steps = turns.entry(turn).or_default();
    steps.entry(number).or_insert(StepEntry { number, attempts: Vec::new(), calls: Vec::new() })
}

/// Loads the calls that these turns execute on behalf of an earlier turn.
pub(super) fn load_executed_calls(conn: &mut Conn, turns: &[i64]) -> QueryResult<RowsByTurn<ToolCallEntry>> {
    let records: Vec<(Option<i64>, ToolCallEntryRow)> = tool_calls::table
        .filter(tool_calls::run_turn_id.eq_any(turns.iter().map(|id| Some(*id))))
        .order(tool_calls::id)
        .select((tool_calls::run_turn_id, ToolCallEntryRow::as_select()))
        .load(conn)?;
    let others = records.into_iter().filter(|(run_by, record)| *run_by != Some(record.turn_id));
    let read = |(run_by, record): (Option<i64>, ToolCallEntryRow)| {
        let call = if_readable(record.into_call()).transpose()?;
        Some(call.map(|call| (run_by.unwrap_or_default(), call)))
    };
    group_rows_by_turn(others.filter_map(read))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = llm_steps)]
struct AttemptRow {
    turn_id: i64,
    step: i64,
    attempt: i64,
    state: String,
    brain: String,
    model: String,
    tokens_in: Option<i64>,
    tokens_cached: Option<i64>,
    tokens_out: Option<i64>,
    error: Option<String>,
    started_at: i64,
    finished_at: Option<i64>,
}

#[derive(Deserialize)]
struct StoredAttemptError {
    kind: String,
    #[serde(default)]
    message: String,
}

fn load_attempt_entries(conn: &mut Conn, turns: &[i64]) -> QueryResult<Vec<(i64, u32, AttemptEntry)>> {
    let records: Vec<AttemptRow> = llm_steps::table
        .filter(llm_steps::turn_id.eq_any(turns))
        .order((llm_steps::turn_id, llm_steps::step, llm_steps::attempt))
        .select(AttemptRow::as_select())
        .load(conn)?;
    let mut recorded = load_recorded_content(conn, turns)?;
    let mut all = Vec::new();
    for record in records {
        let key = (record.turn_id, record.step, record.attempt);
        let words = match record.state.as_str() {
            "started" => load_streamed_content(conn, key)?,
            "complete" | "abandoned" => recorded.remove(&key).unwrap_or_default(),
            _ => return Err(unreadable_column("state of a step")),
        };
        all.push((record.turn_id, convert_integer(record.step)?, record.into_attempt(words)?));
    }
    Ok(all)
}

impl AttemptRow {
    fn into_attempt(self, words: ResponseContent) -> QueryResult<AttemptEntry> {
        let state = match self.state.as_str() {
            "started" => AttemptState::Running,
            "complete" => AttemptState::Complete,
            _ => AttemptState::Abandoned(match self.error.as_deref() {
                Some(text) => {
                    let StoredAttemptError { kind, message } = from_json("error of a step", text)?;
                    if message.is_empty() { kind } else { message }
                }
                None => String::new(),
            }),
        };
        let tokens = self.tokens_in.map(|input| AttemptTokens {
            input,
            cached: self.tokens_cached.unwrap_or_default(),
            output: self.tokens_out.unwrap_or_default(),
        });
        Ok(AttemptEntry {
            brain: brain(&self.brain)?,
            model: self.model,
            state,
            tokens,
            started_at: timestamp_from_ms(self.started_at)?,
            finished_at: self.finished_at.map(timestamp_from_ms).transpose()?,
            thinking: words.thinking,
            text: words.text,
            drafts: words.drafts.into_values().collect(),
        })
    }
}

/// Content of a response, as far as it has arrived.
#[derive(Debug, Default)]
struct ResponseContent {
    thinking: String,
    text: String,
    drafts: BTreeMap<i64, String>,
}

/// Ids of turn, step and attempt.
type RawAttemptId = (i64, i64, i64);

/// Loads the text and thinking of recorded responses. Their tool calls have rows of their own.
fn load_recorded_content(
    conn: &mut Conn,
    turns: &[i64],
) -> QueryResult<HashMap<RawAttemptId, ResponseContent>> {
    let rows: Vec<(i64, i64, i64, String, String)> = blocks::table
        .filter(blocks::turn_id.eq_any(turns))
        .order((blocks::turn_id, blocks::idx))
        .select((blocks::turn_id, blocks::step, blocks::attempt, blocks::type_, blocks::content))
        .load(conn)?;
    let mut all: HashMap<RawAttemptId, ResponseContent> = HashMap::new();
    for (turn, step, attempt, word, content) in rows {
        let words = all.entry((turn, step, attempt)).or_default();
        match part(&word)? {
            BlockKind::Text => words.text.push_str(&content),
            BlockKind::Thinking => words.thinking.push_str(&content),
            BlockKind::ToolCall => {}
        }
    }
    Ok(all)
}

/// Loads the response in progress, without the parts that were voided.
fn load_streamed_content(
    conn: &mut Conn,
    (turn, step, attempt): RawAttemptId,
) -> QueryResult<ResponseContent> {
    type StreamedBlockRow = (String, Option<String>, Option<i64>, Option<String>);
    let rows: Vec<StreamedBlockRow> = stream_events::table
        .filter(stream_events::turn_id.eq(turn))
        .filter(stream_events::step.eq(step).and(stream_events::attempt.eq(attempt)))
        .filter(stream_events::kind.eq_any(["block_delta", "step_abandoned"]))
        .order(stream_events::seq)
        .select((stream_events::kind, stream_events::block_type, stream_events::ord, stream_events::delta))
        .load(conn)?;
    let mut words = ResponseContent::default();
    for (kind, word, ord, delta) in rows {
        if kind == "step_abandoned" {
            words = ResponseContent::default();
            continue;
        }
        let delta = delta.unwrap_or_default();
        match part(word.as_deref().unwrap_or_default())? {
            BlockKind::Text => words.text.push_str(&delta),
            BlockKind::Thinking => words.thinking.push_str(&delta),
            BlockKind::ToolCall => words.drafts.entry(ord.unwrap_or_default()).or_default().push_str(&delta),
        }
    }
    Ok(words)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tool_calls)]
struct ToolCallEntryRow {
    id: i64,
    turn_id: i64,
    step: i64,
    tool_name: String,
    effect: String,
    request: String,
    state: String,
    response: Option<String>,
    error: Option<String>,
    started_at: Option<i64>,
    finished_at: Option<i64>,
}

impl ToolCallEntryRow {
    fn into_call(self) -> QueryResult<ToolCallEntry> {
        let phase = parse_call_phase(&self.state)?;
        let (outcome, for_model) = match (phase, self.response, self.error) {
            (_, Some(response), _) => {
                let result = parse_call_result(&response)?;
                (Some(result.for_user), Some(result.for_model))
            }
            (CallPhase::Error, None, Some(error)) => {
                let failure = parse_call_failure(&error)?;
                (failure.for_user.or_else(|| Some(failure.code.to_string())), Some(failure.for_model))
            }
            // Here the error is the reason why the call was canceled.
            (_, None, Some(error)) => (from_json("end of a call", &error)?, None),
            (_, None, None) => (None, None),
        };
        Ok(ToolCallEntry {
            row: CallRow(self.id),
            tool: self.tool_name,
            tier: tier(&self.effect)?,
            arguments: parse_arguments(&self.request)?,
            phase,
            outcome: outcome.filter(|words| !words.is_empty()),
            for_model,
            started_at: self.started_at.map(timestamp_from_ms).transpose()?,
            finished_at: self.finished_at.map(timestamp_from_ms).transpose()?,
        })
    }
}
