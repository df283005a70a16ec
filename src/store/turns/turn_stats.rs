//! Statistics of a finished turn: its result, the time spent in the model and in tools, and its calls.

use std::collections::BTreeMap;

use diesel::prelude::*;
use diesel::result::Error as QueryError;
use jiff::Timestamp;

use super::turn_lifecycle::TurnKind;
use crate::conversation::stream_events::{CallPhase, StreamTurnState};
use crate::conversation::transcript::{CallRow, TurnId};
use crate::conversation::turn::TURN_TIME;
use crate::store::Conn;
use crate::store::codec::{convert_integer, unreadable_column};
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{llm_steps, tool_calls, turns};

/// Statistics of a finished turn; for a resumed turn, of its last run. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStats {
    pub kind: TurnKind,
    /// Number of the run, from 1. Each resume by the operator starts another run.
    pub run: u32,
    pub result: TurnResult,
    /// Time spent waiting for the model.
    pub model_ms: i64,
    /// Time spent in tools; tools that ran concurrently count once.
    pub tools_ms: i64,
    /// Time spent in Dialarr itself: the rest of the run.
    pub own_ms: i64,
    /// Calls of the run, by the name of their tool.
    pub calls: Vec<(String, CallEnd)>,
}

/// Result of a finished turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnResult {
    Completed,
    Canceled,
    Failed,
}

/// State of a call when its turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallEnd {
    Complete,
    /// The call waited for a confirmation, or another turn executes it.
    AwaitingConfirmation,
    Canceled,
    Error,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = turns)]
struct TurnStatsRow {
    kind: TurnKind,
    state: StreamTurnState,
    runs: i64,
    deadline_at: Timestamp,
    finished_at: Option<Timestamp>,
}

impl TurnStatsRow {
    fn result(&self) -> QueryResult<TurnResult> {
        match self.state {
            StreamTurnState::Completed => Ok(TurnResult::Completed),
            StreamTurnState::Canceled => Ok(TurnResult::Canceled),
            StreamTurnState::Failed | StreamTurnState::Error => Ok(TurnResult::Failed),
            StreamTurnState::Created | StreamTurnState::InProgress | StreamTurnState::WaitingForTools => {
                Err(unreadable_column("turn state"))
            }
        }
    }
}

/// Loads the statistics of a turn; `None` if the turn is running.
pub fn load_turn_stats(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<TurnStats>> {
    let StoredTurnStats { turn: row, attempts, calls } = load_stored_stats(conn, turn)?;
    let Some(finished_at) = row.finished_at else { return Ok(None) };
    let run = convert_integer(row.runs)?;
    // A resume resets the deadline, and a restart moves it by the downtime. Time counted from here therefore excludes
    // earlier runs and the downtime.
    let run_start = row.deadline_at - TURN_TIME;
    let since = if run == 1 { Timestamp::MIN } else { run_start };
    let attempts = attempts.into_iter().filter(|attempt| attempt.started_at >= since);
    let mut calls: Vec<CallStats> = calls
        .into_iter()
        .filter(|call| call.finished_at.is_none_or(|finished| finished >= since))
        .map(|call| call.into_call_stats(turn))
        .collect();
    calls.sort_by_key(|call| call.times.0);
    // The times of an attempt or call that a crash interrupted include the downtime, so they are limited to the total.
    let total_ms = millis_between(run_start, finished_at);
    let model_ms =
        covered_millis(attempts.filter_map(|attempt| Some((attempt.started_at, attempt.finished_at?))))
            .min(total_ms);
    let tools_ms = covered_millis(calls.iter().map(|call| call.times)).min(total_ms - model_ms);
    Ok(Some(TurnStats {
        kind: row.kind,
        run,
        result: row.result()?,
        model_ms,
        tools_ms,
        own_ms: total_ms - model_ms - tools_ms,
        calls: calls.into_iter().map(|call| (call.tool, call.end)).collect(),
    }))
}

/// Statistics of one call.
struct CallStats {
    tool: String,
    end: CallEnd,
    /// Start and end of the call; both are the epoch if the call never ran.
    times: (Timestamp, Timestamp),
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tool_calls)]
struct CallStatsRow {
    id: CallRow,
    tool_name: String,
    state: CallPhase,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    run_turn_id: Option<TurnId>,
}

impl CallStatsRow {
    fn into_call_stats(self, turn: TurnId) -> CallStats {
        let runs_in_other_turn = self.run_turn_id.is_some_and(|run_turn| run_turn != turn);
        let end = match self.state {
            _ if runs_in_other_turn => CallEnd::AwaitingConfirmation,
            CallPhase::Complete => CallEnd::Complete,
            CallPhase::Created | CallPhase::Held => CallEnd::AwaitingConfirmation,
            CallPhase::Canceled => CallEnd::Canceled,
            CallPhase::Running | CallPhase::Unknown | CallPhase::Error => CallEnd::Error,
        };
        let times = self.started_at.zip(self.finished_at).filter(|_| !runs_in_other_turn).unwrap_or_default();
        CallStats { tool: self.tool_name, end, times }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = llm_steps)]
struct AttemptStatsRow {
    step: i64,
    attempt: i64,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
}

/// Rows of a turn, its attempts in order, and the calls that it requested or executed.
struct StoredTurnStats {
    turn: TurnStatsRow,
    attempts: Vec<AttemptStatsRow>,
    calls: Vec<CallStatsRow>,
}

/// Loads the rows of a turn in a single statement, which combines each attempt with each call.
fn load_stored_stats(conn: &mut Conn, turn: TurnId) -> QueryResult<StoredTurnStats> {
    let is_call = tool_calls::turn_id.eq(turns::id).or(tool_calls::run_turn_id.eq(turns::id.nullable()));
    let rows: Vec<(TurnStatsRow, Option<AttemptStatsRow>, Option<CallStatsRow>)> = turns::table
        .find(turn)
        .left_join(llm_steps::table)
        .left_join(tool_calls::table.on(is_call))
        .select((
            TurnStatsRow::as_select(),
            Option::<AttemptStatsRow>::as_select(),
            Option::<CallStatsRow>::as_select(),
        ))
        .cached()
        .load(conn)?;
    let (mut attempts, mut calls, mut last_turn) = (BTreeMap::new(), BTreeMap::new(), None);
    for (turn, attempt, call) in rows {
        last_turn = Some(turn);
        attempts.extend(attempt.map(|attempt| ((attempt.step, attempt.attempt), attempt)));
        calls.extend(call.map(|call| (call.id, call)));
    }
    let turn = last_turn.ok_or(QueryError::NotFound)?;
    Ok(StoredTurnStats {
        turn,
        attempts: attempts.into_values().collect(),
        calls: calls.into_values().collect(),
    })
}

/// Returns the time covered by at least one of these intervals, which must be ordered by start.
fn covered_millis(intervals: impl Iterator<Item = (Timestamp, Timestamp)>) -> i64 {
    let mut covered = 0;
    let mut covered_until = Timestamp::MIN;
    for (from, to) in intervals {
        covered += millis_between(from.max(covered_until), to);
        covered_until = covered_until.max(to);
    }
    covered
}

/// Returns the milliseconds from `from` to `to`; 0 if `to` is earlier.
fn millis_between(from: Timestamp, to: Timestamp) -> i64 {
    (to.as_millisecond() - from.as_millisecond()).max(0)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::covered_millis;

    #[test]
    fn overlapping_intervals_count_once() {
        let time_at = |ms| Timestamp::from_millisecond(ms).unwrap();
        let intervals = [(0, 10), (2, 5), (8, 12), (20, 25)].map(|(from, to)| (time_at(from), time_at(to)));
        assert_eq!(covered_millis(intervals.into_iter()), 17);
        assert_eq!(covered_millis(std::iter::empty()), 0);
    }
}
