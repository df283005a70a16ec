//! Tool calls: start, outcome and queries. The start of a call is stored before its effect and the result after it, so
//! that no effect happens twice.

use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::Nullable;
use jiff::Timestamp;
use serde_json::Value;

use crate::conversation::stream_events::{CallPhase, StreamEventKind};
use crate::conversation::transcript::{
    CallResult, CallRow, CallState, ConversationId, EffectLevel, MediaKind, MediaRef, NOT_RUN, TurnId,
};
use crate::store::codec::{
    call_failure_json, call_result_json, ms, none_if_unreadable, parse_call_result, to_json,
};
use crate::store::column_types;
use crate::store::database::statement_cache::cached_update;
use crate::store::schema::{tool_call_items, tool_calls, turns};
use crate::store::service_identities::MovedSlots;
use crate::store::stream::recording::record_event;
use crate::store::{Conn, boot};

/// Number of newest turns of a conversation that are searched for shown titles: more than any model receives, and the calls
/// of an agent in an hour.
const SEARCHED_TURN_LIMIT: i64 = 300;
/// Number of newest results in these turns that are searched.
const SEARCHED_RESULT_LIMIT: i64 = 300;

/// Outcome of starting a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStartOutcome {
    Started,
    /// The call was started before, so its outcome must be determined instead; or the cancellation of its turn was
    /// requested.
    NotStartable,
}

/// Current status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// The call has a result or waits for a confirmation.
    Succeeded,
    Failed,
}

/// Columns of a call whose state changed.
#[derive(Debug, Clone, Copy, Queryable, Selectable)]
#[diesel(table_name = tool_calls)]
pub(in crate::store) struct ChangedCall {
    id: CallRow,
    turn_id: TurnId,
    state: CallPhase,
}

/// Records the events of calls whose state changed.
pub(in crate::store) fn record_changed_calls(
    conn: &mut Conn,
    changed: Vec<ChangedCall>,
    now: Timestamp,
) -> QueryResult<()> {
    changed.into_iter().try_for_each(|ChangedCall { id, turn_id, state }| {
        record_event(conn, turn_id, now, StreamEventKind::ToolCall(id, state))
    })
}

pub fn start_call(conn: &mut Conn, call: CallRow, now: Timestamp) -> QueryResult<CallStartOutcome> {
    // The cancellation of the turn may have been requested since the call was loaded.
    let turn = turns::table.filter(turns::id.eq(tool_calls::turn_id));
    let is_startable = tool_calls::state
        .eq(CallPhase::Created)
        .and(exists(turn.filter(turns::cancel_requested_at.is_null())));
    let started: Vec<ChangedCall> = cached_update(tool_calls::table.find(call).filter(is_startable))
        .set((
            tool_calls::state.eq(CallPhase::Running),
            tool_calls::attempts.eq(tool_calls::attempts + 1),
            tool_calls::started_at.eq(ms(now)),
            tool_calls::epoch.eq(boot::CURRENT_EPOCH.nullable()),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    if started.is_empty() {
        return Ok(CallStartOutcome::NotStartable);
    }
    record_changed_calls(conn, started, now)?;
    Ok(CallStartOutcome::Started)
}

/// Records the outcome of a call. An existing result is not replaced.
pub fn finish_call(conn: &mut Conn, call: CallRow, state: &CallState, now: Timestamp) -> QueryResult<()> {
    record_outcome(conn, call, state, (None, now))
}

/// Records the outcome of a read, whose start was not recorded.
pub fn finish_read(
    conn: &mut Conn,
    call: CallRow,
    state: &CallState,
    (started_at, finished_at): (Timestamp, Timestamp),
) -> QueryResult<()> {
    record_outcome(conn, call, state, (Some(started_at), finished_at))
}

define_sql_function! {
    /// Returns the first time that is not null.
    fn coalesce(
        first: Nullable<column_types::Timestamp>,
        second: Nullable<column_types::Timestamp>,
    ) -> Nullable<column_types::Timestamp>;
}

fn record_outcome(
    conn: &mut Conn,
    call: CallRow,
    state: &CallState,
    (started_at, now): (Option<Timestamp>, Timestamp),
) -> QueryResult<()> {
    let (phase, response, error) = match state {
        CallState::Done(result) => (CallPhase::Complete, Some(call_result_json(result)?), None),
        CallState::Failed(failure) => (CallPhase::Error, None, Some(call_failure_json(failure)?)),
        CallState::Canceled(reason) => (CallPhase::Canceled, None, Some(to_json(reason)?)),
        // The call is known to have had no effect, so it is reset to run again.
        CallState::Created => (CallPhase::Created, None, None),
        CallState::Running | CallState::AwaitingConfirmation => return Ok(()),
    };
    let finished_at = (phase != CallPhase::Created).then_some(now);
    let state = tool_calls::state;
    let is_unfinished =
        state.eq(CallPhase::Created).or(state.eq(CallPhase::Running)).or(state.eq(CallPhase::Unknown));
    let changed = cached_update(tool_calls::table.find(call).filter(is_unfinished.and(state.ne(phase))))
        .set((
            tool_calls::state.eq(phase),
            tool_calls::response.eq(response),
            tool_calls::error.eq(error),
            tool_calls::started_at.eq(coalesce(started_at.map(ms), tool_calls::started_at)),
            tool_calls::attempts.eq(tool_calls::attempts + i64::from(started_at.is_some())),
            tool_calls::finished_at.eq(finished_at),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    record_changed_calls(conn, changed, now)
}

/// Cancels the calls that a turn requested but never started.
pub(in crate::store) fn cancel_unstarted_calls(
    conn: &mut Conn,
    turn: TurnId,
    now: Timestamp,
) -> QueryResult<()> {
    let is_unstarted = tool_calls::turn_id.eq(turn).and(tool_calls::state.eq(CallPhase::Created));
    let canceled = cached_update(tool_calls::table.filter(is_unstarted))
        .set((
            tool_calls::state.eq(CallPhase::Canceled),
            tool_calls::error.eq(to_json(&NOT_RUN)?),
            tool_calls::finished_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    record_changed_calls(conn, canceled, now)
}

/// Number of starts of a call, and the time of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallStarts {
    pub count: i64,
    pub last_at: Option<Timestamp>,
}

pub fn load_call_starts(conn: &mut Conn, call: CallRow) -> QueryResult<CallStarts> {
    let (count, last_at) =
        tool_calls::table.find(call).select((tool_calls::attempts, tool_calls::started_at)).first(conn)?;
    Ok(CallStarts { count, last_at })
}

/// Loads the row id of the newest call; 0 if there is none.
pub fn load_newest_call_id(conn: &mut Conn) -> QueryResult<CallRow> {
    let newest: Option<CallRow> = tool_calls::table.select(diesel::dsl::max(tool_calls::id)).first(conn)?;
    Ok(newest.unwrap_or(CallRow(0)))
}

/// Loads the tools called after `call`, in order.
pub fn load_tools_called_after(conn: &mut Conn, call: CallRow) -> QueryResult<Vec<(String, CallStatus)>> {
    let calls: Vec<(String, CallPhase)> = tool_calls::table
        .filter(tool_calls::id.gt(call))
        .order(tool_calls::id)
        .select((tool_calls::tool_name, tool_calls::state))
        .load(conn)?;
    let status = |phase| match phase {
        CallPhase::Complete | CallPhase::Held => CallStatus::Succeeded,
        CallPhase::Created
        | CallPhase::Running
        | CallPhase::Unknown
        | CallPhase::Error
        | CallPhase::Canceled => CallStatus::Failed,
    };
    Ok(calls.into_iter().map(|(name, phase)| (name, status(phase))).collect())
}

/// Loads the media ids that recent tool results in this conversation have shown.
pub fn load_shown_media(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Vec<MediaRef>> {
    let moved = MovedSlots::load(conn)?;
    let results = load_recent_results(conn, conversation)?.into_iter();
    let valid = |(turn, result): (TurnId, CallResult)| {
        let mut shown = result.shown;
        shown.retain(|media| !moved.voids(media, turn));
        shown
    };
    Ok(results.flat_map(valid).collect())
}

/// Finds the title and the year of a catalog entry that a recent tool result in this conversation has shown.
pub fn find_shown_title(
    conn: &mut Conn,
    conversation: ConversationId,
    kind: MediaKind,
    catalog_id: i64,
) -> QueryResult<Option<(String, u16)>> {
    let key = match kind {
        MediaKind::Movie => "tmdb",
        MediaKind::Series => "tvdb",
    };
    let title_and_year = |entry: &Value| {
        let title = entry.get("title")?.as_str()?.to_owned();
        let year = entry.get("year").and_then(Value::as_u64).and_then(|year| u16::try_from(year).ok());
        (entry.get(key)?.as_i64()? == catalog_id).then(|| (title, year.unwrap_or(0)))
    };
    Ok(load_recent_results(conn, conversation)?.into_iter().find_map(|(_, result)| {
        let entries = result.for_model.get("results").and_then(Value::as_array);
        entries
            .and_then(|entries| entries.iter().find_map(title_and_year))
            .or_else(|| title_and_year(&result.for_model))
    }))
}

/// Loads the recent tool results of a conversation with their turns, newest first.
fn load_recent_results(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<Vec<(TurnId, CallResult)>> {
    let turns = turns::table
        .filter(turns::conversation_id.eq(conversation))
        .order(turns::id.desc())
        .limit(SEARCHED_TURN_LIMIT)
        .select(turns::id);
    let results: Vec<(TurnId, Option<String>)> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(turns).and(tool_calls::state.eq(CallPhase::Complete)))
        .order(tool_calls::id.desc())
        .limit(SEARCHED_RESULT_LIMIT)
        .select((tool_calls::turn_id, tool_calls::response))
        .load(conn)?;
    let stored = results.into_iter().filter_map(|(turn, text)| Some((turn, text?)));
    stored
        .filter_map(|(turn, text)| {
            let result = none_if_unreadable(parse_call_result(&text)).transpose()?;
            Some(result.map(|result| (turn, result)))
        })
        .collect()
}

/// Returns whether a turn has started a call or item that changes something.
pub fn has_started_change(conn: &mut Conn, turn: TurnId) -> QueryResult<bool> {
    let belongs_to_turn = || tool_calls::turn_id.eq(turn).or(tool_calls::run_turn_id.eq(turn));
    let changes =
        tool_calls::table.filter(belongs_to_turn()).filter(tool_calls::effect.ne(EffectLevel::Read));
    let started_call: Option<i64> =
        changes.filter(tool_calls::attempts.gt(0)).select(tool_calls::id).first(conn).optional()?;
    let started_item: Option<i64> = tool_call_items::table
        .filter(tool_call_items::tool_call_id.eq_any(changes.select(tool_calls::id)))
        .filter(tool_call_items::attempts.gt(0))
        .select(tool_call_items::tool_call_id)
        .first(conn)
        .optional()?;
    Ok(started_call.or(started_item).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::model_steps::{self, AttemptId, NewCall, RecordedResponse};
    use super::super::turn_lifecycle::{self, NewTurn, TurnKind, TurnPlan};
    use super::*;
    use crate::conversation::transcript::{EffectLevel, PhoneNumber, Responder, StopReason, ToolArguments};
    use crate::store::conversation::conversations;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn call_of_a_canceled_turn_is_not_started() {
        let conn = &mut scratch();
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, NOW).unwrap();
        let conversation = conversations::start_conversation(conn, user, "Nov 20", NOW).unwrap();
        let plan = TurnPlan::for_responder(Responder::Model);
        let new_turn = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
        let attempt = AttemptId {
            turn: turn_lifecycle::create_turn(conn, new_turn, NOW).unwrap(),
            step: 0,
            attempt: 1,
        };
        model_steps::start_attempt(conn, attempt, Responder::Model, "a model", NOW).unwrap();
        let call = || NewCall {
            name: "add_movie".to_owned(),
            arguments: ToolArguments::parse(json!({ "tmdb": 1 })),
            effect: EffectLevel::Write,
        };
        let response = RecordedResponse {
            text: String::new(),
            thinking: String::new(),
            stop: StopReason::Done,
            calls: vec![call(), call()],
            tokens: None,
            response_id: None,
            is_private: false,
        };
        model_steps::complete_attempt(conn, attempt, &response, NOW).unwrap();
        let last = load_newest_call_id(conn).unwrap();
        assert_eq!(start_call(conn, CallRow(last.0 - 1), NOW), Ok(CallStartOutcome::Started));
        turn_lifecycle::request_cancel(conn, user, NOW).unwrap();
        assert_eq!(start_call(conn, last, NOW), Ok(CallStartOutcome::NotStartable));
    }
}
