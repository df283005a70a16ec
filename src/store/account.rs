//! Statistics of an ended turn: its outcome, the time it spent in each part, and the tools it called.

use diesel::prelude::*;

use super::Conn;
use super::codec::{number, unreadable};
use super::schema::{llm_steps, tool_calls, turns};
use super::turns::Kind;
use crate::conversation::transcript::TurnId;
use crate::conversation::turn::TURN_TIME;

/// Statistics of an ended turn. Those of a resumed turn cover its last run only, and nothing before. Times are in
/// milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub kind: Kind,
    /// Number of the run, from 1. It grows by one each time the operator resumes the turn.
    pub run: u32,
    pub end: Ended,
    /// Time spent waiting for the model.
    pub model_ms: i64,
    /// Time spent in tools; tools that ran concurrently count once.
    pub tools_ms: i64,
    /// All the remaining time.
    pub own_ms: i64,
    /// Calls of the run, by the name of their tool.
    pub calls: Vec<(String, CallEnd)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
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

/// Loads the statistics of a turn; `None` while the turn is not over.
pub fn of(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<Account>> {
    let row: (String, String, i64, i64, Option<i64>) = turns::table
        .find(turn.0)
        .select((turns::kind, turns::state, turns::runs, turns::deadline_at, turns::finished_at))
        .first(conn)?;
    let (kind, state, run, deadline, Some(ended)) = row else { return Ok(None) };
    let run = number(run)?;
    // The deadline of a turn is moved when the turn is resumed, and by the time for which the program was down. So the
    // time counted from here is the turn's own.
    let began = deadline - i64::try_from(TURN_TIME.as_millis()).map_err(|_| unreadable("turn time"))?;
    let since = if run == 1 { i64::MIN } else { began };
    let asked: Vec<(i64, Option<i64>)> = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn.0).and(llm_steps::started_at.ge(since)))
        .order((llm_steps::step, llm_steps::attempt))
        .select((llm_steps::started_at, llm_steps::finished_at))
        .load(conn)?;
    let mut called = calls(conn, turn, since)?;
    called.sort_by_key(|call| call.times.0);
    // A call that a crash interrupted has no end of its own: it ends where the downtime of the program ends.
    let whole_ms = (ended - began).max(0);
    let model_ms = covered(asked.into_iter().filter_map(|(from, to)| Some((from, to?)))).min(whole_ms);
    let tools_ms = covered(called.iter().map(|call| call.times)).min(whole_ms - model_ms);
    Ok(Some(Account {
        kind: super::turns::kind(&kind)?,
        run,
        end: match state.as_str() {
            "COMPLETED" => Ended::Completed,
            "CANCELED" => Ended::Canceled,
            "FAILED" | "ERROR" => Ended::Failed,
            _ => return Err(unreadable("turn state")),
        },
        model_ms,
        tools_ms,
        own_ms: whole_ms - model_ms - tools_ms,
        calls: called.into_iter().map(|call| (call.tool, call.end)).collect(),
    }))
}

struct Called {
    tool: String,
    end: CallEnd,
    /// Start and end of the call; both are 0 if it never ran.
    times: (i64, i64),
}

/// Loads the calls that a turn requested or carried out, without those that were over before `since`. A call that
/// another turn carries out has no time here.
fn calls(conn: &mut Conn, turn: TurnId, since: i64) -> QueryResult<Vec<Called>> {
    type Row = (String, String, Option<i64>, Option<i64>, Option<i64>);
    let columns = (
        tool_calls::tool_name,
        tool_calls::state,
        tool_calls::started_at,
        tool_calls::finished_at,
        tool_calls::run_turn_id,
    );
    let mut rows: Vec<Row> =
        tool_calls::table.filter(tool_calls::turn_id.eq(turn.0)).select(columns).load(conn)?;
    // As two queries: with an `OR` between them, SQLite could use neither index.
    let carried_out = tool_calls::run_turn_id.eq(turn.0).and(tool_calls::turn_id.ne(turn.0));
    rows.extend(tool_calls::table.filter(carried_out).select(columns).load::<Row>(conn)?);
    let called = |(tool, state, started, finished, run_by): Row| {
        let elsewhere = run_by.is_some_and(|by| by != turn.0);
        let end = match state.as_str() {
            _ if elsewhere => CallEnd::Held,
            "complete" => CallEnd::Complete,
            "created" | "held" => CallEnd::Held,
            "canceled" => CallEnd::Canceled,
            "running" | "unknown" | "error" => CallEnd::Error,
            _ => return Err(unreadable("call state")),
        };
        let times = started.zip(finished).filter(|_| !elsewhere).unwrap_or_default();
        Ok(Called { tool, end, times })
    };
    let in_time = |(_, _, _, finished, _): &Row| finished.is_none_or(|finished| finished >= since);
    rows.into_iter().filter(in_time).map(called).collect()
}

/// Returns the time covered by at least one of these spans, which are ordered by their starts.
fn covered(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
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
    use super::covered;

    #[test]
    fn what_ran_together_counts_once() {
        assert_eq!(covered([(0, 10), (2, 5), (8, 12), (20, 25)].into_iter()), 17);
        assert_eq!(covered(std::iter::empty()), 0);
    }
}
