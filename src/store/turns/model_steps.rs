//! Model steps. An attempt is recorded before the request to the model, and a response before any of its calls runs.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use diesel::prelude::*;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{daily_budget, turn_lifecycle};
use crate::conversation::model_cost::{ModelCharge, TokenUsage};
use crate::conversation::transcript::{
    CallId, CallRow, CallState, ConversationId, EffectLevel, ModelStep, Responder, StopReason, ToolArguments,
    ToolCall, TurnId,
};
use crate::conversation::turn::StepFailure;
use crate::store::codec::{
    arguments_json, brain, brain_word, convert_integer, from_json, ms, parse_arguments, parse_call_failure,
    parse_call_result, parse_stop_reason, saturating_i64, stop_reason_word, tier, tier_word,
    timestamp_from_ms, to_json, unreadable_column,
};
use crate::store::database::literal_sql::LiteralSql;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{blocks, llm_steps, tool_calls, turns as turns_rows};
use crate::store::{Conn, stream};

const STARTED: LiteralSql = LiteralSql("llm_steps.state = 'started'");
const COMPLETE: LiteralSql = LiteralSql("llm_steps.state = 'complete'");

/// Identity of an attempt: its turn, its step and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptId {
    pub turn: TurnId,
    pub step: u32,
    pub attempt: u32,
}

pub fn start_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    brain: Responder,
    model: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let epoch = crate::store::boot::load_epoch(conn)?;
    diesel::insert_into(llm_steps::table)
        .values((
            llm_steps::turn_id.eq(attempt.turn.0),
            llm_steps::step.eq(i64::from(attempt.step)),
            llm_steps::attempt.eq(i64::from(attempt.attempt)),
            llm_steps::state.eq("started"),
            llm_steps::epoch.eq(epoch),
            llm_steps::brain.eq(brain_word(brain)),
            llm_steps::model.eq(model),
            llm_steps::started_at.eq(ms(now)),
        ))
        .execute(conn)?;
    turn_lifecycle::set_turn_state(conn, attempt.turn, "IN_PROGRESS", now)
}

/// Response of a model, as recorded for its step.
#[derive(Debug, Clone)]
pub struct RecordedResponse {
    pub text: String,
    pub thinking: String,
    pub stop: StopReason,
    pub calls: Vec<NewCall>,
    /// Tokens as counted by the model server; `None` if the server reported none.
    pub tokens: Option<TokenUsage>,
    pub charge: ModelCharge,
    pub response_id: Option<String>,
}

#[derive(Debug, Clone)]
pub struct NewCall {
    pub name: String,
    pub arguments: ToolArguments,
    pub tier: EffectLevel,
}

pub fn complete_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    response: &RecordedResponse,
    now: Timestamp,
) -> QueryResult<()> {
    stream::delta_writer::complete_blocks(conn, attempt, response, now)?;
    diesel::update(llm_steps::table.find((
        attempt.turn.0,
        i64::from(attempt.step),
        i64::from(attempt.attempt),
    )))
    .set((
        llm_steps::state.eq("complete"),
        llm_steps::finish_reason.eq(stop_reason_word(&response.stop)),
        llm_steps::provider_response_id.eq(&response.response_id),
        llm_steps::tokens_in.eq(response.tokens.map(|tokens| saturating_i64(tokens.input))),
        llm_steps::tokens_cached.eq(response.tokens.map(|tokens| saturating_i64(tokens.cached))),
        llm_steps::tokens_out.eq(response.tokens.map(|tokens| saturating_i64(tokens.output))),
        llm_steps::finished_at.eq(ms(now)),
    ))
    .cached()
    .execute(conn)?;
    daily_budget::settle_call_cost(conn, attempt.turn, response.charge)?;
    add_blocks(conn, attempt, response)?;
    for (ord, call) in (0_u32..).zip(&response.calls) {
        diesel::insert_into(tool_calls::table)
            .values((
                tool_calls::turn_id.eq(attempt.turn.0),
                tool_calls::step.eq(i64::from(attempt.step)),
                tool_calls::ord.eq(i64::from(ord)),
                tool_calls::call_id.eq(CallId::from_position(attempt.turn, attempt.step, ord).as_str()),
                tool_calls::tool_name.eq(&call.name),
                tool_calls::effect.eq(tier_word(call.tier)),
                tool_calls::state.eq("created"),
                tool_calls::request.eq(arguments_json(&call.arguments)),
                tool_calls::created_at.eq(ms(now)),
                tool_calls::updated_at.eq(ms(now)),
            ))
            .execute(conn)?;
    }
    let state = if response.calls.is_empty() { "IN_PROGRESS" } else { "WAITING_FOR_TOOLS" };
    turn_lifecycle::set_turn_state(conn, attempt.turn, state, now)
}

/// Adds a call for a deletion for which code sends a new confirmation prompt, as a call of its own turn.
pub fn add_call(conn: &mut Conn, turn: TurnId, tool: &str, now: Timestamp) -> QueryResult<CallRow> {
    diesel::insert_into(tool_calls::table)
        .values((
            tool_calls::turn_id.eq(turn.0),
            tool_calls::step.eq(0),
            tool_calls::ord.eq(0),
            tool_calls::call_id.eq(CallId::from_position(turn, 0, 0).as_str()),
            tool_calls::tool_name.eq(tool),
            tool_calls::effect.eq(tier_word(EffectLevel::Destructive)),
            tool_calls::state.eq("created"),
            tool_calls::request.eq(arguments_json(&ToolArguments::Object(serde_json::Map::new()))),
            tool_calls::created_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(tool_calls::id)
        .get_result(conn)
        .map(CallRow)
}

fn add_blocks(conn: &mut Conn, attempt: AttemptId, response: &RecordedResponse) -> QueryResult<()> {
    let mut contents = Vec::new();
    if !response.thinking.is_empty() {
        contents.push(("thinking", response.thinking.clone()));
    }
    if !response.text.is_empty() {
        contents.push(("text", response.text.clone()));
    }
    contents.extend(response.calls.iter().map(|call| ("tool_call", call.name.clone())));
    let first: i64 = blocks::table.filter(blocks::turn_id.eq(attempt.turn.0)).count().get_result(conn)?;
    for (idx, (kind, content)) in (first..).zip(contents) {
        diesel::insert_into(blocks::table)
            .values((
                blocks::turn_id.eq(attempt.turn.0),
                blocks::idx.eq(idx),
                blocks::step.eq(i64::from(attempt.step)),
                blocks::attempt.eq(i64::from(attempt.attempt)),
                blocks::type_.eq(kind),
                blocks::content.eq(content),
            ))
            .execute(conn)?;
    }
    Ok(())
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StoredAttemptFailure {
    Transient {
        retry_after_ms: Option<u64>,
        message: String,
    },
    Lasting {
        message: String,
    },
    Interrupted,
    /// The attempt failed, and the operator has since resumed the turn: the attempt counts against no limit.
    Forgiven,
}

/// Expression that removes the model server's message from a stored failure.
pub(in crate::store) const FAILURE_WITHOUT_WORDS: &str = "json_replace(llm_steps.error, '$.message', '')";

/// Reason why an attempt gave no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedAttempt {
    pub failure: StepFailure,
    /// Error message for the operator.
    pub message: String,
    pub charge: ModelCharge,
}

/// Ends an attempt that gave no response.
pub fn abandon_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    abandoned: AbandonedAttempt,
    now: Timestamp,
) -> QueryResult<()> {
    let AbandonedAttempt { failure: why, message, charge } = abandoned;
    let stored = match why {
        StepFailure::Transient { retry_after, .. } => StoredAttemptFailure::Transient {
            retry_after_ms: retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            message,
        },
        StepFailure::Lasting => StoredAttemptFailure::Lasting { message },
        StepFailure::Interrupted => StoredAttemptFailure::Interrupted,
    };
    diesel::update(llm_steps::table.find((
        attempt.turn.0,
        i64::from(attempt.step),
        i64::from(attempt.attempt),
    )))
    .set((
        llm_steps::state.eq("abandoned"),
        llm_steps::error.eq(to_json(&stored)?),
        llm_steps::finished_at.eq(ms(now)),
    ))
    .cached()
    .execute(conn)?;
    daily_budget::settle_call_cost(conn, attempt.turn, charge)?;
    turn_lifecycle::set_turn_state(conn, attempt.turn, "ERROR", now)
}

/// Ends the attempts that were running when the program stopped.
pub(in crate::store) fn abandon_interrupted_attempts(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let running: Vec<i64> =
        turns_rows::table.filter(turns_rows::finished_at.is_null()).select(turns_rows::id).load(conn)?;
    running.into_iter().try_for_each(|turn| abandon_unfinished(conn, TurnId(turn), now))
}

/// Ends the attempt that was running when an internal error failed the turn, if there was one. The next attempt gets a
/// new number.
pub fn abandon_unfinished(conn: &mut Conn, turn: TurnId, now: Timestamp) -> QueryResult<()> {
    let running = llm_steps::turn_id.eq(turn.0).and(STARTED);
    diesel::update(llm_steps::table.filter(running))
        .set((
            llm_steps::state.eq("abandoned"),
            llm_steps::error.eq(to_json(&StoredAttemptFailure::Interrupted)?),
            llm_steps::finished_at.eq(ms(now)),
        ))
        .cached()
        .execute(conn)?;
    // It is unknown how much of the request the model server processed.
    daily_budget::settle_call_cost(conn, turn, ModelCharge::Input)
}

/// Loads the failed attempts at the step after `completed` steps, oldest first.
pub(in crate::store) fn load_attempt_failures(
    conn: &mut Conn,
    turn: TurnId,
    completed: usize,
) -> QueryResult<Vec<StepFailure>> {
    let step = i64::try_from(completed).unwrap_or(i64::MAX);
    let rows: Vec<(Option<String>, Option<i64>)> = llm_steps::table
        .filter(
            llm_steps::turn_id.eq(turn.0).and(llm_steps::step.eq(step)).and(llm_steps::state.eq("abandoned")),
        )
        .order(llm_steps::attempt)
        .select((llm_steps::error, llm_steps::finished_at))
        .load(conn)?;
    rows.into_iter()
        .map(|(error, at)| match from_json("failure", error.as_deref().unwrap_or_default())? {
            StoredAttemptFailure::Transient { retry_after_ms, .. } => Ok(StepFailure::Transient {
                at: timestamp_from_ms(at.unwrap_or_default())?,
                retry_after: retry_after_ms.map(Duration::from_millis),
            }),
            StoredAttemptFailure::Lasting { .. } => Ok(StepFailure::Lasting),
            StoredAttemptFailure::Interrupted | StoredAttemptFailure::Forgiven => {
                Ok(StepFailure::Interrupted)
            }
        })
        .collect()
}

/// Lists of loaded values by key. An error replaces a list that contains an unreadable row.
pub(in crate::store) type ListsByKey<K, T> = HashMap<K, QueryResult<Vec<T>>>;

/// Loads the completed steps with their calls, in order, of the turns of a conversation from one turn on. For a turn
/// with an unreadable row the entry is the error, so that the other turns can still be read.
pub(in crate::store) fn load_turn_steps(
    conn: &mut Conn,
    conversation: ConversationId,
    from: TurnId,
) -> QueryResult<ListsByKey<TurnId, ModelStep>> {
    let turns = || turn_lifecycle::select_turn_ids_from(conversation, from);
    let done: Vec<(i64, i64, i64, String, Option<String>)> = llm_steps::table
        .filter(llm_steps::turn_id.eq_any(turns()).and(COMPLETE))
        .order((llm_steps::turn_id, llm_steps::step))
        .select((
            llm_steps::turn_id,
            llm_steps::step,
            llm_steps::attempt,
            llm_steps::brain,
            llm_steps::finish_reason,
        ))
        .load(conn)?;
    let texts: Vec<(i64, i64, i64, String)> = blocks::table
        .filter(blocks::turn_id.eq_any(turns()).and(blocks::type_.eq("text")))
        .order((blocks::turn_id, blocks::idx))
        .select((blocks::turn_id, blocks::step, blocks::attempt, blocks::content))
        .load(conn)?;
    let mut texts: HashMap<(i64, i64, i64), String> =
        texts.into_iter().map(|(turn, step, attempt, text)| ((turn, step, attempt), text)).collect();
    let mut calls = load_calls_by_step(conn, conversation, from)?;
    let mut steps = HashMap::new();
    for (turn, step, attempt, word, reason) in done {
        let text = texts.remove(&(turn, step, attempt)).unwrap_or_default();
        let stop = parse_stop_reason(reason.as_deref().unwrap_or("stop"));
        let calls = calls.remove(&(turn, step)).unwrap_or_else(|| Ok(Vec::new()));
        let step = calls.and_then(|calls| Ok(ModelStep { text, stop, calls, responder: brain(&word)? }));
        append_to_list(&mut steps, TurnId(turn), step);
    }
    Ok(steps)
}

/// Appends a loaded value to its list. The first error of a list is preserved.
fn append_to_list<K: Eq + Hash, T>(lists: &mut ListsByKey<K, T>, key: K, read: QueryResult<T>) {
    let list_of_key = lists.entry(key).or_insert_with(|| Ok(Vec::new()));
    match (&mut *list_of_key, read) {
        (Ok(list), Ok(one)) => list.push(one),
        (Ok(_), Err(error)) => *list_of_key = Err(error),
        (Err(_), _) => {}
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tool_calls)]
pub(in crate::store) struct ToolCallRow {
    id: i64,
    turn_id: i64,
    step: i64,
    call_id: String,
    tool_name: String,
    effect: String,
    state: String,
    request: String,
    response: Option<String>,
    error: Option<String>,
}

impl ToolCallRow {
    pub(in crate::store) fn into_tool_call(self) -> QueryResult<ToolCall> {
        let text = |column: Option<String>| column.ok_or_else(|| unreadable_column("call"));
        let state = match self.state.as_str() {
            "created" => CallState::Created,
            "running" | "unknown" => CallState::Running,
            "held" => CallState::Held,
            "complete" => CallState::Done(parse_call_result(&text(self.response)?)?),
            "error" => CallState::Failed(parse_call_failure(&text(self.error)?)?),
            "canceled" => CallState::Canceled(from_json("reason", &text(self.error)?)?),
            _ => return Err(unreadable_column("call state")),
        };
        Ok(ToolCall {
            row: CallRow(self.id),
            id: CallId::from_stored(self.call_id),
            step: convert_integer(self.step)?,
            name: self.tool_name,
            arguments: parse_arguments(&self.request)?,
            effect_level: tier(&self.effect)?,
            state,
        })
    }
}

fn load_calls_by_step(
    conn: &mut Conn,
    conversation: ConversationId,
    from: TurnId,
) -> QueryResult<ListsByKey<(i64, i64), ToolCall>> {
    let records: Vec<ToolCallRow> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(turn_lifecycle::select_turn_ids_from(conversation, from)))
        .order((tool_calls::turn_id, tool_calls::step, tool_calls::ord))
        .select(ToolCallRow::as_select())
        .load(conn)?;
    let mut calls = HashMap::new();
    for record in records {
        append_to_list(&mut calls, (record.turn_id, record.step), record.into_tool_call());
    }
    Ok(calls)
}
