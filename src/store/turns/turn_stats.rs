//! Statistics of a finished turn: its result, the time spent in the model and in tools, and its calls.

use diesel::prelude::*;
use jiff::Timestamp;

use super::turn_lifecycle::TurnKind;
use crate::conversation::stream_events::{CallPhase, StreamTurnState};
use crate::conversation::transcript::TurnId;
use crate::conversation::turn::TURN_TIME;
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms, unreadable_column};
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

/// Loads the statistics of a turn; `None` if the turn is running.
pub fn load_turn_stats(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<TurnStats>> {
    let row: TurnStatsRow = turns::table.find(turn).select(TurnStatsRow::as_select()).first(conn)?;
    let Some(finished_at) = row.finished_at else { return Ok(None) };
    let run = convert_integer(row.runs)?;
    // A resume resets the deadline, and a restart moves it by the downtime. Time counted from here therefore excludes
    // earlier runs and the downtime.
    let run_start = row.deadline_at - TURN_TIME;
    let since = if run == 1 { Timestamp::MIN } else { run_start };
    let attempts: Vec<(Timestamp, Option<Timestamp>)> = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn).and(llm_steps::started_at.ge(ms(since))))
        .order((llm_steps::step, llm_steps::attempt))
        .select((llm_steps::started_at, llm_steps::finished_at))
        .load(conn)?;
    let mut calls = load_call_stats(conn, turn, since)?;
    calls.sort_by_key(|call| call.times.0);
    // The times of an attempt or call that a crash interrupted include the downtime, so they are limited to the total.
    let total_ms = millis_between(run_start, finished_at);
    let model_ms =
        covered_millis(attempts.into_iter().filter_map(|(from, to)| Some((from, to?)))).min(total_ms);
    let tools_ms = covered_millis(calls.iter().map(|call| call.times)).min(total_ms - model_ms);
    Ok(Some(TurnStats {
        kind: row.kind,
        run,
        result: match row.state {
            StreamTurnState::Completed => TurnResult::Completed,
            StreamTurnState::Canceled => TurnResult::Canceled,
            StreamTurnState::Failed | StreamTurnState::Error => TurnResult::Failed,
            StreamTurnState::Created | StreamTurnState::InProgress | StreamTurnState::WaitingForTools => {
                return Err(unreadable_column("turn state"));
            }
        },
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

/// Loads the calls that a turn requested or executed, without those that finished before `since`. A call that another
/// turn executes has no times.
fn load_call_stats(conn: &mut Conn, turn: TurnId, since: Timestamp) -> QueryResult<Vec<CallStats>> {
    let mut rows: Vec<CallStatsRow> = tool_calls::table
        .filter(tool_calls::turn_id.eq(turn).or(tool_calls::run_turn_id.eq(turn)))
        .select(CallStatsRow::as_select())
        .load(conn)?;
    rows.retain(|call| call.finished_at.is_none_or(|finished| finished >= since));
    Ok(rows.into_iter().map(|row| row.into_call_stats(turn)).collect())
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
