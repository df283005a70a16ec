//! What an ended turn was: how it ended, where its time went, which tools it called.

use diesel::prelude::*;

use super::Conn;
use super::codec::{number, unreadable};
use super::schema::{llm_steps, tool_calls, turns};
use super::turns::Kind;
use crate::conversation::transcript::TurnId;
use crate::conversation::turn::TURN_TIME;

/// An ended turn as it is counted; of a resumed one its last run, and nothing before. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub kind: Kind,
    /// From 1; and one more each time the operator resumed the turn.
    pub run: u32,
    pub end: Ended,
    /// Spent waiting for the model.
    pub model_ms: i64,
    /// Spent in tools; those that ran together count once.
    pub tools_ms: i64,
    /// All the rest.
    pub own_ms: i64,
    /// The calls of the run by the name of their tool.
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
    let row: (String, String, i64, i64, Option<i64>) = turns::table
        .find(turn.0)
        .select((turns::kind, turns::state, turns::runs, turns::deadline_at, turns::finished_at))
        .first(conn)?;
    let (kind, state, run, deadline, Some(ended)) = row else { return Ok(None) };
    let run = number(run)?;
    // A turn's deadline is put off when it is resumed, and by the time for which the program was down: from here on its
    // time was its own.
    let began = deadline - i64::try_from(TURN_TIME.as_millis()).map_err(|_| unreadable("turn time"))?;
    let since = if run == 1 { i64::MIN } else { began };
    let asked: Vec<(i64, Option<i64>)> = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn.0).and(llm_steps::started_at.ge(since)))
        .order((llm_steps::step, llm_steps::attempt))
        .select((llm_steps::started_at, llm_steps::finished_at))
        .load(conn)?;
    let mut called = calls(conn, turn, since)?;
    called.sort_by_key(|call| call.times.0);
    // What a crash cut off has no end of its own, but that of the time in which the program was down.
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
    /// From when to when it ran; no time where it never did.
    times: (i64, i64),
}

/// The calls that a turn asked for or carried out, without those that were over before `since`. One that another turn
/// carries out has no time here.
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
    let in_time = |(_, _, _, finished, _): &Row| finished.is_none_or(|finished| finished >= since);
    rows.into_iter().filter(in_time).map(called).collect()
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
