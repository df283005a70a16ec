//! What an ended turn was: how it ended, where its time went, which tools it called.

use diesel::prelude::*;

use super::Conn;
use super::codec::unreadable;
use super::schema::{llm_steps, tool_calls, turns};
use super::turns::Kind;
use crate::conversation::transcript::TurnId;

/// An ended turn as it is counted. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub kind: Kind,
    pub end: Ended,
    /// Spent waiting for the model.
    pub model_ms: i64,
    /// Spent in tools; those that ran together count once.
    pub tools_ms: i64,
    /// All the rest.
    pub own_ms: i64,
    /// The calls of the turn by the name of their tool.
    pub calls: Vec<(String, CallEnd)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    Completed,
    Canceled,
    Failed,
}

/// Where a call stood when its turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallEnd {
    Complete,
    /// A person is asked first.
    Held,
    Canceled,
    Error,
}

/// `None` while the turn is not over.
pub fn of(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<Account>> {
    let row: (String, String, i64, Option<i64>) = turns::table
        .find(turn.0)
        .select((turns::kind, turns::state, turns::created_at, turns::finished_at))
        .first(conn)?;
    let (kind, state, began, Some(ended)) = row else { return Ok(None) };
    let asked: Vec<(i64, Option<i64>)> = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn.0))
        .order((llm_steps::step, llm_steps::attempt))
        .select((llm_steps::started_at, llm_steps::finished_at))
        .load(conn)?;
    let mut called = calls(conn, turn)?;
    called.sort_by_key(|call| call.times.0);
    let tools_ms = covered(called.iter().map(|call| call.times));
    let model_ms = covered(asked.into_iter().filter_map(|(from, to)| Some((from, to?))));
    Ok(Some(Account {
        kind: super::turns::kind(&kind)?,
        end: match state.as_str() {
            "COMPLETED" => Ended::Completed,
            "CANCELED" => Ended::Canceled,
            "FAILED" | "ERROR" => Ended::Failed,
            _ => return Err(unreadable("turn state")),
        },
        model_ms,
        tools_ms,
        own_ms: (ended - began - model_ms - tools_ms).max(0),
        calls: called.into_iter().map(|call| (call.tool, call.end)).collect(),
    }))
}

struct Called {
    tool: String,
    end: CallEnd,
    /// From when to when it ran; no time where it never did.
    times: (i64, i64),
}

/// The calls that a turn asked for or carried out. One that another turn carries out has no time here.
fn calls(conn: &mut Conn, turn: TurnId) -> QueryResult<Vec<Called>> {
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
    // As two questions: with an "or" between them, neither index would do.
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
    rows.into_iter().map(called).collect()
}

/// How long at least one of these spans lasted, which are ordered by their beginnings.
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
