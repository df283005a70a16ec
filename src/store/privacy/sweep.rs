//! Automatic erasure of text after its retention period: oldest first, a few rows per run, each run continuing where
//! the previous one ended.

use std::collections::HashSet;

use diesel::prelude::*;
use jiff::Timestamp;

use super::erase::{self, Scope};
use super::words;
use crate::conversation::transcript::UserId;
use crate::store::codec::{ms, time};
use crate::store::memory::facts;
use crate::store::pending::{self, Closing};
use crate::store::schema::{
    agent_responses, approvals, follows, inbound_events, notices, outbox, pending_actions, reactions,
    requests, sweeps, tool_calls, turns,
};
use crate::store::{Conn, QueryResult, joining};

/// Progress of a run: more may be left to erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swept {
    More,
    Done,
}

/// Erases text from before `before` in at most `limit` rows of each table.
pub fn sweep(conn: &mut Conn, before: Timestamp, limit: i64, now: Timestamp) -> QueryResult<Swept> {
    // First of all, because this text should already be gone.
    if words::purge(conn, now)? == Swept::More {
        return Ok(Swept::More);
    }
    joining::erase_old_first_requests(conn, now)?;
    close_overdue(conn, before)?;
    let mut swept = forget_ended_follows(conn, before, limit)?;
    // Ended facts are also found by their end time, since a fact may be active for years.
    if facts::erase_ended(conn, before, limit, now)? >= limit {
        swept = Swept::More;
    }
    for table in Table::ALL {
        let after = known(conn, table.name())?.unwrap_or(0);
        let rows = table.rows(conn, after, limit)?;
        // An unsettled row holds back the rows after it, so that no row is skipped permanently.
        let ready = rows.iter().take_while(|row| row.over_at.is_some_and(|at| at < ms(before)));
        let (count, last) = ready.fold((0, None), |(count, _), row| (count + 1, Some(row.id)));
        let Some(up_to) = last else { continue };
        table.erase(conn, Scope::Rows { after, up_to })?;
        if table.is_indexed() {
            words::of_old_texts(conn, now)?;
        }
        remember(conn, table.name(), up_to, now)?;
        if count >= limit {
            swept = Swept::More;
        }
    }
    Ok(swept)
}

/// Closes the confirmation prompts that expired before `before`, and those created before then whose message failed or
/// was suppressed.
fn close_overdue(conn: &mut Conn, before: Timestamp) -> QueryResult<()> {
    let open: Vec<(i64, Option<i64>, i64, String)> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .select((
            pending_actions::user_id,
            pending_actions::expires_at,
            pending_actions::created_at,
            outbox::state,
        ))
        .load(conn)?;
    for (user, expires_at, created_at, state) in open {
        let over_at = match (expires_at, state.as_str()) {
            (Some(at), _) => Some(at),
            (None, "failed" | "suppressed") => Some(created_at),
            (None, _) => None,
        };
        if let Some(at) = over_at.filter(|at| *at < ms(before)) {
            pending::close(conn, UserId(user), Closing::Expired, time(at)?)?;
        }
    }
    Ok(())
}

/// Deletes the follows that ended before `before`. They are found by their end time: a follow may be open for years,
/// and would hold back all that began later.
fn forget_ended_follows(conn: &mut Conn, before: Timestamp, limit: i64) -> QueryResult<Swept> {
    let ended: Vec<i64> = follows::table
        .filter(follows::ended_at.lt(ms(before)))
        .order(follows::ended_at)
        .limit(limit)
        .select(follows::id)
        .load(conn)?;
    let full = i64::try_from(ended.len()).is_ok_and(|count| count >= limit);
    for id in ended {
        diesel::delete(follows::table.find(id)).execute(conn)?;
    }
    Ok(if full { Swept::More } else { Swept::Done })
}

#[derive(Debug, Clone, Copy)]
enum Table {
    Received,
    Turns,
    Sent,
    Reactions,
    Requests,
    Titles,
    Notices,
    Remembered,
}

/// Row with the time since which it is settled.
struct Row {
    id: i64,
    over_at: Option<i64>,
}

impl Table {
    const ALL: [Self; 8] = [
        Self::Received,
        Self::Turns,
        Self::Sent,
        Self::Reactions,
        Self::Requests,
        Self::Titles,
        Self::Notices,
        Self::Remembered,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Received => "inbound_events",
            Self::Turns => "turns",
            Self::Sent => "outbox",
            Self::Reactions => "reactions",
            Self::Requests => "approvals",
            Self::Titles => "requests",
            Self::Notices => "notices",
            Self::Remembered => "agent_responses",
        }
    }

    /// Loads the next rows after an id, in order.
    fn rows(self, conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
        match self {
            Self::Received => received(conn, after, limit),
            Self::Turns => finished_turns(conn, after, limit),
            Self::Sent => sent(conn, after, limit),
            Self::Reactions => reacted(conn, after, limit),
            Self::Requests => requested(conn, after, limit),
            Self::Titles => asked_for(conn, after, limit),
            Self::Notices => noticed(conn, after, limit),
            Self::Remembered => remembered(conn, after, limit),
        }
    }

    /// Returns whether the rows of the table are in a full-text index.
    fn is_indexed(self) -> bool {
        match self {
            Self::Received | Self::Sent | Self::Remembered => true,
            Self::Turns | Self::Reactions | Self::Requests | Self::Titles | Self::Notices => false,
        }
    }

    fn erase(self, conn: &mut Conn, scope: Scope) -> QueryResult<()> {
        match self {
            Self::Received => erase::received(conn, scope),
            Self::Turns => erase::turns(conn, scope),
            Self::Sent => erase::sent(conn, scope),
            Self::Reactions => erase::reactions(conn, scope),
            Self::Requests => erase::requests(conn, scope),
            Self::Titles => erase::titles(conn, scope),
            Self::Notices => erase::notices(conn, scope),
            Self::Remembered => erase::remembered(conn, scope),
        }
    }
}

fn received(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    let rows: Vec<(i64, i64, Option<String>)> = inbound_events::table
        .filter(inbound_events::id.gt(after))
        .order(inbound_events::id)
        .limit(limit)
        .select((inbound_events::id, inbound_events::received_at, inbound_events::outcome))
        .load(conn)?;
    Ok(rows.into_iter().map(|(id, at, outcome)| Row { id, over_at: outcome.map(|_| at) }).collect())
}

/// Loads turns with the time they finished. A turn is unsettled while its confirmation prompt is open, or while a later
/// turn executes its deletion.
fn finished_turns(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    // Separate queries: a join would read every tool call ever made.
    let held = pending_actions::table.select(pending_actions::tool_call_id);
    let asking: Vec<i64> =
        tool_calls::table.filter(tool_calls::id.eq_any(held)).select(tool_calls::turn_id).load(conn)?;
    let live = turns::table.filter(turns::finished_at.is_null()).select(turns::id.nullable());
    let deleting: Vec<i64> = tool_calls::table
        .filter(tool_calls::run_turn_id.eq_any(live))
        .select(tool_calls::turn_id)
        .load(conn)?;
    let unsettled: HashSet<i64> = asking.into_iter().chain(deleting).collect();
    let rows: Vec<(i64, Option<i64>)> = turns::table
        .filter(turns::id.gt(after))
        .order(turns::id)
        .limit(limit)
        .select((turns::id, turns::finished_at))
        .load(conn)?;
    let row = |(id, at): (i64, Option<i64>)| Row { id, over_at: at.filter(|_| !unsettled.contains(&id)) };
    Ok(rows.into_iter().map(row).collect())
}

fn sent(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    let rows: Vec<(i64, i64, String)> = outbox::table
        .filter(outbox::id.gt(after))
        .order(outbox::id)
        .limit(limit)
        .select((outbox::id, outbox::created_at, outbox::state))
        .load(conn)?;
    let is_settled = |state: &str| matches!(state, "accepted" | "failed" | "suppressed");
    let row = |(id, at, state): (i64, i64, String)| Row { id, over_at: is_settled(&state).then_some(at) };
    Ok(rows.into_iter().map(row).collect())
}

fn reacted(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    let rows: Vec<(i64, i64)> = reactions::table
        .filter(reactions::id.gt(after))
        .order(reactions::id)
        .limit(limit)
        .select((reactions::id, reactions::created_at))
        .load(conn)?;
    Ok(rows.into_iter().map(|(id, at)| Row { id, over_at: Some(at) }).collect())
}

fn requested(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    let rows: Vec<(i64, Option<i64>)> = approvals::table
        .filter(approvals::id.gt(after))
        .order(approvals::id)
        .limit(limit)
        .select((approvals::id, approvals::settled_at))
        .load(conn)?;
    Ok(rows.into_iter().map(|(id, over_at)| Row { id, over_at }).collect())
}

fn asked_for(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    let rows: Vec<(i64, Option<i64>)> = requests::table
        .filter(requests::id.gt(after))
        .order(requests::id)
        .limit(limit)
        .select((requests::id, requests::settled_at))
        .load(conn)?;
    Ok(rows.into_iter().map(|(id, over_at)| Row { id, over_at }).collect())
}

fn noticed(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    let rows: Vec<(i64, i64)> = notices::table
        .filter(notices::id.gt(after))
        .order(notices::id)
        .limit(limit)
        .select((notices::id, notices::created_at))
        .load(conn)?;
    Ok(rows.into_iter().map(|(id, at)| Row { id, over_at: Some(at) }).collect())
}

fn remembered(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<Row>> {
    let rows: Vec<(i64, i64)> = agent_responses::table
        .filter(agent_responses::id.gt(after))
        .order(agent_responses::id)
        .limit(limit)
        .select((agent_responses::id, agent_responses::created_at))
        .load(conn)?;
    Ok(rows.into_iter().map(|(id, at)| Row { id, over_at: Some(at) }).collect())
}

/// Returns the id of the last row that the sweep has processed.
pub(super) fn known(conn: &mut Conn, name: &str) -> QueryResult<Option<i64>> {
    sweeps::table.find(name).select(sweeps::last_id).first(conn).optional()
}

pub(super) fn remember(conn: &mut Conn, name: &str, last: i64, now: Timestamp) -> QueryResult<()> {
    diesel::insert_into(sweeps::table)
        .values((sweeps::name.eq(name), sweeps::last_id.eq(last), sweeps::updated_at.eq(ms(now))))
        .on_conflict(sweeps::name)
        .do_update()
        .set((sweeps::last_id.eq(last), sweeps::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}
