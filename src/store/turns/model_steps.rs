//! Storage of model steps. An attempt is stored before the request to the model, and a response before any of its calls
//! runs.

use std::time::Duration;

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::turn_lifecycle;
use crate::conversation::model_cost::TokenUsage;
use crate::conversation::prompt::FrozenContext;
use crate::conversation::stream_events::{BlockKind, CallPhase, StreamEventKind, StreamTurnState};
use crate::conversation::transcript::{
    CallId, CallRow, CallState, EffectLevel, Responder, StopReason, ToolArguments, ToolCall, TurnId,
};
use crate::conversation::turn::StepFailure;
use crate::store::codec::{arguments_json, convert_integer, ms, saturating_i64, stop_reason_text, to_json};
use crate::store::conversation::record::steps::AttemptState;
use crate::store::database::literal_sql::literal_sql;
use crate::store::database::statement_cache::{CacheStatement, cached_update};
use crate::store::schema::{blocks, llm_steps, tool_calls, turns};
use crate::store::stream::recording::record_event;
use crate::store::stream::response_blocks;
use crate::store::{Conn, boot};

literal_sql! {
    /// Condition of a running attempt.
    const RUNNING = "llm_steps.state = 'started'";
}

/// Identity of an attempt: its turn, its step and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptId {
    pub turn: TurnId,
    pub step: u32,
    pub attempt: u32,
}

/// Stores an attempt that is about to start.
pub fn start_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    responder: Responder,
    model: &str,
    now: Timestamp,
) -> QueryResult<()> {
    insert_attempt(conn, attempt, (responder, model), now)?;
    let has_changed = turn_lifecycle::set_turn_state(conn, attempt.turn, StreamTurnState::InProgress, now)?;
    // The first attempt of a later step follows the calls of the step before.
    if has_changed || (attempt.step > 0 && attempt.attempt == 1) {
        record_event(conn, attempt.turn, now, StreamEventKind::Turn(StreamTurnState::InProgress))?;
    }
    Ok(())
}

/// Stores the first attempt of a turn, with the context of the turn's requests.
pub fn start_first_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    model: &str,
    context: &FrozenContext,
    now: Timestamp,
) -> QueryResult<()> {
    insert_attempt(conn, attempt, (Responder::Model, model), now)?;
    turn_lifecycle::start_with_context(conn, attempt.turn, context, now)
}

fn insert_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    (responder, model): (Responder, &str),
    now: Timestamp,
) -> QueryResult<()> {
    diesel::insert_into(llm_steps::table)
        .values((
            llm_steps::turn_id.eq(attempt.turn),
            llm_steps::step.eq(i64::from(attempt.step)),
            llm_steps::attempt.eq(i64::from(attempt.attempt)),
            llm_steps::state.eq(AttemptState::Started),
            llm_steps::epoch.eq(boot::CURRENT_EPOCH),
            llm_steps::brain.eq(responder),
            llm_steps::model.eq(model),
            llm_steps::started_at.eq(ms(now)),
        ))
        .cached()
        .run(conn)?;
    response_blocks::record_attempt_start(conn, attempt)
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
    pub response_id: Option<String>,
    /// True if the text may mention what somebody has watched, which no reader of the events receives.
    pub is_private: bool,
}

/// Tool call in a response.
#[derive(Debug, Clone)]
pub struct NewCall {
    pub name: String,
    pub arguments: ToolArguments,
    pub effect: EffectLevel,
}

/// Records a response with its calls, and returns the calls.
pub fn complete_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    response: &RecordedResponse,
    now: Timestamp,
) -> QueryResult<Vec<ToolCall>> {
    response_blocks::record_response(conn, attempt, response, now)?;
    cached_update(llm_steps::table.find((attempt.turn, i64::from(attempt.step), i64::from(attempt.attempt))))
        .set((
            llm_steps::state.eq(AttemptState::Complete),
            llm_steps::finish_reason.eq(stop_reason_text(&response.stop)),
            llm_steps::provider_response_id.eq(&response.response_id),
            llm_steps::tokens_in.eq(response.tokens.map(|tokens| saturating_i64(tokens.input))),
            llm_steps::tokens_cached.eq(response.tokens.map(|tokens| saturating_i64(tokens.cached))),
            llm_steps::tokens_out.eq(response.tokens.map(|tokens| saturating_i64(tokens.output))),
            llm_steps::finished_at.eq(ms(now)),
        ))
        .run(conn)?;
    insert_blocks(conn, attempt, response)?;
    let calls = (0_u32..).zip(&response.calls);
    let calls =
        calls.map(|(ord, call)| insert_call(conn, attempt, ord, call, now)).collect::<QueryResult<_>>()?;
    // Without calls, the turn ends in the same transaction, or soon starts another attempt. The row of the turn does not
    // change, because readers derive this state from the calls (`DISPLAYED_STATE` in
    // `conversation/record/turns.rs`).
    if !response.calls.is_empty() {
        record_event(conn, attempt.turn, now, StreamEventKind::Turn(StreamTurnState::WaitingForTools))?;
    }
    Ok(calls)
}

fn insert_call(
    conn: &mut Conn,
    AttemptId { turn, step, .. }: AttemptId,
    ord: u32,
    call: &NewCall,
    now: Timestamp,
) -> QueryResult<ToolCall> {
    let id = CallId::from_position(turn, step, ord);
    let row = diesel::insert_into(tool_calls::table)
        .values((
            tool_calls::turn_id.eq(turn),
            tool_calls::step.eq(i64::from(step)),
            tool_calls::ord.eq(i64::from(ord)),
            tool_calls::call_id.eq(id.as_str()),
            tool_calls::tool_name.eq(&call.name),
            tool_calls::effect.eq(call.effect),
            tool_calls::state.eq(CallPhase::Created),
            tool_calls::request.eq(arguments_json(&call.arguments)),
            tool_calls::created_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(tool_calls::id)
        .cached()
        .get_result(conn)?;
    record_event(conn, turn, now, StreamEventKind::ToolCall(row, CallPhase::Created))?;
    let NewCall { name, arguments, effect: effect_level } = call.clone();
    Ok(ToolCall { row, id, step, name, arguments, effect_level, state: CallState::Created })
}

/// Adds the call of a deletion that code starts without a model step: a renewed confirmation prompt, or an approved
/// removal request.
pub fn add_call(conn: &mut Conn, turn: TurnId, tool: &str, now: Timestamp) -> QueryResult<CallRow> {
    let id = diesel::insert_into(tool_calls::table)
        .values((
            tool_calls::turn_id.eq(turn),
            tool_calls::step.eq(0),
            tool_calls::ord.eq(0),
            tool_calls::call_id.eq(CallId::from_position(turn, 0, 0).as_str()),
            tool_calls::tool_name.eq(tool),
            tool_calls::effect.eq(EffectLevel::Destructive),
            tool_calls::state.eq(CallPhase::Created),
            tool_calls::request.eq(arguments_json(&ToolArguments::Object(serde_json::Map::new()))),
            tool_calls::created_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(tool_calls::id)
        .get_result(conn)?;
    record_event(conn, turn, now, StreamEventKind::ToolCall(id, CallPhase::Created))?;
    Ok(id)
}

fn insert_blocks(conn: &mut Conn, attempt: AttemptId, response: &RecordedResponse) -> QueryResult<()> {
    let mut contents = Vec::new();
    if !response.thinking.is_empty() {
        contents.push((BlockKind::Thinking, response.thinking.clone()));
    }
    if !response.text.is_empty() {
        contents.push((BlockKind::Text, response.text.clone()));
    }
    contents.extend(response.calls.iter().map(|call| (BlockKind::ToolCall, call.name.clone())));
    let block_count =
        blocks::table.filter(blocks::turn_id.eq(attempt.turn)).select(count_star()).single_value();
    for (kind, content) in contents {
        diesel::insert_into(blocks::table)
            .values((
                blocks::turn_id.eq(attempt.turn),
                blocks::idx.eq(block_count.assume_not_null()),
                blocks::step.eq(i64::from(attempt.step)),
                blocks::attempt.eq(i64::from(attempt.attempt)),
                blocks::type_.eq(kind),
                blocks::content.eq(content),
            ))
            .cached()
            .run(conn)?;
    }
    Ok(())
}

/// Failure of an attempt, as stored.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(in crate::store) enum StoredAttemptFailure {
    Transient {
        retry_after_ms: Option<u64>,
        message: String,
    },
    #[serde(rename = "lasting")]
    Permanent {
        message: String,
    },
    Interrupted,
    /// The operator resumed the turn after the failure, so the attempt no longer counts against any limit.
    Forgiven,
}

impl StoredAttemptFailure {
    pub(in crate::store) fn into_step_failure(self, at: Option<Timestamp>) -> StepFailure {
        match self {
            Self::Transient { retry_after_ms, .. } => StepFailure::Transient {
                at: at.unwrap_or_default(),
                retry_after: retry_after_ms.map(Duration::from_millis),
            },
            Self::Permanent { .. } => StepFailure::Permanent,
            Self::Interrupted | Self::Forgiven => StepFailure::Interrupted,
        }
    }
}

/// SQL expression for a stored failure without the error message of the model server.
pub(in crate::store) const FAILURE_WITHOUT_TEXT: &str = "json_replace(llm_steps.error, '$.message', '')";

/// Failure of an attempt without a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedAttempt {
    pub failure: StepFailure,
    /// Error message for the operator.
    pub message: String,
}

/// Ends an attempt without a response.
pub fn abandon_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    abandoned: &AbandonedAttempt,
    now: Timestamp,
) -> QueryResult<()> {
    let message = abandoned.message.clone();
    let stored = match abandoned.failure {
        StepFailure::Transient { retry_after, .. } => StoredAttemptFailure::Transient {
            retry_after_ms: retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            message,
        },
        StepFailure::Permanent => StoredAttemptFailure::Permanent { message },
        StepFailure::Interrupted => StoredAttemptFailure::Interrupted,
    };
    cached_update(llm_steps::table.find((attempt.turn, i64::from(attempt.step), i64::from(attempt.attempt))))
        .set((
            llm_steps::state.eq(AttemptState::Abandoned),
            llm_steps::error.eq(to_json(&stored)?),
            llm_steps::finished_at.eq(ms(now)),
        ))
        .run(conn)?;
    response_blocks::record_abandoned_attempt(conn, attempt, now)?;
    if turn_lifecycle::set_turn_state(conn, attempt.turn, StreamTurnState::Error, now)? {
        record_event(conn, attempt.turn, now, StreamEventKind::Turn(StreamTurnState::Error))?;
    }
    Ok(())
}

/// Ends the attempts that were running when the program stopped.
pub(in crate::store) fn abandon_interrupted_attempts(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let unfinished: Vec<TurnId> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::id).load(conn)?;
    unfinished.into_iter().try_for_each(|turn| abandon_unfinished_attempt(conn, turn, now))
}

/// Ends the running attempt of a turn, if there is one, after an internal error or a restart. The next attempt gets a
/// new number.
pub fn abandon_unfinished_attempt(conn: &mut Conn, turn: TurnId, now: Timestamp) -> QueryResult<()> {
    let is_running = llm_steps::turn_id.eq(turn).and(RUNNING);
    let abandoned: Vec<(i64, i64)> = cached_update(llm_steps::table.filter(is_running))
        .set((
            llm_steps::state.eq(AttemptState::Abandoned),
            llm_steps::error.eq(to_json(&StoredAttemptFailure::Interrupted)?),
            llm_steps::finished_at.eq(ms(now)),
        ))
        .returning((llm_steps::step, llm_steps::attempt))
        .get_results(conn)?;
    for (step, attempt) in abandoned {
        let id = AttemptId { turn, step: convert_integer(step)?, attempt: convert_integer(attempt)? };
        response_blocks::record_abandoned_attempt(conn, id, now)?;
    }
    Ok(())
}
