//! Statistics of an ended turn: its outcome, the time it spent in each part, and the tools it called.

use diesel::prelude::*;

use super::turn_lifecycle::TurnKind;
use crate::conversation::transcript::TurnId;
use crate::conversation::turn::TURN_TIME;
use crate::store::Conn;
use crate::store::codec::{convert_integer, unreadable_column};
use crate::store::schema::{llm_steps, tool_calls, turns};

/// Statistics of an ended turn. For a resumed turn the statistics cover only its last run. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStats {
    pub kind: TurnKind,
    /// Number of the run, from 1, which grows by one each time the operator resumes the turn.
    pub run: u32,
    pub result: TurnResult,
    /// Time spent waiting for the model.
    pub model_ms: i64,
    /// Time spent in tools; tools that ran concurrently count once.
    pub tools_ms: i64,
    /// Remaining time of the run.
    pub own_ms: i64,
    /// Calls of the run, by the name of their tool.
    pub calls: Vec<(String, CallEnd)>,
}

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
    /// The call waits for a confirmation by a user.
    Held,
    Canceled,
    Error,
}

/// Loads the statistics of a turn; `None` if the turn is not over.
pub fn load_turn_stats(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<TurnStats>> {
    let row: (String, String, i64, i64, Option<i64>) = turns::table
        .find(turn.0)
        .select((turns::kind, turns::state, turns::runs, turns::deadline_at, turns::finished_at))
        .first(conn)?;
    let (kind, state, run, deadline, Some(ended)) = row else { return Ok(None) };
    let run = convert_integer(run)?;
    // The deadline of a turn is moved when the turn is resumed, and by the downtime of the program. Time counted from
    // here therefore excludes the downtime.
    let began =
        deadline - i64::try_from(TURN_TIME.as_millis()).map_err(|_| unreadable_column("turn time"))?;
    let since = if run == 1 { i64::MIN } else { began };
    let asked: Vec<(i64, Option<i64>)> = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn.0).and(llm_steps::started_at.ge(since)))
        .order((llm_steps::step, llm_steps::attempt))
        .select((llm_steps::started_at, llm_steps::finished_at))
        .load(conn)?;
    let mut called = load_call_stats(conn, turn, since)?;
    called.sort_by_key(|call| call.times.0);
    // A call that a crash interrupted has no end of its own: its end is the end of the downtime.
    let whole_ms = (ended - began).max(0);
    let model_ms = covered_millis(asked.into_iter().filter_map(|(from, to)| Some((from, to?)))).min(whole_ms);
    let tools_ms = covered_millis(called.iter().map(|call| call.times)).min(whole_ms - model_ms);
    Ok(Some(TurnStats {
        kind: super::turn_lifecycle::parse_turn_kind(&kind)?,
        run,
        result: match state.as_str() {
            "COMPLETED" => TurnResult::Completed,
            "CANCELED" => TurnResult::Canceled,
            "FAILED" | "ERROR" => TurnResult::Failed,
            _ => return Err(unreadable_column("turn state")),
        },
        model_ms,
        tools_ms,
        own_ms: whole_ms - model_ms - tools_ms,
        calls: called.into_iter().map(|call| (call.tool, call.end)).collect(),
    }))
}

struct CallStats {
    tool: String,
    end: CallEnd,
    /// Start and end of the call; both are 0 if the call never ran.
    times: (i64, i64),
}

/// Loads the calls that a turn requested or executed, without those that were over before `since`. A call that another
/// turn executes has no time here.
fn load_call_stats(conn: &mut Conn, turn: TurnId, since: i64) -> QueryResult<Vec<CallStats>> {
    type CallStatsRow = (String, String, Option<i64>, Option<i64>, Option<i64>);
    let columns = (
        tool_calls::tool_name,
        tool_calls::state,
        tool_calls::started_at,
        tool_calls::finished_at,
        tool_calls::run_turn_id,
    );
    let mut rows: Vec<CallStatsRow> =
        tool_calls::table.filter(tool_calls::turn_id.eq(turn.0)).select(columns).load(conn)?;
    // Two queries: with an `OR` between the conditions, SQLite could use neither index.
    let carried_out = tool_calls::run_turn_id.eq(turn.0).and(tool_calls::turn_id.ne(turn.0));
    rows.extend(tool_calls::table.filter(carried_out).select(columns).load::<CallStatsRow>(conn)?);
    let called = |(tool, state, started, finished, run_by): CallStatsRow| {
        let elsewhere = run_by.is_some_and(|by| by != turn.0);
        let end = match state.as_str() {
            _ if elsewhere => CallEnd::Held,
            "complete" => CallEnd::Complete,
            "created" | "held" => CallEnd::Held,
            "canceled" => CallEnd::Canceled,
            "running" | "unknown" | "error" => CallEnd::Error,
            _ => return Err(unreadable_column("call state")),
        };
        let times = started.zip(finished).filter(|_| !elsewhere).unwrap_or_default();
        Ok(CallStats { tool, end, times })
    };
    let in_time = |(_, _, _, finished, _): &CallStatsRow| finished.is_none_or(|finished| finished >= since);
    rows.into_iter().filter(in_time).map(called).collect()
}

/// Returns the time covered by at least one of these intervals, which must be ordered by start.
fn covered_millis(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
    let mut covered = 0;
    let mut until = i64::MIN;
    for (from, to) in spans {
        covered += (to - from.max(until)).max(0);
        until = until.max(to);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::covered_millis;

    #[test]
    fn overlapping_spans_count_once() {
        assert_eq!(covered_millis([(0, 10), (2, 5), (8, 12), (20, 25)].into_iter()), 17);
        assert_eq!(covered_millis(std::iter::empty()), 0);
    }
}
